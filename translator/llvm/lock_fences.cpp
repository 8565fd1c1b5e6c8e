// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/lock_fences.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

namespace ptarmigan::translator {

using namespace llvm;

PreservedAnalyses LockFences::run(Function& function, FunctionAnalysisManager&) {
    // The context. LLVM's lowering of `or` with zero whose result nobody wants takes the ordering only, not the place.
    if (function.arg_empty() || !function.getArg(0)->getType()->isPointerTy()) return PreservedAnalyses::all();
    bool changed = false;
    for (Instruction& instruction : make_early_inc_range(instructions(function))) {
        const auto* fence = dyn_cast<FenceInst>(&instruction);
        if (!fence || fence->getOrdering() != AtomicOrdering::SequentiallyConsistent ||
            fence->getSyncScopeID() != SyncScope::System)
            continue;
        IRBuilder<> builder(&instruction);
        builder.CreateAtomicRMW(AtomicRMWInst::Or, function.getArg(0), builder.getInt32(0), Align(4),
                                AtomicOrdering::SequentiallyConsistent);
        instruction.eraseFromParent();
        changed = true;
    }
    if (!changed) return PreservedAnalyses::all();
    PreservedAnalyses kept;
    kept.preserveSet<CFGAnalyses>();
    return kept;
}

} // namespace ptarmigan::translator
