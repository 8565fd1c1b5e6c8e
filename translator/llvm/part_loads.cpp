// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/part_loads.h"

#include "translator/llvm/kept_blocks.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <cstdint>

namespace ptarmigan::translator {

using namespace llvm;

PreservedAnalyses PartLoads::run(Function& function, FunctionAnalysisManager&) {
    constexpr std::uint64_t most_bytes = 32 * 32; ///< 32 registers of AVX2
    const DataLayout& layout = function.getParent()->getDataLayout();
    bool changed = false;
    for (BasicBlock& block : function) {
        std::uint64_t bytes = 0;
        for (Instruction& instruction : block) {
            auto* load = dyn_cast<LoadInst>(&instruction);
            if (!load) {
                if (instruction.mayWriteToMemory()) bytes = 0;
                continue;
            }
            if (!load->getType()->isVectorTy()) continue;
            bytes += layout.getTypeStoreSize(load->getType()).getFixedValue();
            if (bytes < most_bytes) continue;
            IRBuilder<>(load->getNextNode()).CreateFence(AtomicOrdering::AcquireRelease, SyncScope::SingleThread);
            bytes = 0;
            changed = true;
        }
    }
    return kept_blocks(changed);
}

} // namespace ptarmigan::translator
