// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/join_column_stores.h"

#include "translator/llvm/step_loops.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/DomTreeUpdater.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace ptarmigan::translator {
namespace {

/// Bytes of what lanes store, and from one step's place to the next one's.
constexpr std::int64_t word = 4;
/// Of a loop with more accesses nothing is looked at.
constexpr std::size_t most_accesses = 400;

/// An address: `base` (of the first round) + offset + rounds * step.
struct Place {
    const llvm::SCEV* base = nullptr;
    std::int64_t offset = 0, step = 0;
};

/// All lanes' stores of one vector.
struct Column {
    llvm::Value* rows = nullptr; ///< the vector
    Place place;
    std::vector<llvm::StoreInst*> stores; ///< by lane
    std::vector<std::int64_t> offsets;    ///< by lane, behind the place
};

class StepLoop {
public:
    StepLoop(llvm::Loop& loop, unsigned lanes, llvm::FunctionAnalysisManager& analyses, llvm::Function& function)
        : loop_(loop), lanes_(lanes), tree_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
          loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
          aliases_(analyses.getResult<llvm::AAManager>(function)),
          evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
          behind_(analyses.getResult<llvm::PostDominatorTreeAnalysis>(function)) {}

    bool run() {
        number_ = loop_.getCanonicalInductionVariable();
        rounds_ = evolution_.getSmallConstantTripCount(&loop_);
        if (!number_ || rounds_ == 0 || rounds_ % lanes_ != 0 || loop_.getExitingBlock() != loop_.getLoopLatch())
            return false;
        if (!collect()) return false;
        // All are looked at before one goes: each must be alone among those that stay and those that don't.
        std::vector<Column> kept;
        for (const Column& column : columns_)
            if (is_whole(column) && is_alone(column)) kept.push_back(column);
        columns_ = std::move(kept);
        for (Column& column : columns_) keep_until_last(column);
        return !columns_.empty();
    }

private:
    std::optional<Place> place_of(llvm::Value* pointer) {
        const llvm::DataLayout& layout = loop_.getHeader()->getModule()->getDataLayout();
        llvm::APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
        auto* number = llvm::dyn_cast<llvm::IntToPtrInst>(
            pointer->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/true));
        if (!number) return std::nullopt;
        const llvm::SCEV* address = evolution_.getSCEV(number->getOperand(0));
        if (evolution_.isLoopInvariant(address, &loop_)) return Place{address, offset.getSExtValue(), 0};
        const auto* line = llvm::dyn_cast<llvm::SCEVAddRecExpr>(address);
        if (!line || line->getLoop() != &loop_ || !line->isAffine()) return std::nullopt;
        const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(line->getStepRecurrence(evolution_));
        if (!step) return std::nullopt;
        return Place{line->getStart(), offset.getSExtValue(), step->getAPInt().getSExtValue()};
    }

    /// Every branch on the way there is the same in all rounds, or leads there either way.
    bool runs_in_all_or_none(const llvm::BasicBlock* block) const {
        while (block != loop_.getHeader()) {
            const llvm::DomTreeNode* node = tree_.getNode(block);
            if (!node || !node->getIDom()) return false;
            const llvm::BasicBlock* before = node->getIDom()->getBlock();
            if (!behind_.dominates(block, before)) {
                const auto* branch = llvm::dyn_cast<llvm::BranchInst>(before->getTerminator());
                if (!branch || !branch->isConditional() || !loop_.isLoopInvariant(branch->getCondition())) return false;
            }
            block = before;
        }
        return true;
    }

    static bool leaves_alone(const llvm::Instruction& instruction) {
        if (instruction.getMetadata(llvm::LLVMContext::MD_invariant_load)) return true;
        // The context and the function's own memory are no memory of the kernel's.
        if (const llvm::Value* pointer = llvm::getLoadStorePointerOperand(&instruction))
            if (llvm::isa<llvm::Argument, llvm::AllocaInst>(llvm::getUnderlyingObject(pointer))) return true;
        const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        return call && (call->getIntrinsicID() == llvm::Intrinsic::prefetch ||
                        call->getIntrinsicID() == llvm::Intrinsic::experimental_noalias_scope_decl);
    }

