// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/sampler.h"

#include "runtime/texture/coordinate.h"
#include "runtime/texture/cube.h"
#include "runtime/texture/level_of_detail.h"

#include <algorithm>
#include <bit>

namespace ptarmigan::runtime {
namespace {

using Geometry = abi::TextureGeometry;

float real(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

/// A fetch from one level: where it lands in each dimension.
struct Place {
    const ImageLevel *level;
    std::uint32_t slice; ///< layer or face
    unsigned dimensions;
    Footprint at[3];
};

std::uint32_t clamped_layer(const Image &image, std::uint32_t layer, std::uint32_t count) {
    static_cast<void>(image);
    return std::min(layer, count - 1);
}

Place locate_all(const TextureObject &texture, const Fetch &fetch, std::uint32_t level_number) {
    const Image &image = texture.image;
    const Sampler &sampler = texture.sampler;
    const ImageLevel &level = image.level[level_number];
    Place place{&level, 0, image.dimensions, {}};
    const std::uint32_t size[3] = {level.width, level.height, level.depth};
    Dimension dimension{0, Sampler::clamp, sampler.normalized, sampler.linear && !fetch.integer_coordinates};
    if (image.cube) {
        const CubePlace face = project(real(fetch.coordinate[0]), real(fetch.coordinate[1]), real(fetch.coordinate[2]));
        place.slice = clamped_layer(image, fetch.layer, image.layers / 6) * 6 + face.face;
        dimension.normalized = true;
        const float coordinate[2] = {face.s, face.t};
        for (unsigned i = 0; i < 2; ++i) {
            dimension.size = size[i];
            place.at[i] = locate(coordinate[i], dimension, 0);
        }
        return place;
    }
    if (image.layered)
        place.slice = clamped_layer(image, fetch.layer, image.layers);
    for (unsigned i = 0; i < image.dimensions; ++i) {
        dimension.size = size[i];
        dimension.address = sampler.address[i];
        if (fetch.integer_coordinates) {
            place.at[i] = locate(static_cast<std::int32_t>(fetch.coordinate[i]), dimension, fetch.offset[i]);
        } else {
            place.at[i] = locate(real(fetch.coordinate[i]), dimension, fetch.offset[i]);
        }
    }
    return place;
}

/// Texel number `corner` of the footprint: bit i chooses the second one of dimension i.
Texel texel_at(const TextureObject &texture, const Place &place, unsigned corner) {
    const Sampler &sampler = texture.sampler;
    std::int64_t position[3] = {};
    bool inside = true;
    for (unsigned i = 0; i < place.dimensions; ++i) {
        const unsigned side = corner >> i & 1;
        position[i] = place.at[i].texel[side];
        inside = inside && place.at[i].inside[side];
    }
    const TexelFormat &format = texture.image.format;
    if (!inside) {
        Texel color{};
        for (unsigned i = 0; i < 4; ++i)
            color.channel[i] = bits_of(sampler.border_color[i]);
        return color;
    }
    const auto slice = static_cast<std::size_t>(place.dimensions == 3 ? position[2] : place.slice);
    const std::uint8_t *data = place.level->data + slice * place.level->slice +
                               static_cast<std::size_t>(position[1]) * place.level->row +
                               static_cast<std::size_t>(position[0]) * format.bytes();
    return load_texel(data, format, sampler.to_real, sampler.srgb);
}

Texel compared(Texel texel, const Fetch &fetch) {
    if (fetch.compare)
        texel.channel[0] = bits_of(fetch.reference <= real(texel.channel[0]) ? 1.0f : 0.0f);
    return texel;
}

/// Weights of the corners, in units of 256 to the number of dimensions.
double weight(const Place &place, unsigned corner) {
    double product = 1;
    for (unsigned i = 0; i < place.dimensions; ++i) {
        const unsigned fraction = place.at[i].fraction;
        product *= (corner >> i & 1 ? fraction : 256 - fraction) / 256.0;
    }
    return product;
}

Texel sample_level(const TextureObject &texture, const Fetch &fetch, std::uint32_t level) {
    const Place place = locate_all(texture, fetch, level);
    if (!texture.sampler.linear || fetch.integer_coordinates)
        return compared(texel_at(texture, place, 0), fetch);
    double sum[4] = {};
    for (unsigned corner = 0; corner < 1u << place.dimensions; ++corner) {
        const Texel texel = compared(texel_at(texture, place, corner), fetch);
        for (unsigned i = 0; i < 4; ++i)
            sum[i] += weight(place, corner) * static_cast<double>(real(texel.channel[i]));
    }
    Texel result{};
    for (unsigned i = 0; i < 4; ++i)
        result.channel[i] = bits_of(static_cast<float>(sum[i]));
    return result;
}

} // namespace

Texel fetch(const TextureObject &texture, const Fetch &fetch) {
    const LevelChoice levels = choose_levels(texture, fetch);
    const Texel first = sample_level(texture, fetch, levels.first);
    if (levels.fraction == 0)
        return first;
    const Texel second = sample_level(texture, fetch, levels.second);
    Texel result{};
    for (unsigned i = 0; i < 4; ++i)
        result.channel[i] = bits_of(static_cast<float>(
            (real(first.channel[i]) * (256.0 - levels.fraction) + real(second.channel[i]) * double(levels.fraction)) / 256));
    return result;
}

Texel gather(const TextureObject &texture, const Fetch &fetch, unsigned component) {
    TextureObject linear = texture;
    linear.sampler.linear = true;
    const Place place = locate_all(linear, fetch, 0);
    constexpr unsigned corners[4] = {2, 3, 1, 0}; // lower left, lower right, upper right, upper left
    Texel result{};
    for (unsigned i = 0; i < 4; ++i)
        result.channel[i] = compared(texel_at(linear, place, corners[i]), fetch).channel[component];
    return result;
}

std::uint32_t query(const TextureObject &object, abi::TextureQuery what, std::uint32_t number) {
    using Query = abi::TextureQuery;
    const Image &image = object.image;
    const ImageLevel &level = image.level[std::min(number, image.levels - 1)];
    switch (what) {
    case Query::width: return level.width;
    case Query::height: return level.height;
    case Query::depth: return level.depth;
    case Query::channel_data_type: return image.format_code;
    case Query::channel_order: return image.format.channels;
    case Query::normalized_coords: return object.sampler.normalized;
    case Query::array_size: return image.layered ? image.layers : 0;
    case Query::num_mipmap_levels: return image.mipmapped ? image.levels : 0;
    case Query::num_samples: return 0;
    case Query::filter_mode: return object.sampler.linear;
    case Query::addr_mode_0: return object.sampler.address[0];
    case Query::addr_mode_1: return object.sampler.address[1];
    case Query::addr_mode_2: return object.sampler.address[2];
    case Query::memory_layout: return 0;
    }
    return 0;
}

} // namespace ptarmigan::runtime
