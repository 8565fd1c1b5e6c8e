// SPDX-License-Identifier: Apache-2.0
// Loads whose lanes choose between two places: a uniform base and one bit that differs. nvcc's sin and cos of doubles
// pick a row of coefficients so, by the quadrant's lowest bit.
#pragma once

#include "translator/lower/memory_access.h"

#include <optional>

namespace ptarmigan::translator::lower {

struct PlacePair {
    llvm::Value* low = nullptr;     ///< i64, uniform
    std::uint64_t distance = 0;     ///< from there to the other one
    llvm::Value* is_high = nullptr; ///< <W x i1>, poison where the address is
};

/// What the address of a weak load visibly is; nothing is emitted unless it is one.
std::optional<PlacePair> place_pair(WarpEmitter& e, const MemoryAccess& access);

/// Reads each place once, if an active lane wants it, and lets the lanes choose.
llvm::SmallVector<llvm::Value*, 8> load_pair(WarpEmitter& e, const MemoryAccess& access, const PlacePair& places);

} // namespace ptarmigan::translator::lower
