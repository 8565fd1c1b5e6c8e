// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/nan_free_loops.h"

#include "translator/llvm/nan_choice.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <map>

namespace ptarmigan::translator {

using namespace llvm;

namespace {

/// Loops of more instructions are left alone: they would be compiled twice for a small part of
/// their time.
constexpr std::size_t most_instructions = 2000;

/// True if `instruction` may run twice, the second time with the same effect as if it had not run
/// before.
bool is_repeatable(const Instruction& instruction) {
    if (const auto* call = dyn_cast<IntrinsicInst>(&instruction))
        if (call->getIntrinsicID() == Intrinsic::prefetch ||
            call->getIntrinsicID() == Intrinsic::experimental_noalias_scope_decl)
            return true;
    if (const auto* load = dyn_cast<LoadInst>(&instruction)) return load->isSimple();
    if (isa<CallBase>(instruction) && !isa<IntrinsicInst>(instruction)) return false;
    return !instruction.mayHaveSideEffects() && !isa<AllocaInst>(instruction);
}

/// True for the first part of `quiet(x)` that only choices use: bitcast(bitcast(x) | quiet bit).
bool is_only_chosen(const Value& bits) {
    return all_of(bits.users(), [](const User* combined) {
        return isa<BinaryOperator>(combined) && all_of(combined->users(), [](const User* quiet) {
                   return isa<BitCastInst>(quiet) && quiet->getType()->isFPOrFPVectorTy() &&
                          all_of(quiet->users(), [&](const User* user) {
                              const auto* select = dyn_cast<SelectInst>(user);
                              return select && unchosen(select) && select->getTrueValue() == quiet;
                          });
               });
    });
}

/// What a value becomes in an instruction, as far as its payload is concerned if it is a NaN.
enum class Use { hands_on, hides, shows };

Use use_of(const Instruction& user) {
    if (isa<FCmpInst>(user)) return Use::hides;
    if (isa<BitCastInst>(user) && is_only_chosen(user)) return Use::hides;
    if (hands_on_nan(user)) return Use::hands_on;
    if (isa<PHINode, SelectInst, ShuffleVectorInst, InsertElementInst, ExtractElementInst, FreezeInst>(user) &&
        user.getType()->isFPOrFPVectorTy())
        return Use::hands_on;
    return Use::shows;
}

/// A loop in simplified, loop-closed form.
class NanFreeLoop {
public:
    explicit NanFreeLoop(Loop& loop)
        : header_(loop.getHeader()), preheader_(loop.getLoopPreheader()), blocks_(loop.getBlocks()) {
        SmallVector<BasicBlock*> exits;
        loop.getUniqueExitBlocks(exits);
        exits_.assign(exits.begin(), exits.end());
        is_simple_ = preheader_ && loop.hasDedicatedExits() &&
                     all_of(exits_, [](BasicBlock* exit) { return !exit->isEHPad(); }) &&
                     none_of(blocks_, [](BasicBlock* block) { return block->hasAddressTaken(); });
    }

    /// Finds what may be another NaN without choices. False if its bits are seen within the loop.
    bool collect() {
        if (!is_simple_) return false;
        SmallVector<Instruction*> work;
        for (BasicBlock* block : blocks_)
            for (Instruction& instruction : *block)
                if (unchosen(&instruction) && chosen_.insert(&instruction)) work.push_back(&instruction);
        while (!work.empty())
            for (User* user : work.pop_back_val()->users()) {
                auto* instruction = cast<Instruction>(user);
                if (!contains(instruction->getParent())) continue; // a phi of an exit
                const Use use = use_of(*instruction);
                if (use == Use::shows) return false;
                if (use == Use::hands_on && chosen_.insert(instruction)) work.push_back(instruction);
            }
        return true;
    }

    void split() {
        ValueToValueMapTy copies;
        SmallVector<BasicBlock*> fast;
        for (BasicBlock* block : blocks_) {
            BasicBlock* copy = CloneBasicBlock(block, copies, ".nan_free", block->getParent());
            copies[block] = copy;
            copy->moveBefore(header_);
            fast.push_back(copy);
        }
        remapInstructionsInBlocks(fast, copies);
        auto* fast_header = cast<BasicBlock>(copies[header_]);
        // The loop as written begins once more with what it would have begun with.
        BasicBlock* again = BasicBlock::Create(header_->getContext(), "nan.again", header_->getParent(), header_);
        BranchInst::Create(header_, again)->setDebugLoc(preheader_->getTerminator()->getDebugLoc());
        preheader_->getTerminator()->replaceSuccessorWith(header_, fast_header);
        for (PHINode& phi : header_->phis()) phi.replaceIncomingBlockWith(preheader_, again);
        for (BasicBlock* exit : exits_) leave(*exit, *again, copies);
        for (Instruction* value : chosen_)
            if (unchosen(value)) {
                Value* copy = copies[value];
                copy->replaceAllUsesWith(operation_of(copy));
            }
    }

