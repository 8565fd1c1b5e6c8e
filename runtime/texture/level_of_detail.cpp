// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/level_of_detail.h"

#include "runtime/texture/footprint.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ptarmigan::runtime {
namespace {

/// What the driver makes of a sampler's anisotropy: the most that an ellipse may be longer than wide, as a logarithm.
struct Anisotropy {
    unsigned most;
    int limit;
};

Anisotropy anisotropy_of(const Sampler& sampler) {
    constexpr Anisotropy kinds[] = {{16, 1024}, {12, 912}, {10, 848}, {8, 768}, {6, 656}, {4, 512}, {2, 256}};
    for (const Anisotropy& kind : kinds)
        if (sampler.anisotropy >= kind.most) return kind;
    return {1, 0};
}

/// Trilinear optimization: anisotropic samplers go from one level to the next in a part of the way.
int optimized(int level, unsigned anisotropy) {
    const int fraction = level & 255;
    const int steeper = anisotropy == 2   ? (3 * fraction >> 1) - 63
                        : anisotropy <= 6 ? ((7 * fraction + 2) >> 2) - 95
                                          : 2 * fraction - 128;
    return (level & ~255) + std::clamp(steeper, 0, 256);
}

} // namespace

LevelChoice choose_levels(const TextureObject& texture, const Fetch& fetch) {
    const Image& image = texture.image;
    const Sampler& sampler = texture.sampler;
    LevelChoice choice;
    const bool by_gradients = fetch.detail == Fetch::Detail::gradients;
    const bool anisotropic = by_gradients && sampler.anisotropy > 1;
    if (!image.mipmapped && !anisotropic) return choice;
    int level = 0;
    if (fetch.detail == Fetch::Detail::level) level = level_in_256ths(std::bit_cast<float>(fetch.level));
    if (by_gradients) {
        const Ellipse ellipse = ellipse_of(texture, fetch, anisotropic);
        const Anisotropy anisotropy = anisotropy_of(sampler);
        const int ratio = std::min(ellipse.ratio, anisotropy.limit);
        level = ellipse.length - ratio;
        choice.ratio = std::min(ratio, std::max(ellipse.length, 0)); // there are no smaller texels
        std::copy_n(ellipse.direction, 2, choice.direction);
    }
    if (!image.mipmapped) return choice;
    const LevelRange range = level_range(texture);
    if (fetch.detail != Fetch::Detail::base) level += range.bias;
    if (anisotropic && sampler.optimized) level = optimized(level, anisotropy_of(sampler).most);
    level = std::clamp(std::clamp(level, range.lowest, range.highest), 0, range.last);
    if (!range.is_linear) {
        choice.first = static_cast<std::uint32_t>(level + 128) >> 8;
        return choice;
    }
    choice.first = static_cast<std::uint32_t>(level) >> 8;
    choice.second = std::min(choice.first + 1, image.levels - 1);
    choice.fraction = static_cast<unsigned>(level & 255);
    return choice;
}

} // namespace ptarmigan::runtime
