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

/// The size of a dimension, for all lanes.
struct OneSize {
    std::int32_t size;
    PLANE_INLINE std::int32_t operator[](unsigned) const { return size; }
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

/// `sizes`: OneSize, or an array.
template <bool Normalized, Sampler::Address Mode, typename Sizes, unsigned lanes>
PLANE_INLINE void locate_mode(const float* __restrict coordinates, const Sizes& sizes, const Dimension& dimension,
                              Axis<lanes>& __restrict axis) {
    const std::int32_t rounding = dimension.linear ? 1 : 0, back = dimension.linear ? 128 : 0,
                       mask = dimension.linear ? 255 : 0;
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const std::int32_t size = sizes[lane], highest = (size - 1) * 256;
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

template <typename Sizes, unsigned lanes>
PLANE_INLINE void locate(const float* coordinates, const Sizes& sizes, const Dimension& dimension, Axis<lanes>& axis) {
    const bool normalized = dimension.normalized;
    switch (dimension.address) {
    case Sampler::wrap:
        return locate_mode<true, Sampler::wrap>(coordinates, sizes, dimension, axis); // never without normalization
    case Sampler::mirror: return locate_mode<true, Sampler::mirror>(coordinates, sizes, dimension, axis);
    case Sampler::border:
        return normalized ? locate_mode<true, Sampler::border>(coordinates, sizes, dimension, axis)
                          : locate_mode<false, Sampler::border>(coordinates, sizes, dimension, axis);
    default:
        return normalized ? locate_mode<true, Sampler::clamp>(coordinates, sizes, dimension, axis)
                          : locate_mode<false, Sampler::clamp>(coordinates, sizes, dimension, axis);
    }
}
template <unsigned lanes>
PLANE_INLINE void locate(const float* coordinates, const Dimension& dimension, Axis<lanes>& axis) {
    locate(coordinates, OneSize{static_cast<std::int32_t>(dimension.size)}, dimension, axis);
}

/// Weights of the four corners, in 256ths, of `total` together (all lanes' OneSize, or an array).
template <typename Totals, unsigned lanes>
PLANE_INLINE void weigh(const Axis<lanes>& x, const Axis<lanes>& y, const Totals& total,
                        std::int32_t (&__restrict weight)[4][lanes]) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const std::int32_t right = (total[lane] * x.fraction[lane] + 128) >> 8, left = total[lane] - right,
                           down = y.fraction[lane];
        weight[3][lane] = (right * down + 128) >> 8;
        weight[2][lane] = (left * down + 127) >> 8;
        weight[1][lane] = right - weight[3][lane];
        weight[0][lane] = left - weight[2][lane];
    }
}

