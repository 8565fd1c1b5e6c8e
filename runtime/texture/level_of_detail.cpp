// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/level_of_detail.h"

#include "runtime/texture/cube.h"
#include "runtime/texture/footprint_number.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>

namespace ptarmigan::runtime {
namespace {

constexpr int far_level = 1000 * 256; ///< behind all levels

/// 11/16 of a cut number, and a quarter of its last place.
double eleven_sixteenths(double value) {
    return value == 0 ? 0 : cut_to_unit((11 * value + 4 * last_place(value)) / 16);
}

/// 121/512, likewise an eighth.
double middle_of_diagonal(double value) {
    return value == 0 ? 0 : cut_to_unit((121 * value + 32 * last_place(value)) / 512);
}

/// A gradient in texels, cut: what is cut off of a product is made up for by 7/8 of a unit of it.
double in_texels(double gradient, std::uint32_t size) {
    const double scale = last_place(gradient) * std::bit_floor(size);
    return cut_to_unit(cut_to_unit(gradient) * size + scale * 7 / 8);
}

/// NaN counts as 0.
float number(float value) {
    return std::isnan(value) ? 0.0f : value;
}

/// Three dimensions are sampled at neighbouring places: the gradient is what is left of it there.
double difference_of_neighbours(float at, float gradient) {
    if (std::isinf(at)) return at;
    return unit_difference(number(at + gradient), number(at));
}

/// A vector by sizes, largest first.
using Sizes = std::array<double, 3>;

Sizes sorted(Sizes v) {
    std::sort(v.begin(), v.end(), std::greater<>());
    return v;
}

/// The longest component, 11/32 of the next and 8/32 of the last.
double length_of(Sizes v) {
    v = sorted(v);
    return v[0] == 0 ? 0 : v[0] + aligned(eleven_sixteenths(v[1]) / 2 + v[2] / 4, v[0]);
}

/// 11/16 of that.
double length_of_diagonal(Sizes v) {
    v = sorted(v);
    const double longest = eleven_sixteenths(v[0]);
    return longest == 0 ? 0 : longest + aligned(middle_of_diagonal(v[1]) + eleven_sixteenths(v[2]) / 4, longest);
}

/// log2 in 256ths as the H200 has it: of eight bits of the fraction.
int table_log2(double length) {
    int exponent = 0;
    const double fraction = std::frexp(length, &exponent) * 2 - 1;
    const double middle = std::floor(fraction * 256) + 0.5;
    const int logarithm = middle < 1 ? 0 : static_cast<int>(std::floor(std::log2(1 + middle / 256) * 256 + 0.47));
    return (exponent - 1) * 256 + std::min(logarithm, 255);
}

/// Two gradients of the coordinates that are sampled.
struct Gradients {
    double x[3] = {}, y[3] = {};
    bool apart = false; ///< on several faces of a cube, where their sum and difference are not looked at
};

Gradients gradients_of(const Image& image, const Fetch& fetch) {
    Gradients result;
    float at[3], to_x[3], to_y[3];
    for (unsigned i = 0; i < 3; ++i) {
        at[i] = std::bit_cast<float>(fetch.coordinate[i]);
        to_x[i] = at[i] + fetch.dpdx[i];
        to_y[i] = at[i] + fetch.dpdy[i];
    }
    if (image.cube) {
        const CubeStep x = step_between(at, to_x), y = step_between(at, to_y);
        return {{x.s, x.t, 0}, {y.s, y.t, 0}, x.beside || y.beside};
    }
    for (unsigned i = 0; i < image.dimensions; ++i) {
        const bool by_neighbours = image.dimensions == 3;
        result.x[i] = by_neighbours ? difference_of_neighbours(at[i], fetch.dpdx[i]) : number(fetch.dpdx[i]);
        result.y[i] = by_neighbours ? difference_of_neighbours(at[i], fetch.dpdy[i]) : number(fetch.dpdy[i]);
    }
    return result;
}

/// The level, in 256ths, whose texels are as large as the footprint of two gradients. Its longest
/// diameter is taken for the longest of four: both gradients, and 11/16 of their sum and of their
/// difference.
int from_gradients(const Image& image, const Fetch& fetch) {
    const ImageLevel& base = image.level[0];
    const std::uint32_t size[3] = {base.width, base.height, base.depth};
    const Gradients gradients = gradients_of(image, fetch);
    Sizes x{}, y{}, sum{}, difference{};
    for (unsigned i = 0; i < image.dimensions; ++i) {
        if (std::isinf(gradients.x[i]) || std::isinf(gradients.y[i])) return far_level;
        if (gradients.x[i] != 0) x[i] = in_texels(std::fabs(gradients.x[i]), size[i]);
        if (gradients.y[i] != 0) y[i] = in_texels(std::fabs(gradients.y[i]), size[i]);
        const auto [smaller, larger] = std::minmax(x[i], y[i]);
        if (larger == 0 || gradients.apart) continue;
        sum[i] = cut_to_unit(larger + aligned(smaller, larger));
        difference[i] = cut_to_unit(larger - aligned(2 * smaller, larger) / 2); // one bit more
        if ((gradients.x[i] < 0) != (gradients.y[i] < 0)) std::swap(sum[i], difference[i]);
    }
    const double longest =
        std::max({length_of(x), length_of(y), length_of_diagonal(sum), length_of_diagonal(difference)});
    if (longest == 0) return -far_level;
    return table_log2(longest);
}

/// In 256ths, cut toward zero; NaN counts as 0.
int fixed(float level) {
    if (std::isnan(level)) return 0;
    return static_cast<int>(std::clamp(level * 256, static_cast<float>(-far_level), static_cast<float>(far_level)));
}

} // namespace

LevelChoice choose_levels(const TextureObject& texture, const Fetch& fetch) {
    const Image& image = texture.image;
    const Sampler& sampler = texture.sampler;
    LevelChoice choice;
    if (!image.mipmapped) return choice;
    int level = 0;
    if (fetch.detail == Fetch::Detail::level) level = fixed(std::bit_cast<float>(fetch.level));
    if (fetch.detail == Fetch::Detail::gradients) level = from_gradients(image, fetch);
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