    ArrayRef<BasicBlock*> blocks() const { return blocks_; }

private:
    bool contains(BasicBlock* block) const { return is_contained(blocks_, block); }

    /// The way from the copied loop to `exit`: to the loop as written if there is a NaN among what
    /// may be another one.
    void leave(BasicBlock& exit, BasicBlock& again, ValueToValueMapTy& copies) {
        BasicBlock* checked = BasicBlock::Create(exit.getContext(), "nan.check", exit.getParent(), &exit);
        IRBuilder<> ir(checked);
        std::map<Type*, SmallVector<Value*>> seen;
        for (PHINode& phi : exit.phis()) {
            PHINode* copy = PHINode::Create(phi.getType(), phi.getNumIncomingValues(), phi.getName(), checked);
            bool may_differ = false;
            for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
                Value* value = phi.getIncomingValue(i);
                may_differ |= isa<Instruction>(value) && chosen_.contains(cast<Instruction>(value));
                const auto mapped = copies.find(value);
                copy->addIncoming(mapped == copies.end() ? value : static_cast<Value*>(mapped->second),
                                  cast<BasicBlock>(copies[phi.getIncomingBlock(i)]));
            }
            if (may_differ) seen[phi.getType()].push_back(copy);
            phi.addIncoming(copy, checked);
        }
        for (BasicBlock* block : blocks_)
            cast<BasicBlock>(copies[block])->getTerminator()->replaceSuccessorWith(&exit, checked);
        ir.SetInsertPoint(checked);
        ir.SetCurrentDebugLocation(preheader_->getTerminator()->getDebugLoc());
        Value* nan = nullptr;
        for (auto& [type, values] : seen) {
            Value* here = any_nan(ir, values);
            nan = nan ? ir.CreateOr(nan, here) : here;
        }
        if (nan)
            ir.CreateCondBr(nan, &again, &exit, MDBuilder(exit.getContext()).createUnlikelyBranchWeights());
        else
            ir.CreateBr(&exit);
    }

    BasicBlock* header_;
    BasicBlock* preheader_;
    SmallVector<BasicBlock*> blocks_, exits_;
    SmallSetVector<Instruction*, 32> chosen_; ///< and what is made of them
    bool is_simple_;
};

/// True if the loop has choices, and nothing that may not run twice.
bool may_split(const Loop& loop) {
    bool chooses = false;
    std::size_t size = 0;
    for (const BasicBlock* block : loop.blocks()) {
        size += block->size();
        for (const Instruction& instruction : *block) {
            if (!is_repeatable(instruction)) return false;
            chooses |= unchosen(&instruction) != nullptr;
        }
    }
    return chooses && size <= most_instructions;
}

} // namespace

SmallPtrSet<BasicBlock*, 8> split_nan_free_loops(Function& function) {
    SmallPtrSet<BasicBlock*, 8> as_written;
    DominatorTree dominators(function);
    LoopInfo loops(dominators);
    std::vector<NanFreeLoop> found;
    SmallVector<Loop*> work(loops.begin(), loops.end());
    while (!work.empty()) {
        Loop* loop = work.pop_back_val();
        if (may_split(*loop)) {
            simplifyLoop(loop, &dominators, &loops, nullptr, nullptr, nullptr,
                         /*PreserveLCSSA=*/false);
            formLCSSARecursively(*loop, dominators, &loops, nullptr);
            NanFreeLoop candidate(*loop);
            if (candidate.collect()) {
                found.push_back(std::move(candidate));
                continue;
            }
        }
        work.append(loop->begin(), loop->end());
    }
    for (NanFreeLoop& loop : found) {
        loop.split();
        as_written.insert(loop.blocks().begin(), loop.blocks().end());
    }
    return as_written;
}

} // namespace ptarmigan::translator
