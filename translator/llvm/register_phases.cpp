// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/register_phases.h"

#include "translator/kernel_abi.h"
#include "translator/llvm/hidden_value.h"
#include "translator/llvm/hoist_from_steps.h"
#include "translator/llvm/long_code.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/InstructionSimplify.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/ProfDataUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace ptarmigan::translator {
namespace {

using namespace llvm;

/// Of steps that are spelled out, all together.
constexpr std::size_t most_instructions = 2400;
/// A branch whose likely side is taken this many times as often as the other is never expected to go there.
constexpr std::uint64_t rare_ratio = 16;
/// Of the vector registers, those that values may keep from round to round.
constexpr unsigned share_of_kept = 5, all_shares = 8;

/// Reached from the choice of the next region, and back to it over one edge.
struct Region {
    BasicBlock* entry = nullptr;
    SetVector<BasicBlock*> blocks;
    BasicBlock* last = nullptr;
};

/// A place in each step's frame.
struct Slot {
    Type* type = nullptr;
    bool is_plain = true; ///< accessed as a whole, as this type
    bool in_products = false, is_loaded = false;
    StoreInst* store = nullptr; ///< by a step that loads tiles
    enum Kind { memory, kept, progress } kind = memory;
    bool is_same = false; ///< in all steps
    // While code is written: by step, or the first step's.
    std::vector<Value*> values;
    std::vector<PHINode*> phis;
    Value *distance = nullptr, *next = nullptr;
};

struct Place {
    std::int64_t offset;
    std::optional<std::int64_t> step; ///< none: of the step at hand
};

class Phases {
public:
    Phases(Function& function, FunctionAnalysisManager& analyses)
        : function_(function), layout_(function.getParent()->getDataLayout()),
          tree_(analyses.getResult<DominatorTreeAnalysis>(function)),
          loops_(analyses.getResult<LoopAnalysis>(function)),
          evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)),
          target_(analyses.getResult<TargetIRAnalysis>(function)), ir_(function.getContext()) {}

    bool run() {
        if (!find_choice()) return false;
        for (const auto& [loads, load_region] : regions_)
            for (const auto& [products, product_region] : regions_) {
                if (loads == products) continue;
                loads_ = load_region, products_ = product_region;
                loads_number_ = loads, products_number_ = products;
                if (!find_rounds() || !find_path() || !find_slots() || !can_test()) continue;
                write();
                return true;
            }
        return false;
    }

