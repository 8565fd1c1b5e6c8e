// SPDX-License-Identifier: Apache-2.0
// What does not depend on the lane is settled before the loop over lanes; sums are made in integers, exactly.
#include "runtime/texture/plane_fetch.h"

#include "runtime/texture/coordinate.h"
#include "runtime/texture/texel.h"

#include <bit>
#include <climits>
#include <cstring>

namespace ptarmigan::runtime {
namespace {

using Call = abi::TextureCall;
using Kind = TexelFormat::Kind;

struct Plane {
    const ImageLevel &level;
    Reading reading;
    Dimension x, y;
    StoredTexel border;
    unsigned texel_bytes;

    const std::uint8_t *at(std::int64_t column, std::int64_t row) const {
        return level.data + static_cast<std::size_t>(row) * level.row + static_cast<std::size_t>(column) * texel_bytes;
    }
};

bool is_simple(const Call &call, const TextureObject &texture) {
    constexpr std::uint32_t no_matter = Call::with_level | Call::with_gradients; // there is one level
    const Image &image = texture.image;
    const ImageLevel &level = image.level[0];
    return static_cast<abi::TextureOperation>(call.operation) == abi::TextureOperation::fetch &&
           static_cast<abi::TextureGeometry>(call.geometry) == abi::TextureGeometry::d2 && (call.flags & ~no_matter) == 0 &&
           image.dimensions == 2 && !image.layered && !image.cube && !image.mipmapped && level.width != 0 && level.height != 0;
}

Dimension dimension_of(const Sampler &sampler, unsigned index, std::uint32_t size) {
    Dimension dimension{size, sampler.address[index], sampler.normalized, sampler.linear};
    if (!sampler.normalized && dimension.address != Sampler::border)
        dimension.address = Sampler::clamp; // others need a period of one
    return dimension;
}

template <typename Body> void for_each_lane(const Call &call, const Body &body) {
    for (std::uint64_t lanes = call.active; lanes != 0; lanes &= lanes - 1)
        body(static_cast<unsigned>(std::countr_zero(lanes)));
}

float coordinate(const Call &call, unsigned dimension, unsigned lane) {
    return std::bit_cast<float>(call.coordinates[dimension][lane]);
}

/// Missing channels are 0.
template <typename Channel> void give(Call &call, unsigned lane, unsigned channels, const Channel &channel) {
    for (unsigned i = 0; i < 4; ++i)
        call.data[i][lane] = i < channels ? channel(i) : 0;
}

void fetch_points(Call &call, const Plane &plane) {
    const TexelFormat &format = plane.reading.format;
    const bool words = format.kind == Kind::single || (format.bits == 32 && !plane.reading.real);
    for_each_lane(call, [&](unsigned lane) {
        const Footprint x = locate(coordinate(call, 0, lane), plane.x, 0), y = locate(coordinate(call, 1, lane), plane.y, 0);
        const bool inside = x.inside[0] && y.inside[0];
        const std::uint8_t *from = inside ? plane.at(x.texel[0], y.texel[0]) : nullptr;
        if (words && inside) {
            std::uint32_t texel[4];
            std::memcpy(texel, from, format.channels * 4u);
            return give(call, lane, format.channels, [&](unsigned i) { return texel[i]; });
        }
        const Texel texel = present(inside ? load_texel(from, format) : plane.border, plane.reading);
        give(call, lane, 4, [&](unsigned i) { return texel.channel[i]; });
    });
}

/// Four texels and their weights in 256ths, as the sampler weighs them (sampler.cpp).
struct Corners {
    StoredTexel texel[4];
    unsigned weight[4];
    bool absent[4]; ///< takes no part, whatever it is
};

Corners corners_of(const Call &call, const Plane &plane, unsigned lane) {
    const Footprint x = locate(coordinate(call, 0, lane), plane.x, 0), y = locate(coordinate(call, 1, lane), plane.y, 0);
    const unsigned right = x.fraction, left = 256 - right, down = y.fraction;
    Corners corners;
    corners.weight[3] = (right * down + 128) >> 8;
    corners.weight[2] = (left * down + 127) >> 8;
    corners.weight[1] = right - corners.weight[3];
    corners.weight[0] = left - corners.weight[2];
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned column = i & 1, row = i >> 1;
        corners.absent[i] = (column && right == 0) || (row && down == 0);
        if (corners.absent[i])
            corners.texel[i] = {};
        else if (x.inside[column] && y.inside[row])
            corners.texel[i] = load_texel(plane.at(x.texel[column], y.texel[row]), plane.reading.format);
        else
            corners.texel[i] = plane.border;
    }
    return corners;
}

/// Unsigned bytes and halfwords as floats: integers in 16 bits, rounded up in the middle.
float integer_sum(const Corners &corners, unsigned channel, unsigned scale) {
    std::uint32_t sum = 0;
    for (unsigned i = 0; i < 4; ++i)
        sum += corners.texel[i].channel[channel] * corners.weight[i];
    return static_cast<float>((sum * scale + 128) >> 8) / 65535.0f;
}

/// Floats are cut to multiples of 2^-27 of the largest one's leading bit: their sum is an integer. False where one is
/// infinite or no number, or all that counts is zero.
bool single_sum(const Corners &corners, unsigned channel, double &result) {
    constexpr int bits_below = 27, weight_bits = 8;
    std::uint32_t bits[4];
    int largest = 0;
    for (unsigned i = 0; i < 4; ++i) {
        bits[i] = corners.texel[i].channel[channel];
        const int exponent = static_cast<int>(bits[i] >> 23 & 255);
        if (exponent == 255)
            return false;
        if (exponent != 0 && corners.weight[i] != 0 && exponent > largest)
            largest = exponent;
    }
    if (largest == 0)
        return false;
    std::int64_t sum = 0;
    for (unsigned i = 0; i < 4; ++i) {
        const int exponent = static_cast<int>(bits[i] >> 23 & 255);
        if (exponent == 0 || corners.weight[i] == 0)
            continue; // subnormal numbers are zeros
        const std::int64_t significand = (bits[i] & 0x7fffff) | 0x800000;
        const int up = bits_below - 23 + exponent - largest; // 4 at most
        const std::int64_t kept = up >= 0 ? significand << up : up > -24 ? significand >> -up : 0;
        const std::int64_t weighted = kept * corners.weight[i];
        sum += bits[i] >> 31 ? -weighted : weighted;
    }
    const std::uint64_t unit = static_cast<std::uint64_t>(largest - 127 - bits_below - weight_bits + 1023) << 52;
    result = static_cast<double>(sum) * std::bit_cast<double>(unit);
    return true;
}

} // namespace

