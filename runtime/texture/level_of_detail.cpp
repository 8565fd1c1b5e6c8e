// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/level_of_detail.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ptarmigan::runtime {
namespace {

/// log2 of the longer of the two gradients, in texels of the first level.
float from_gradients(const Image &image, const Fetch &fetch, bool normalized) {
    const ImageLevel &base = image.level[0];
    const float size[3] = {static_cast<float>(base.width), static_cast<float>(base.height), static_cast<float>(base.depth)};
    double x = 0, y = 0;
    for (unsigned i = 0; i < image.dimensions; ++i) {
        const double scale = normalized ? size[i] : 1;
        x += scale * fetch.dpdx[i] * scale * fetch.dpdx[i];
        y += scale * fetch.dpdy[i] * scale * fetch.dpdy[i];
    }
    return static_cast<float>(0.5 * std::log2(std::max(x, y)));
}

} // namespace

LevelChoice choose_levels(const TextureObject &texture, const Fetch &fetch) {
    const Image &image = texture.image;
    const Sampler &sampler = texture.sampler;
    LevelChoice choice;
    if (!image.mipmapped || fetch.detail == Fetch::Detail::base)
        return choice;
    const auto last = image.levels - 1;
    if (fetch.integer_coordinates) {
        choice.first = std::min(fetch.level, last);
        return choice;
    }
    float level = fetch.detail == Fetch::Detail::level ? std::bit_cast<float>(fetch.level)
                                                       : from_gradients(image, fetch, sampler.normalized);
    if (std::isnan(level))
        level = 0;
    level = std::clamp(level + sampler.bias, sampler.lowest, sampler.highest);
    level = std::clamp(level, 0.0f, static_cast<float>(last));
    if (!sampler.linear_levels) {
        choice.first = static_cast<std::uint32_t>(level + 0.5f);
        return choice;
    }
    const auto at = static_cast<unsigned>(level * 256 + 0.5f);
    choice.first = at >> 8;
    choice.second = std::min(choice.first + 1, last);
    choice.fraction = at & 255;
    return choice;
}

} // namespace ptarmigan::runtime
