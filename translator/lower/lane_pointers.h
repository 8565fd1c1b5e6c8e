// SPDX-License-Identifier: Apache-2.0
// Pointers for gathers and scatters.
#pragma once

#include "translator/emit/warp_emitter.h"

namespace ptarmigan::translator::lower {

/// Pointers of all lanes, `offset` bytes behind `addresses` (<W x i64>). Where the addresses are visibly a uniform base
/// and 32-bit indices, as p[i] with an int is, they are made of those: x86 gathers twice as many lanes at a time then.
class LanePointers {
public:
    LanePointers(WarpEmitter& e, llvm::Value* addresses, unsigned offset);

    /// Lanes whose elements of `bytes` bytes one AVX-512 gather or scatter takes: all, or a part that divides them.
    unsigned lanes_at_a_time(unsigned bytes) const;
    /// Of lanes [first, first + count).
    llvm::Value* part(unsigned first, unsigned count) const;

private:
    WarpEmitter& e_;
    llvm::Value* base_ = nullptr;  ///< null: `lanes_` are pointers
    llvm::Type* unit_ = nullptr;   ///< what an index counts
    llvm::Value* lanes_ = nullptr; ///< <W x i32> indices, or <W x ptr>
};

/// Pointers one by one: `offset` bytes behind each lane's address. Of indices two are taken out of a vector at once,
/// and no vectors of addresses are made.
llvm::SmallVector<llvm::Value*, 32> single_pointers(WarpEmitter& e, llvm::Value* addresses, unsigned offset);

/// Lanes [first, first + count) of a vector.
llvm::Value* cut_lanes(Ir& ir, llvm::Value* vector, unsigned first, unsigned count);
/// Vectors of equal length side by side; their number is a power of two.
llvm::Value* join_lanes(Ir& ir, llvm::SmallVector<llvm::Value*, 8> parts);

} // namespace ptarmigan::translator::lower
