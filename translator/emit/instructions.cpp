// SPDX-License-Identifier: Apache-2.0
// The instructions of a block: what comes around a handler, and which guards become branches.
#include "frontend/isa/instruction_form.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/memory/alignment.h"
#include "translator/analysis/waits/joined_votes.h"
#include "translator/emit/graph_emitter.h"
#include "translator/kernel_abi.h"
#include "translator/lower/alignment_check.h"
#include "translator/lower/collective_call.h"
#include "translator/lower/matrix_rows.h"

namespace ptarmigan::translator {

/// All of a block but its end; where that is a barrier at which the region ends, the barrier is part of it.
void GraphEmitter::emit_instructions(BlockId id) {
    const Block& block = graph_.blocks[id];
    const std::size_t count = block.instructions.size() - (is_cut(id) ? 1 : 0);
    if (block.hand_over != 0) emit_hand_over(block.hand_over);
    for (std::size_t i = 0; i < count; ++i) {
        const unsigned votes = width() == 1 && unit_.fiber_form ? joined_votes(graph_, block, i) : 0;
        if (votes > 1) begin_instruction(block.instructions[i]);
        if (votes < 2 || !all_active()) {
            emit_instruction(block.instructions[i]);
            continue;
        }
        emit_votes(&block.instructions[i], votes);
        i += votes - 1;
    }
    current_instruction_ = nullptr;
    current_ = nullptr;
}

void GraphEmitter::begin_instruction(const GraphInstruction& instruction) {
    current_ = &instruction.inst;
    current_instruction_ = &instruction;
    ir_.SetCurrentDebugLocation(unit_.location(function_, instruction.inst.location));
}

void GraphEmitter::emit_votes(const GraphInstruction* first, unsigned count) {
    lower::join_votes(*this, count, [&](unsigned number) -> const ptx::Instruction& {
        begin_instruction(first[number]);
        return first[number].inst;
    });
}

void GraphEmitter::emit_instruction(const GraphInstruction& instruction) {
    begin_instruction(instruction);
    const ptx::FormInfo& form = ptx::form_info(instruction.inst.form);
    if (instruction.hand_over != 0) emit_hand_over(instruction.hand_over);
    // Others may come between any two accesses that threads can see each other by.
    if (unit_.options.random_schedule && unit_.fiber_form &&
        ptx::any(form.effects, ptx::Effects::atomic | ptx::Effects::volatile_read | ptx::Effects::fence))
        emit_yield();
    else if (ptx::any(form.effects, ptx::Effects::atomic))
        emit_atomic_yield();
    if (is_real_call(instruction)) {
        emit_call(instruction);
        return;
    }
    if (instruction.is_wrong_target) {
        if_then(
            ir_.CreateICmpNE(active_bits(), ir_.getInt64(0)),
            [&] { trap(active_bits(), std::uint32_t(abi::Fault::invalid_call_target)); }, false);
        return;
    }
    if (emit_lane_zero(instruction)) return;
    ValueId result;
    if (wants_affine(instruction, result) && !ptx::any(form.effects, ptx::Effects::load)) {
        emit_affine(instruction, result);
        return;
    }
    if (!handler_of(instruction.inst.form)) {
        std::string_view reason = form.unsupported_reason;
        unsupported(reason.empty() ? "not supported yet" : reason);
    }
    if (instruction.inst.guard != ptx::no_id && form.effects != ptx::Effects::pure) {
        LaneValue guard = value_at(current_block_, instruction.inst.guard);
        if (guard.is_uniform()) {
            llvm::Value* condition = guard.base;
            if (instruction.inst.guard_negated) condition = ir_.CreateNot(condition);
            emit_under_uniform_guard(instruction, condition);
            return;
        }
    }
    run_handler(instruction);
}

/// Runs the handler, behind the checks of its addresses.
void GraphEmitter::run_handler(const GraphInstruction& instruction) {
    const ptx::Instruction& inst = instruction.inst;
    const ptx::FormInfo& form = ptx::form_info(inst.form);
    for (unsigned i = 0; i < inst.operand_count; ++i) {
        if (!(instruction.check_alignment >> i & 1)) continue;
        ptx::StateSpace space = inst.space == ptx::StateSpace::none ? ptx::StateSpace::generic : inst.space;
        // A copy names two spaces: the shared one is its destination's.
        bool copies = ptx::any(form.effects, ptx::Effects::load) && ptx::any(form.effects, ptx::Effects::store);
        bool writes = copies ? form.operands[i].role == ptx::Role::d : !ptx::any(form.effects, ptx::Effects::load);
        if (copies) space = writes ? ptx::StateSpace::shared : ptx::StateSpace::global;
        const LaneAddress place = instruction.lane_granule != 0 ? LaneAddress{local_place(inst.operands[i]), space}
                                                                : address(inst.operands[i], space);
        lower::check_alignment(*this, place, access_bytes(inst), writes, lower::addressing_lanes(*this, inst));
    }
    check_accesses(instruction);
    mark_work(inst);
    tell_of_addition(inst);
    note_write(inst);
    handler_of(inst.form)(*this, inst);
    let_others_look(inst);
    for (const Prefetch& wanted : {instruction.prefetch, instruction.second_prefetch})
        if (wanted) emit_prefetch(inst, wanted);
}

/// A guard that is the same in all lanes, on an instruction with effects, becomes a branch around it.
void GraphEmitter::emit_under_uniform_guard(const GraphInstruction& instruction, llvm::Value* condition) {
    // Previous values are read before the branch so that both arms see them.
    std::unordered_map<ValueId, LaneValue> before;
    FewValues defined = definitions(graph_, instruction);
    for (std::size_t i = 0; i < defined.size(); ++i) {
        LaneValue old = value_at(current_block_, instruction.previous.at(i));
        const Shape& planned = graph_.values[defined[i]].shape;
        bool undefined = graph_.values[instruction.previous[i]].is_undefined;
        if (undefined && planned.is_affine()) {
            LaneValue zero = LaneValue::uniform(llvm::Constant::getNullValue(type(graph_.values[defined[i]].type)));
            zero.shape = planned;
            if (planned.steps) zero.stride = zero.base;
            before.emplace(defined[i], zero);
        } else {
            before.emplace(defined[i], conform(convert(old, graph_.values[defined[i]].type, false), planned));
        }
    }
    std::vector<std::pair<ValueId, LaneValue>> results;
    llvm::BasicBlock* taken = new_block("guarded");
    llvm::BasicBlock* done = new_block("unguarded");
    llvm::BasicBlock* from = ir_.GetInsertBlock();
    ir_.CreateCondBr(condition, taken, done);
    ir_.SetInsertPoint(taken);
    const KnownValues::Mark known = known_.mark();
    guard_handled_ = true;
    captured_ = &results;
    run_handler(instruction);
    captured_ = nullptr;
    llvm::BasicBlock* end = ir_.GetInsertBlock();
    ir_.CreateBr(done);
    ir_.SetInsertPoint(done);
    known_.go_back(known); // loads made inside the arm do not dominate what follows
    for (auto& [value, contents] : results) {
        const LaneValue& old = before.at(value);
        LaneValue merged = contents;
        auto join = [&](llvm::Value* a, llvm::Value* b) {
            llvm::PHINode* phi = ir_.CreatePHI(a->getType(), 2);
            phi->addIncoming(a, end);
            phi->addIncoming(b, from);
            return phi;
        };
        merged.base = join(contents.base, old.base);
        if (contents.stride)
            merged.stride = join(contents.stride,
                                 old.stride ? old.stride : llvm::Constant::getNullValue(contents.stride->getType()));
        contents = merged;
    }
    // Definitions may store to slots, and phis come first in a block.
    for (const auto& [value, contents] : results) define(value, contents);
    guard_handled_ = false;
}

} // namespace ptarmigan::translator
