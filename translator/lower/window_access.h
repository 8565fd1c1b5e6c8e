// SPDX-License-Identifier: Apache-2.0
// Accesses of shared memory whose lanes turn out to lie in order and close together at run time, 16 lanes within 32
// words: the first rounds of a butterfly, rows that are stepped over. Two vectors and a permute each, in place of a
// gather or a scatter.
#pragma once

#include "translator/lower/memory_access.h"

#include <optional>

namespace ptarmigan::translator::lower {

/// Sixteen lanes in the words between the first one's and the last one's, which are at least 16 and at most 32.
struct WordWindow {
    llvm::Value* first = nullptr;  ///< ptr: where the first lane's word is
    llvm::Value* last = nullptr;   ///< ptr: of sixteen words, of which the last is the last lane's
    llvm::Value* words = nullptr;  ///< <16 x i32>: how many words a lane's is behind the first
    llvm::Value* behind = nullptr; ///< i32: how many words `last` is behind `first`, 16 at most
};

struct WindowAccess {
    llvm::SmallVector<WordWindow, 2> windows;
    llvm::Value* condition = nullptr; ///< i1: they hold the lanes' words
};

/// The test is emitted at the insertion point. None where lanes are hardly ever so (not all are active), or a target
/// gains nothing.
std::optional<WindowAccess> window_access(WarpEmitter& e, const MemoryAccess& access);

/// Where the condition holds. Nothing but the words between those of the lanes is read, nothing but theirs is written.
llvm::SmallVector<llvm::Value*, 8> load_windows(WarpEmitter& e, const MemoryAccess& access, const WindowAccess& near);
void store_windows(WarpEmitter& e, const MemoryAccess& access, const WindowAccess& near, llvm::Value* values);

} // namespace ptarmigan::translator::lower
