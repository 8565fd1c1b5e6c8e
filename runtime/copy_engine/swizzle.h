// SPDX-License-Identifier: Apache-2.0
// Where a swizzled tile's bytes lie in shared memory (PTX manual 5.5.7).
#pragma once

#include "runtime/copy_engine/tensor_map.h"

namespace ptarmigan::runtime {

/// Which bits of a shared address are exchanged by the bits of its 128-byte line's number (address
/// >> 7).
struct SwizzlePattern {
    unsigned line_mask = 0;   ///< bits of the line's number that matter
    unsigned shift = 0;       ///< address ^= (line & line_mask) << shift
    bool flip_halves = false; ///< odd lines exchange the 8-byte halves of each 16 bytes

    static SwizzlePattern of(Swizzle swizzle, SwizzleAtom atom) {
        switch (swizzle) {
        case Swizzle::none: return {};
        case Swizzle::span_32:
        case Swizzle::span_96: return {1, 4, false};
        case Swizzle::span_64: return {3, 4, false};
        case Swizzle::span_128: break;
        }
        switch (atom) {
        case SwizzleAtom::bytes_16: return {7, 4, false};
        case SwizzleAtom::bytes_32: return {3, 5, false};
        case SwizzleAtom::bytes_32_flip_8: return {3, 5, true};
        case SwizzleAtom::bytes_64: return {1, 6, false};
        }
        return {};
    }

    constexpr bool identity() const { return line_mask == 0; }
    /// What the address of a byte in line `line` is exclusive-ored with.
    unsigned exchange(unsigned line) const {
        return (line & line_mask) << shift | (flip_halves && (line & 1) != 0 ? 8u : 0u);
    }
    /// The address of the byte that would be at `address` without swizzling. Windows begin at
    /// multiples of 1024, so host addresses and shared addresses agree in the bits that matter.
    std::uintptr_t apply(std::uintptr_t address) const {
        return address ^ exchange(static_cast<unsigned>(address >> 7));
    }
    /// Lines after which the pattern repeats.
    constexpr unsigned period() const { return (line_mask | (flip_halves ? 1u : 0u)) + 1; }
    /// Bytes that stay together.
    unsigned atom_bytes() const { return flip_halves ? 8 : identity() ? 16 : 1u << shift; }
};

} // namespace ptarmigan::runtime
