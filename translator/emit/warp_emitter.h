// SPDX-License-Identifier: Apache-2.0
// The emit context: the one object that instruction handlers (translator/lower) see. It knows the step's lanes, the
// active mask and the SSA values; it hides regions, fibers, oneTBB and ORC. Handlers read operands by role, build IR
// and write results by role. They work at any lane width and for scalars as well as vectors.
#pragma once

#include "frontend/ptx/module.h"
#include "translator/analysis/graph/function_graph.h"
#include "translator/compile.h"
#include "translator/emit/lane_value.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <initializer_list>
#include <map>
#include <string_view>

namespace ptarmigan::translator {

struct AccessGroup;
struct ProductGroup;

using Ir = llvm::IRBuilder<>;
using Values = llvm::ArrayRef<llvm::Value*>;
using ValueList = llvm::SmallVector<llvm::Value*, 8>;

/// A memory operand: generic (host) addresses of the lanes, or one uniform address.
struct LaneAddress {
    LaneValue address;     ///< i64 host addresses; shape tells uniform / affine / varying
    ptx::StateSpace space; ///< as written; generic when none
    /// Affine and guarded only: i1, true when the affine form holds for all lanes. Null = always holds.
    llvm::Value* guard = nullptr;
    /// Local memory interleaved by lane: the next element of a lane's access does not lie behind this one.
    bool interleaved = false;
};

class WarpEmitter {
public:
    virtual ~WarpEmitter() = default;

    // --- the step ------------------------------------------------------------------------------------------------
    Ir& ir() { return ir_; }
    llvm::LLVMContext& context() { return ir_.getContext(); }
    llvm::Module& module() { return *ir_.GetInsertBlock()->getModule(); }
    unsigned width() const { return width_; } ///< W: lanes per step
    const CompileOptions& options() const { return options_; }
    /// True when the fiber form is emitted: services that suspend may be called.
    virtual bool fiber_form() const = 0;
    /// CTAs per cluster that the kernel is compiled for.
    virtual std::uint32_t cluster_size() const = 0;
    /// i64: lanes of the step that have not exited, as far as the code knows.
    virtual llvm::Value* live_bits() = 0;
    /// abi::CtaContext*, and the index of this step in the CTA (i32).
    virtual llvm::Value* cta_context() = 0;
    virtual llvm::Value* step_index() = 0;
    /// i32 linear thread index in the CTA of lane 0 of this step.
    virtual llvm::Value* first_thread() = 0;
    /// Bytes of the thread's local memory that the function's variables take.
    virtual std::uint64_t frame_bytes() const = 0;
    /// <W x i64>: where the threads' local memory begins, and where the function's frame in it does.
    virtual llvm::Value* local_begin() = 0;
    virtual llvm::Value* frame_begin() = 0;
    /// FunctionGraph::stack_goes_up.
    virtual bool stack_goes_up() const = 0;
    /// Addresses in local memory (<W x i64>; i64 where W is 1), of which those below 4 GB are low halves (of
    /// alloca.u32) and are completed.
    virtual llvm::Value* whole_local_address(llvm::Value* address) = 0;
    /// Loads a field of CtaContext (a load LLVM may hoist: the context does not change during a step).
    virtual llvm::Value* context_field(llvm::Type* type, unsigned byte_offset, std::string_view name) = 0;

    // --- types ---------------------------------------------------------------------------------------------------
    /// IR type of one lane: pred i1, integers/bits/packed iN, f16 half, bf16 bfloat, f32/tf32 float, f64 double, b128
    /// i128.
    llvm::Type* type(ptx::ScalarType scalar);
    /// <W x T>.
    llvm::Type* lanes_type(llvm::Type* scalar);
    /// Scalar type of a scalar or vector type; and `scalar` shaped like `like` (vector if `like` is a vector).
    static llvm::Type* scalar_of(llvm::Type* type) { return type->getScalarType(); }
    llvm::Type* like(llvm::Type* scalar, llvm::Value* like_value);
    llvm::Value* constant_like(llvm::Type* scalar, std::uint64_t bits, llvm::Value* like_value);

    // --- operands ------------------------------------------------------------------------------------------------
    /// The operand at its type (operand.type): registers that are wider are truncated, bit-cast between classes as
    /// needed. Predicates honour `!`. Immediates, special registers and addresses of variables and functions too.
    virtual LaneValue read(const ptx::Operand& operand) = 0;
    /// Element `index` of an operand that has elements; of others, the operand itself.
    virtual const ptx::Operand& element(const ptx::Operand& operand, unsigned index) = 0;
    /// As a full vector <W x T> whatever the shape.
    llvm::Value* lanes(const ptx::Operand& operand) { return broadcast(read(operand)); }
    /// As a scalar; the operand's shape must be uniform (immediates are).
    llvm::Value* scalar(const ptx::Operand& operand);
    bool is_uniform(const ptx::Operand& operand);
    /// Materialises any shape as <W x T>.
    llvm::Value* broadcast(const LaneValue& value);
    llvm::Value* splat(llvm::Value* scalar);
    /// Of a step of one lane: the element of a <1 x T>; what is no vector as it is.
    llvm::Value* only_lane(llvm::Value* lanes, unsigned depth = 0);
    /// Writes a register (or does nothing for `_`). Type-converts to the register: bit-cast, or extension by the
    /// signedness of operand.type when the register is wider. Applies the instruction's guard (@p: lanes whose guard is
    /// false keep the old value). If the SSA value's planned shape is uniform, `value` must be uniform.
    virtual void write(const ptx::Operand& destination, const LaneValue& value) = 0;

