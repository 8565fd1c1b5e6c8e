// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters under masks. They take as long as if all lanes were active (Zen 5: 16 words 14 and 17 cycles),
// so a few lanes are served one by one, and a part of a step without any not at all.
#pragma once

#include "translator/lower/memory_access.h"

namespace ptarmigan::translator::lower {

/// Lanes [first, first + count) of an access of which each takes a word of `word` bytes, `offset` bytes behind its
/// address.
struct LanePart {
    const MemoryAccess& access;
    unsigned first = 0, count = 0, offset = 0, word = 4;
    llvm::Align alignment;
    ptx::StateSpace space = ptx::StateSpace::generic;
};

/// Whether code for few lanes is worth its length.
bool asks_for_few_lanes(WarpEmitter& e);

/// What `gather` gives, <count x iN>; lanes that are not active get any value.
llvm::Value* load_few_or(WarpEmitter& e, const LanePart& part, llvm::function_ref<llvm::Value*()> gather);
/// Does what `scatter` does with `words`, <count x iN>.
void store_few_or(WarpEmitter& e, const LanePart& part, llvm::Value* words, llvm::function_ref<void()> scatter);

} // namespace ptarmigan::translator::lower
