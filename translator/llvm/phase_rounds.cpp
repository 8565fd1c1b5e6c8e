// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/phase_rounds.h"

#include "translator/llvm/step_loops.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/ProfDataUtils.h>

#include <cstdint>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

/// A branch whose likely side is taken this many times as often as the other is never expected to go there.
constexpr std::uint64_t rare_ratio = 16;

class RoundsFinder {
public:
    RoundsFinder(const RegionChoice& choice, PhaseRounds& rounds) : choice_(choice), rounds_(rounds) {}

    /// Products without a branch, all steps' together (JamSteps), and behind them a single loop over steps. Where sums
    /// stay in memory the second form gains nothing: 32 x 32 tiles and doubles were slower with it.
    bool find_regions(LoopInfo& loops, ScalarEvolution& evolution) {
        BasicBlock* last = rounds_.loads->last;
        Loop* loop = rounds_.loop = loops.getLoopFor(last);
        if (!loop || loop->getLoopLatch() != last || loop->getExitingBlock() != last || !is_step_loop(*loop))
            return false;
        rounds_.number = loop->getCanonicalInductionVariable();
        rounds_.steps = evolution.getSmallConstantTripCount(loop);
        if (!rounds_.number || rounds_.steps < 2) return false;
        if (!is_next(choice_.next->getIncomingValueForBlock(rounds_.products->last), rounds_.loads_number))
            return false;
        for (BasicBlock* before : predecessors(choice_.block)) {
            if (before == last || before == rounds_.products->last) continue;
            if (rounds_.from) return false;
            rounds_.from = before;
        }
        if (!rounds_.from) return false;
        for (BasicBlock* block : rounds_.products->blocks) {
            if (!block->getSingleSuccessor()) return false;
            for (Instruction& instruction : *block)
                if (isa<CallBase>(instruction) && !isa<IntrinsicInst>(instruction)) return false;
        }
        return true;
    }

    bool find_path() { return walk(rounds_.loads->entry, choice_.block); }

private:
    /// The number that all steps of a region return, or 0 before the first of them has.
    bool is_next(Value* value, const ConstantInt* number) const {
        if (rounds_.on_path(value) == number) return true;
        auto* highest = dyn_cast<IntrinsicInst>(value);
        if (!highest || highest->getIntrinsicID() != Intrinsic::umax) return false;
        for (unsigned i = 0; i < 2; ++i) {
            if (rounds_.on_path(highest->getArgOperand(i)) != number) continue;
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

    bool walk(BasicBlock* block, BasicBlock* before) {
        if (rounds_.before.contains(block) || !rounds_.loads->blocks.contains(block)) return false;
        rounds_.before[block] = before;
        rounds_.path.push_back(block);
        if (walk_on(block)) return true;
        rounds_.path.pop_back();
        rounds_.before.erase(block);
        return false;
    }

    bool walk_on(BasicBlock* block) {
        if (block == rounds_.loads->last)
            return is_next(choice_.next->getIncomingValueForBlock(block), rounds_.products_number);
        auto* branch = dyn_cast<BranchInst>(block->getTerminator());
        if (!branch) return false;
        if (branch->isUnconditional()) return walk(branch->getSuccessor(0), block);
        if (rounds_.is_uniform(branch->getCondition())) {
            if (rounds_.stay) return false;
            for (unsigned side : {0u, 1u}) {
                rounds_.stay = branch, rounds_.stays_if = side == 0;
                const auto rare = rounds_.rare;
                if (walk(branch->getSuccessor(side), block)) return true;
                rounds_.rare = rare;
            }
            rounds_.stay = nullptr;
            return false;
        }
        std::uint64_t first = 0, second = 0;
        if (!extractBranchWeights(*branch, first, second)) return false;
        if (first < second * rare_ratio && second < first * rare_ratio) return false;
        const bool usual = first > second;
        rounds_.rare.push_back({branch->getCondition(), usual});
        return walk(branch->getSuccessor(usual ? 0 : 1), block);
    }

    const RegionChoice& choice_;
    PhaseRounds& rounds_;
};

} // namespace

bool PhaseRounds::is_uniform(Value* value) const {
    auto* instruction = dyn_cast<Instruction>(value);
    if (!instruction || !loads->blocks.contains(instruction->getParent())) return true;
    if (isa<PHINode>(instruction)) return false;
    const auto* load = dyn_cast<LoadInst>(instruction);
    if (load ? !load->getMetadata(LLVMContext::MD_invariant_load)
             : instruction->mayReadOrWriteMemory() || !isSafeToSpeculativelyExecute(instruction))
        return false;
    return all_of(instruction->operands(), [&](const Use& use) { return is_uniform(use.get()); });
}

Value* PhaseRounds::on_path(Value* value) const {
    for (auto* phi = dyn_cast<PHINode>(value); phi; phi = dyn_cast<PHINode>(value)) {
        const auto came_from = before.find(phi->getParent());
        if (came_from == before.end() || phi->getParent() == loop->getHeader() || phi->getParent() == loads->entry)
            break;
        value = phi->getIncomingValueForBlock(came_from->second);
    }
    return value;
}

std::optional<PhaseRounds> find_phase_rounds(const RegionChoice& choice, std::size_t loads, std::size_t products,
                                             LoopInfo& loops, ScalarEvolution& evolution) {
    PhaseRounds rounds;
    rounds.loads_number = choice.regions[loads].first, rounds.loads = &choice.regions[loads].second;
    rounds.products_number = choice.regions[products].first, rounds.products = &choice.regions[products].second;
    RoundsFinder finder(choice, rounds);
    if (!finder.find_regions(loops, evolution) || !finder.find_path()) return std::nullopt;
    return rounds;
}

} // namespace ptarmigan::translator
