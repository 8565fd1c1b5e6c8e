// SPDX-License-Identifier: Apache-2.0
// The lattice of shapes: how a value varies over the lanes of a step. What makes generated code fast.
#pragma once

#include <cstdint>
#include <vector>

namespace ptarmigan::translator {

using ValueId = std::uint32_t;
inline constexpr ValueId no_value = 0xffffffffu;

/// One compile-time constant per lane of the step; element 0 is always 0. Interned by LaneOffsetTable,
/// so equal vectors have equal addresses.
using LaneOffsets = std::vector<std::int64_t>;

/// Lane l of an affine value holds  base + offsets[l] + stride * steps[l]  modulo 2^bits, where base (the value of
/// lane 0) and stride are uniform run-time scalars. Order of precision:
/// cta_uniform < step_uniform < affine < varying.
struct Shape {
    enum class Level : std::uint8_t {
        unknown,      ///< not reached yet (bottom)
        cta_uniform,  ///< the same in all threads of the CTA that execute the definition
        step_uniform, ///< the same in all active lanes of a step
        affine,
        varying,
    };
    Level level = Level::unknown;
    const LaneOffsets* offsets = nullptr; ///< affine only; never null there
    const LaneOffsets* steps = nullptr;   ///< affine only; null = no run-time stride
    /// A 64-bit affine value that came from widening a 32-bit one whose lanes may wrap: the affine form holds only
    /// where the run-time guard made at `guard` (the widening instruction's result) is true; otherwise lane l holds
    /// the affine value plus guard_scale * correction[l].
    ValueId guard = no_value;
    std::int64_t guard_scale = 1;

    bool is_uniform() const { return level == Level::cta_uniform || level == Level::step_uniform; }
    bool is_affine() const { return level == Level::affine; }
    bool is_varying() const { return level == Level::varying; }
    bool operator==(const Shape&) const = default;
};

} // namespace ptarmigan::translator