    /// Columns, and what else touches memory; false if there is too much.
    bool collect() {
        for (llvm::BasicBlock* block : loop_.blocks()) {
            const bool in_each_round = loops_.getLoopFor(block) == &loop_ && runs_in_all_or_none(block);
            for (llvm::Instruction& instruction : *block) {
                if (!instruction.mayReadOrWriteMemory() || leaves_alone(instruction)) continue;
                auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
                if (store && in_each_round && add_to_column(*store)) continue;
                if (others_.size() == most_accesses) return false;
                others_.push_back(&instruction);
            }
        }
        return !columns_.empty();
    }

    bool add_to_column(llvm::StoreInst& store) {
        auto* element = llvm::dyn_cast<llvm::ExtractElementInst>(store.getValueOperand());
        if (!store.isSimple() || !element) return false;
        const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(element->getVectorOperandType());
        const auto* lane = llvm::dyn_cast<llvm::ConstantInt>(element->getIndexOperand());
        if (!type || !lane || type->getNumElements() != lanes_ || type->getScalarSizeInBits() != 8 * word) return false;
        const std::optional<Place> place = place_of(store.getPointerOperand());
        if (!place || place->step != word) return false;
        const auto number = std::size_t(lane->getZExtValue());
        for (Column& column : columns_)
            if (column.rows == element->getVectorOperand() && column.place.base == place->base &&
                column.stores.front()->getParent() == store.getParent() && number == column.stores.size()) {
                column.stores.push_back(&store);
                column.offsets.push_back(place->offset);
                return true;
            }
        if (number != 0) return false;
        columns_.push_back({element->getVectorOperand(), *place, {&store}, {place->offset}});
        return true;
    }

    /// Has all lanes, whose rows don't overlap.
    bool is_whole(const Column& column) const {
        if (column.stores.size() != lanes_) return false;
        for (unsigned a = 0; a < lanes_; ++a)
            for (unsigned b = 0; b < a; ++b)
                if (std::abs(column.offsets[a] - column.offsets[b]) < word * std::int64_t(rounds_)) return false;
        return true;
    }

    /// Nothing else in the loop comes to its places.
    bool is_alone(const Column& column) {
        const auto apart = [&](llvm::Instruction* other) {
            const bool may_meet = llvm::any_of(column.stores, [&](llvm::StoreInst* store) {
                return llvm::isModOrRefSet(aliases_.getModRefInfo(other, llvm::MemoryLocation::get(store)));
            });
            return !may_meet || is_elsewhere(column, *other);
        };
        if (!llvm::all_of(others_, apart)) return false;
        return llvm::all_of(columns_, [&](const Column& other) {
            return &other == &column ||
                   llvm::all_of(other.stores, [&](llvm::StoreInst* store) { return is_elsewhere(column, *store); });
        });
    }

    bool is_elsewhere(const Column& column, llvm::Instruction& other) {
        llvm::Value* pointer = llvm::getLoadStorePointerOperand(&other);
        if (!pointer) return false;
        const std::optional<Place> place = place_of(pointer);
        if (!place) return false;
        const auto* distance =
            llvm::dyn_cast<llvm::SCEVConstant>(evolution_.getMinusSCEV(place->base, column.place.base));
        if (!distance) return false;
        const llvm::DataLayout& layout = loop_.getHeader()->getModule()->getDataLayout();
        const auto bytes = std::int64_t(layout.getTypeStoreSize(llvm::getLoadStoreType(&other)).getFixedValue());
        const std::int64_t first = distance->getAPInt().getSExtValue() + place->offset;
        const std::int64_t last = first + place->step * std::int64_t(rounds_ - 1);
        const std::int64_t begin = std::min(first, last), end = std::max(first, last) + bytes;
        return llvm::all_of(column.offsets, [&](std::int64_t offset) {
            return end <= offset || begin >= offset + word * std::int64_t(rounds_);
        });
    }