bool fetch_plane(abi::TextureCall &call, const TextureObject &texture) {
    if (!is_simple(call, texture))
        return false;
    const ImageLevel &level = texture.image.level[0];
    const Sampler &sampler = texture.sampler;
    const TexelFormat &format = texture.image.format;
    Plane plane{level, {format, sampler.to_real, sampler.srgb}, dimension_of(sampler, 0, level.width),
                dimension_of(sampler, 1, level.height), {}, format.bytes()};
    plane.border = store_color(sampler.border_color, plane.reading);
    if (!sampler.linear) {
        fetch_points(call, plane);
        return true;
    }
    const bool unsigned_reals = format.kind == Kind::unsigned_integer && format.bits <= 16 && sampler.to_real && !sampler.srgb;
    if (unsigned_reals) {
        const unsigned scale = format.bits == 8 ? 257 : 1;
        for_each_lane(call, [&](unsigned lane) {
            const Corners corners = corners_of(call, plane, lane);
            give(call, lane, format.channels, [&](unsigned i) {
                return std::bit_cast<std::uint32_t>(integer_sum(corners, i, scale));
            });
        });
        return true;
    }
    if (format.kind != Kind::single)
        return false;
    for_each_lane(call, [&](unsigned lane) {
        const Corners corners = corners_of(call, plane, lane);
        give(call, lane, format.channels, [&](unsigned i) {
            double exact = 0;
            if (single_sum(corners, i, exact) && exact != 0)
                return std::bit_cast<std::uint32_t>(round_single_sum(exact));
            FilterSum sum(plane.reading);
            sum.next_slice();
            for (unsigned corner = 0; corner < 4; ++corner)
                if (!corners.absent[corner])
                    sum.add(corners.texel[corner], corners.weight[corner]);
            return sum.result().channel[i];
        });
    });
    return true;
}

} // namespace ptarmigan::runtime
