// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/coordinate.h"

#include <algorithm>
#include <cmath>

namespace ptarmigan::runtime {
namespace {

constexpr unsigned fraction_bits = 8;
constexpr std::int64_t far = std::int64_t{1} << 40;

/// In 256ths of a texel.
std::int64_t fixed(double value) {
    if (std::isnan(value))
        return 0;
    const double scaled = std::floor(value * 256 + 0.5);
    return static_cast<std::int64_t>(std::clamp(scaled, -static_cast<double>(far), static_cast<double>(far)));
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

} // namespace

Footprint locate(float coordinate, const Dimension &dimension, std::int32_t offset) {
    double texels = coordinate;
    if (dimension.normalized) {
        // Periodic modes keep the part that counts, so that far coordinates stay exact.
        if (dimension.address == Sampler::wrap)
            texels -= std::floor(texels);
        else if (dimension.address == Sampler::mirror)
            texels -= 2 * std::floor(texels / 2);
        texels *= dimension.size;
    }
    Footprint footprint;
    std::int64_t at = fixed(dimension.linear ? texels - 0.5 : texels);
    if (!dimension.linear)
        at = std::isnan(texels) ? 0 : static_cast<std::int64_t>(std::clamp(std::floor(texels), -1e12, 1e12)) * 256;
    footprint.fraction = dimension.linear ? static_cast<unsigned>(at & 255) : 0;
    footprint.texel[0] = (at >> fraction_bits) + offset;
    footprint.texel[1] = footprint.texel[0] + 1;
    for (unsigned i = 0; i < 2; ++i)
        footprint.inside[i] = place(footprint.texel[i], dimension);
    return footprint;
}

Footprint locate(std::int32_t coordinate, const Dimension &dimension, std::int32_t offset) {
    Footprint footprint;
    footprint.texel[0] = std::int64_t{coordinate} + offset;
    footprint.inside[0] = place(footprint.texel[0], dimension);
    return footprint;
}

} // namespace ptarmigan::runtime
