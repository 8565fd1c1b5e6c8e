// SPDX-License-Identifier: Apache-2.0
// Generated code that moves rows between a tensor and a tile: one function per row size, swizzle,
// direction and conversion, for the CPU at hand.
#pragma once

#include "runtime/copy_engine/swizzle.h"

#include <array>
#include <cstdint>

namespace ptarmigan::runtime {

/// Vector registers that may be used.
enum class RowVectors : std::uint8_t { none, avx2, avx512 };
/// What this CPU has, within PTARMIGAN_TARGET. None but on x86-64.
RowVectors row_vectors();

/// What becomes of elements on their way.
enum class RowChange : std::uint8_t {
    none,
    round_tf32, ///< loads: to nearest even, NaNs become one
    expand_8,   ///< loads: 8 bytes of the tensor for each 16 of the tile, whose upper half is left as it is
    expand_12,  ///< likewise 12, .b6x16_p32
    pack_12     ///< stores: the lower six bits of each byte
};

/// Rows, and which part of each is in the tensor: bytes [first, last), whole pieces of 16. Loads
/// fill what is outside of it.
struct RowShape {
    bool store = false;      ///< to the tensor; otherwise to the tile
    bool partial = false;    ///< loads: the last piece is in the tensor in part, see RowFill::keep
    std::uint32_t bytes = 0; ///< of a row, a multiple of 16
    std::uint32_t pitch = 0; ///< of the tile
    std::uint32_t first = 0, last = 0;
    Swizzle swizzle = Swizzle::none;
    SwizzleAtom atom = SwizzleAtom::bytes_16;
    RowChange change = RowChange::none;

    bool cut() const { return first != 0 || last != bytes || partial; }
};

/// Rows of this pitch after which the swizzle repeats, a power of two from 8 on: 8 but for the short
/// rows of interleaved tensors.
constexpr unsigned row_period(std::uint32_t pitch, const SwizzlePattern& swizzle) {
    const unsigned rows = swizzle.identity() ? 1 : swizzle.period() * 128 / pitch;
    return rows < 8 ? 8 : rows;
}
inline constexpr unsigned most_row_period = 64; ///< 16 bytes, swizzled within 128
inline constexpr std::uint32_t most_row_bytes = 2048, most_cut_bytes = 256;

/// Bytes of cut rows that don't come from the tensor.
struct RowFill {
    std::array<std::uint8_t, 16> outside{}; ///< of pieces that are outside
    std::array<std::uint8_t, 16> keep{};    ///< of the partial piece: 0xff where the tensor's byte counts
    std::array<std::uint8_t, 16> rest{};    ///< and the other bytes
};

/// Moves `rows` rows. `tile`: where row 0 of a swizzle period lies; the first row is number `first`
/// of it; `rows` is not 0. `stride`: bytes between rows of the tensor, may be 0
/// or negative. May fault.
class RowCode {
public:
    void operator()(std::uint8_t* tile, std::uint8_t* tensor, std::uint64_t rows, std::int64_t stride, unsigned first,
                    const RowFill* fill) const {
        if (periods_ && ((rows & (period_ - 1)) | first) == 0)
            periods_(tile, tensor, rows / period_, stride, fill);
        else
            entry_(tile, tensor, rows, stride, fill, starts_[first]);
    }

private:
    friend class RowGenerator;
    using Entry = void (*)(std::uint8_t*, std::uint8_t*, std::uint64_t, std::int64_t, const RowFill*, const void*);
    using Periods = void (*)(std::uint8_t*, std::uint8_t*, std::uint64_t, std::int64_t, const RowFill*);
    Entry entry_ = nullptr;
    Periods periods_ = nullptr; ///< whole periods, of rows that are not long
    unsigned period_ = 8;
    std::array<const void*, most_row_period> starts_{};
};

/// The code of a shape, made when it is first asked for and kept; null where there is none (sizes
/// beyond the limits, other CPUs). Thread-safe.
const RowCode* row_code(const RowShape& shape, RowVectors vectors);

} // namespace ptarmigan::runtime
