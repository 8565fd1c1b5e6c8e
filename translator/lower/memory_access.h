// SPDX-License-Identifier: Apache-2.0
// Loads and stores of a step: picks scalar, vector, windowed or per-lane accesses from the shape of the address.
// No lane that is not active touches memory.
#pragma once

#include "translator/emit/warp_emitter.h"
#include "translator/lower/access_plan.h"

namespace ptarmigan::translator::lower {

/// How strongly an access is ordered (manual 8.4): weak accesses may be moved and merged by LLVM, the others not.
enum class Strength : std::uint8_t { weak, relaxed, acquire, release };

struct MemoryAccess {
    LaneAddress address;
    llvm::Type* element = nullptr; ///< of one element: integer, half, bfloat, float or double of 8 to 64 bits
    unsigned bytes = 4;            ///< of one element
    unsigned count = 1;            ///< elements per lane, adjacent in memory
    Strength strength = Strength::weak;
    bool element_aligned = false; ///< only elements are known to be aligned, not the whole access of a lane
    bool invariant = false;       ///< nobody writes the memory while the kernel runs
};

/// Loads `count` elements per active lane. A uniform address gives uniform values. Inactive lanes get any value that
/// is not poison.
llvm::SmallVector<LaneValue, 8> load_lanes(WarpEmitter& e, const MemoryAccess& access);

/// True if the lanes of a scalar load do not simply read consecutive elements, so that it gains from being made
/// together with loads of the neighbouring ones.
bool loads_lane_by_lane(WarpEmitter& e, const MemoryAccess& access);

/// Stores values[k] as element k of each active lane. Where lanes share an address, the highest active lane wins.
void store_lanes(WarpEmitter& e, const MemoryAccess& access, llvm::ArrayRef<LaneValue> values);

/// Marks an access with the state space it was written with, so that LLVM knows that accesses to different spaces
/// don't alias; generic ones may alias any. And with its place, for fault reports.
void tag_space(WarpEmitter& e, llvm::Instruction* access, ptx::StateSpace space);

/// `i64 address` as a pointer.
llvm::Value* pointer(WarpEmitter& e, llvm::Value* address);

/// Keeps the compiler (not the CPU) from moving memory accesses across.
void compiler_fence(WarpEmitter& e);

} // namespace ptarmigan::translator::lower
