// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/level_of_detail.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ptarmigan::runtime {
namespace {

/// log2 of the longer of the two gradients, in texels of the first level.
float from_gradients(const Image &image, const Fetch &fetch) {
    const ImageLevel &base = image.level[0];
    const float size[3] = {static_cast<float>(base.width), static_cast<float>(base.height), static_cast<float>(base.depth)};
    double x = 0, y = 0;
    for (unsigned i = 0; i < image.dimensions; ++i) {
        const double scale = size[i];
        x += scale * fetch.dpdx[i] * scale * fetch.dpdx[i];
        y += scale * fetch.dpdy[i] * scale * fetch.dpdy[i];
    }
    return static_cast<float>(0.5 * std::log2(std::max(x, y)));
}

/// In 256ths, cut toward zero; NaN counts as 0.
int fixed(float level) {
    if (std::isnan(level))
        return 0;
    return static_cast<int>(std::clamp(level, -1000.0f, 1000.0f) * 256);
}

} // namespace

LevelChoice choose_levels(const TextureObject &texture, const Fetch &fetch) {
    const Image &image = texture.image;
    const Sampler &sampler = texture.sampler;
    LevelChoice choice;
    if (!image.mipmapped)
        return choice;
    float wanted = 0;
    if (fetch.detail == Fetch::Detail::level)
        wanted = std::bit_cast<float>(fetch.level);
    if (fetch.detail == Fetch::Detail::gradients)
        wanted = from_gradients(image, fetch);
    // The base mode ignores the bias.
    int level = fixed(wanted) + (fetch.detail == Fetch::Detail::base ? 0 : fixed(sampler.bias));
    level = std::clamp(level, fixed(sampler.lowest), std::max(fixed(sampler.lowest), fixed(sampler.highest)));
    const int last = static_cast<int>(image.levels - 1) << 8;
    level = std::clamp(level, 0, last);
    if (!sampler.linear_levels) {
        choice.first = static_cast<std::uint32_t>(level + 128) >> 8;
        return choice;
    }
    choice.first = static_cast<std::uint32_t>(level) >> 8;
    choice.second = std::min(choice.first + 1, image.levels - 1);
    choice.fraction = static_cast<unsigned>(level & 255);
    return choice;
}

} // namespace ptarmigan::runtime
