// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/sampler.h"

#include "runtime/base/log.h"
#include "runtime/texture/block_texel.h"
#include "runtime/texture/coordinate.h"
#include "runtime/texture/cube.h"
#include "runtime/texture/level_of_detail.h"
#include "runtime/texture/probes.h"

#include <algorithm>
#include <array>
#include <bit>

namespace ptarmigan::runtime {
namespace {

using Geometry = abi::TextureGeometry;

float real(std::uint32_t bits) {
    return std::bit_cast<float>(bits);
}

/// A fetch from one level: where it lands in each dimension.
struct Place {
    const ImageLevel* level;
    std::uint32_t slice; ///< layer or face
    unsigned dimensions;
    Footprint at[3];
};

std::uint32_t clamped_layer(std::uint32_t layer, std::uint32_t count) {
    return std::min(layer, count - 1);
}

/// Planes in linear memory may have no rows or columns, which a driver takes and which hold nothing to fetch.
bool is_empty(const ImageLevel& level) {
    return level.width == 0 || level.height == 0 || level.depth == 0;
}

/// Offsets have four bits.
std::int32_t short_offset(std::int32_t offset) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(offset) << 28) >> 28;
}

/// `shift`: 256ths of a texel along the first two dimensions.
Place locate_all(const TextureObject& texture, const Fetch& fetch, std::uint32_t level_number,
                 std::array<int, 2> shift = {}) {
    const Image& image = texture.image;
    const Sampler& sampler = texture.sampler;
    const ImageLevel& level = image.level[level_number];
    Place place{&level, 0, image.dimensions, {}};
    const std::uint32_t size[3] = {level.width, level.height, level.depth};
    // Levels differ in size, so that coordinates of mipmaps are normalized whatever the sampler says.
    Dimension dimension{0, Sampler::clamp, sampler.normalized || image.mipmapped, sampler.linear};
    const bool periodic_as_clamp = !sampler.normalized;
    if (image.cube) {
        const CubePlace face = project(real(fetch.coordinate[0]), real(fetch.coordinate[1]), real(fetch.coordinate[2]));
        place.slice = clamped_layer(fetch.layer, image.layers / 6) * 6 + face.face;
        dimension.normalized = true;
        const float coordinate[2] = {face.s, face.t};
        dimension.open = sampler.seamless && sampler.linear;
        for (unsigned i = 0; i < 2; ++i) {
            dimension.size = size[i];
            dimension.address = sampler.address[i];
            place.at[i] = locate(coordinate[i], dimension, 0, shift[i]);
        }
        return place;
    }
    if (image.layered) place.slice = clamped_layer(fetch.layer, image.layers);
    for (unsigned i = 0; i < image.dimensions; ++i) {
        dimension.size = size[i];
        dimension.address = sampler.address[i];
        if (periodic_as_clamp && dimension.address != Sampler::border)
            dimension.address = Sampler::clamp; // needs a period of one
        place.at[i] = locate(real(fetch.coordinate[i]), dimension, short_offset(fetch.offset[i]), i < 2 ? shift[i] : 0);
    }
    if (image.dimensions == 1) {
        // A line is the only row of a plane, and is sampled at its upper edge.
        dimension.size = 1;
        dimension.address = image.layered ? Sampler::clamp : sampler.address[1];
        const std::int32_t offset = short_offset(fetch.offset[0] >> 4); // the operand's other bits are y's
        place.at[1] = locate(0.0f, dimension, offset);
    }
    return place;
}

Reading reading_of(const TextureObject& texture) {
    return {texture.image.format, texture.sampler.to_real, texture.sampler.srgb};
}

StoredTexel load_at(const ImageLevel& level, const TexelFormat& format, std::size_t slice, std::size_t x,
                    std::size_t y) {
    const std::uint8_t* begin = level.data + slice * level.slice;
    if (format.block != TexelFormat::Block::none)
        return load_block_texel(begin + y / 4 * level.row + x / 4 * format.block_bytes(), format, x % 4, y % 4);
    return load_texel(begin + y * level.row + x * format.bytes(), format);
}

