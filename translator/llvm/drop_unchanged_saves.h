// SPDX-License-Identifier: Apache-2.0
// A region function reads its live-in values from the step frame and writes those of the next region when it ends. What
// it writes back as it was read need not be written.
#pragma once

#include <llvm/IR/PassManager.h>

namespace ptarmigan::translator {

/// Marks a pointer argument: its memory is read at the function's start and written where it returns, nothing else
/// touches the same bytes.
inline constexpr const char* frame_attribute = "ptarmigan-frame";
/// Marks loads and stores of lanes' bits in a step's frame.
inline constexpr const char* mask_word_metadata = "ptarmigan.mask_word";

/// Removes stores of a value to the place in a marked argument's memory from where it was loaded.
struct DropUnchangedSaves : llvm::PassInfoMixin<DropUnchangedSaves> {
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

} // namespace ptarmigan::translator
