// SPDX-License-Identifier: Apache-2.0
// SSA over PTX values: what build_graph() makes of a bound body (callees inlined) and the emitter walks.
// Every `reg` operand of an instruction in here holds a ValueId, not a RegisterId.
#pragma once

#include "frontend/module_loader.h"
#include "translator/analysis/graph/shape.h"
#include "translator/compile.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ptarmigan::translator {

using BlockId = std::uint32_t;
inline constexpr BlockId no_block = 0xffffffffu;

struct SsaValue {
    ptx::ScalarType type = ptx::ScalarType::none;
    BlockId block = no_block; ///< where it is defined; no_block for an undefined register's value
    bool is_phi = false;
    bool is_undefined = false; ///< read before any write: any value will do
    bool is_constant = false;  ///< known immediate after folding of mov/cvt chains
    std::uint64_t constant = 0;
    Shape shape;
    bool lane_zero = false; ///< shape found by thread_bits.h: the base is the instruction's result for lane 0
    std::string name;       ///< register name, for dumps
};

struct Phi {
    ValueId result = no_value;
    std::vector<ValueId> incoming; ///< parallel to Block::predecessors
};

/// What lies `ahead` + `factor` * `stride` bytes from a load's address is worth a prefetch; nothing if both are 0.
struct Prefetch {
    std::int32_t ahead = 0;
    std::int32_t factor = 0;
    ValueId stride = no_value; ///< uniform, and alive wherever the load is
    /// Only while `counter` + `counter_ahead` + `counter_factor` * `stride` is less than `bound`, or greater where it
    /// goes down; always if there is none. As alive as `stride`.
    ValueId counter = no_value, bound = no_value;
    std::int32_t counter_ahead = 0, counter_factor = 0;
    std::int64_t bound_constant = 0; ///< where `bound` is no value
    explicit operator bool() const { return ahead != 0 || factor != 0; }
};

/// Where lanes of an access to shared memory that take no part may have addresses: plan_shared_edges().
struct SharedEdges {
    bool below = false, beyond = false;
};

/// One instruction with SSA operands. A guarded instruction (guard != no_id) that writes registers keeps the previous
/// value of each written register in lanes whose guard is false: `previous` lists them in the order of the writes.
/// A previous value that is_undefined needs no blend: the result may then be uniform although the guard is not.
/// Calls, barriers and terminators are never guarded here: build_graph makes branches of those.
/// Call: elements of its lists are reg (scalar .param variables become SSA values), imm, or variable (scope frame).
struct GraphInstruction {
    ptx::Instruction inst;
    std::vector<ValueId> previous;
    const ptx::Body* body =
        nullptr;                ///< the body it came from (prototypes, target lists); operands use FunctionGraph::pool
    std::uint32_t function = 0; ///< FunctionId it came from, for messages
    std::uint16_t check_alignment =
        0;                         ///< set of operands (bit i: operands[i]) to be checked at run time: plan_alignment()
    std::uint8_t lane_granule = 0; ///< an ld or st of interleaved local memory, see interleave_locals.h; 0: it is none
    Prefetch prefetch, second_prefetch; ///< of a load: plan_prefetch()
    /// Of a load by a stride that only the launch knows: bytes that are worth a prefetch if lanes are neighbours.
    std::uint16_t neighbours_ahead = 0;
    SharedEdges shared_edges;
    bool streams = false;             ///< a store that may go past the caches: plan_streaming()
    bool has_unknown_operand = false; ///< arithmetic on doubles: mark_unknown_operands()
    bool hides_value = false;         ///< a store of what may be a constant: mark_unknown_operands()
    bool meets_whole_warp = false;    ///< a collective that all live lanes of the warp come to: mark_whole_meetings()
    std::uint32_t hand_over = 0;      ///< number of the point in front of it, 0: none; see hand_over_points.h
    /// A call through a pointer whose lanes come here only for the functions of FunctionGraph::narrowed_targets with
    /// this number (flatten.cpp); no_id: for all that it may reach.
    std::uint32_t narrowed = ptx::no_id;
    bool is_wrong_target = false; ///< a trap: of a call through a pointer to none of the functions it may reach
};

struct Terminator {
    enum class Kind : std::uint8_t { jump, branch, indexed, exit } kind = Kind::exit;
    ValueId condition = no_value; ///< branch: predicate; indexed: u32 index
    bool negated = false;         ///< branch: taken when the predicate is false
    // branch: successors[0] taken, successors[1] fall-through. indexed: one successor per target (may repeat).
    SourceLocation location;
};

struct Block {
    std::vector<Phi> phis;
    std::vector<GraphInstruction> instructions; ///< terminators (bra, brx, ret, exit) not included
    Terminator terminator;
    std::vector<BlockId> successors, predecessors;
    std::uint32_t hand_over = 0; ///< number of the point at its beginning, 0: none; see hand_over_points.h
    bool ends_with_barrier =
        false; ///< last instruction is a CTA barrier of the `.sync`/`.red` kind; terminator is jump
};

/// A variable in the thread's local memory: .local arrays, and call parameters that could not become registers
/// (their ld.param/st.param are rewritten to .local).
struct FrameVariable {
    std::string name;
    std::uint64_t size = 0;
    std::uint32_t alignment = 1;
    std::uint32_t local_offset = 0; ///< place in the thread's local memory
    bool is_interleaved = false;    ///< nothing refers to it any more: its accesses hold numbers (interleave_locals.h)
};

