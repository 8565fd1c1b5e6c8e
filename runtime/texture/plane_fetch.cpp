// SPDX-License-Identifier: Apache-2.0
// What does not depend on the lane is settled before the loops over lanes;
// coordinates, weights and sums are made for all lanes at once (plane_lanes.h),
// texels are loaded one by one.
#include "runtime/texture/plane_fetch.h"

#include "runtime/texture/plane_texels.h"

#include <cstring>

namespace ptarmigan::runtime {
namespace {

using namespace plane;
using Kind = TexelFormat::Kind;

using Geometry = abi::TextureGeometry;
Geometry geometry_of(const Call& call) {
    return static_cast<Geometry>(call.geometry);
}
bool has_layer(const Call& call) {
    return geometry_of(call) == Geometry::a1d || geometry_of(call) == Geometry::a2d;
}
/// 1 or 2; 0 for others, which are not done here.
unsigned dimensions_of(const Call& call) {
    const Geometry geometry = geometry_of(call);
    if (geometry == Geometry::d1 || geometry == Geometry::a1d) return 1;
    return geometry == Geometry::d2 || geometry == Geometry::a2d ? 2 : 0;
}

bool is_simple(const Call& call, const TextureObject& texture) {
    constexpr std::uint32_t no_matter = Call::with_level | Call::with_gradients; // there is one level
    const Image& image = texture.image;
    const ImageLevel& level = image.level[0];
    if (static_cast<abi::TextureOperation>(call.operation) != abi::TextureOperation::fetch || image.cube ||
        image.format.block != TexelFormat::Block::none || image.dimensions != dimensions_of(call))
        return false;
    if ((call.flags & Call::with_gradients) && texture.sampler.anisotropy > 1)
        return false; // the sampler says what it doesn't do
    if (call.flags == Call::integer_coordinates) return !image.layered && !has_layer(call);
    return (call.flags & ~no_matter) == 0 && !image.mipmapped && level.width != 0 && level.height != 0 &&
           level.width < too_large && level.height < too_large;
}

Dimension dimension_of(const Sampler& sampler, unsigned index, std::uint32_t size) {
    Dimension dimension{size, sampler.address[index], sampler.normalized, sampler.linear};
    if (!sampler.normalized && dimension.address != Sampler::border)
        dimension.address = Sampler::clamp; // others need a period of one
    return dimension;
}

template <unsigned lanes>
PLANE_INLINE void locate_lanes(const Call& call, const Plane& plane, const Image& image, Corners<lanes>& corners) {
    const unsigned first = has_layer(call) ? 1 : 0;
    float coordinates[2][lanes];
    for (unsigned i = 0; i < 2; ++i)
        for (unsigned lane = 0; lane < lanes; ++lane) // a line is sampled at its upper edge
            coordinates[i][lane] =
                i < image.dimensions ? std::bit_cast<float>(call.coordinates[first + i][lane]) : 0.0f;
    const std::uint32_t last = first != 0 && image.layered ? image.layers - 1 : 0;
    for (unsigned lane = 0; lane < lanes; ++lane) corners.slice[lane] = smaller(call.coordinates[0][lane], last);
    locate(coordinates[0], plane.x, corners.x);
    locate(coordinates[1], plane.y, corners.y);
    weigh(corners.x, corners.y, OneSize{256}, corners.weight);
}

/// Integer coordinates name texels; there are none outside, and none in lines
/// of arrays.
template <unsigned lanes>
PLANE_INLINE void name_texels(const std::uint32_t* coordinates, std::uint32_t size, Axis<lanes>& axis) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
        axis.inside[0][lane] = coordinates[lane] < size ? -1 : 0; // negative ones are large
        axis.texel[0][lane] = static_cast<std::int32_t>(coordinates[lane]) & axis.inside[0][lane];
    }
}

template <unsigned lanes>
PLANE_INLINE void locate_integers(const Call& call, const Plane& plane, const Image& image, Corners<lanes>& corners) {
    std::memset(corners.slice, 0, sizeof corners.slice);
    name_texels(call.coordinates[0], image.dimensions > 1 || image.linear ? plane.level.width : 0, corners.x);
    if (image.dimensions > 1) return name_texels(call.coordinates[1], plane.level.height, corners.y);
    for (unsigned lane = 0; lane < lanes; ++lane) {
        corners.y.inside[0][lane] = -1;
        corners.y.texel[0][lane] = 0;
    }
}

/// The sampler's own sum of one lane.
template <unsigned lanes>
std::uint32_t careful_sum(const Plane& plane, const Corners<lanes>& corners, unsigned lane, unsigned channel) {
    FilterSum sum(plane.reading);
    sum.next_slice();
    for (unsigned corner = 0; corner < 4; ++corner)
        if (!corners.is_absent(corner, lane))
            sum.add(corners.load(plane, corner, lane), static_cast<unsigned>(corners.weight[corner][lane]));
    return sum.result().channel[channel];
}