template <unsigned lanes> PLANE_INLINE std::int32_t texel_signs(const std::uint32_t (&texel)[4][lanes], unsigned lane) {
    return static_cast<std::int32_t>(texel[0][lane] | texel[1][lane] | texel[2][lane] | texel[3][lane]) >> 31;
}
/// Sums of floats that are cut to multiples of 2^-27 of the leading bit of the largest one with a weight, of which
/// `most` is the exponent (with a float's bias): 4096 * high + low units of 2^-35 of that bit. `special`: not 0 where
/// that does not hold (infinities, NaNs, very small and large numbers).
template <unsigned lanes> struct SinglesSum {
    static constexpr std::int32_t lowest = 48, highest = 252, bias = 127, below = 27;
    std::int32_t high[lanes], low[lanes], most[lanes];

    PLANE_INLINE void make(const std::uint32_t (&texel)[4][lanes], const std::int32_t (&weight)[4][lanes],
                           std::int32_t* __restrict special) {
        for (unsigned lane = 0; lane < lanes; ++lane) {
            std::int32_t largest = 0, worst = 0;
            std::uint32_t any = 0;
            for (unsigned i = 0; i < 4; ++i) {
                const std::uint32_t bits = texel[i][lane];
                const auto exponent = static_cast<std::int32_t>(bits >> 23 & 255);
                worst = larger(worst, exponent);
                largest = larger(largest, weight[i][lane] != 0 ? exponent : 0);
                any |= bits;
            }
            // All zeros without signs are a zero. Of larger numbers products with powers of two are exact.
            const std::int32_t zeros = any == 0 ? -1 : 0,
                               outside = (largest < lowest ? -1 : 0) | (largest > highest ? -1 : 0);
            special[lane] = (outside & ~zeros) | (worst == 255 ? -1 : 0);
            largest = smaller(larger(largest, lowest), highest);
            most[lane] = largest;
            const float scale = std::bit_cast<float>((bias + bias + below - largest) << 23);
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
    }
    PLANE_INLINE double sum(unsigned lane) const {
        return static_cast<double>(high[lane]) * 4096 + static_cast<double>(low[lane]);
    }
};
/// `sum` rounded to a float's bits, away from zero in the middle.
PLANE_INLINE double rounded_to_single(double sum) {
    constexpr std::uint64_t half_of_last_bit = std::uint64_t{1} << 28, last_bits = (std::uint64_t{1} << 29) - 1;
    return std::bit_cast<double>((std::bit_cast<std::uint64_t>(sum) + half_of_last_bit) & ~last_bits);
}
/// Such sums of four texels, rounded. `special` are also zeros where numbers have signs.
template <unsigned lanes>
PLANE_INLINE void sum_singles(const std::uint32_t (&texel)[4][lanes], const std::int32_t (&weight)[4][lanes],
                              std::uint32_t* __restrict result, std::int32_t* __restrict special) {
    constexpr std::int32_t bias = SinglesSum<lanes>::bias, below = SinglesSum<lanes>::below;
    SinglesSum<lanes> sum;
    std::int32_t sums[lanes];
    sum.make(texel, weight, special);
    for (unsigned lane = 0; lane < lanes; ++lane)
        sums[lane] = std::bit_cast<std::int32_t>(static_cast<float>(rounded_to_single(sum.sum(lane))));
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const std::int32_t exponent = (sums[lane] >> 23 & 255) + sum.most[lane] - bias - below - 8;
        // What is left of numbers with signs may be a zero or very small.
        const std::int32_t bad = (exponent < 3 ? -1 : 0) & (texel_signs(texel, lane) != 0 ? -1 : 0);
        special[lane] |= bad;
        const float down = std::bit_cast<float>((sum.most[lane] - below - 8) << 23);
        result[lane] = std::bit_cast<std::uint32_t>(std::bit_cast<float>(sums[lane]) * down);
    }
}

/// Likewise sums of halves (their bits), which are cut to multiples of 2^-14: units of 2^-22 of the leading bit.
/// `special`: infinities and NaNs.
template <unsigned lanes> struct HalvesSum {
    static constexpr std::int32_t bias = 127, below = 14, least = bias - 24; ///< the smallest half's exponent
    std::int32_t units[lanes], most[lanes], any[lanes];

    PLANE_INLINE void make(const std::uint32_t (&texel)[4][lanes], const std::int32_t (&weight)[4][lanes],
                           std::int32_t* __restrict special) {
        for (unsigned lane = 0; lane < lanes; ++lane) {
            std::int32_t largest = least, worst = 0;
            std::uint32_t all = 0;
            float values[4];
            for (unsigned i = 0; i < 4; ++i) {
                const std::uint32_t bits = texel[i][lane], magnitude = bits & 0x7fff;
                worst = larger(worst, static_cast<std::int32_t>(magnitude));
                all |= bits;
                values[i] = std::bit_cast<float>(weight[i][lane] != 0 ? magnitude << 13 : 0) * 0x1p112f;
                largest = larger(largest, std::bit_cast<std::int32_t>(values[i]) >> 23);
                values[i] = (bits & 0x8000) != 0 ? -values[i] : values[i];
            }
            const float scale = std::bit_cast<float>((bias + bias + below - largest) << 23);
            std::int32_t sum = 0;
            for (unsigned i = 0; i < 4; ++i) sum += static_cast<std::int32_t>(values[i] * scale) * weight[i][lane];
            units[lane] = sum;
            most[lane] = largest;
            any[lane] = static_cast<std::int32_t>(all);
            special[lane] = worst >= 0x7c00 ? -1 : 0;
        }
    }
    PLANE_INLINE double sum(unsigned lane) const { return static_cast<double>(units[lane]); }
};
/// Such sums of four texels, rounded to 11 bits, away from zero in the middle. `special` are also those below a half's
/// normal ones.
template <unsigned lanes>
PLANE_INLINE void sum_halves(const std::uint32_t (&texel)[4][lanes], const std::int32_t (&weight)[4][lanes],
                             std::uint32_t* __restrict result, std::int32_t* __restrict special) {
    HalvesSum<lanes> sum;
    sum.make(texel, weight, special);
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const float down = std::bit_cast<float>((sum.most[lane] - HalvesSum<lanes>::below - 8) << 23);
        const float total = static_cast<float>(sum.units[lane]) * down;
        result[lane] = (std::bit_cast<std::uint32_t>(total) + 0x1000) & 0xffffe000;
        const std::int32_t low = std::fabs(total) < 0x1p-14f ? -1 : 0, zeros = sum.any[lane] == 0 ? -1 : 0;
        special[lane] |= low & ~zeros;
    }
}

