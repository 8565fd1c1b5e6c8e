// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/phase_slots.h"

#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <iterator>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

/// Of steps that are spelled out, all together.
constexpr std::size_t most_instructions = 2400;
/// Of the vector registers, those that values may keep from round to round.
constexpr unsigned share_of_kept = 5, all_shares = 8;

using Place = FramePlaces::Place;

bool is_hint(const Instruction& instruction) {
    const auto* call = dyn_cast<IntrinsicInst>(&instruction);
    return call && call->getIntrinsicID() == Intrinsic::prefetch;
}

/// Says something to the optimiser and does nothing.
bool is_mark(const Instruction& instruction) {
    const auto* call = dyn_cast<IntrinsicInst>(&instruction);
    return call &&
           (call->isLifetimeStartOrEnd() || call->getIntrinsicID() == Intrinsic::experimental_noalias_scope_decl);
}

class SlotFinder {
public:
    SlotFinder(const RegionChoice& choice, const PhaseRounds& rounds, PhaseSlots& slots, const LoopInfo& loops,
               const DominatorTree& tree, const TargetTransformInfo& target)
        : function_(*choice.block->getParent()), layout_(function_.getParent()->getDataLayout()), choice_(choice),
          rounds_(rounds), needed_(slots.needed), slots_(slots.by_offset), places_(slots.places), loops_(loops),
          tree_(tree), target_(target) {}

    bool find() {
        if (!find_needed()) return false;
        for (BasicBlock* block : rounds_.path)
            for (Instruction& instruction : *block)
                if (places_.is_in_frames(instruction) && !note(instruction, false)) return false;
        for (BasicBlock* block : rounds_.products->blocks)
            for (Instruction& instruction : *block) {
                if (auto* load = dyn_cast<LoadInst>(&instruction); load && is_frames_field(*load)) return false;
                if (places_.is_in_frames(instruction) && !note(instruction, true)) return false;
            }
        for (auto slot = slots_.begin(); slot != slots_.end(); ++slot) {
            const auto following = std::next(slot);
            if (following == slots_.end()) break;
            if (slot->first + std::int64_t(bytes_of(slot->second.type)) > following->first)
                slot->second.is_plain = following->second.is_plain = false;
        }
        choose_kinds();
        return any_of(slots_, [](const auto& slot) { return slot.second.kind == PhaseSlot::kept; });
    }

    /// Whether all that is rare can be told in front of the first round.
    bool can_test() {
        if (!rounds_.stay) return false;
        return all_of(rounds_.rare, [&](const auto& each) { return is_known_before(each.first); });
    }

private:
    std::uint64_t bytes_of(Type* type) const { return layout_.getTypeStoreSize(type).getFixedValue(); }

    /// Instructions of the usual way that something needs; false if one may not be done so.
    bool find_needed() {
        std::vector<Value*> open;
        std::size_t size = 0;
        for (BasicBlock* block : rounds_.path)
            for (Instruction& instruction : *block) {
                if (instruction.isTerminator() || isa<PHINode>(instruction) || is_mark(instruction)) continue;
                if (auto* store = dyn_cast<StoreInst>(&instruction); store ? store->isSimple() : is_hint(instruction)) {
                    needed_.insert(&instruction);
                    for (Use& use : instruction.operands()) open.push_back(use.get());
                } else if (instruction.mayWriteToMemory() || (isa<LoadInst>(instruction) && !is_simple(instruction))) {
                    return false;
                }
            }
        for (PHINode& phi : choice_.block->phis()) open.push_back(phi.getIncomingValueForBlock(rounds_.loads->last));
        while (!open.empty()) {
            Value* value = rounds_.on_path(open.back());
            open.pop_back();
            auto* instruction = dyn_cast<Instruction>(value);
            if (!instruction || !rounds_.is_on_path(*instruction) || !needed_.insert(instruction)) continue;
            for (Use& use : instruction->operands()) open.push_back(use.get());
        }
        for (Instruction* instruction : needed_) size += rounds_.loop->contains(instruction) ? rounds_.steps : 1;
        return size <= most_instructions;
    }
    static bool is_simple(const Instruction& instruction) { return cast<LoadInst>(instruction).isSimple(); }

