// SPDX-License-Identifier: Apache-2.0
// Without mask registers a mask costs: it is packed to be tested and unpacked for each access, and
// masked stores are microcode on AMD's AVX2 CPUs (a masked store of 8 lanes takes Zen 3 about 12
// cycles, a plain one half of one). So what is behind a divergent branch and touches memory is
// emitted twice: for all lanes active, which is nearly always so
// (`if (i < n)`), and for some.
#include "frontend/isa/instruction_form.h"
#include "translator/analysis/shapes/lane_agreement.h"
#include "translator/emit/graph_emitter.h"
#include "translator/llvm/long_code.h"

#include <llvm/IR/MDBuilder.h>

namespace ptarmigan::translator {

namespace {

/// Longer blocks are computing more than they are accessing memory, and take longer to compile.
constexpr std::size_t versioned_instruction_limit = 150;

} // namespace

bool GraphEmitter::wants_full_version(BlockId id) const {
    using ptx::Effects;
    const Block& block = graph_.blocks[id];
    if (width_ == 1 || unit_.options.target.avx512 || block.instructions.size() > versioned_instruction_limit)
        return false;
    if (interface_->entry_mask_full && block_mask_is_entry(id)) return false;
    if (is_for_parted_lanes(graph_, id)) return false;
    const bool long_code = is_long_code(*unit_.module);
    bool touches_memory = false;
    for (const GraphInstruction& instruction : block.instructions) {
        const ptx::Instruction& inst = instruction.inst;
        const Effects effects = ptx::form_info(inst.form).effects;
        const bool is_end = is_cut(id) && &instruction == &block.instructions.back();
        if (ptx::any(effects, Effects::barrier) && !is_end) return false;
        if (!is_end && ptx::any(effects, Effects::call | Effects::convergent | Effects::async | Effects::waits))
            return false;
        const ptx::Operand& address = inst[ptx::Role::a];
        // Of a long kernel only what stores: loads cost a blend for each address.
        touches_memory |= ptx::any(effects, long_code ? Effects::store : Effects::load | Effects::store) &&
                          address.kind == ptx::Operand::Kind::address && address.base == ptx::Operand::Base::reg &&
                          !graph_.values[address.index].shape.is_uniform();
    }
    return touches_memory;
}

/// Values pass from either version to what follows in their slots.
void GraphEmitter::emit_versions(BlockId id) {
    llvm::BasicBlock* full = new_block("all.lanes");
    llvm::BasicBlock* partial = new_block("some.lanes");
    llvm::BasicBlock* done = new_block("versions.done");
    llvm::Value* condition = ir_.CreateICmpEQ(to_bits(block_mask(id)), ir_.getInt64((1ull << width_) - 1));
    ir_.CreateCondBr(condition, full, partial, llvm::MDBuilder(context()).createBranchWeights(2000, 1));
    for (llvm::BasicBlock* version : {full, partial}) {
        ir_.SetInsertPoint(version);
        full_version_ = version == full;
        known_.clear();
        begin_block_code();
        emit_instructions(id);
        ir_.CreateBr(done);
    }
    full_version_ = false;
    ir_.SetInsertPoint(done);
    known_.clear();
    begin_block_code();
}

} // namespace ptarmigan::translator