    void keep_until_last(Column& column) {
        llvm::StoreInst* last = column.stores.back();
        llvm::Function& function = *last->getFunction();
        llvm::Type* row = column.rows->getType();
        llvm::IRBuilder<> ir(&function.getEntryBlock(), function.getEntryBlock().begin());
        auto* kept = ir.CreateAlloca(llvm::ArrayType::get(row, lanes_), nullptr, "kept.rows");
        kept->setAlignment(llvm::Align(64));
        const auto place = [&](llvm::Value* number) { return ir.CreateInBoundsGEP(row, kept, number); };
        ir.SetInsertPoint(last);
        ir.SetCurrentDebugLocation(last->getDebugLoc());
        llvm::Value* number = ir.CreateAnd(number_, llvm::ConstantInt::get(number_->getType(), lanes_ - 1));
        ir.CreateAlignedStore(column.rows, place(ir.CreateZExt(number, ir.getInt64Ty())), llvm::Align(4 * lanes_));
        llvm::Value* is_last = ir.CreateICmpEQ(number, llvm::ConstantInt::get(number_->getType(), lanes_ - 1));
        llvm::Value* pointer = column.stores.front()->getPointerOperand();
        llvm::DomTreeUpdater updater(tree_, llvm::DomTreeUpdater::UpdateStrategy::Eager);
        llvm::Instruction* then = llvm::SplitBlockAndInsertIfThen(is_last, last->getIterator(), /*Unreachable=*/false,
                                                                  nullptr, &updater, &loops_);
        ir.SetInsertPoint(then);
        ir.SetCurrentDebugLocation(last->getDebugLoc());
        std::vector<llvm::Value*> rows;
        for (unsigned i = 0; i < lanes_; ++i)
            rows.push_back(ir.CreateAlignedLoad(row, place(ir.getInt64(i)), llvm::Align(4 * lanes_)));
        rows = transposed(ir, std::move(rows));
        for (unsigned lane = 0; lane < lanes_; ++lane) {
            const std::int64_t back = column.offsets[lane] - column.offsets[0] - word * std::int64_t(lanes_ - 1);
            llvm::Value* at = ir.CreateConstGEP1_64(ir.getInt8Ty(), pointer, std::uint64_t(back));
            llvm::StoreInst* store = ir.CreateAlignedStore(rows[lane], at, llvm::Align(word));
            store->copyMetadata(*column.stores[lane], {llvm::LLVMContext::MD_tbaa, llvm::LLVMContext::MD_noalias,
                                                       llvm::LLVMContext::MD_alias_scope});
        }
        for (llvm::StoreInst* store : column.stores) store->eraseFromParent();
    }

    /// Rows i and i + n / 2 are interleaved, log n times.
    std::vector<llvm::Value*> transposed(llvm::IRBuilder<>& ir, std::vector<llvm::Value*> rows) const {
        llvm::SmallVector<int, 16> low, high;
        for (unsigned i = 0; i < lanes_ / 2; ++i) {
            low.append({int(i), int(i + lanes_)});
            high.append({int(i + lanes_ / 2), int(i + lanes_ / 2 + lanes_)});
        }
        for (unsigned stage = 1; stage < lanes_; stage *= 2) {
            std::vector<llvm::Value*> next;
            for (unsigned i = 0; i < lanes_ / 2; ++i) {
                next.push_back(ir.CreateShuffleVector(rows[i], rows[i + lanes_ / 2], low));
                next.push_back(ir.CreateShuffleVector(rows[i], rows[i + lanes_ / 2], high));
            }
            rows = std::move(next);
        }
        return rows;
    }

    llvm::Loop& loop_;
    const unsigned lanes_;
    llvm::DominatorTree& tree_;
    llvm::LoopInfo& loops_;
    llvm::AAResults& aliases_;
    llvm::ScalarEvolution& evolution_;
    const llvm::PostDominatorTree& behind_;
    llvm::PHINode* number_ = nullptr; ///< of the step
    unsigned rounds_ = 0;
    std::vector<Column> columns_;
    std::vector<llvm::Instruction*> others_; ///< that touch memory
};

} // namespace

llvm::PreservedAnalyses JoinColumnStores::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
    std::vector<llvm::Loop*> of_steps;
    for (llvm::Loop* loop : loops.getLoopsInPreorder())
        if (is_step_loop(*loop)) of_steps.push_back(loop);
    if (of_steps.empty()) return llvm::PreservedAnalyses::all();
    const auto& target = analyses.getResult<llvm::TargetIRAnalysis>(function);
    const auto lanes = unsigned(
        target.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector).getFixedValue() / (8 * word));
    if (lanes < 8) return llvm::PreservedAnalyses::all();
    bool changed = false;
    for (llvm::Loop* loop : of_steps) changed |= StepLoop(*loop, lanes, analyses, function).run();
    return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

} // namespace ptarmigan::translator
