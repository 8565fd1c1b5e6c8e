// SPDX-License-Identifier: Apache-2.0
// From a coordinate to texels along one dimension. Inline, and without calls of the maths library: it is most of a
// point fetch.
#pragma once

#include "runtime/texture/texture.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ptarmigan::runtime {

/// The texels that a coordinate falls on along one dimension. Outside of border addressing they exist.
struct Footprint {
    std::int64_t texel[2] = {}; ///< the first alone if not linear
    bool inside[2] = {true, true};
    unsigned fraction = 0; ///< of the second, in 256ths
};

/// One dimension of a fetch.
struct Dimension {
    std::uint32_t size;
    Sampler::Address address;
    bool normalized, linear;
    bool open = false; ///< texels outside stay where they are, for edges of cubes
};

namespace coordinate {

inline constexpr int fraction_bits = 8;    ///< of a place between texels
inline constexpr int normalized_bits = 21; ///< of a normalized coordinate: the H200 cuts the rest off

/// `value` cut to multiples of 2^-bits, as an integer; far ones end at +-2^40.
inline std::int64_t cut(double value, int bits) {
    constexpr double far = 0x1p40;
    const double scaled = std::clamp(value * static_cast<double>(std::int64_t{1} << bits), -far, far);
    const auto toward_zero = static_cast<std::int64_t>(scaled);
    return toward_zero - (scaled < static_cast<double>(toward_zero) ? 1 : 0);
}

inline std::int64_t wrapped(std::int64_t texel, std::int64_t size) {
    if (texel >= 0 && texel < size) return texel;
    const std::int64_t rest = texel % size;
    return rest < 0 ? rest + size : rest;
}

/// Applies the addressing mode; false for the border's colour.
inline bool place(std::int64_t& texel, const Dimension& dimension) {
    const std::int64_t size = dimension.size;
    switch (dimension.address) {
    case Sampler::wrap: texel = wrapped(texel, size); return true;
    case Sampler::mirror: {
        const std::int64_t turn = wrapped(texel, 2 * size);
        texel = turn < size ? turn : 2 * size - 1 - turn;
        return true;
    }
    case Sampler::border:
        if (texel >= 0 && texel < size) return true;
        texel = 0;
        return false;
    default: texel = std::clamp<std::int64_t>(texel, 0, size - 1); return true;
    }
}

/// Where the coordinate is, in 256ths of a texel, rounded to nearest (up in the middle) or down.
inline std::int64_t position(float coordinate, const Dimension& dimension) {
    const int rounding = dimension.linear ? 1 : 0;
    if (!dimension.normalized) {
        const std::int64_t halves = cut(coordinate, fraction_bits + 1);
        return (halves + rounding) >> 1;
    }
    constexpr std::int64_t one = std::int64_t{1} << normalized_bits;
    const double wide = coordinate;
    // A float that large has no bits below a multiple of the period that the cut would miss.
    const bool far = std::fabs(wide) > 0x1p18;
    std::int64_t part = 0;
    if (dimension.address == Sampler::wrap)
        part = cut(far ? wide - std::floor(wide) : wide, normalized_bits) & (one - 1);
    else if (dimension.address == Sampler::mirror)
        part = cut(far ? wide - 2 * std::floor(wide / 2) : wide, normalized_bits) & (2 * one - 1);
    else
        part = cut(std::clamp(wide, -1024.0, 1024.0), normalized_bits);
    constexpr int drop = normalized_bits - fraction_bits;
    return (part * dimension.size + (std::int64_t{rounding} << (drop - 1))) >> drop;
}

} // namespace coordinate

/// `offset` moves by whole texels, `shift` by 256ths.
inline Footprint locate(float coordinate, const Dimension& dimension, std::int32_t offset, std::int32_t shift = 0) {
    using namespace coordinate;
    const bool periodic = dimension.address == Sampler::wrap || dimension.address == Sampler::mirror;
    const float magnitude = std::fabs(coordinate);
    // Subnormal numbers, NaNs, and infinities that have no place in a period.
    if (!(magnitude >= std::numeric_limits<float>::min()) ||
        (periodic && magnitude > std::numeric_limits<float>::max()))
        coordinate = 0;
    std::int64_t at = position(coordinate, dimension);
    if (dimension.linear) at -= 1 << (fraction_bits - 1);
    at += (std::int64_t{offset} << fraction_bits) + shift;
    Footprint footprint;
    const bool clamped = dimension.address == Sampler::clamp && !dimension.open, before = clamped && at < 0;
    if (clamped) at = std::clamp<std::int64_t>(at, 0, (std::int64_t{dimension.size} - 1) << fraction_bits);
    footprint.fraction = dimension.linear ? static_cast<unsigned>(at & 255) : 0;
    footprint.texel[0] = at >> fraction_bits;
    footprint.texel[1] = footprint.texel[0] + (before ? 0 : 1);
    if (dimension.open) return footprint;
    for (unsigned i = 0; i < 2; ++i) footprint.inside[i] = place(footprint.texel[i], dimension);
    return footprint;
}

} // namespace ptarmigan::runtime
