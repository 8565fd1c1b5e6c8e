// SPDX-License-Identifier: Apache-2.0
// Where the lanes of a step fall on a plane, and their sums, as loops over all lanes without branches that compilers
// make vectors of. What they give is what locate() and FilterSum give (tests/unit/runtime/plane_fetch_test.cpp compares
// them).
#pragma once

#include "runtime/texture/coordinate.h"

#include <bit>
#include <cstdint>

namespace ptarmigan::runtime::plane {

inline constexpr unsigned lanes = 32;
#define PLANE_INLINE inline __attribute__((always_inline))

/// Along one dimension, for each lane.
struct Axis {
    std::int32_t texel[2][lanes];
    std::int32_t inside[2][lanes]; ///< 0 or -1
    std::int32_t fraction[lanes];
};

/// By value, as minps and maxps do it.
template <typename T> PLANE_INLINE T smaller(T a, T b) {
    return a < b ? a : b;
}
template <typename T> PLANE_INLINE T larger(T a, T b) {
    return a > b ? a : b;
}

template <typename Real> PLANE_INLINE std::int32_t floor_to_int(Real value) {
    const auto cut = static_cast<std::int32_t>(value);
    return cut - (static_cast<Real>(cut) > value ? 1 : 0);
}

/// The coordinate in 256ths of a texel. Coordinates far outside are drawn in, to where they are outside as well.
template <bool Normalized, Sampler::Address Mode>
PLANE_INLINE std::int32_t position(float coordinate, double size, std::int32_t rounding) {
    constexpr float far = 0x1p24f; // floats from here on are even
    const float magnitude = std::fabs(coordinate);
    coordinate = magnitude >= std::numeric_limits<float>::min() ? coordinate : 0.0f; // NaN too
    if constexpr (!Normalized) {
        const float inside = smaller(larger(coordinate, -0x1p20f), 0x1p20f);
        return (floor_to_int(inside * 512.0f) + rounding) >> 1;
    }
    constexpr double one = 1 << coordinate::normalized_bits;
    std::int32_t part = 0;
    if constexpr (Mode == Sampler::wrap || Mode == Sampler::mirror) {
        constexpr float period = Mode == Sampler::wrap ? 1.0f : 2.0f;
        constexpr std::int32_t last = static_cast<std::int32_t>(one * period) - 1;
        coordinate = magnitude < far ? coordinate : 0.0f;
        const std::int32_t turn = floor_to_int(coordinate / period);
        // The difference may round up to the period.
        const double rest = coordinate - static_cast<double>(turn) * period;
        part = smaller(static_cast<std::int32_t>(rest * one), last);
    } else {
        part = floor_to_int(smaller(larger(coordinate, -4.0f), 4.0f) * static_cast<float>(one));
    }
    constexpr double drop = 1 << (coordinate::normalized_bits - coordinate::fraction_bits);
    return floor_to_int((part * size + rounding * (drop / 2)) * (1 / drop));
}

/// Applies the addressing mode to a texel at most one period outside.
template <Sampler::Address Mode> PLANE_INLINE void place(std::int32_t& texel, std::int32_t& inside, std::int32_t size) {
    inside = -1;
    if constexpr (Mode == Sampler::wrap) {
        texel += texel < 0 ? size : 0;
        texel -= texel >= size ? size : 0;
    } else if constexpr (Mode == Sampler::mirror) {
        texel += texel < 0 ? 2 * size : 0;
        texel -= texel >= 2 * size ? 2 * size : 0;
        texel = texel < size ? texel : 2 * size - 1 - texel;
    } else if constexpr (Mode == Sampler::border) {
        inside = (texel >= 0 ? -1 : 0) & (texel < size ? -1 : 0);
        texel &= inside;
    } else {
        texel = smaller(larger(texel, 0), size - 1);
    }
}

template <bool Normalized, Sampler::Address Mode>
PLANE_INLINE void locate_mode(const float* __restrict coordinates, const Dimension& dimension, Axis& __restrict axis) {
    const auto size = static_cast<std::int32_t>(dimension.size);
    const std::int32_t rounding = dimension.linear ? 1 : 0, back = dimension.linear ? 128 : 0,
                       mask = dimension.linear ? 255 : 0;
    const std::int32_t highest = (size - 1) * 256;
    for (unsigned lane = 0; lane < lanes; ++lane) {
        std::int32_t at = position<Normalized, Mode>(coordinates[lane], size, rounding) - back;
        std::int32_t next = 1;
        if constexpr (Mode == Sampler::clamp) {
            next = at < 0 ? 0 : 1;
            at = smaller(larger(at, 0), highest);
        }
        axis.fraction[lane] = at & mask;
        axis.texel[0][lane] = at >> coordinate::fraction_bits;
        axis.texel[1][lane] = axis.texel[0][lane] + next;
        for (unsigned i = 0; i < 2; ++i) place<Mode>(axis.texel[i][lane], axis.inside[i][lane], size);
    }
}

PLANE_INLINE void locate(const float* coordinates, const Dimension& dimension, Axis& axis) {
    const bool normalized = dimension.normalized;
    switch (dimension.address) {
    case Sampler::wrap:
        return locate_mode<true, Sampler::wrap>(coordinates, dimension, axis); // never without normalization
    case Sampler::mirror: return locate_mode<true, Sampler::mirror>(coordinates, dimension, axis);
    case Sampler::border:
        return normalized ? locate_mode<true, Sampler::border>(coordinates, dimension, axis)
                          : locate_mode<false, Sampler::border>(coordinates, dimension, axis);
    default:
        return normalized ? locate_mode<true, Sampler::clamp>(coordinates, dimension, axis)
                          : locate_mode<false, Sampler::clamp>(coordinates, dimension, axis);
    }
}

/// Weights of the four corners, in 256ths.
PLANE_INLINE void weigh(const Axis& x, const Axis& y, std::int32_t (&__restrict weight)[4][lanes]) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const std::int32_t right = x.fraction[lane], left = 256 - right, down = y.fraction[lane];
        weight[3][lane] = (right * down + 128) >> 8;
        weight[2][lane] = (left * down + 127) >> 8;
        weight[1][lane] = right - weight[3][lane];
        weight[0][lane] = left - weight[2][lane];
    }
}

