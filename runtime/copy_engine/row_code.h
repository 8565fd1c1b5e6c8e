// SPDX-License-Identifier: Apache-2.0
// Generated code that moves rows between a tensor and a tile: one function per row size, swizzle and direction, for the CPU at hand.
#pragma once

#include "runtime/copy_engine/swizzle.h"

#include <array>
#include <cstdint>

namespace ptarmigan::runtime {

/// Vector registers that may be used.
enum class RowVectors : std::uint8_t { none, avx2, avx512 };
/// What this CPU has, within PTARMIGAN_TARGET. None but on x86-64.
RowVectors row_vectors();

struct RowShape {
    bool store = false;      ///< to the tensor; otherwise to the tile
    bool masked = false;     ///< only some bytes of each row are in the tensor (AVX-512 only)
    std::uint32_t bytes = 0; ///< of a row, a multiple of 16
    std::uint32_t pitch = 0; ///< of the tile
    Swizzle swizzle = Swizzle::none;
    SwizzleAtom atom = SwizzleAtom::bytes_16;
};

inline constexpr unsigned row_period = 8;        ///< rows after which every swizzle repeats
inline constexpr std::uint32_t most_row_bytes = 2048, most_masked_bytes = 448;

/// Of masked rows: bit i of word b says whether byte 64 b + i is in the tensor; others are filled (or left, by stores).
struct RowMask {
    std::array<std::uint64_t, 8> inside{};
    std::array<std::uint8_t, 64> fill{};
};

/// Moves `rows` rows. `tile`: where row 0 of a swizzle period lies; the first row is number `first` of it, below row_period.
/// `stride`: bytes between rows of the tensor, may be 0 or negative. May fault.
class RowCode {
public:
    void operator()(std::uint8_t *tile, std::uint8_t *tensor, std::uint64_t rows, std::int64_t stride, unsigned first, const RowMask *mask) const {
        entry_(tile, tensor, rows, stride, mask, starts_[first]);
    }

private:
    friend class RowGenerator;
    using Entry = void (*)(std::uint8_t *, std::uint8_t *, std::uint64_t, std::int64_t, const RowMask *, const void *);
    Entry entry_ = nullptr;
    std::array<const void *, row_period> starts_{};
};

/// The code of a shape, made when it is first asked for and kept; null where there is none (sizes beyond the limits, masks
/// without AVX-512, other CPUs). Thread-safe.
const RowCode *row_code(const RowShape &shape, RowVectors vectors);

} // namespace ptarmigan::runtime
