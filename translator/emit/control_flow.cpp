// SPDX-License-Identifier: Apache-2.0
// Masked execution. Blocks are emitted in the plan's linear order. Every edge carries the mask of the lanes that take
// it: a block whose mask is `accumulated` ORs the masks of its incoming edges into a slot, reads it when control gets
// there, resets it, and is skipped when it is empty. Phis are moved on the edges, merged under the edge's mask where
// lanes come from several edges. Uniform branches stay branches. analysis/README.md explains the plan.
#include "translator/analysis/graph/graph_queries.h"
#include "translator/emit/graph_emitter.h"

#include <llvm/IR/Constants.h>

namespace ptarmigan::translator {

llvm::AllocaInst* GraphEmitter::mask_slot(const char* name) {
    llvm::Type* lane = unit_.options.target.avx512 || width_ == 1 ? ir_.getInt1Ty() : ir_.getInt32Ty();
    return entry_alloca(lanes_type(lane), name);
}

llvm::Value* GraphEmitter::load_mask(llvm::AllocaInst* slot) {
    llvm::Value* stored = ir_.CreateLoad(slot->getAllocatedType(), slot, "mask");
    return from_storage(stored, lanes_type(ir_.getInt1Ty()));
}

void GraphEmitter::store_mask(llvm::AllocaInst* slot, llvm::Value* mask) {
    if (mask->getType() != slot->getAllocatedType()) mask = ir_.CreateSExt(mask, slot->getAllocatedType());
    ir_.CreateStore(mask, slot);
}

/// The block whose mask `block` shares: itself if accumulated, no_block for the entry mask.
BlockId GraphEmitter::mask_block(BlockId block) const {
    while (plan_->blocks[block].mask.kind == MaskSource::Kind::same_as) block = plan_->blocks[block].mask.block;
    return plan_->blocks[block].mask.kind == MaskSource::Kind::entry ? no_block : block;
}

bool GraphEmitter::block_mask_is_entry(BlockId block) const {
    if (width_ == 1) return true; // a single lane runs exactly the blocks that it reaches
    return plan_ && mask_block(block) == no_block;
}

llvm::Value* GraphEmitter::block_mask(BlockId block) {
    if (!plan_) return width_ == 1 ? entry_mask_ : counter_mask_;
    if (width_ == 1) return entry_mask_;
    BlockId source = mask_block(block);
    return source == no_block ? entry_mask_ : load_mask(current_mask_[source]);
}

void GraphEmitter::emit_masks(const LinearPlan& plan, const RegionInterface& interface) {
    plan_ = &plan;
    prepare(plan.region, interface);
    accumulated_mask_.assign(graph_.blocks.size(), nullptr);
    current_mask_.assign(graph_.blocks.size(), nullptr);
    if (width_ > 1) {
        for (BlockId block : plan.order) {
            if (plan.blocks[block].mask.kind != MaskSource::Kind::accumulated) continue;
            accumulated_mask_[block] = mask_slot("edge.mask");
            current_mask_[block] = mask_slot("block.mask");
            ir_.CreateStore(llvm::Constant::getNullValue(accumulated_mask_[block]->getAllocatedType()),
                            accumulated_mask_[block]);
        }
    }
    place_accumulators();
    place_round_numbers();
    if (interface.enter) interface.enter();
    if (!interface.turns.empty()) emit_resumption();
    ir_.CreateBr(blocks_[plan.region.entry]);
    for (BlockId block : plan.order) emit_block(block);
}

/// Where a round of a loop begins: what the last one has computed, phis of the header aside, is not needed any more. A
/// skipped block leaves its values, and a merge under a mask the other lanes, as they were, so that LLVM would carry
/// all of them round the loop.
void GraphEmitter::forget_last_round(BlockId header) {
    const std::uint32_t loop = graph_.forest.loop_of[header];
    if (width_ == 1 || loop == no_loop || graph_.forest.loops[loop].header != header) return;
    const auto forget = [&](const Place& place) {
        if (place.address) ir_.CreateStore(llvm::UndefValue::get(place.type), place.address);
    };
    const auto forget_value = [&](ValueId value) {
        if (!crosses_[value]) return;
        const Slot& slot = slot_of(value);
        forget(slot.base);
        forget(slot.stride);
    };
    for (BlockId id : graph_.forest.loops[loop].blocks) {
        if (id == header || graph_.forest.loop_of[id] != loop || !plan_->region.contains[id]) continue;
        if (llvm::AllocaInst* mask = accumulated_mask_[id])
            ir_.CreateStore(llvm::Constant::getNullValue(mask->getAllocatedType()), mask); // as it is: has been used
        for (const Phi& phi : graph_.blocks[id].phis) forget_value(phi.result);
        for (const GraphInstruction& instruction : graph_.blocks[id].instructions)
            for (ValueId value : definitions(graph_, instruction)) forget_value(value);
    }
}

void GraphEmitter::emit_block(BlockId id) {
    const BlockPlan& plan = plan_->blocks[id];
    current_block_ = id;
    current_instruction_ = nullptr;
    known_.clear();
    ir_.SetInsertPoint(blocks_[id]);
    forget_last_round(id);
    if (accumulated_mask_[id]) {
        llvm::Value* mask = load_mask(accumulated_mask_[id]);
        ir_.CreateStore(llvm::Constant::getNullValue(accumulated_mask_[id]->getAllocatedType()), accumulated_mask_[id]);
        store_mask(current_mask_[id], mask);
        if (plan.needs_skip_check) {
            llvm::BasicBlock* body = new_block("body");
            llvm::BasicBlock* skip;
            if (plan.skip_to != no_block)
                skip = blocks_[plan.skip_to];
            else {
                skip = new_block("skip.end");
                llvm::IRBuilderBase::InsertPointGuard guard(ir_);
                ir_.SetInsertPoint(skip);
                interface_->exit();
            }
            ir_.CreateCondBr(any(mask), body, skip);
            ir_.SetInsertPoint(body);
        }
    }
    if (wants_full_version(id)) {
        emit_versions(id);
    } else {
        begin_block_code();
        emit_instructions(id);
    }
    if (is_cut(id))
        interface_->cut(id);
    else
        emit_terminator(id);
}

bool GraphEmitter::is_cut(BlockId id) const {
    return id < plan_->region.cut_after.size() && plan_->region.cut_after[id];
}

static unsigned predecessor_index(const Block& block, const Block& from_block, BlockId from, unsigned successor) {
    // A block may be a successor more than once (indexed branches): the n-th edge is the n-th entry.
    unsigned occurrence = 0;
    for (unsigned k = 0; k < successor; ++k)
        if (from_block.successors[k] == from_block.successors[successor]) ++occurrence;
    for (unsigned i = 0; i < block.predecessors.size(); ++i)
        if (block.predecessors[i] == from && occurrence-- == 0) return i;
    throw std::logic_error("edge without a predecessor entry");
}

void GraphEmitter::move_phis(BlockId from, unsigned successor, llvm::Value* mask) {
    BlockId to = graph_.blocks[from].successors[successor];
    const Block& target = graph_.blocks[to];
    if (target.phis.empty()) return;
    unsigned index = predecessor_index(target, graph_.blocks[from], from, successor);
    keep_accumulators(from, to, index);
    std::map<std::uint32_t, std::vector<llvm::Value*>> unpacked;
    // All incoming values are read before any phi is written: phis of one block may feed each other.
    std::vector<LaneValue> incoming;
    for (const Phi& phi : target.phis) {
        const SsaValue& info = graph_.values[phi.result];
        ValueId source = phi.incoming[index];
        if (kept_place(phi.result)) {
            incoming.emplace_back();
            continue;
        }
        const LoopAccumulators::Place* kept = kept_place(source);
        LaneValue value = kept ? leaving_accumulator(*kept, unpacked) : value_at(from, source);
        if (kept) value = convert(value, graph_.values[source].type, false);
        if (graph_.values[source].is_undefined && info.shape.is_affine()) {
            value.shape = info.shape;
            if (info.shape.steps) value.stride = value.base;
        }
        incoming.push_back(conform(convert(value, info.type, false), info.shape));
    }
    for (std::size_t i = 0; i < target.phis.size(); ++i) {
        if (kept_place(target.phis[i].result)) continue;
        const SsaValue& info = graph_.values[target.phis[i].result];
        Slot& slot = slot_of(target.phis[i].result);
        bool merge = plan_ ? plan_->blocks[to].blend[i] : width_ > 1;
        if (merge && mask && info.shape.is_varying()) {
            llvm::Value* old = load_slot(slot, info.shape, info.type).base;
            incoming[i].base = ir_.CreateSelect(mask, incoming[i].base, old);
        }
        store_slot(slot, incoming[i]);
    }
}

void GraphEmitter::emit_edge(BlockId from, unsigned successor, llvm::Value* mask) {
    BlockId to = graph_.blocks[from].successors[successor];
    const KnownValues::Mark known = known_.mark();
    move_phis(from, successor, width_ > 1 ? mask : nullptr);
    if (accumulated_mask_[to]) {
        llvm::Value* merged = ir_.CreateOr(load_mask(accumulated_mask_[to]), mask);
        store_mask(accumulated_mask_[to], merged);
    }
    known_.go_back(known);
}

/// Lanes for which edge `successor` of an indexed or conditional branch is taken.
llvm::Value* GraphEmitter::edge_condition(BlockId id, unsigned successor, const LaneValue& condition) {
    const Block& block = graph_.blocks[id];
    if (block.terminator.kind == Terminator::Kind::branch) {
        bool taken_when_true = (successor == 0) != block.terminator.negated;
        return taken_when_true ? condition.base : ir_.CreateNot(condition.base);
    }
    // An index past the table is undefined by the manual: such lanes take the last target.
    llvm::Value* number = constant_like(condition.base->getType()->getScalarType(), successor, condition.base);
    return successor + 1 == block.successors.size() ? ir_.CreateICmpUGE(condition.base, number)
                                                    : ir_.CreateICmpEQ(condition.base, number);
}

void GraphEmitter::emit_terminator(BlockId id) {
    const Block& block = graph_.blocks[id];
    const BlockPlan& plan = plan_->blocks[id];
    if (block.terminator.location.line)
        ir_.SetCurrentDebugLocation(unit_.location(function_, block.terminator.location));
    if (block.terminator.kind == Terminator::Kind::exit) {
        interface_->exit();
        return;
    }
    llvm::Value* mask = width_ > 1 ? block_mask(id) : nullptr;
    emit_spin_yield(id);
    count_loop_rounds(id);
    if (block.terminator.kind == Terminator::Kind::jump) {
        emit_edge(id, 0, mask);
        emit_turn(id);
        ir_.CreateBr(blocks_[plan.jump_to[0]]);
        return;
    }
    LaneValue condition = value_at(id, block.terminator.condition);
    if (!condition.is_uniform()) {
        condition = LaneValue::varying(broadcast(condition));
        for (unsigned k = 0; k < block.successors.size(); ++k)
            emit_edge(id, k, ir_.CreateAnd(mask, edge_condition(id, k, condition)));
        ir_.CreateBr(blocks_[plan.jump_to[0]]);
        return;
    }
    // Uniform: a real branch, each edge with its own landing code.
    std::vector<llvm::BasicBlock*> landings;
    llvm::BasicBlock* here = ir_.GetInsertBlock();
    for (unsigned k = 0; k < block.successors.size(); ++k) {
        landings.push_back(new_block("edge"));
        ir_.SetInsertPoint(landings.back());
        emit_edge(id, k, mask);
        ir_.CreateBr(blocks_[plan.jump_to[k]]);
    }
    ir_.SetInsertPoint(here);
    if (block.terminator.kind == Terminator::Kind::branch) {
        unsigned taken = block.terminator.negated ? 1 : 0;
        ir_.CreateCondBr(condition.base, landings[taken], landings[1 - taken]);
        return;
    }
    llvm::SwitchInst* branch = ir_.CreateSwitch(condition.base, landings.back(), unsigned(landings.size()));
    for (unsigned k = 0; k + 1 < landings.size(); ++k)
        branch->addCase(llvm::cast<llvm::ConstantInt>(llvm::ConstantInt::get(condition.base->getType(), k)),
                        landings[k]);
}

} // namespace ptarmigan::translator
