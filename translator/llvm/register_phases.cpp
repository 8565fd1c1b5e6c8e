// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/register_phases.h"

#include "translator/llvm/hidden_value.h"
#include "translator/llvm/long_code.h"
#include "translator/llvm/phase_rounds.h"
#include "translator/llvm/phase_slots.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/InstructionSimplify.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace ptarmigan::translator {
namespace {

using namespace llvm;

/// The second form of two regions that alternate.
class PhaseWriter {
public:
    PhaseWriter(const RegionChoice& choice, const PhaseRounds& rounds, PhaseSlots& plan)
        : function_(*choice.block->getParent()), layout_(function_.getParent()->getDataLayout()), choice_(choice),
          rounds_(rounds), plan_(plan), ir_(function_.getContext()) {
        for (const auto& [offset, slot] : plan.by_offset) slots_[offset] = Slot{slot, {}, {}, nullptr, nullptr};
    }

    void write() {
        test_ = create("phases.test"), enter_ = create("phases.enter");
        head_ = create("phases"), middle_ = create("phases.next"), leave_ = create("phases.leave");
        round_ = create("phases.load");
        for (BasicBlock* block : rounds_.path)
            for (Instruction& instruction : *block)
                if (plan_.places.is_in_frames(instruction))
                    places_[&instruction] = plan_.places.find(*getLoadStorePointerOperand(&instruction))->offset;
        write_test();
        write_head();
        write_products();
        write_loads();
        write_leave();
        finish();
    }

private:
    struct Slot : PhaseSlot {
        // By step, or the first step's.
        std::vector<Value*> values;
        std::vector<PHINode*> phis;
        Value *distance = nullptr, *next = nullptr;
    };

    BasicBlock* create(const char* name) { return BasicBlock::Create(function_.getContext(), name, &function_); }

    // ---- the test

    void write_test() {
        ir_.SetInsertPoint(test_);
        auto* end = new UnreachableInst(function_.getContext(), test_);
        ir_.SetInsertPoint(end);
        Value* holds = ir_.CreateICmpEQ(choice_.next->getIncomingValueForBlock(rounds_.from), rounds_.products_number);
        std::map<Value*, bool> asked;
        for (const auto& [test, usual] : rounds_.rare) {
            if (!asked.insert({test, usual}).second) continue;
            for (unsigned step = 0; step < rounds_.steps; ++step) {
                Value* is = known_before(test, step);
                holds = ir_.CreateAnd(holds, usual ? is : ir_.CreateNot(is));
            }
        }
        for (auto& [offset, slot] : slots_) {
            if (slot.kind != Slot::progress) continue;
            Value* before = slot.values.emplace_back(load(offset, slot.type, 0));
            Value* different = nullptr;
            for (unsigned step = 1; step < rounds_.steps; ++step) {
                Value* here = load(offset, slot.type, step);
                Value* distance = ir_.CreateSub(here, before);
                if (!slot.is_same && step == 1) slot.distance = distance;
                if (slot.distance) distance = ir_.CreateXor(distance, slot.distance);
                different = different ? ir_.CreateOr(different, distance) : distance;
                before = here;
            }
            holds = ir_.CreateAnd(holds, ir_.CreateICmpEQ(different, Constant::getNullValue(slot.type)));
        }
        ir_.CreateCondBr(ir_.CreateFreeze(holds), enter_, choice_.block,
                         MDBuilder(function_.getContext()).createLikelyBranchWeights());
        end->eraseFromParent();
        rounds_.from->getTerminator()->replaceSuccessorWith(choice_.block, test_);
    }

