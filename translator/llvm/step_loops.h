// SPDX-License-Identifier: Apache-2.0
// Loops that run a region of the kernel step after step, with no barrier inside: the emitter marks them, passes ask.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Metadata.h>

namespace ptarmigan::translator {

/// Of the branch back.
inline constexpr const char* steps_metadata = "ptarmigan.steps";

inline void mark_step_loop(llvm::BranchInst& branch_back) {
    branch_back.setMetadata(steps_metadata, llvm::MDNode::get(branch_back.getContext(), {}));
}

inline bool is_step_loop(const llvm::Loop& loop) {
    const llvm::BasicBlock* latch = loop.getLoopLatch();
    return latch && latch->getTerminator()->getMetadata(steps_metadata);
}

} // namespace ptarmigan::translator
