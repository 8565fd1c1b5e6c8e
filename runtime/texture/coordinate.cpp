// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/coordinate.h"

#include <algorithm>
#include <cmath>

namespace ptarmigan::runtime {
namespace {

constexpr int fraction_bits = 8;    ///< of a place between texels
constexpr int normalized_bits = 21; ///< of a normalized coordinate: the H200 cuts the rest off

/// `value` cut to multiples of 2^-bits, as an integer; far ones end at +-2^40.
std::int64_t cut(double value, int bits) {
    constexpr double far = 0x1p40;
    return static_cast<std::int64_t>(std::clamp(std::floor(std::ldexp(value, bits)), -far, far));
}

std::int64_t wrapped(std::int64_t texel, std::int64_t size) {
    const std::int64_t rest = texel % size;
    return rest < 0 ? rest + size : rest;
}

/// Applies the addressing mode; false for the border's colour.
bool place(std::int64_t &texel, const Dimension &dimension) {
    const std::int64_t size = dimension.size;
    switch (dimension.address) {
    case Sampler::wrap: texel = wrapped(texel, size); return true;
    case Sampler::mirror: {
        const std::int64_t turn = wrapped(texel, 2 * size);
        texel = turn < size ? turn : 2 * size - 1 - turn;
        return true;
    }
    case Sampler::border:
        if (texel >= 0 && texel < size)
            return true;
        texel = 0;
        return false;
    default: texel = std::clamp<std::int64_t>(texel, 0, size - 1); return true;
    }
}

/// Where the coordinate is, in 256ths of a texel, rounded to nearest (up in the middle) or down.
std::int64_t position(float coordinate, const Dimension &dimension) {
    const int rounding = dimension.linear ? 1 : 0;
    if (!dimension.normalized) {
        const std::int64_t halves = cut(coordinate, fraction_bits + 1);
        return (halves + rounding) >> 1;
    }
    constexpr std::int64_t one = std::int64_t{1} << normalized_bits;
    const std::int64_t part = [&] {
        const double wide = coordinate;
        // A float that large has no bits below a multiple of the period that the cut would miss.
        const bool far = std::fabs(wide) > 0x1p18;
        if (dimension.address == Sampler::wrap)
            return cut(far ? wide - std::floor(wide) : wide, normalized_bits) & (one - 1);
        if (dimension.address == Sampler::mirror)
            return cut(far ? wide - 2 * std::floor(wide / 2) : wide, normalized_bits) & (2 * one - 1);
        return cut(std::clamp(wide, -1024.0, 1024.0), normalized_bits);
    }();
    constexpr int drop = normalized_bits - fraction_bits;
    return (part * dimension.size + (std::int64_t{rounding} << (drop - 1))) >> drop;
}

} // namespace

Footprint locate(float coordinate, const Dimension &dimension, std::int32_t offset) {
    const bool periodic = dimension.address == Sampler::wrap || dimension.address == Sampler::mirror;
    if (std::isnan(coordinate) || (periodic && std::isinf(coordinate)))
        coordinate = 0;
    if (std::fpclassify(coordinate) == FP_SUBNORMAL)
        coordinate = 0;
    std::int64_t at = position(coordinate, dimension);
    if (dimension.linear)
        at -= 1 << (fraction_bits - 1);
    at += std::int64_t{offset} << fraction_bits;
    Footprint footprint;
    const bool clamped = dimension.address == Sampler::clamp && !dimension.open, before = clamped && at < 0;
    if (clamped)
        at = std::clamp<std::int64_t>(at, 0, (std::int64_t{dimension.size} - 1) << fraction_bits);
    footprint.fraction = dimension.linear ? static_cast<unsigned>(at & 255) : 0;
    footprint.texel[0] = at >> fraction_bits;
    footprint.texel[1] = footprint.texel[0] + (before ? 0 : 1);
    if (dimension.open)
        return footprint;
    for (unsigned i = 0; i < 2; ++i)
        footprint.inside[i] = place(footprint.texel[i], dimension);
    return footprint;
}

} // namespace ptarmigan::runtime