template <unsigned lanes> PLANE_INLINE void fetch_sums(Call& call, const Plane& plane, const Corners<lanes>& corners) {
    const TexelFormat& format = plane.reading.format;
    std::uint32_t texel[4][4][lanes]; ///< by channel, corner, lane
    std::uint32_t bytes[4][lanes];
    if (plane.bytes != 0 && (plane.plain_bytes || format.bits >= 16)) {
        load_sum_texels(plane, corners, texel, bytes);
    } else {
        std::memset(bytes, 0, sizeof bytes);
        std::memset(texel, 0, sizeof texel[0] * format.channels);
        for_each_lane(call, [&](unsigned lane) {
            for (unsigned corner = 0; corner < 4; ++corner) {
                if (corners.is_absent(corner, lane)) continue;
                if (plane.plain_bytes) {
                    const std::uint8_t* from = corners.place(plane, corner, lane);
                    bytes[corner][lane] = from ? load_bytes(from, plane.texel_bytes) : plane.border_bytes;
                    continue;
                }
                const StoredTexel loaded = corners.load(plane, corner, lane);
                for (unsigned i = 0; i < format.channels; ++i) texel[i][corner][lane] = loaded.channel[i];
            }
        });
    }
    for (unsigned i = 0; i < 4; ++i) {
        if (i >= format.channels) {
            give_zeros<lanes>(call, i);
            continue;
        }
        std::uint32_t result[lanes];
        if (format.is_real()) {
            std::int32_t special[lanes];
            if (format.kind == Kind::single)
                sum_singles(texel[i], corners.weight, result, special);
            else
                sum_halves(texel[i], corners.weight, result, special);
            std::int32_t any = 0;
            for (unsigned lane = 0; lane < lanes; ++lane) any |= special[lane];
            if (any != 0) [[unlikely]]
                for_each_lane(call, [&](unsigned lane) {
                    if (special[lane]) result[lane] = careful_sum(plane, corners, lane, i);
                });
        } else {
            if (plane.plain_bytes) take_corner_bytes(plane, bytes, i, texel[i]);
            std::int32_t sum[lanes] = {};
            add_integers(texel[i], corners.weight, sum);
            finish_integers(sum, format, result);
        }
        give(call, i, result);
    }
}

template <unsigned lanes> PLANE_INLINE void fetch_lanes(Call& call, const Plane& plane, const Image& image) {
    Corners<lanes> corners;
    const bool by_integers = call.flags & Call::integer_coordinates;
    if (by_integers)
        locate_integers(call, plane, image, corners);
    else
        locate_lanes(call, plane, image, corners);
    if (plane.x.linear && !by_integers)
        fetch_sums(call, plane, corners);
    else if (plane.plain_bytes)
        fetch_byte_points<lanes>(call, plane, corners);
    else
        fetch_points<lanes>(call, plane, corners);
}

struct FetchLanes {
    template <unsigned lanes> PLANE_INLINE static void run(Call& call, const Plane& plane, const Image& image) {
        fetch_lanes<lanes>(call, plane, image);
    }
};

} // namespace

bool fetch_plane(abi::TextureCall& call, const TextureObject& texture, VectorCode most) {
    if (!is_simple(call, texture)) return false;
    const ImageLevel& level = texture.image.level[0];
    const Sampler& sampler = texture.sampler;
    const TexelFormat& format = texture.image.format;
    const bool short_reals = !format.is_real() && format.bits <= 16 && sampler.to_real && !sampler.srgb;
    const bool by_integers = call.flags & Call::integer_coordinates;
    if (sampler.linear && !by_integers && !short_reals && !format.is_real()) return false;
    Plane plane{level,
                {format, sampler.to_real, sampler.srgb},
                dimension_of(sampler, 0, level.width),
                dimension_of(sampler, 1, level.height),
                {},
                format.bytes(),
                format.bits == 8 && !sampler.srgb,
                format.kind == Kind::signed_integer,
                false,
                0,
                0};
    if (texture.image.dimensions == 1) { // the only row of a plane
        plane.y.size = 1;
        plane.y.address = texture.image.layered ? Sampler::clamp : sampler.address[1];
    }
    plane.has_border = by_integers || plane.x.address == Sampler::border || plane.y.address == Sampler::border;
    if (plane.has_border && !by_integers) plane.border = store_color(sampler.border_color, plane.reading);
    const std::size_t bytes = texture.image.layered * (texture.image.layers - 1) * level.slice +
                              (level.height - 1) * level.row + level.width * format.bytes();
    plane.bytes = bytes >= 4 && bytes < std::size_t{1} << 31 ? static_cast<std::uint32_t>(bytes) : 0;
    for (unsigned i = 0; i < format.channels && plane.plain_bytes; ++i)
        plane.border_bytes |= (plane.border.channel[i] & 255) << (8 * i);
    StepCode<FetchLanes, void, Call&, const Plane&, const Image&>::run(call.active, most, call, plane, texture.image);
    return true;
}

} // namespace ptarmigan::runtime
