// SPDX-License-Identifier: Apache-2.0
// SSA over PTX values: what build_graph() makes of a bound body (callees inlined) and the emitter walks.
// Every `reg` operand of an instruction in here holds a ValueId, not a RegisterId.
#pragma once

#include "frontend/module_loader.h"
#include "translator/analysis/shape.h"
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
    BlockId block = no_block;  ///< where it is defined; no_block for an undefined register's value
    bool is_phi = false;
    bool is_undefined = false; ///< read before any write: any value will do
    bool is_constant = false;  ///< known immediate after folding of mov/cvt chains
    std::uint64_t constant = 0;
    Shape shape;
    std::string name;          ///< register name, for dumps
};

struct Phi {
    ValueId result = no_value;
    std::vector<ValueId> incoming; ///< parallel to Block::predecessors
};

/// One instruction with SSA operands. A guarded instruction (guard != no_id) that writes registers keeps the previous
/// value of each written register in lanes whose guard is false: `previous` lists them in the order of the writes.
struct GraphInstruction {
    ptx::Instruction inst;
    std::vector<ValueId> previous;
    const ptx::Body* body = nullptr; ///< the body it came from (prototypes, target lists); operands use FunctionGraph::pool
    std::uint32_t function = 0;      ///< FunctionId it came from, for messages
};

struct Terminator {
    enum class Kind : std::uint8_t { jump, branch, indexed, exit } kind = Kind::exit;
    ValueId condition = no_value; ///< branch: predicate; indexed: u32 index
    bool negated = false;         ///< branch: taken when the predicate is false
    // branch: successors[0] taken, successors[1] fall-through. indexed: one successor per target (may repeat).
    ptx::SourceLocation location;
};

struct Block {
    std::vector<Phi> phis;
    std::vector<GraphInstruction> instructions; ///< terminators (bra, brx, ret, exit) not included
    Terminator terminator;
    std::vector<BlockId> successors, predecessors;
    bool ends_with_barrier = false; ///< last instruction is a CTA barrier of the `.sync`/`.red` kind; terminator is jump
};

/// A variable of the function after inlining: .local arrays, call parameters that could not become registers.
struct FrameVariable {
    std::string name;
    std::uint64_t size = 0;
    std::uint32_t alignment = 1;
    std::uint32_t local_offset = 0; ///< place in the thread's local memory
};

struct FunctionGraph {
    const ptx::Module* module = nullptr;
    ptx::FunctionId function = 0;
    std::vector<SsaValue> values;
    std::vector<Block> blocks;            ///< block 0 is the entry and has no predecessors; exactly one block has Kind::exit
    BlockId exit_block = 0;
    std::vector<ptx::Operand> pool;       ///< vector and list elements
    std::vector<FrameVariable> locals;    ///< Operand variable/address with VariableScope::body index these
    std::vector<std::vector<BlockId>> indexed_targets;
    std::uint32_t local_bytes = 0;        ///< per thread
    std::vector<ptx::FunctionId> real_calls; ///< functions called for real: recursion, calls through pointers
    bool has_indirect_call = false;
    std::vector<std::unique_ptr<LaneOffsets>> offset_storage;
    // For callee graphs (real calls): where the formal parameters live, as byte offsets in the thread's argument block.
    std::vector<std::uint32_t> return_offsets, parameter_offsets;
    std::uint32_t argument_bytes = 0;
};

} // namespace ptarmigan::translator
