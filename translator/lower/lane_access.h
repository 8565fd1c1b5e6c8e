// SPDX-License-Identifier: Apache-2.0
// One access per lane: for addresses of which nothing is known.
#pragma once

#include "translator/lower/memory_access.h"

namespace ptarmigan::translator::lower {

/// All lanes are active and their distances are known without a vector of addresses: single accesses are made at the
/// base and the distances, where those are better than gathers and scatters.
bool is_at_distances(WarpEmitter& e, const MemoryAccess& access);

/// The elements of every active lane, as load_lanes() gives them.
llvm::SmallVector<llvm::Value*, 8> gather(WarpEmitter& e, const MemoryAccess& access);

/// Stores values[k] (<W x T>) as element k of each active lane, in the order of the lanes where addresses coincide.
void scatter(WarpEmitter& e, const MemoryAccess& access, llvm::ArrayRef<llvm::Value*> values);

/// Code that is made quickly, for steps of several lanes: what would be spelled out for each of them is a loop, because
/// the time goes with the number of instructions, and such code runs no slower.
bool goes_in_loops(WarpEmitter& e);
/// It moves several words for each lane in a loop.
bool goes_in_loops(WarpEmitter& e, const MemoryAccess& access);

/// The same for arms that hardly ever run, and for goes_in_loops(): a loop over the active lanes, a fraction of the
/// code.
llvm::SmallVector<llvm::Value*, 8> gather_in_loop(WarpEmitter& e, const MemoryAccess& access);
void scatter_in_loop(WarpEmitter& e, const MemoryAccess& access, llvm::ArrayRef<llvm::Value*> values);

/// Bytes of the words that a lane's elements are moved as: one element, or as many as fit 8 bytes.
unsigned word_bytes(const MemoryAccess& access);
/// values[k] (<W x T>, element k of each lane) as words of word_bytes(), and back.
llvm::SmallVector<llvm::Value*, 8> to_words(WarpEmitter& e, const MemoryAccess& access,
                                            llvm::ArrayRef<llvm::Value*> values);
llvm::SmallVector<llvm::Value*, 8> from_words(WarpEmitter& e, const MemoryAccess& access,
                                              llvm::ArrayRef<llvm::Value*> words);

/// Bits of a value as an element, and of an element as an integer.
llvm::Value* to_element(WarpEmitter& e, llvm::Value* bits, llvm::Type* element);
llvm::Value* to_integer(WarpEmitter& e, llvm::Value* value);

} // namespace ptarmigan::translator::lower