/// A natural loop. Canonical form (build_graph): the preheader and the latch end in a jump to the header, and each
/// exit edge leads to a block that has no other predecessor. That block has a phi for each value that leaves the loop
/// (loop-closed SSA): where lanes leave at different iterations, the edge fills it under its mask.
struct LoopInfo {
    BlockId header = no_block;
    BlockId latch = no_block;           ///< unique source of the back edge; always ends in a jump
    BlockId preheader = no_block;       ///< unique predecessor outside the loop; no_block if outside the region
    std::uint32_t parent = 0xffffffffu; ///< index of the enclosing loop
    std::uint32_t depth = 1;
    std::vector<BlockId> blocks;     ///< nested loops included
    bool divergent_exit = false;     ///< lanes of a step may leave at different iterations
    bool cta_divergent_exit = false; ///< threads of the CTA may (implied by divergent_exit)
    bool takes_turns = false;        ///< steps may stop at its header while others run (plan_turns.h)
    bool shares_rows = false;        ///< they do because all warps read the same rows of memory
    std::uint32_t turn_rounds = 0;   ///< from one stop to the next
    bool waits_in_turns = false;     ///< they do because the loop waits for memory (region_waits.h)
};
inline constexpr std::uint32_t no_loop = 0xffffffffu;

/// Loops of a graph (or of a region of it), outer before inner.
struct LoopForest {
    bool reducible = true;
    std::vector<LoopInfo> loops;
    std::vector<std::uint32_t> loop_of; ///< by BlockId: innermost loop or no_loop
    /// True if `loop` is `ancestor` or lies inside it; no_loop is the ancestor of all.
    bool inside(std::uint32_t loop, std::uint32_t ancestor) const {
        while (loop != ancestor && loop != no_loop) loop = loops[loop].parent;
        return loop == ancestor;
    }
};

/// A .shared variable that the function or an inlined callee declares or uses, with its place in the shared window.
/// Module-scope .shared variables appear here too: operands refer to them by VariableScope::shared after build_graph().
struct SharedVariable {
    std::string name;
    std::uint64_t size = 0; ///< 0: extern unsized, starts where the static ones end
    std::uint32_t alignment = 1;
    std::uint32_t offset = 0;
};

/// Addresses in here: a .local variable (VariableScope::frame) used as a value is already the thread's generic (host)
/// address, so it is affine over the lanes (stride = CtaContext::local_stride, steps 0, 1, 2, ...), never uniform at
/// W > 1; cvta.local and cvta.to.local are then plain copies. A .shared variable's address is its constant offset in
/// the shared window. A kernel parameter's address is its constant offset in the parameter block. In the graph of a
/// function that is called for real, VariableScope::parameter indexes the returns, then the parameters (see
/// return_offsets).
struct FunctionGraph {
    const ptx::Module* module = nullptr;
    ptx::FunctionId function = 0;
    std::vector<SsaValue> values;
    std::vector<Block> blocks; ///< block 0 is the entry and has no predecessors; exactly one block has Kind::exit
    BlockId exit_block = 0;
    std::vector<ptx::Operand> pool;      ///< vector and list elements
    std::vector<FrameVariable> locals;   ///< VariableScope::frame indexes these
    std::vector<SharedVariable> shared;  ///< VariableScope::shared indexes these
    std::uint32_t static_shared = 0;     ///< bytes of all sized ones, and the common offset of the unsized
    std::uint32_t local_bytes = 0;       ///< per thread
    std::uint32_t interleaved_bytes = 0; ///< per thread, of local memory that is interleaved by lane; multiple of 16
    std::vector<ptx::FunctionId> real_calls; ///< functions called for real: recursion, calls through pointers
    bool has_indirect_call = false;
    std::vector<std::vector<ptx::FunctionId>> narrowed_targets; ///< see GraphInstruction::narrowed
    /// Of functions that are inlined where pointers to them are called, with each place's own copies.
    std::size_t statements_by_pointer = 0;
    /// Of a function called for real: threads may exit in it, by an `exit` among the instructions.
    bool has_thread_exit = false;
    bool uses_stack = false; ///< alloca: local memory beyond the variables
    /// It goes up from the end of the function's frame, and its pointer is the last argument of each real call
    /// (place_stack.cpp).
    bool stack_goes_up = false;
    bool narrow_stack_addresses = false; ///< stacksave.u32 or alloca.u32: 32-bit addresses, perhaps widened
    /// Nobody's bytes behind a thread's stack, for what is stored through an allocation of no bytes.
    static constexpr std::uint32_t behind_stack_bytes = 64;
    std::vector<std::shared_ptr<LaneOffsets>> offset_storage; ///< shared with copies of the graph
    // For callee graphs (real calls): where the formal parameters live, as byte offsets in the thread's argument block.
    std::vector<std::uint32_t> return_offsets, parameter_offsets;
    std::uint32_t argument_bytes = 0;
    bool is_entry = true;
    /// Blocks 1 to this one are the general version of a kernel that is there twice, for steps whose lanes part at a
    /// bound (lane_agreement.h); 0: none are.
    BlockId parted_blocks = 0;
    LoopForest forest; ///< of the whole graph; exit flags are set by compute_shapes()

    /// Shape of `value` as a use in `block` sees it (a phi's incoming value is used in the predecessor): a value that
    /// leaves a loop whose lanes exit at different iterations is varying, or step_uniform where only steps differ.
    Shape shape_at(BlockId block, ValueId value) const;
};

} // namespace ptarmigan::translator