private:
    // ---- what is there

    bool find_choice() {
        for (BasicBlock& block : function_) {
            auto* choice = dyn_cast<SwitchInst>(block.getTerminator());
            auto* next = choice ? dyn_cast<PHINode>(choice->getCondition()) : nullptr;
            if (!next || next->getParent() != &block || &*block.getFirstNonPHIOrDbg() != choice) continue;
            choice_ = &block;
            next_ = next;
            break;
        }
        if (!choice_) return false;
        for (auto each : cast<SwitchInst>(choice_->getTerminator())->cases()) {
            Region region{each.getCaseSuccessor(), {}, nullptr};
            if (collect(region)) regions_.push_back({each.getCaseValue(), region});
        }
        for (Instruction& instruction : function_.getEntryBlock()) {
            auto* load = dyn_cast<LoadInst>(&instruction);
            if (load && is_frames_field(*load)) frames_ = load;
        }
        return frames_ && regions_.size() >= 2;
    }

    bool is_frames_field(const LoadInst& load) const {
        APInt offset(layout_.getIndexTypeSizeInBits(load.getPointerOperandType()), 0);
        return isa<Argument>(load.getPointerOperand()->stripAndAccumulateConstantOffsets(layout_, offset, false)) &&
               offset == offsetof(abi::CtaContext, frames);
    }

    bool collect(Region& region) const {
        region.blocks.insert(region.entry);
        for (std::size_t i = 0; i < region.blocks.size(); ++i) {
            BasicBlock* block = region.blocks[i];
            if (succ_empty(block)) return false;
            for (BasicBlock* successor : successors(block)) {
                if (successor != choice_) {
                    region.blocks.insert(successor);
                    continue;
                }
                if (region.last && region.last != block) return false;
                region.last = block;
            }
        }
        for (BasicBlock* block : region.blocks)
            for (BasicBlock* before : predecessors(block))
                if (!region.blocks.contains(before) && (before != choice_ || block != region.entry)) return false;
        return region.last != nullptr;
    }

    /// Products without a branch, all steps' together (JamSteps), and behind them a single loop over steps. Where sums
    /// stay in memory the second form gains nothing: 32 x 32 tiles and doubles were slower with it.
    bool find_rounds() {
        before_.clear();
        loop_ = loops_.getLoopFor(loads_.last);
        if (!loop_ || loop_->getLoopLatch() != loads_.last || loop_->getExitingBlock() != loads_.last ||
            !loads_.last->getTerminator()->getMetadata(steps_metadata))
            return false;
        number_ = loop_->getCanonicalInductionVariable();
        steps_ = evolution_.getSmallConstantTripCount(loop_);
        if (!number_ || steps_ < 2) return false;
        if (!is_next(next_->getIncomingValueForBlock(products_.last), loads_number_)) return false;
        from_ = nullptr;
        for (BasicBlock* before : predecessors(choice_)) {
            if (before == loads_.last || before == products_.last) continue;
            if (from_) return false;
            from_ = before;
        }
        if (!from_) return false;
        for (BasicBlock* block : products_.blocks) {
            if (!block->getSingleSuccessor()) return false;
            for (Instruction& instruction : *block)
                if (isa<CallBase>(instruction) && !isa<IntrinsicInst>(instruction)) return false;
        }
        return true;
    }

    /// The number that all steps of a region return, or 0 before the first of them has.
    bool is_next(Value* value, const ConstantInt* number) const {
        if (on_path(value) == number) return true;
        auto* highest = dyn_cast<IntrinsicInst>(value);
        if (!highest || highest->getIntrinsicID() != Intrinsic::umax) return false;
        for (unsigned i = 0; i < 2; ++i) {
            if (on_path(highest->getArgOperand(i)) != number) continue;
            auto* before = dyn_cast<PHINode>(highest->getArgOperand(1 - i));
            return before && all_of(before->incoming_values(),
                                    [&](const Use& use) { return use.get() == highest || match_zero(use.get()); });
        }
        return false;
    }
    static bool match_zero(const Value* value) {
        const auto* number = dyn_cast<ConstantInt>(value);
        return number && number->isZero();
    }

    // ---- the usual way through a step that loads

    bool find_path() {
        path_.clear(), before_.clear(), rare_.clear();
        stay_ = nullptr;
        return walk(loads_.entry, choice_);
    }

    bool walk(BasicBlock* block, BasicBlock* before) {
        if (before_.contains(block) || !loads_.blocks.contains(block)) return false;
        before_[block] = before;
        path_.push_back(block);
        if (walk_on(block)) return true;
        path_.pop_back();
        before_.erase(block);
        return false;
    }

    bool walk_on(BasicBlock* block) {
        if (block == loads_.last) return is_next(next_->getIncomingValueForBlock(block), products_number_);
        auto* branch = dyn_cast<BranchInst>(block->getTerminator());
        if (!branch) return false;
        if (branch->isUnconditional()) return walk(branch->getSuccessor(0), block);
        if (is_uniform(branch->getCondition())) {
            if (stay_) return false;
            for (unsigned side : {0u, 1u}) {
                stay_ = branch, stays_if_ = side == 0;
                const auto rare = rare_;
                if (walk(branch->getSuccessor(side), block)) return true;
                rare_ = rare;
            }
            stay_ = nullptr;
            return false;
        }
        std::uint64_t first = 0, second = 0;
        if (!extractBranchWeights(*branch, first, second)) return false;
        if (first < second * rare_ratio && second < first * rare_ratio) return false;
        const bool usual = first > second;
        rare_.push_back({branch->getCondition(), usual});
        return walk(branch->getSuccessor(usual ? 0 : 1), block);
    }

    /// In all steps of an interval the same, and known before the first of them.
    bool is_uniform(Value* value) const {
        auto* instruction = dyn_cast<Instruction>(value);
        if (!instruction || !loads_.blocks.contains(instruction->getParent())) return true;
        if (isa<PHINode>(instruction)) return false;
        const auto* load = dyn_cast<LoadInst>(instruction);
        if (load ? !load->getMetadata(LLVMContext::MD_invariant_load)
                 : instruction->mayReadOrWriteMemory() || !isSafeToSpeculativelyExecute(instruction))
            return false;
        return all_of(instruction->operands(), [&](const Use& use) { return is_uniform(use.get()); });
    }

    /// What a phi is on the usual way.
    Value* on_path(Value* value) const {
        for (auto* phi = dyn_cast<PHINode>(value); phi; phi = dyn_cast<PHINode>(value)) {
            const auto before = before_.find(phi->getParent());
            if (before == before_.end() || phi->getParent() == loop_->getHeader() || phi->getParent() == loads_.entry)
                break;
            value = phi->getIncomingValueForBlock(before->second);
        }
        return value;
    }

    static bool is_hint(const Instruction& instruction) {
        const auto* call = dyn_cast<IntrinsicInst>(&instruction);
        return call && call->getIntrinsicID() == Intrinsic::prefetch;
    }
    static bool is_mark(const Instruction& instruction) {
        const auto* call = dyn_cast<IntrinsicInst>(&instruction);
        return call &&
               (call->isLifetimeStartOrEnd() || call->getIntrinsicID() == Intrinsic::experimental_noalias_scope_decl);
    }

    // ---- what steps keep

    bool find_slots() {
        slots_.clear();
        size_ = 0;
        if (!find_needed()) return false;
        for (BasicBlock* block : path_)
            for (Instruction& instruction : *block)
                if (const Value* pointer = getLoadStorePointerOperand(&instruction))
                    if (getUnderlyingObject(pointer, 0) == frames_ && !note(instruction, false)) return false;
        for (BasicBlock* block : products_.blocks)
            for (Instruction& instruction : *block) {
                if (auto* load = dyn_cast<LoadInst>(&instruction); load && is_frames_field(*load)) return false;
                if (const Value* pointer = getLoadStorePointerOperand(&instruction))
                    if (getUnderlyingObject(pointer, 0) == frames_ && !note(instruction, true)) return false;
            }
        for (auto slot = slots_.begin(); slot != slots_.end(); ++slot) {
            const auto following = std::next(slot);
            if (following == slots_.end()) break;
            if (slot->first + std::int64_t(bytes_of(slot->second.type)) > following->first)
                slot->second.is_plain = following->second.is_plain = false;
        }
        choose_kinds();
        return any_of(slots_, [](const auto& slot) { return slot.second.kind == Slot::kept; });
    }

    std::uint64_t bytes_of(Type* type) const { return layout_.getTypeStoreSize(type).getFixedValue(); }

    /// Instructions of the usual way that something needs; false if one may not be done so.
    bool find_needed() {
        needed_.clear();
        std::vector<Value*> open;
        std::size_t size = 0;
        for (BasicBlock* block : path_)
            for (Instruction& instruction : *block) {
                if (instruction.isTerminator() || isa<PHINode>(instruction) || is_mark(instruction)) continue;
                if (auto* store = dyn_cast<StoreInst>(&instruction); store ? store->isSimple() : is_hint(instruction)) {
                    needed_.insert(&instruction);
                    for (Use& use : instruction.operands()) open.push_back(use.get());
                } else if (instruction.mayWriteToMemory() || (isa<LoadInst>(instruction) && !is_simple(instruction))) {
                    return false;
                }
            }
        for (PHINode& phi : choice_->phis()) open.push_back(phi.getIncomingValueForBlock(loads_.last));
        while (!open.empty()) {
            Value* value = on_path(open.back());
            open.pop_back();
            auto* instruction = dyn_cast<Instruction>(value);
            if (!instruction || !before_.contains(instruction->getParent()) || !needed_.insert(instruction)) continue;
            for (Use& use : instruction->operands()) open.push_back(use.get());
        }
        for (Instruction* instruction : needed_) size += loop_->contains(instruction) ? steps_ : 1;
        return size <= most_instructions;
    }
    static bool is_simple(const Instruction& instruction) { return cast<LoadInst>(instruction).isSimple(); }

    bool note(Instruction& access, bool in_products) {
        const std::optional<Place> place = place_of(getLoadStorePointerOperand(&access));
        if (!place) return false;
        if (in_products && !place->step) return false;
        auto* store = dyn_cast<StoreInst>(&access);
        if (!in_products && !store && !needed_.contains(&access)) return true;
        Slot& slot = slots_[place->offset];
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

    std::optional<Place> place_of(Value* pointer) {
        const SCEV* distance = evolution_.getMinusSCEV(evolution_.getSCEV(pointer), evolution_.getSCEV(frames_));
        std::optional<std::int64_t> step;
        bool moves = false;
        while (const auto* line = dyn_cast<SCEVAddRecExpr>(distance)) { // loops over steps inside of others, too
            const auto* by = line->isAffine() ? dyn_cast<SCEVConstant>(line->getStepRecurrence(evolution_)) : nullptr;
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
                const std::uint64_t needed = (bytes_of(slot.type) + bytes - 1) / bytes * steps_;
                if (kept + needed > registers) continue;
                kept += needed;
                slot.kind = Slot::kept;
            } else if (slot.type->isIntegerTy() && slot.type->getIntegerBitWidth() >= 32 && slot.is_loaded) {
                if (slot.store && !moves_evenly(*slot.store, offset)) continue;
                slot.kind = Slot::progress;
                slot.is_same = is_same_in_all(offset);
            }
        }
    }

    /// What is stored is what was there and what all steps add alike.
    bool moves_evenly(StoreInst& store, std::int64_t offset) {
        Value* value = on_path(store.getValueOperand());
        for (;;) {
            auto* load = dyn_cast<LoadInst>(value);
            if (load) {
                if (getUnderlyingObject(load->getPointerOperand(), 0) != frames_) return false;
                const std::optional<Place> place = place_of(load->getPointerOperand());
                return place && !place->step && place->offset == offset;
            }
            auto* sum = dyn_cast<BinaryOperator>(value);
            if (!sum || sum->getOpcode() != Instruction::Add) return false;
            const unsigned uniform = is_uniform(sum->getOperand(1)) ? 1 : 0;
            if (!is_uniform(sum->getOperand(uniform))) return false;
            value = on_path(sum->getOperand(1 - uniform));
        }
    }

    /// As far as can be seen where it is first written: a guess, which is tested.
    bool is_same_in_all(std::int64_t offset) {
        bool same = false;
        for (BasicBlock& block : function_) {
            if (loads_.blocks.contains(&block) || products_.blocks.contains(&block)) continue;
            for (Instruction& instruction : block) {
                auto* store = dyn_cast<StoreInst>(&instruction);
                if (!store || getUnderlyingObject(store->getPointerOperand(), 0) != frames_) continue;
                const std::optional<Place> place = place_of(store->getPointerOperand());
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

    // ---- the test

    bool can_test() {
        if (!stay_) return false;
        return all_of(rare_, [&](const auto& each) { return is_known_before(each.first); });
    }

    /// By the step's number, by what stays in its frame and by what was there before the first round.
    bool is_known_before(Value* value) {
        value = on_path(value);
        auto* instruction = dyn_cast<Instruction>(value);
        if (!instruction || value == number_) return true;
        if (!before_.contains(instruction->getParent())) return tree_.dominates(instruction, from_->getTerminator());
        if (isa<PHINode>(instruction)) return false;
        if (auto* load = dyn_cast<LoadInst>(instruction)) {
            if (load->getMetadata(LLVMContext::MD_invariant_load)) return is_known_before(load->getPointerOperand());
            if (getUnderlyingObject(load->getPointerOperand(), 0) != frames_) return false;
            const std::optional<Place> place = place_of(load->getPointerOperand());
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

    Value* place_in_frames(std::int64_t offset, unsigned step) {
        return ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), frames_, std::uint64_t(offset + step * size_));
    }

    LoadInst* load(std::int64_t offset, Type* type, unsigned step) {
        return ir_.CreateAlignedLoad(type, place_in_frames(offset, step), Align(1));
    }

    Value* known_before(Value* value, unsigned step) {
        value = on_path(value);
        if (value == number_) return ConstantInt::get(value->getType(), step);
        auto* instruction = dyn_cast<Instruction>(value);
        if (!instruction || !before_.contains(instruction->getParent())) return value;
        auto* frame_load = dyn_cast<LoadInst>(instruction);
        if (frame_load && !frame_load->getMetadata(LLVMContext::MD_invariant_load))
            return load(place_of(frame_load->getPointerOperand())->offset, value->getType(), step);
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

    // ---- the second form

    BasicBlock* create(const char* name) { return BasicBlock::Create(function_.getContext(), name, &function_); }

    void write() {
        test_ = create("phases.test"), enter_ = create("phases.enter");
        head_ = create("phases"), middle_ = create("phases.next"), leave_ = create("phases.leave");
        round_ = create("phases.load");
        for (BasicBlock* block : path_)
            for (Instruction& instruction : *block)
                if (const Value* pointer = getLoadStorePointerOperand(&instruction))
                    if (getUnderlyingObject(pointer, 0) == frames_)
                        places_[&instruction] = place_of(getLoadStorePointerOperand(&instruction))->offset;
        write_test();
        write_head();
        write_products();
        write_loads();
        write_leave();
        finish();
    }

    void write_test() {
        ir_.SetInsertPoint(test_);
        auto* end = new UnreachableInst(function_.getContext(), test_);
        ir_.SetInsertPoint(end);
        Value* holds = ir_.CreateICmpEQ(next_->getIncomingValueForBlock(from_), products_number_);
        std::map<Value*, bool> asked;
        for (const auto& [test, usual] : rare_) {
            if (!asked.insert({test, usual}).second) continue;
            for (unsigned step = 0; step < steps_; ++step) {
                Value* is = known_before(test, step);
                holds = ir_.CreateAnd(holds, usual ? is : ir_.CreateNot(is));
            }
        }
        for (auto& [offset, slot] : slots_) {
            if (slot.kind != Slot::progress) continue;
            Value* before = slot.values.emplace_back(load(offset, slot.type, 0));
            Value* different = nullptr;
            for (unsigned step = 1; step < steps_; ++step) {
                Value* here = load(offset, slot.type, step);
                Value* distance = ir_.CreateSub(here, before);
                if (!slot.is_same && step == 1) slot.distance = distance;
                if (slot.distance) distance = ir_.CreateXor(distance, slot.distance);
                different = different ? ir_.CreateOr(different, distance) : distance;
                before = here;
            }
            holds = ir_.CreateAnd(holds, ir_.CreateICmpEQ(different, Constant::getNullValue(slot.type)));
        }
        ir_.CreateCondBr(ir_.CreateFreeze(holds), enter_, choice_,
                         MDBuilder(function_.getContext()).createLikelyBranchWeights());
        end->eraseFromParent();
        from_->getTerminator()->replaceSuccessorWith(choice_, test_);
    }

    void write_head() {
        ir_.SetInsertPoint(BranchInst::Create(head_, enter_));
        for (auto& [offset, slot] : slots_)
            if (slot.kind == Slot::kept)
                for (unsigned step = 0; step < steps_; ++step) slot.values.push_back(load(offset, slot.type, step));
        ir_.SetInsertPoint(head_);
        for (PHINode& phi : choice_->phis()) {
            if (&phi == next_) continue;
            PHINode* made = ir_.CreatePHI(phi.getType(), 2, phi.getName());
            made->addIncoming(phi.getIncomingValueForBlock(from_), enter_);
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
        for (PHINode& phi : choice_->phis()) // from now on behind the test
            phi.replaceIncomingBlockWith(from_, test_);
    }

    void write_products() {
        ValueToValueMapTy copies;
        for (const auto& [phi, made] : carried_) copies[phi] = made;
        copies[next_] = products_number_;
        copies[choice_] = middle_;
        SmallVector<BasicBlock*, 8> blocks;
        for (BasicBlock* block : products_.blocks) {
            BasicBlock* copy = CloneBasicBlock(block, copies, ".phase", &function_);
            copies[block] = copy;
            blocks.push_back(copy);
        }
        remapInstructionsInBlocks(blocks, copies);
        for (BasicBlock* block : blocks)
            for (PHINode& phi : block->phis()) phi.replaceIncomingBlockWith(middle_, head_);
        ir_.SetInsertPoint(head_);
        ir_.CreateBr(cast<BasicBlock>(copies[products_.entry]));
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
        Value* value = phi.getIncomingValueForBlock(products_.last);
        const auto copy = copies.find(value);
        return copy == copies.end() ? value : static_cast<Value*>(copy->second);
    }

    /// An access of the products to what is in registers now.
    void keep(Instruction& instruction) {
        Value* pointer = getLoadStorePointerOperand(&instruction);
        if (!pointer) return;
        APInt offset(layout_.getIndexTypeSizeInBits(pointer->getType()), 0);
        if (pointer->stripAndAccumulateConstantOffsets(layout_, offset, /*AllowNonInbounds=*/true) != frames_) return;
        const std::int64_t place = offset.getSExtValue();
        const auto slot = slots_.find(place % size_);
        if (slot == slots_.end() || slot->second.kind != Slot::kept) return;
        Value*& value = slot->second.values[std::size_t(place / size_)];
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
        Value* stays = uniform(stay_->getCondition());
        ir_.CreateCondBr(stays, stays_if_ ? round_ : leave_, stays_if_ ? leave_ : round_,
                         MDBuilder(function_.getContext()).createBranchWeights(stays_if_ ? 64 : 1, stays_if_ ? 1 : 64));
        end->eraseFromParent();
        for (const auto& [phi, made] : carried_) behind_products_.push_back(values_[phi]);
        ir_.SetInsertPoint(BranchInst::Create(head_, round_));
        std::size_t block = 0;
        for (; path_[block] != loop_->getHeader(); ++block) write_block(*path_[block], 0);
        for (unsigned step = 0; step < steps_; ++step) {
            fence();
            enter_step(step);
            for (std::size_t i = block; i < path_.size(); ++i) write_block(*path_[i], step);
        }
        fence();
        for (const auto& [phi, made] : carried_)
            made->addIncoming(value(phi->getIncomingValueForBlock(loads_.last)), round_);
        for (auto& [offset, slot] : slots_)
            for (std::size_t i = 0; i < slot.phis.size(); ++i)
                slot.phis[i]->addIncoming(slot.kind == Slot::kept ? slot.values[i] : slot.next, round_);
    }

    /// The compiler keeps each step's accesses together: a fault is told with the step's number in memory.
    void fence() { ir_.CreateFence(AtomicOrdering::AcquireRelease, SyncScope::SingleThread); }

    void enter_step(unsigned step) {
        BasicBlock* header = loop_->getHeader();
        std::vector<std::pair<PHINode*, Value*>> next;
        for (PHINode& phi : header->phis())
            next.push_back({&phi, value(phi.getIncomingValueForBlock(step == 0 ? before_[header] : loads_.last))});
        for (const auto& [phi, made] : next) values_[phi] = made;
        values_[number_] = ConstantInt::get(number_->getType(), step);
        for (auto& [offset, slot] : slots_) {
            if (slot.kind != Slot::progress) continue;
            Value*& here = slot.values[0];
            if (step == 0) first_values_.push_back({&slot, here});
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
        if (!instruction || !loads_.blocks.contains(instruction->getParent())) return of;
        Instruction* made = instruction->clone();
        for (Use& use : made->operands()) use.set(uniform(use.get()));
        return insert(made);
    }

    void write_block(BasicBlock& block, unsigned step) {
        for (Instruction& instruction : block) {
            if (instruction.isTerminator() || is_mark(instruction)) continue;
            if (auto* phi = dyn_cast<PHINode>(&instruction)) {
                if (&block != loop_->getHeader()) values_[phi] = value(phi->getIncomingValueForBlock(before_[&block]));
                continue;
            }
            if (!needed_.contains(&instruction)) continue;
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
            if (isa<StoreInst>(instruction) && cast<StoreInst>(instruction).getValueOperand() == number_) fence();
        }
    }

    void write_leave() {
        ir_.SetInsertPoint(leave_);
        for (const auto& [slot, first] : first_values_) {
            if (!slot->store) continue;
            Value* stored = first;
            for (unsigned step = 0; step < steps_; ++step) {
                if (step > 0 && !slot->is_same) stored = ir_.CreateAdd(stored, slot->distance);
                ir_.CreateAlignedStore(stored, place_in_frames(offset_of(*slot), step), Align(1));
            }
        }
        for (auto& [offset, slot] : slots_)
            if (slot.kind == Slot::kept)
                for (unsigned step = 0; step < steps_; ++step)
                    ir_.CreateAlignedStore(slot.values[step], place_in_frames(offset, step), Align(1));
        ir_.CreateBr(choice_);
        for (std::size_t i = 0; i < carried_.size(); ++i) carried_[i].first->addIncoming(behind_products_[i], leave_);
        next_->addIncoming(loads_number_, leave_);
    }

    std::int64_t offset_of(const Slot& slot) const {
        for (const auto& [offset, each] : slots_)
            if (&each == &slot) return offset;
        llvm_unreachable("a slot of these");
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
    DominatorTree& tree_;
    LoopInfo& loops_;
    ScalarEvolution& evolution_;
    const TargetTransformInfo& target_;
    IRBuilder<> ir_;

    BasicBlock* choice_ = nullptr; ///< of the next region, by `next_`
    PHINode* next_ = nullptr;
    LoadInst* frames_ = nullptr;
    std::vector<std::pair<ConstantInt*, Region>> regions_;
    Region loads_, products_;
    ConstantInt *loads_number_ = nullptr, *products_number_ = nullptr;
    BasicBlock* from_ = nullptr; ///< where the first round is come to
    Loop* loop_ = nullptr;       ///< over the steps that load
    PHINode* number_ = nullptr;  ///< of the step
    unsigned steps_ = 0;

    std::vector<BasicBlock*> path_;
    DenseMap<const BasicBlock*, BasicBlock*> before_;
    BranchInst* stay_ = nullptr; ///< whether there is another round
    bool stays_if_ = false;
    std::vector<std::pair<Value*, bool>> rare_; ///< tests, and what they usually are
    SetVector<Instruction*> needed_;
    std::map<std::int64_t, Slot> slots_; ///< by offset
    std::int64_t size_ = 0;              ///< of a frame

    BasicBlock *test_ = nullptr, *enter_ = nullptr, *head_ = nullptr, *middle_ = nullptr, *leave_ = nullptr,
               *round_ = nullptr;
    std::vector<BasicBlock*> new_blocks_;
    std::vector<std::pair<PHINode*, PHINode*>> carried_;
    std::vector<Value*> behind_products_;
    std::vector<std::pair<Slot*, Value*>> first_values_;
    DenseMap<Value*, Value*> values_, replaced_;
    DenseMap<const Instruction*, std::int64_t> places_;
};

} // namespace

PreservedAnalyses RegisterPhases::run(Function& function, FunctionAnalysisManager& analyses) {
    if (is_long_code(*function.getParent())) return PreservedAnalyses::all();
    return Phases(function, analyses).run() ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace ptarmigan::translator