/// Channel `index` of texels of four bytes or fewer.
template <unsigned lanes>
PLANE_INLINE void take_bytes(const std::uint32_t (&texel)[lanes], unsigned index,
                             std::uint32_t (&__restrict channel)[lanes]) {
    for (unsigned lane = 0; lane < lanes; ++lane) channel[lane] = texel[lane] >> (8 * index) & 255;
}

/// Integers of `bits` with their signs, which lie in the low bits.
template <unsigned lanes> PLANE_INLINE void extend_signs(std::uint32_t (&channel)[lanes], unsigned bits) {
    const unsigned rest = 32 - bits;
    for (unsigned lane = 0; lane < lanes; ++lane)
        channel[lane] = static_cast<std::uint32_t>(static_cast<std::int32_t>(channel[lane] << rest) >> rest);
}

/// Integers of 8 or 16 bits as floats from 0 or -1 to 1, correctly rounded.
template <unsigned lanes> PLANE_INLINE void normalize(std::uint32_t (&channel)[lanes], float most) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const float value = static_cast<float>(static_cast<std::int32_t>(channel[lane])) / most;
        channel[lane] = std::bit_cast<std::uint32_t>(larger(value, -1.0f));
    }
}

/// Adds integers of up to 16 bits by their weights in 256ths; of signed ones of 16 bits the lowest counts as the one
/// above it.
template <unsigned lanes>
PLANE_INLINE void add_integers(const std::uint32_t (&texel)[4][lanes], const std::int32_t (&weight)[4][lanes],
                               std::int32_t* __restrict sum) {
    for (unsigned lane = 0; lane < lanes; ++lane)
        for (unsigned i = 0; i < 4; ++i)
            sum[lane] += larger(static_cast<std::int32_t>(texel[i][lane]), -32767) * weight[i][lane];
}
/// Whole sums scaled to 16 bits, as floats from 0 or -1 to 1.
template <unsigned lanes>
PLANE_INLINE void finish_integers(const std::int32_t (&sum)[lanes], const TexelFormat& format,
                                  std::uint32_t* __restrict result) {
    const bool bytes = format.bits == 8, has_signs = format.kind == TexelFormat::Kind::signed_integer;
    const std::int32_t scale = !bytes ? 1 : has_signs ? 258 : 257;
    const std::int32_t eighths = bytes && has_signs ? 32 : 0; // one for each whole 16
    const float most = has_signs ? 32767.0f : 65535.0f;
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const std::int32_t whole = (sum[lane] * scale + (sum[lane] >> 12) * eighths + 128) >> 8;
        result[lane] = std::bit_cast<std::uint32_t>(static_cast<float>(larger(whole, -32767)) / most);
    }
}

} // namespace ptarmigan::runtime::plane
