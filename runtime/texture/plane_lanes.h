// SPDX-License-Identifier: Apache-2.0
// Where the lanes of a step fall on a plane, and their sums, as loops over all lanes without branches that compilers
// make vectors of. What they give is what locate() and FilterSum give (tests/unit/runtime/plane_fetch_test.cpp compares
// them).
#pragma once

#include "runtime/texture/coordinate.h"

#include <bit>
#include <cstdint>

namespace ptarmigan::runtime::plane {

#define PLANE_INLINE inline __attribute__((always_inline))

/// Along one dimension, for each lane.
template <unsigned lanes> struct Axis {
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

/// Sizes from here on are not for position().
inline constexpr std::uint32_t too_large = (1 << 17) + 1;

/// The coordinate in 256ths of a texel. Coordinates far outside are drawn in, to where they are outside as well.
template <bool Normalized, Sampler::Address Mode>
PLANE_INLINE std::int32_t position(float coordinate, std::int32_t size, std::int32_t rounding) {
    constexpr float far = 0x1p24f; // floats from here on are even
    const float magnitude = std::fabs(coordinate);
    coordinate = magnitude >= std::numeric_limits<float>::min() ? coordinate : 0.0f; // NaN too
    if constexpr (!Normalized) {
        const float inside = smaller(larger(coordinate, -0x1p20f), 0x1p20f);
        return (floor_to_int(inside * 512.0f) + rounding) >> 1;
    }
    constexpr std::int32_t one = 1 << coordinate::normalized_bits;
    std::int32_t part = 0;
    if constexpr (Mode == Sampler::wrap || Mode == Sampler::mirror) {
        constexpr float period = Mode == Sampler::wrap ? 1.0f : 2.0f;
        constexpr std::int32_t last = one * static_cast<std::int32_t>(period) - 1;
        coordinate = magnitude < far ? coordinate : 0.0f;
        // What is left of whole periods is a float; below zero it is folded upwards by the mask.
        const float whole = static_cast<float>(static_cast<std::int32_t>(coordinate * (1 / period))) * period;
        part = floor_to_int((coordinate - whole) * static_cast<float>(one)) & last;
    } else {
        part = floor_to_int(smaller(larger(coordinate, -4.0f), 4.0f) * static_cast<float>(one));
    }
    // (part * size + rounding / 2) >> drop, of which no product has more than 31 bits.
    constexpr std::int32_t drop = coordinate::normalized_bits - coordinate::fraction_bits;
    const std::int32_t low = part & ((1 << drop) - 1);
    return (part >> drop) * size + ((low * size + (rounding << (drop - 1))) >> drop);
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

template <bool Normalized, Sampler::Address Mode, unsigned lanes>
PLANE_INLINE void locate_mode(const float* __restrict coordinates, const Dimension& dimension,
                              Axis<lanes>& __restrict axis) {
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

template <unsigned lanes>
PLANE_INLINE void locate(const float* coordinates, const Dimension& dimension, Axis<lanes>& axis) {
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
template <unsigned lanes>
PLANE_INLINE void weigh(const Axis<lanes>& x, const Axis<lanes>& y, std::int32_t (&__restrict weight)[4][lanes]) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const std::int32_t right = x.fraction[lane], left = 256 - right, down = y.fraction[lane];
        weight[3][lane] = (right * down + 128) >> 8;
        weight[2][lane] = (left * down + 127) >> 8;
        weight[1][lane] = right - weight[3][lane];
        weight[0][lane] = left - weight[2][lane];
    }
}

template <unsigned lanes> PLANE_INLINE std::int32_t texel_signs(const std::uint32_t (&texel)[4][lanes], unsigned lane) {
    return static_cast<std::int32_t>(texel[0][lane] | texel[1][lane] | texel[2][lane] | texel[3][lane]) >> 31;
}
/// Sums of floats, cut to multiples of 2^-27 of the largest one's leading bit and rounded to nearest, away from zero in
/// the middle. `special`: not 0 where that does not hold (infinities, NaNs, very small and large numbers, zeros where
/// numbers have signs).
template <unsigned lanes>
PLANE_INLINE void sum_singles(const std::uint32_t (&texel)[4][lanes], const std::int32_t (&weight)[4][lanes],
                              std::uint32_t* __restrict result, std::int32_t* __restrict special) {
    constexpr std::uint64_t half_of_last_bit = std::uint64_t{1} << 28, last_bits = (std::uint64_t{1} << 29) - 1;
    constexpr std::int32_t lowest = 48, bias = 127, below = 27; ///< biased exponents below `lowest` are special
    std::int32_t high[lanes], low[lanes], sums[lanes], unit[lanes];
    for (unsigned lane = 0; lane < lanes; ++lane) {
        std::int32_t most = 0, worst = 0;
        std::uint32_t any = 0;
        for (unsigned i = 0; i < 4; ++i) {
            const std::uint32_t bits = texel[i][lane];
            const auto exponent = static_cast<std::int32_t>(bits >> 23 & 255);
            worst = larger(worst, exponent);
            most = larger(most, weight[i][lane] != 0 ? exponent : 0);
            any |= bits;
        }
        // All zeros without signs are a zero. Of larger numbers products with powers of two are exact.
        const std::int32_t zeros = any == 0 ? -1 : 0, outside = (most < lowest ? -1 : 0) | (most > 252 ? -1 : 0);
        special[lane] = (outside & ~zeros) | (worst == 255 ? -1 : 0);
        most = smaller(larger(most, lowest), 252);
        unit[lane] = most;
        const float scale = std::bit_cast<float>((bias + bias + below - most) << 23);
        std::int32_t upper = 0, lower = 0;
        for (unsigned i = 0; i < 4; ++i) {
            // In multiples of 2^-27: 28 bits with sign, of which 16 and 12 are multiplied by nine bits of weight.
            const float scaled = std::bit_cast<float>(weight[i][lane] != 0 ? texel[i][lane] : 0) * scale;
            const auto kept = static_cast<std::int32_t>(scaled);
            upper += (kept >> 12) * weight[i][lane];
            lower += (kept & 4095) * weight[i][lane];
        }
        high[lane] = upper;
        low[lane] = lower;
    }
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const double sum = static_cast<double>(high[lane]) * 4096 + static_cast<double>(low[lane]);
        const auto rounded = std::bit_cast<double>((std::bit_cast<std::uint64_t>(sum) + half_of_last_bit) & ~last_bits);
        sums[lane] = std::bit_cast<std::int32_t>(static_cast<float>(rounded));
    }
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const std::int32_t exponent = (sums[lane] >> 23 & 255) + unit[lane] - bias - below - 8;
        // What is left of numbers with signs may be a zero or very small.
        const std::int32_t bad = (exponent < 3 ? -1 : 0) & (texel_signs(texel, lane) != 0 ? -1 : 0);
        special[lane] |= bad;
        const float down = std::bit_cast<float>((unit[lane] - below - 8) << 23);
        result[lane] = std::bit_cast<std::uint32_t>(std::bit_cast<float>(sums[lane]) * down);
    }
}

/// Sums of halves (their bits), cut to multiples of 2^-14 of the largest one's leading bit and rounded to 11 bits, away
/// from zero in the middle. `special`: not 0 where that does not hold (infinities, NaNs, sums below a half's normal
/// ones).
template <unsigned lanes>
PLANE_INLINE void sum_halves(const std::uint32_t (&texel)[4][lanes], const std::int32_t (&weight)[4][lanes],
                             std::uint32_t* __restrict result, std::int32_t* __restrict special) {
    constexpr std::int32_t bias = 127, below = 14, least = bias - 24; ///< the smallest half's exponent
    for (unsigned lane = 0; lane < lanes; ++lane) {
        std::int32_t most = least, worst = 0;
        std::uint32_t any = 0;
        float values[4];
        for (unsigned i = 0; i < 4; ++i) {
            const std::uint32_t bits = texel[i][lane], magnitude = bits & 0x7fff;
            worst = larger(worst, static_cast<std::int32_t>(magnitude));
            any |= bits;
            values[i] = std::bit_cast<float>(weight[i][lane] != 0 ? magnitude << 13 : 0) * 0x1p112f;
            most = larger(most, std::bit_cast<std::int32_t>(values[i]) >> 23);
            values[i] = (bits & 0x8000) != 0 ? -values[i] : values[i];
        }
        const float scale = std::bit_cast<float>((bias + bias + below - most) << 23);
        std::int32_t sum = 0;
        for (unsigned i = 0; i < 4; ++i) sum += static_cast<std::int32_t>(values[i] * scale) * weight[i][lane];
        const float total = static_cast<float>(sum) * std::bit_cast<float>((most - below - 8) << 23);
        result[lane] = (std::bit_cast<std::uint32_t>(total) + 0x1000) & 0xffffe000;
        const std::int32_t low = std::fabs(total) < 0x1p-14f ? -1 : 0, zeros = any == 0 ? -1 : 0;
        special[lane] = (worst >= 0x7c00 ? -1 : 0) | (low & ~zeros);
    }
}

/// Channel `index` of texels of four bytes or fewer.
template <unsigned lanes>
PLANE_INLINE void take_bytes(const std::uint32_t (&texel)[lanes], unsigned index,
                             std::uint32_t (&__restrict channel)[lanes]) {
    for (unsigned lane = 0; lane < lanes; ++lane) channel[lane] = texel[lane] >> (8 * index) & 255;
}

/// Bytes as floats from 0 to 1, correctly rounded.
template <unsigned lanes> PLANE_INLINE void normalize_bytes(std::uint32_t (&channel)[lanes]) {
    for (unsigned lane = 0; lane < lanes; ++lane)
        channel[lane] =
            std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(channel[lane])) / 255.0f);
}

/// Sums of unsigned integers of up to 16 bits, scaled to 16 bits, as floats from 0 to 1.
template <unsigned lanes>
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