/// Texel number `corner` of the footprint: bit i chooses the second one of dimension i.
StoredTexel texel_at(const TextureObject& texture, const Reading& reading, const Place& place, unsigned corner) {
    std::int64_t position[3] = {};
    bool inside = true;
    for (unsigned i = 0; i < std::max(place.dimensions, 2u); ++i) {
        const unsigned side = corner >> i & 1;
        position[i] = place.at[i].texel[side];
        inside = inside && place.at[i].inside[side];
    }
    if (!inside) return store_color(texture.sampler.border_color, reading);
    auto slice = static_cast<std::size_t>(place.dimensions == 3 ? position[2] : place.slice);
    const std::int64_t size = place.level->width;
    if (texture.image.cube && (position[0] < 0 || position[0] >= size || position[1] < 0 || position[1] >= size)) {
        const CubeTexel next = across_edge(static_cast<unsigned>(slice % 6), position[0], position[1], size);
        slice = slice / 6 * 6 + next.face;
        position[0] = next.x;
        position[1] = next.y;
    }
    return load_at(*place.level, reading.format, slice, static_cast<std::size_t>(position[0]),
                   static_cast<std::size_t>(position[1]));
}

/// The four corners of a slice that has `total` of the weight: split along x, then both halves along y. In the middle
/// the right half rounds up and the left one down.
void weigh_slice(unsigned total, unsigned x, unsigned y, unsigned* weights) {
    const unsigned right = (total * x + 128) >> 8, left = total - right;
    weights[3] = (right * y + 128) >> 8;
    weights[2] = (left * y + 127) >> 8;
    weights[1] = right - weights[3];
    weights[0] = left - weights[2];
}

/// Three faces meet at a cube's corner, where the fourth texel is missing: its weight goes to the others in thirds. The
/// number of the missing corner, 8 if all are there.
unsigned share_missing_corner(const Place& place, unsigned (&weights)[8]) {
    const std::int64_t size = place.level->width;
    const auto outside = [&](unsigned i, unsigned side) {
        const std::int64_t texel = place.at[i].texel[side];
        return texel < 0 || texel >= size;
    };
    for (unsigned corner = 0; corner < 4; ++corner) {
        if (!outside(0, corner & 1) || !outside(1, corner >> 1)) continue;
        const unsigned third = (2 * weights[corner] + 3) / 6;
        weights[corner ^ 1] += third;
        weights[corner ^ 2] += third;
        weights[corner ^ 3] += weights[corner] - 2 * third;
        return corner;
    }
    return 8;
}

/// Adds the texels around a place, which have `total` of the weight together.
void add_place(const TextureObject& texture, const Reading& reading, const Place& place, unsigned total,
               FilterSum& sum) {
    const unsigned x = place.at[0].fraction, y = place.at[1].fraction, z = place.at[2].fraction;
    const unsigned behind = (total * z + 127) >> 8;
    unsigned weights[8];
    weigh_slice(total - behind, x, y, weights);
    weigh_slice(behind, x, y, weights + 4);
    const unsigned missing = texture.image.cube ? share_missing_corner(place, weights) : 8;
    for (unsigned corner = 0; corner < (z == 0 ? 4 : 8); ++corner) {
        if (corner % 4 == 0) sum.next_slice();
        // Second texels take part where there is a fraction, even if their weight has been rounded to nothing.
        const bool absent = (corner & 1 && x == 0) || (corner & 2 && y == 0);
        if (!absent && corner != missing) sum.add(texel_at(texture, reading, place, corner), weights[corner]);
    }
}

/// Adds a level, which has `weight` 256ths of the whole: one place, or pairs of them along the footprint's axis.
void add_level(const TextureObject& texture, const Reading& reading, const Fetch& fetch, const LevelChoice& levels,
               bool second, FilterSum& sum) {
    const std::uint32_t level = second ? levels.second : levels.first;
    const unsigned weight = second ? levels.fraction : 256 - levels.fraction;
    if (ratio_in(levels, second) == 0) {
        sum.next_step(256);
        return add_place(texture, reading, locate_all(texture, fetch, level), weight, sum);
    }
    const Probes probes(levels, second);
    // From one end of the axis to the other, a few places in one step.
    const unsigned places = 2 * probes.pairs();
    for (unsigned i = 0; i < places; ++i) {
        if (i % sum.places_in_step() == 0) sum.next_step(2 * probes.whole());
        const bool ahead = i >= probes.pairs();
        const unsigned pair = ahead ? i - probes.pairs() : probes.pairs() - 1 - i;
        // What is rounded off of one pair is given to the next. In the middle the place ahead rounds up.
        const auto rounded = [&](unsigned parts) { return (parts * weight + (ahead ? 128 : 127)) >> 8; };
        const unsigned total = rounded(probes.weight_before(pair + 1)) - rounded(probes.weight_before(pair));
        const int x = probes.shift(pair, 0), y = probes.shift(pair, 1);
        const std::array<int, 2> shift = {ahead ? x : -x, ahead ? y : -y};
        add_place(texture, reading, locate_all(texture, fetch, level, shift), total, sum);
    }
}