    /// The workhorse for pure operations: calls `op` with scalars if all operands are uniform, else with vectors
    /// <W x T>, and writes the result to role d. `op` must build the same computation for both.
    void map(const ptx::Instruction& inst, std::initializer_list<ptx::Role> sources,
             const std::function<llvm::Value*(Ir&, Values)>& op);
    /// Likewise without writing: returns the shaped result.
    LaneValue apply(std::initializer_list<LaneValue> sources, const std::function<llvm::Value*(Ir&, Values)>& op);

    // --- active lanes ----------------------------------------------------------------------------------------------
    /// <W x i1>: lanes that execute the current instruction (block mask and guard).
    virtual llvm::Value* active() = 0;
    /// True if active() is known to be all ones at compile time.
    virtual bool all_active() = 0;
    /// The current instruction is a collective that all live lanes of the warp come to together.
    virtual bool meets_whole_warp() const = 0;
    /// No pass finds out all operands of the current instruction, arithmetic on doubles.
    virtual bool has_unknown_operand() const = 0;
    /// What the current instruction, a store, leaves in memory is not to be found out by a pass that sees a load of it.
    virtual bool hides_stored_value() const = 0;
    /// i64: lanes of the step that have a thread.
    virtual llvm::Value* existing_bits() = 0;
    /// i1: lanes of the step that are not active now can run before these go on (they have program counters of their
    /// own).
    virtual llvm::Value* others_can_run() = 0;
    /// <W x i64>: differs between lanes that are at this place in different rounds of loops. Null where active lanes
    /// never are.
    virtual llvm::Value* round_numbers() { return nullptr; }
    /// active() as an i64 bit mask.
    llvm::Value* active_bits();
    /// <W x i1> -> i64 bit mask; i64 bit mask -> <W x i1>; i1 "any lane set".
    llvm::Value* to_bits(llvm::Value* mask);
    llvm::Value* from_bits(llvm::Value* bits);
    llvm::Value* any(llvm::Value* mask);
    /// Index (i32) of the lowest set bit of an i64 mask known to be non-zero.
    llvm::Value* first_lane(llvm::Value* bits);
    /// Emits a loop over the set bits of `bits`; `body` gets the lane number (i32). Its insertion point is inside the
    /// loop.
    void for_each_lane(llvm::Value* bits, const std::function<void(llvm::Value* lane)>& body);
    /// As above with results: `body` returns a scalar for its lane; other lanes get `initial` (a vector).
    llvm::Value* for_each_lane(llvm::Value* bits, llvm::Value* initial,
                               const std::function<llvm::Value*(llvm::Value* lane)>& body);
    /// if (condition) { then }: `then` is emitted in its own block; no results.
    void if_then(llvm::Value* condition, const std::function<void()>& then, bool likely = true);
    /// if (condition) then-value else else-value; both may be null. `odds`: how much more often it is the first, mostly
    /// a guard that holds; 0: nobody knows.
    llvm::Value* if_else(llvm::Value* condition, const std::function<llvm::Value*()>& then,
                         const std::function<llvm::Value*()>& otherwise, unsigned odds = 2000);
    /// Likewise with any number of values, the same in both.
    ValueList if_else_list(llvm::Value* condition, llvm::function_ref<ValueList()> then,
                           llvm::function_ref<ValueList()> otherwise, unsigned odds = 2000);

    // --- memory ------------------------------------------------------------------------------------------------------
    /// Host addresses of an address operand ([reg+imm], [variable+imm], [imm]) in `space`, offset included. Shared
    /// window addresses (32 bit, sign-extended) get the window's base added; local, param and const are handled
    /// likewise.
    virtual LaneAddress address(const ptx::Operand& operand, ptx::StateSpace space) = 0;
    /// Address of lane l as a scalar i64.
    llvm::Value* lane_address(const LaneAddress& address, llvm::Value* lane);

