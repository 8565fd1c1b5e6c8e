// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/level_of_detail.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ptarmigan::runtime {
namespace {

constexpr int far_level = 1000 * 256; ///< behind all levels

/// The H200's length of a vector in texels: the longest component, 11/32 of the next and 8/32 of the last.
double length_of(const double (&v)[3]) {
    const double x = std::fabs(v[0]), y = std::fabs(v[1]), z = std::fabs(v[2]);
    const double longest = std::max({x, y, z}), shortest = std::min({x, y, z});
    return longest + (x + y + z - longest - shortest) * 11 / 32 + shortest * 8 / 32;
}

/// log2 in 256ths as the H200 has it: of eight bits of the fraction.
int table_log2(double length) {
    int exponent = 0;
    const double fraction = std::frexp(length, &exponent) * 2 - 1;
    const double middle = std::floor(fraction * 256) + 0.5;
    const int logarithm = middle < 1 ? 0 : static_cast<int>(std::floor(std::log2(1 + middle / 256) * 256 + 0.47));
    return (exponent - 1) * 256 + std::min(logarithm, 255);
}

/// The level, in 256ths, whose texels are as large as the footprint of two gradients. Its longest diameter is taken for the
/// longest of four: both gradients, and 11/16 of their sum and of their difference.
int from_gradients(const Image &image, const Fetch &fetch) {
    const ImageLevel &base = image.level[0];
    const double size[3] = {static_cast<double>(base.width), static_cast<double>(base.height), static_cast<double>(base.depth)};
    double x[3] = {}, y[3] = {}, sum[3] = {}, difference[3] = {};
    for (unsigned i = 0; i < image.dimensions; ++i) {
        // Three dimensions are sampled at neighbouring places: the gradient is what is left of it there.
        const float at = std::bit_cast<float>(fetch.coordinate[i]);
        const bool by_neighbours = image.dimensions == 3;
        x[i] = (by_neighbours ? (at + fetch.dpdx[i]) - at : fetch.dpdx[i]) * size[i];
        y[i] = (by_neighbours ? (at + fetch.dpdy[i]) - at : fetch.dpdy[i]) * size[i];
        for (double *value : {&x[i], &y[i]})
            if (std::isnan(*value))
                *value = 0;
        if (std::isinf(x[i]) || std::isinf(y[i]))
            return far_level;
        sum[i] = x[i] + y[i];
        difference[i] = x[i] - y[i];
    }
    const double longest = std::max({length_of(x), length_of(y), length_of(sum) * 11 / 16, length_of(difference) * 11 / 16});
    if (longest == 0)
        return -far_level;
    return table_log2(longest);
}

/// In 256ths, cut toward zero; NaN counts as 0.
int fixed(float level) {
    if (std::isnan(level))
        return 0;
    return static_cast<int>(std::clamp(level * 256, static_cast<float>(-far_level), static_cast<float>(far_level)));
}

} // namespace

LevelChoice choose_levels(const TextureObject &texture, const Fetch &fetch) {
    const Image &image = texture.image;
    const Sampler &sampler = texture.sampler;
    LevelChoice choice;
    if (!image.mipmapped)
        return choice;
    int level = 0;
    if (fetch.detail == Fetch::Detail::level)
        level = fixed(std::bit_cast<float>(fetch.level));
    if (fetch.detail == Fetch::Detail::gradients)
        level = from_gradients(image, fetch);
    if (fetch.detail != Fetch::Detail::base) // which ignores the bias
        level += fixed(sampler.bias);
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
