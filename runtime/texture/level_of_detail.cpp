// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/level_of_detail.h"

#include "runtime/texture/footprint.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ptarmigan::runtime {
namespace {

constexpr int far_level = Ellipse::far_away; ///< behind all levels

/// In 256ths, cut toward zero; NaN counts as 0.
int fixed(float level) {
    if (std::isnan(level)) return 0;
    return static_cast<int>(std::clamp(level * 256, static_cast<float>(-far_level), static_cast<float>(far_level)));
}

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
    if (fetch.detail == Fetch::Detail::level) level = fixed(std::bit_cast<float>(fetch.level));
    if (by_gradients) {
        const Ellipse ellipse = ellipse_of(texture, fetch, anisotropic);
        const Anisotropy anisotropy = anisotropy_of(sampler);
        const int ratio = std::min(ellipse.ratio, anisotropy.limit);
        level = ellipse.length - ratio;
        choice.ratio = std::min(ratio, std::max(ellipse.length, 0)); // there are no smaller texels
        std::copy_n(ellipse.direction, 2, choice.direction);
    }
    if (!image.mipmapped) return choice;
    if (fetch.detail != Fetch::Detail::base) // which ignores the bias
        level += fixed(sampler.bias);
    if (anisotropic && sampler.optimized) level = optimized(level, anisotropy_of(sampler).most);
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