    /// The address at hand varies, but is arithmetic on the threads' numbers: lanes may turn out to be neighbours.
    virtual bool may_be_neighbours(const ptx::Operand& address) = 0;
    /// What lies so many bytes ahead of the load at hand is worth a prefetch if its lanes turn out to be neighbours; 0:
    /// nothing is.
    virtual unsigned neighbours_ahead() const { return 0; }
    /// The store at hand may go past the caches where the grid asks for it.
    virtual bool may_stream() const = 0;
    /// Loads and stores of the block at hand.
    virtual unsigned accesses_of_block() const { return 1; }
    /// Where lanes that are not active may have addresses beyond shared memory.
    virtual SharedEdges shared_edges() const = 0;
    /// Loads of the same block that read adjacent elements and may be made together with `inst`, the first of them in
    /// the program (access_groups.h); in ascending order of addresses. Empty if there are none.
    virtual llvm::ArrayRef<const ptx::Instruction*> loads_with(const ptx::Instruction&) { return {}; }
    /// The stores of the same block that `inst` is made together with; null if there are none (access_groups.h).
    virtual const AccessGroup* store_group(const ptx::Instruction&) { return nullptr; }
    /// The products of matrices that are made together with `inst` by a step of a whole warp, where the first of them
    /// stands; null if there are none.
    virtual const ProductGroup* product_group(const ptx::Instruction&) { return nullptr; }
    /// Where the accumulators of a group stay over the rounds of a loop (analysis/build/loop_accumulators.h), and their
    /// numbers there, by chain. Without memory: they are in registers.
    struct KeptAccumulators {
        llvm::Value* memory = nullptr;
        llvm::ArrayRef<std::uint8_t> numbers;
    };
    virtual KeptAccumulators kept_accumulators(const ProductGroup&) { return {}; }
    /// The result of a load that was made together with an earlier one; null if it was not.
    const LaneValue* early_load(const ptx::Instruction& inst) const {
        auto found = early_loads_.find(&inst);
        return found == early_loads_.end() ? nullptr : &found->second;
    }
    void set_early_load(const ptx::Instruction& inst, const LaneValue& value) { early_loads_[&inst] = value; }

    /// Where the current instruction's accesses of this form are said to be made, see AccessMark in
    /// lower/access_mark.h.
    virtual llvm::DebugLoc access_location(const AccessForm& form) = 0;

    /// Tells the runtime which bytes at `addresses` (<W x i64>) the active lanes are going to write, where it asks for
    /// that (write_notes.cpp). For stores that are more than one access of a lane; others are told of by their row.
    virtual void note_write(llvm::Value* addresses, unsigned bytes) = 0;

    // --- calls out
    // -----------------------------------------------------------------------------------------------------
    /// Calls the service at `byte_offset` of abi::Services.
    llvm::Value* call_service(unsigned byte_offset, llvm::Type* result, Values arguments);
    /// Calls a function of the builtins library (translator/builtins, compiled to bitcode); linked and inlined.
    virtual llvm::Value* call_builtin(std::string_view name, llvm::Type* result, Values arguments) = 0;
    /// Stack slot in the function's entry block.
    llvm::AllocaInst* entry_alloca(llvm::Type* type, const char* name, llvm::Value* count = nullptr);
    /// A stack slot for a vector, taken out of use until it is returned.
    llvm::AllocaInst* take_lane_slot(llvm::Type* type);
    void return_lane_slot(llvm::AllocaInst* slot) { free_lane_slots_.push_back(slot); }
    /// Reports a trap for the active lanes; control continues in dead code.
    void trap(llvm::Value* lanes_bits, std::uint32_t fault);

    /// <W x i64>: what must be added, lane by lane, to the affine form of a guarded value to make it exact; and the
    /// i1 that says the affine form holds as it is. `guard` is Shape::guard.
    virtual llvm::Value* guard_correction(ValueId guard) = 0;
    virtual llvm::Value* guard_holds(ValueId guard) = 0;
    llvm::BasicBlock* new_block(const char* name);

    // --- diagnostics
    // -----------------------------------------------------------------------------------------------------
    const ptx::Instruction& current() const { return *current_; }
    /// Throws UnsupportedError "file:line:col: error: FORM (manual section S): unsupported: text".
    [[noreturn]] void unsupported(std::string_view text);
    virtual const ptx::Module& source() const = 0;

protected:
    WarpEmitter(llvm::LLVMContext& context, unsigned width, const CompileOptions& options)
        : ir_(context), width_(width), options_(options) {}
    Ir ir_;
    unsigned width_;
    const CompileOptions& options_;
    const ptx::Instruction* current_ = nullptr;
    std::map<const ptx::Instruction*, LaneValue> early_loads_;
    std::vector<llvm::AllocaInst*> free_lane_slots_;
};

/// A handler lowers one instruction.
using Handler = void (*)(WarpEmitter&, const ptx::Instruction&);
/// The handler of a form, or null when the row is unsupported. See lower/dispatch.cpp.
Handler handler_of(ptx::FormId form);

} // namespace ptarmigan::translator