    Value* place_in_frames(std::int64_t offset, unsigned step) {
        return ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), choice_.frames,
                                              std::uint64_t(offset + step * plan_.places.size()));
    }

    LoadInst* load(std::int64_t offset, Type* type, unsigned step) {
        return ir_.CreateAlignedLoad(type, place_in_frames(offset, step), Align(1));
    }

    Value* known_before(Value* value, unsigned step) {
        value = rounds_.on_path(value);
        if (value == rounds_.number) return ConstantInt::get(value->getType(), step);
        auto* instruction = dyn_cast<Instruction>(value);
        if (!instruction || !rounds_.is_on_path(*instruction)) return value;
        auto* frame_load = dyn_cast<LoadInst>(instruction);
        if (frame_load && !frame_load->getMetadata(LLVMContext::MD_invariant_load))
            return load(plan_.places.find(*frame_load->getPointerOperand())->offset, value->getType(), step);
        Instruction* made = instruction->clone();
        for (Use& use : made->operands()) use.set(known_before(use.get(), step));
        return insert(made);
    }

    Value* insert(Instruction* made) {
        if (!made->mayReadOrWriteMemory())
            if (Value* simpler = simplifyInstruction(made, SimplifyQuery(layout_, &*ir_.GetInsertPoint()))) {
                made->deleteValue();
                return simpler;
            }
        return ir_.Insert(made);
    }

    // ---- the form

    void write_head() {
        ir_.SetInsertPoint(BranchInst::Create(head_, enter_));
        for (auto& [offset, slot] : slots_)
            if (slot.kind == Slot::kept)
                for (unsigned step = 0; step < rounds_.steps; ++step)
                    slot.values.push_back(load(offset, slot.type, step));
        ir_.SetInsertPoint(head_);
        for (PHINode& phi : choice_.block->phis()) {
            if (&phi == choice_.next) continue;
            PHINode* made = ir_.CreatePHI(phi.getType(), 2, phi.getName());
            made->addIncoming(phi.getIncomingValueForBlock(rounds_.from), enter_);
            carried_.push_back({&phi, made});
        }
        for (auto& [offset, slot] : slots_)
            for (Value*& value : slot.values) {
                if (slot.kind == Slot::progress && !slot.store) continue;
                PHINode* made = ir_.CreatePHI(value->getType(), 2);
                made->addIncoming(value, enter_);
                slot.phis.push_back(made);
                value = made;
            }
        for (PHINode& phi : choice_.block->phis()) // from now on behind the test
            phi.replaceIncomingBlockWith(rounds_.from, test_);
    }

    void write_products() {
        ValueToValueMapTy copies;
        for (const auto& [phi, made] : carried_) copies[phi] = made;
        copies[choice_.next] = rounds_.products_number;
        copies[choice_.block] = middle_;
        SmallVector<BasicBlock*, 8> blocks;
        for (BasicBlock* block : rounds_.products->blocks) {
            BasicBlock* copy = CloneBasicBlock(block, copies, ".phase", &function_);
            copies[block] = copy;
            blocks.push_back(copy);
        }
        remapInstructionsInBlocks(blocks, copies);
        for (BasicBlock* block : blocks)
            for (PHINode& phi : block->phis()) phi.replaceIncomingBlockWith(middle_, head_);
        ir_.SetInsertPoint(head_);
        ir_.CreateBr(cast<BasicBlock>(copies[rounds_.products->entry]));
        new_blocks_.push_back(head_);
        append_range(new_blocks_, blocks);
        for (const auto& [phi, made] : carried_) values_[phi] = copy_of(copies, *phi);
        for (BasicBlock* block = blocks.front(); block != middle_; block = block->getSingleSuccessor())
            for (Instruction& instruction : make_early_inc_range(*block)) keep(instruction);
        for (const auto& [phi, made] : carried_) {
            const auto kept = replaced_.find(values_[phi]);
            if (kept != replaced_.end()) values_[phi] = kept->second;
        }
    }

    Value* copy_of(ValueToValueMapTy& copies, PHINode& phi) {
        Value* value = phi.getIncomingValueForBlock(rounds_.products->last);
        const auto copy = copies.find(value);
        return copy == copies.end() ? value : static_cast<Value*>(copy->second);
    }

    /// An access of the products to what is in registers now.
    void keep(Instruction& instruction) {
        Value* pointer = getLoadStorePointerOperand(&instruction);
        if (!pointer) return;
        APInt offset(layout_.getIndexTypeSizeInBits(pointer->getType()), 0);
        if (pointer->stripAndAccumulateConstantOffsets(layout_, offset, /*AllowNonInbounds=*/true) != choice_.frames)
            return;
        const std::int64_t place = offset.getSExtValue();
        const auto slot = slots_.find(place % plan_.places.size());
        if (slot == slots_.end() || slot->second.kind != Slot::kept) return;
        Value*& value = slot->second.values[std::size_t(place / plan_.places.size())];
        if (auto* store = dyn_cast<StoreInst>(&instruction)) {
            value = store->getValueOperand();
        } else {
            instruction.replaceAllUsesWith(value);
            replaced_[&instruction] = value;
        }
        instruction.eraseFromParent();
    }

    void write_loads() {
        new_blocks_.push_back(middle_);
        new_blocks_.push_back(round_);
        ir_.SetInsertPoint(middle_);
        auto* end = new UnreachableInst(function_.getContext(), middle_);
        ir_.SetInsertPoint(end);
        Value* stays = uniform(rounds_.stay->getCondition());
        ir_.CreateCondBr(stays, rounds_.stays_if ? round_ : leave_, rounds_.stays_if ? leave_ : round_,
                         MDBuilder(function_.getContext())
                             .createBranchWeights(rounds_.stays_if ? 64 : 1, rounds_.stays_if ? 1 : 64));
        end->eraseFromParent();
        for (const auto& [phi, made] : carried_) behind_products_.push_back(values_[phi]);
        ir_.SetInsertPoint(BranchInst::Create(head_, round_));
        std::size_t block = 0;
        for (; rounds_.path[block] != rounds_.loop->getHeader(); ++block) write_block(*rounds_.path[block], 0);
        for (unsigned step = 0; step < rounds_.steps; ++step) {
            fence();
            enter_step(step);
            for (std::size_t i = block; i < rounds_.path.size(); ++i) write_block(*rounds_.path[i], step);
        }
        fence();
        for (const auto& [phi, made] : carried_)
            made->addIncoming(value(phi->getIncomingValueForBlock(rounds_.loads->last)), round_);
        for (auto& [offset, slot] : slots_)
            for (std::size_t i = 0; i < slot.phis.size(); ++i)
                slot.phis[i]->addIncoming(slot.kind == Slot::kept ? slot.values[i] : slot.next, round_);
    }

    /// The compiler keeps each step's accesses together: a fault is told with the step's number in memory.
    void fence() { ir_.CreateFence(AtomicOrdering::AcquireRelease, SyncScope::SingleThread); }

    void enter_step(unsigned step) {
        BasicBlock* header = rounds_.loop->getHeader();
        std::vector<std::pair<PHINode*, Value*>> next;
        for (PHINode& phi : header->phis())
            next.push_back({&phi, value(phi.getIncomingValueForBlock(step == 0 ? rounds_.before.lookup(header)
                                                                               : rounds_.loads->last))});
        for (const auto& [phi, made] : next) values_[phi] = made;
        values_[rounds_.number] = ConstantInt::get(rounds_.number->getType(), step);
        for (auto& [offset, slot] : slots_) {
            if (slot.kind != Slot::progress) continue;
            Value*& here = slot.values[0];
            if (step == 0) first_values_.push_back({offset, here});
            // Hidden, since code generation would keep a register or a place on the stack for each of them.
            if (!slot.is_same) here = hidden_value(ir_, step == 0 ? here : ir_.CreateAdd(here, slot.distance));
            if (step == 0) slot.next = here;
        }
    }

    Value* value(Value* of) const {
        const auto known = values_.find(of);
        return known == values_.end() ? of : known->second;
    }

    Value* uniform(Value* of) {
        const auto known = values_.find(of);
        if (known != values_.end()) return known->second;
        auto* instruction = dyn_cast<Instruction>(of);
        if (!instruction || !rounds_.loads->blocks.contains(instruction->getParent())) return of;
        Instruction* made = instruction->clone();
        for (Use& use : made->operands()) use.set(uniform(use.get()));
        return insert(made);
    }

    void write_block(BasicBlock& block, unsigned step) {
        for (Instruction& instruction : block) {
            if (auto* phi = dyn_cast<PHINode>(&instruction)) {
                if (&block != rounds_.loop->getHeader())
                    values_[phi] = value(phi->getIncomingValueForBlock(rounds_.before.lookup(&block)));
                continue;
            }
            if (!plan_.needed.contains(&instruction)) continue;
            const auto place = places_.find(&instruction);
            Slot* slot = nullptr;
            if (place != places_.end())
                if (const auto found = slots_.find(place->second); found != slots_.end()) slot = &found->second;
            if (slot && slot->kind != Slot::memory) {
                if (auto* store = dyn_cast<StoreInst>(&instruction)) {
                    if (step == 0) slot->next = value(store->getValueOperand());
                } else {
                    values_[&instruction] = slot->values[slot->kind == Slot::kept ? step : 0];
                }
                continue;
            }
            Instruction* made = instruction.clone();
            for (Use& use : made->operands()) use.set(value(use.get()));
            // What was said of one step's accesses among each other says nothing about two steps.
            made->setMetadata(LLVMContext::MD_alias_scope, nullptr);
            made->setMetadata(LLVMContext::MD_noalias, nullptr);
            values_[&instruction] = insert(made);
            if (isa<StoreInst>(instruction) && cast<StoreInst>(instruction).getValueOperand() == rounds_.number)
                fence();
        }
    }

    void write_leave() {
        ir_.SetInsertPoint(leave_);
        for (const auto& [offset, first] : first_values_) {
            const Slot& slot = slots_[offset];
            if (!slot.store) continue;
            Value* stored = first;
            for (unsigned step = 0; step < rounds_.steps; ++step) {
                if (step > 0 && !slot.is_same) stored = ir_.CreateAdd(stored, slot.distance);
                ir_.CreateAlignedStore(stored, place_in_frames(offset, step), Align(1));
            }
        }
        for (auto& [offset, slot] : slots_)
            if (slot.kind == Slot::kept)
                for (unsigned step = 0; step < rounds_.steps; ++step)
                    ir_.CreateAlignedStore(slot.values[step], place_in_frames(offset, step), Align(1));
        ir_.CreateBr(choice_.block);
        for (std::size_t i = 0; i < carried_.size(); ++i) carried_[i].first->addIncoming(behind_products_[i], leave_);
        choice_.next->addIncoming(rounds_.loads_number, leave_);
    }

    /// Drops what nothing needs, and takes out of the rounds what they don't change.
    void finish() {
        for (BasicBlock* block : reverse(new_blocks_))
            for (Instruction& instruction : make_early_inc_range(reverse(*block)))
                if (isInstructionTriviallyDead(&instruction)) instruction.eraseFromParent();
        const auto is_inside = [&](const Value* value) {
            const auto* instruction = dyn_cast<Instruction>(value);
            return instruction && is_contained(new_blocks_, instruction->getParent());
        };
        for (BasicBlock* block : {middle_, round_})
            for (Instruction& instruction : make_early_inc_range(*block)) {
                if (instruction.isTerminator() || isa<PHINode>(instruction) || instruction.getType()->isVectorTy())
                    continue;
                const bool stays =
                    isa<LoadInst>(instruction)
                        ? instruction.getMetadata(LLVMContext::MD_invariant_load) != nullptr
                        : !instruction.mayReadOrWriteMemory() && isSafeToSpeculativelyExecute(&instruction);
                if (stays && none_of(instruction.operands(), [&](const Use& use) { return is_inside(use.get()); }))
                    instruction.moveBefore(enter_->getTerminator());
            }
    }

    Function& function_;
    const DataLayout& layout_;
    const RegionChoice& choice_;
    const PhaseRounds& rounds_;
    PhaseSlots& plan_;
    std::map<std::int64_t, Slot> slots_; ///< by offset
    IRBuilder<> ir_;

    BasicBlock *test_ = nullptr, *enter_ = nullptr, *head_ = nullptr, *middle_ = nullptr, *leave_ = nullptr,
               *round_ = nullptr;
    std::vector<BasicBlock*> new_blocks_;
    std::vector<std::pair<PHINode*, PHINode*>> carried_;
    std::vector<Value*> behind_products_;
    std::vector<std::pair<std::int64_t, Value*>> first_values_; ///< by offset
    DenseMap<Value*, Value*> values_, replaced_;
    DenseMap<const Instruction*, std::int64_t> places_;
};

} // namespace

PreservedAnalyses RegisterPhases::run(Function& function, FunctionAnalysisManager& analyses) {
    if (is_long_code(*function.getParent())) return PreservedAnalyses::all();
    const std::optional<RegionChoice> choice = find_region_choice(function);
    if (!choice) return PreservedAnalyses::all();
    auto& loops = analyses.getResult<LoopAnalysis>(function);
    auto& evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
    for (std::size_t loads = 0; loads < choice->regions.size(); ++loads)
        for (std::size_t products = 0; products < choice->regions.size(); ++products) {
            if (loads == products) continue;
            const auto rounds = find_phase_rounds(*choice, loads, products, loops, evolution);
            if (!rounds) continue;
            auto slots = find_phase_slots(*choice, *rounds, evolution, loops,
                                          analyses.getResult<DominatorTreeAnalysis>(function),
                                          analyses.getResult<TargetIRAnalysis>(function));
            if (!slots) continue;
            PhaseWriter(*choice, *rounds, *slots).write();
            return PreservedAnalyses::none();
        }
    return PreservedAnalyses::all();
}

} // namespace ptarmigan::translator