    bool note(Instruction& access, bool in_products) {
        const std::optional<Place> place = places_.find(*getLoadStorePointerOperand(&access));
        if (!place) return false;
        if (in_products && !place->step) return false;
        auto* store = dyn_cast<StoreInst>(&access);
        if (!in_products && !store && !needed_.contains(&access)) return true;
        PhaseSlot& slot = slots_[place->offset];
        Type* type = getLoadStoreType(&access);
        slot.is_plain &= !slot.type || slot.type == type;
        if (!slot.type || bytes_of(type) > bytes_of(slot.type)) slot.type = type;
        slot.in_products |= in_products;
        slot.is_loaded |= !store;
        if (!store || in_products) return true;
        slot.is_plain &= !slot.store;
        slot.store = store;
        return true;
    }

    void choose_kinds() {
        const unsigned registers =
            target_.getNumberOfRegisters(target_.getRegisterClassForType(/*Vector=*/true)) * share_of_kept / all_shares;
        const std::uint64_t bytes =
            std::max<std::uint64_t>(
                128, target_.getRegisterBitWidth(TargetTransformInfo::RGK_FixedWidthVector).getFixedValue()) /
            8;
        std::uint64_t kept = 0;
        for (auto& [offset, slot] : slots_) {
            if (!slot.is_plain) continue;
            if (slot.in_products) {
                if (!slot.type->isVectorTy() || slot.store) continue;
                const std::uint64_t needed = (bytes_of(slot.type) + bytes - 1) / bytes * rounds_.steps;
                if (kept + needed > registers) continue;
                kept += needed;
                slot.kind = PhaseSlot::kept;
            } else if (slot.type->isIntegerTy() && slot.type->getIntegerBitWidth() >= 32 && slot.is_loaded) {
                if (slot.store && !moves_evenly(*slot.store, offset)) continue;
                slot.kind = PhaseSlot::progress;
                slot.is_same = is_same_in_all(offset);
            }
        }
    }

    /// What is stored is what was there and what all steps add alike.
    bool moves_evenly(StoreInst& store, std::int64_t offset) {
        Value* value = rounds_.on_path(store.getValueOperand());
        for (;;) {
            if (auto* load = dyn_cast<LoadInst>(value)) {
                if (!places_.is_in_frames(*load)) return false;
                const std::optional<Place> place = places_.find(*load->getPointerOperand());
                return place && !place->step && place->offset == offset;
            }
            auto* sum = dyn_cast<BinaryOperator>(value);
            if (!sum || sum->getOpcode() != Instruction::Add) return false;
            const unsigned uniform = rounds_.is_uniform(sum->getOperand(1)) ? 1 : 0;
            if (!rounds_.is_uniform(sum->getOperand(uniform))) return false;
            value = rounds_.on_path(sum->getOperand(1 - uniform));
        }
    }

    /// As far as can be seen where it is first written: a guess, which is tested.
    bool is_same_in_all(std::int64_t offset) {
        bool same = false;
        for (BasicBlock& block : function_) {
            if (rounds_.loads->blocks.contains(&block) || rounds_.products->blocks.contains(&block)) continue;
            for (Instruction& instruction : block) {
                auto* store = dyn_cast<StoreInst>(&instruction);
                if (!store || !places_.is_in_frames(*store)) continue;
                const std::optional<Place> place = places_.find(*store->getPointerOperand());
                if (!place || place->offset != offset) continue;
                const Loop* loop = loops_.getLoopFor(&block);
                if (!loop || !is_alike(store->getValueOperand(), *loop)) return false;
                same = true;
            }
        }
        return same;
    }