/// Sums of floats, cut to multiples of 2^-27 of the largest one's leading bit and rounded to nearest, away from zero in
/// the middle. `special`: not 0 where that does not hold (infinities, NaNs, zeros, very small and large sums).
PLANE_INLINE void sum_singles(const std::uint32_t (&texel)[4][lanes], const std::int32_t (&weight)[4][lanes],
                              std::uint32_t* __restrict result, std::int32_t* __restrict special) {
    constexpr std::uint64_t half_of_last_bit = std::uint64_t{1} << 28, last_bits = (std::uint64_t{1} << 29) - 1;
    std::int32_t largest[lanes], not_finite[lanes];
    for (unsigned lane = 0; lane < lanes; ++lane) {
        std::int32_t most = 0, worst = 0;
        for (unsigned i = 0; i < 4; ++i) {
            const auto exponent = static_cast<std::int32_t>(texel[i][lane] >> 23 & 255);
            worst = larger(worst, exponent);
            most = larger(most, weight[i][lane] != 0 ? exponent : 0);
        }
        largest[lane] = most;
        not_finite[lane] = worst == 255 ? -1 : 0;
    }
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const auto scale = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + 127 + 27 - largest[lane]) << 52);
        double sum = 0;
        for (unsigned i = 0; i < 4; ++i) {
            const std::uint32_t bits = texel[i][lane];
            const bool counts = (bits & 0x7f800000) != 0 && weight[i][lane] != 0; // subnormal numbers are zeros
            const float value = std::bit_cast<float>(counts ? bits : 0);
            const auto kept = static_cast<std::int32_t>(value * scale);
            sum += static_cast<double>(kept) * static_cast<double>(weight[i][lane]);
        }
        const auto unit = std::bit_cast<double>(static_cast<std::uint64_t>(1023 - 127 - 27 - 8 + largest[lane]) << 52);
        const double total = sum * unit;
        const auto rounded =
            std::bit_cast<double>((std::bit_cast<std::uint64_t>(total) + half_of_last_bit) & ~last_bits);
        result[lane] = std::bit_cast<std::uint32_t>(static_cast<float>(rounded));
        const double magnitude = std::fabs(total);
        special[lane] = not_finite[lane] | (magnitude >= 0x1p-125 ? 0 : -1) | (magnitude < 0x1p127 ? 0 : -1);
    }
}

/// Channel `index` of texels of four bytes or fewer.
PLANE_INLINE void take_bytes(const std::uint32_t* __restrict texel, unsigned index, std::uint32_t* __restrict channel) {
    for (unsigned lane = 0; lane < lanes; ++lane) channel[lane] = texel[lane] >> (8 * index) & 255;
}

/// Bytes as floats from 0 to 1, correctly rounded.
PLANE_INLINE void normalize_bytes(std::uint32_t* channel) {
    for (unsigned lane = 0; lane < lanes; ++lane)
        channel[lane] =
            std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(channel[lane])) / 255.0f);
}

/// Sums of unsigned integers of up to 16 bits, scaled to 16 bits, as floats from 0 to 1.
PLANE_INLINE void sum_integers(const std::uint32_t (&texel)[4][lanes], const std::int32_t (&weight)[4][lanes],
                               std::uint32_t scale, std::uint32_t* __restrict result) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
        std::uint32_t sum = 0;
        for (unsigned i = 0; i < 4; ++i) sum += texel[i][lane] * static_cast<std::uint32_t>(weight[i][lane]);
        const auto whole = static_cast<std::int32_t>((sum * scale + 128) >> 8);
        result[lane] = std::bit_cast<std::uint32_t>(static_cast<float>(whole) / 65535.0f);
    }
}

} // namespace ptarmigan::runtime::plane