/// Integer coordinates name texels. With a level they are clamped; without, there are none outside, whatever the
/// addressing mode, and none in lines of arrays.
Texel fetch_texel(const Image& image, const Reading& reading, const Fetch& fetch) {
    const bool leveled = fetch.detail == Fetch::Detail::level;
    if (leveled && fetch.level >= image.levels) return {};
    const ImageLevel& level = image.level[leveled ? fetch.level : 0];
    const std::uint32_t size[3] = {level.width, level.height, level.depth};
    std::int64_t position[3] = {0, 0, image.layered ? fetch.layer : 0};
    bool inside =
        position[2] < (image.layered ? image.layers : 1) && (image.dimensions > 1 || image.layered || image.linear);
    for (unsigned i = 0; i < image.dimensions; ++i) {
        position[i] = std::int64_t{static_cast<std::int32_t>(fetch.coordinate[i])} + short_offset(fetch.offset[i]);
        if (leveled) position[i] = std::clamp<std::int64_t>(position[i], 0, size[i] - 1);
        inside = inside && position[i] >= 0 && position[i] < size[i];
    }
    if (!inside) return {};
    return present(load_at(level, image.format, static_cast<std::size_t>(position[2]),
                           static_cast<std::size_t>(position[0]), static_cast<std::size_t>(position[1])),
                   reading);
}

/// The one shape whose recorded samples aren't met.
void tell_of_layered_lines() {
    static const bool told [[maybe_unused]] = [] {
        log_once("anisotropy", "anisotropic filters of layered lines (tex.grad.a1d) differ from a GPU's");
        return true;
    }();
}

} // namespace

Texel fetch(const TextureObject& texture, const Fetch& fetch) {
    const Reading reading = reading_of(texture);
    if (fetch.integer_coordinates) return fetch_texel(texture.image, reading, fetch);
    if (is_empty(texture.image.level[0])) return {};
    const LevelChoice levels = choose_levels(texture, fetch);
    if (!texture.sampler.linear && levels.fraction == 0 && levels.ratio == 0)
        return present(texel_at(texture, reading, locate_all(texture, fetch, levels.first), 0), reading);
    if (levels.ratio != 0 && texture.image.dimensions == 1 && texture.image.layered) tell_of_layered_lines();
    FilterSum sum(reading);
    add_level(texture, reading, fetch, levels, false, sum);
    if (levels.fraction != 0) add_level(texture, reading, fetch, levels, true, sum);
    return sum.result();
}

Texel gather(const TextureObject& texture, const Fetch& fetch, unsigned component) {
    if (is_empty(texture.image.level[0])) return {};
    TextureObject linear = texture;
    linear.sampler.linear = true;
    const Place place = locate_all(linear, fetch, 0);
    constexpr unsigned corners[4] = {2, 3, 1, 0}; // lower left, lower right, upper right, upper left
    const Reading reading = reading_of(texture);
    Texel result{};
    for (unsigned i = 0; i < 4; ++i)
        result.channel[i] = present(texel_at(linear, reading, place, corners[i]), reading).channel[component];
    return result;
}

std::uint32_t query(const TextureObject& object, abi::TextureQuery what, std::uint32_t number) {
    const Image& image = object.image;
    const ImageLevel& level = image.level[std::min(number, image.levels - 1)];
    std::uint32_t size[3] = {level.width, image.dimensions > 1 ? level.height : 0,
                             image.dimensions > 2 ? level.depth : 0};
    if (image.layered) // the layers are one more dimension
        size[image.dimensions] = image.cube ? image.layers / 6 : image.layers;
    else if (image.dimensions == 1 && object.kind == TextureObject::Kind::texture)
        size[1] = 1;
    return size[static_cast<unsigned>(what)];
}

} // namespace ptarmigan::runtime