    bool is_alike(Value* value, const Loop& loop) const {
        auto* instruction = dyn_cast<Instruction>(value);
        if (!instruction || !loop.contains(instruction)) return true;
        if (isa<PHINode>(instruction)) return false;
        const auto* load = dyn_cast<LoadInst>(instruction);
        if (load ? !load->getMetadata(LLVMContext::MD_invariant_load) : instruction->mayReadOrWriteMemory())
            return false;
        return all_of(instruction->operands(), [&](const Use& use) { return is_alike(use.get(), loop); });
    }

    /// By the step's number, by what stays in its frame and by what was there before the first round.
    bool is_known_before(Value* value) {
        value = rounds_.on_path(value);
        auto* instruction = dyn_cast<Instruction>(value);
        if (!instruction || value == rounds_.number) return true;
        if (!rounds_.is_on_path(*instruction)) return tree_.dominates(instruction, rounds_.from->getTerminator());
        if (isa<PHINode>(instruction)) return false;
        if (auto* load = dyn_cast<LoadInst>(instruction)) {
            if (load->getMetadata(LLVMContext::MD_invariant_load)) return is_known_before(load->getPointerOperand());
            if (!places_.is_in_frames(*load)) return false;
            const std::optional<Place> place = places_.find(*load->getPointerOperand());
            if (!place || place->step) return false;
            const std::int64_t end = place->offset + std::int64_t(bytes_of(load->getType()));
            for (const auto& [offset, slot] : slots_)
                if ((slot.store || slot.in_products) && offset < end &&
                    place->offset < offset + std::int64_t(bytes_of(slot.type)))
                    return false;
            return true;
        }
        if (instruction->mayReadOrWriteMemory() || !isSafeToSpeculativelyExecute(instruction)) return false;
        return all_of(instruction->operands(), [&](const Use& use) { return is_known_before(use.get()); });
    }

    Function& function_;
    const DataLayout& layout_;
    const RegionChoice& choice_;
    const PhaseRounds& rounds_;
    SetVector<Instruction*>& needed_;
    std::map<std::int64_t, PhaseSlot>& slots_;
    FramePlaces& places_;
    const LoopInfo& loops_;
    const DominatorTree& tree_;
    const TargetTransformInfo& target_;
};

} // namespace

bool FramePlaces::is_in_frames(const Instruction& access) const {
    const Value* pointer = getLoadStorePointerOperand(&access);
    return pointer && getUnderlyingObject(pointer, 0) == frames_;
}

std::optional<Place> FramePlaces::find(Value& pointer) {
    const SCEV* distance = evolution_->getMinusSCEV(evolution_->getSCEV(&pointer), evolution_->getSCEV(frames_));
    std::optional<std::int64_t> step;
    bool moves = false;
    while (const auto* line = dyn_cast<SCEVAddRecExpr>(distance)) { // loops over steps inside of others, too
        const auto* by = line->isAffine() ? dyn_cast<SCEVConstant>(line->getStepRecurrence(*evolution_)) : nullptr;
        if (!by) return std::nullopt;
        if (size_ == 0 && line->getLoop() == loop_) size_ = by->getAPInt().getSExtValue();
        if (size_ <= 0 || by->getAPInt().getSExtValue() % size_ != 0) return std::nullopt;
        moves = true;
        distance = line->getStart();
    }
    const auto* start = dyn_cast<SCEVConstant>(distance);
    if (!start || size_ <= 0) return std::nullopt;
    const std::int64_t offset = start->getAPInt().getSExtValue();
    if (!moves) step = offset / size_;
    return Place{offset % size_, step};
}

std::optional<PhaseSlots> find_phase_slots(const RegionChoice& choice, const PhaseRounds& rounds,
                                           ScalarEvolution& evolution, const LoopInfo& loops, const DominatorTree& tree,
                                           const TargetTransformInfo& target) {
    PhaseSlots slots{{}, {}, FramePlaces(*choice.frames, *rounds.loop, evolution)};
    SlotFinder finder(choice, rounds, slots, loops, tree, target);
    if (!finder.find() || !finder.can_test()) return std::nullopt;
    return slots;
}

} // namespace ptarmigan::translator
