// SPDX-License-Identifier: Apache-2.0
// What does not depend on the lane is settled before the loops over lanes; coordinates, weights and sums are made for
// all lanes at once (plane_lanes.h), texels are loaded one by one.
#include "runtime/texture/plane_fetch.h"

#include "runtime/texture/plane_lanes.h"
#include "runtime/texture/texel.h"

#include <cstring>

namespace ptarmigan::runtime {
namespace {

using Call = abi::TextureCall;
using Kind = TexelFormat::Kind;
using plane::lanes;

struct Plane {
    const ImageLevel& level;
    Reading reading;
    Dimension x, y;
    StoredTexel border;
    unsigned texel_bytes;
    bool plain_bytes;           ///< one to four unsigned bytes, not gamma-coded
    std::uint32_t border_bytes; ///< then: the border's colour as they lie in memory
};

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
    return (call.flags & ~no_matter) == 0 && !image.mipmapped && level.width != 0 && level.height != 0;
}

Dimension dimension_of(const Sampler& sampler, unsigned index, std::uint32_t size) {
    Dimension dimension{size, sampler.address[index], sampler.normalized, sampler.linear};
    if (!sampler.normalized && dimension.address != Sampler::border)
        dimension.address = Sampler::clamp; // others need a period of one
    return dimension;
}

/// What takes part in a sum, or is fetched alone: the second texels of a dimension only where there is a fraction.
struct Corners {
    plane::Axis x, y;
    std::int32_t weight[4][lanes];
    std::uint32_t slice[lanes]; ///< layer

    bool is_absent(unsigned corner, unsigned lane) const {
        return ((corner & 1) && x.fraction[lane] == 0) || ((corner & 2) && y.fraction[lane] == 0);
    }
    /// Null outside of the plane.
    const std::uint8_t* place(const Plane& plane, unsigned corner, unsigned lane) const {
        const unsigned column = corner & 1, row = corner >> 1;
        if (!(x.inside[column][lane] & y.inside[row][lane])) return nullptr;
        return plane.level.data + slice[lane] * plane.level.slice +
               static_cast<std::size_t>(y.texel[row][lane]) * plane.level.row +
               static_cast<std::size_t>(x.texel[column][lane]) * plane.texel_bytes;
    }
    StoredTexel load(const Plane& plane, unsigned corner, unsigned lane) const {
        const std::uint8_t* from = place(plane, corner, lane);
        return from ? load_texel(from, plane.reading.format) : plane.border;
    }
};

PLANE_INLINE void locate_lanes(const Call& call, const Plane& plane, const Image& image, Corners& corners) {
    const unsigned first = has_layer(call) ? 1 : 0;
    float coordinates[2][lanes] = {}; // a line is sampled at its upper edge
    std::memcpy(coordinates, call.coordinates[first], sizeof coordinates[0] * image.dimensions);
    const std::uint32_t last = first != 0 && image.layered ? image.layers - 1 : 0;
    for (unsigned lane = 0; lane < lanes; ++lane) corners.slice[lane] = plane::smaller(call.coordinates[0][lane], last);
    plane::locate(coordinates[0], plane.x, corners.x);
    plane::locate(coordinates[1], plane.y, corners.y);
    plane::weigh(corners.x, corners.y, corners.weight);
}

/// Integer coordinates name texels; there are none outside, and none in lines of arrays.
PLANE_INLINE void name_texels(const std::uint32_t* coordinates, std::uint32_t size, plane::Axis& axis) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
        axis.inside[0][lane] = coordinates[lane] < size ? -1 : 0; // negative ones are large
        axis.texel[0][lane] = static_cast<std::int32_t>(coordinates[lane]) & axis.inside[0][lane];
    }
}

PLANE_INLINE void locate_integers(const Call& call, const Plane& plane, const Image& image, Corners& corners) {
    std::memset(corners.slice, 0, sizeof corners.slice);
    name_texels(call.coordinates[0], image.dimensions > 1 || image.linear ? plane.level.width : 0, corners.x);
    if (image.dimensions > 1) return name_texels(call.coordinates[1], plane.level.height, corners.y);
    for (unsigned lane = 0; lane < lanes; ++lane) {
        corners.y.inside[0][lane] = -1;
        corners.y.texel[0][lane] = 0;
    }
}

/// Writes channel `channel` of the active lanes.
PLANE_INLINE void give(Call& call, unsigned channel, const std::uint32_t* words) {
    std::uint32_t* to = call.data[channel];
    for (unsigned lane = 0; lane < lanes; ++lane) to[lane] = call.active >> lane & 1 ? words[lane] : to[lane];
}

template <typename Body> PLANE_INLINE void for_each_lane(const Call& call, const Body& body) {
    for (std::uint64_t left = call.active; left != 0; left &= left - 1)
        body(static_cast<unsigned>(std::countr_zero(left)));
}

/// The bytes of a texel of one, two or four.
PLANE_INLINE std::uint32_t load_bytes(const std::uint8_t* from, unsigned bytes) {
    std::uint32_t word = 0;
    if (bytes == 4)
        std::memcpy(&word, from, 4);
    else if (bytes == 2)
        std::memcpy(&word, from, 2);
    else
        word = *from;
    return word;
}

PLANE_INLINE void fetch_byte_points(Call& call, const Plane& plane, const Corners& corners) {
    std::uint32_t texel[lanes] = {};
    for_each_lane(call, [&](unsigned lane) {
        const std::uint8_t* from = corners.place(plane, 0, lane);
        texel[lane] = from ? load_bytes(from, plane.texel_bytes) : plane.border_bytes;
    });
    for (unsigned i = 0; i < 4; ++i) {
        std::uint32_t channel[lanes] = {};
        if (i < plane.reading.format.channels) {
            plane::take_bytes(texel, i, channel);
            if (plane.reading.real) plane::normalize_bytes(channel);
        }
        give(call, i, channel);
    }
}

PLANE_INLINE void fetch_points(Call& call, const Plane& plane, const Corners& corners) {
    const TexelFormat& format = plane.reading.format;
    const bool words = format.bits == 32;
    for_each_lane(call, [&](unsigned lane) {
        const std::uint8_t* from = corners.place(plane, 0, lane);
        if (words && from) {
            for (unsigned i = 0; i < 4; ++i) {
                std::uint32_t word = 0;
                if (i < format.channels) std::memcpy(&word, from + std::size_t{i} * 4, 4);
                call.data[i][lane] = word;
            }
            return;
        }
        const Texel texel = present(from ? load_texel(from, format) : plane.border, plane.reading);
        for (unsigned i = 0; i < 4; ++i) call.data[i][lane] = texel.channel[i];
    });
}

/// The sampler's own sum of one lane.
std::uint32_t careful_sum(const Plane& plane, const Corners& corners, unsigned lane, unsigned channel) {
    FilterSum sum(plane.reading);
    sum.next_slice();
    for (unsigned corner = 0; corner < 4; ++corner)
        if (!corners.is_absent(corner, lane))
            sum.add(corners.load(plane, corner, lane), static_cast<unsigned>(corners.weight[corner][lane]));
    return sum.result().channel[channel];
}

PLANE_INLINE void fetch_sums(Call& call, const Plane& plane, const Corners& corners) {
    const TexelFormat& format = plane.reading.format;
    std::uint32_t texel[4][4][lanes]; ///< by channel, corner, lane
    std::uint32_t bytes[4][lanes] = {};
    std::memset(texel, 0, sizeof texel[0] * format.channels);
    for_each_lane(call, [&](unsigned lane) {
        for (unsigned corner = 0; corner < 4; ++corner) {
            if (corners.is_absent(corner, lane)) continue;
            const std::uint8_t* from = corners.place(plane, corner, lane);
            if (plane.plain_bytes) {
                bytes[corner][lane] = from ? load_bytes(from, plane.texel_bytes) : plane.border_bytes;
                continue;
            }
            if (from && format.bits == 32 && format.channels == 1) {
                std::memcpy(&texel[0][corner][lane], from, 4);
                continue;
            }
            const StoredTexel loaded = from ? load_texel(from, format) : plane.border;
            for (unsigned i = 0; i < format.channels; ++i) texel[i][corner][lane] = loaded.channel[i];
        }
    });
    for (unsigned i = 0; i < 4; ++i) {
        std::uint32_t result[lanes] = {};
        if (i < format.channels && format.kind == Kind::single) {
            std::int32_t special[lanes];
            plane::sum_singles(texel[i], corners.weight, result, special);
            for_each_lane(call, [&](unsigned lane) {
                if (special[lane]) result[lane] = careful_sum(plane, corners, lane, i);
            });
        } else if (i < format.channels) {
            for (unsigned corner = 0; corner < 4 && plane.plain_bytes; ++corner)
                plane::take_bytes(bytes[corner], i, texel[i][corner]);
            plane::sum_integers(texel[i], corners.weight, format.bits == 8 ? 257 : 1, result);
        }
        give(call, i, result);
    }
}

PLANE_INLINE void fetch_lanes(Call& call, const Plane& plane, const Image& image) {
    Corners corners;
    const bool by_integers = call.flags & Call::integer_coordinates;
    if (by_integers)
        locate_integers(call, plane, image, corners);
    else
        locate_lanes(call, plane, image, corners);
    if (plane.x.linear && !by_integers)
        fetch_sums(call, plane, corners);
    else if (plane.plain_bytes)
        fetch_byte_points(call, plane, corners);
    else
        fetch_points(call, plane, corners);
}

using FetchLanes = void (*)(Call&, const Plane&, const Image&);

void fetch_anywhere(Call& call, const Plane& plane, const Image& image) {
    fetch_lanes(call, plane, image);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void fetch_avx2(Call& call, const Plane& plane, const Image& image) {
    fetch_lanes(call, plane, image);
}
__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,prefer-vector-width=512"))) void
fetch_avx512(Call& call, const Plane& plane, const Image& image) {
    fetch_lanes(call, plane, image);
}
#endif

FetchLanes best_for_cpu() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw"))
        return fetch_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return fetch_avx2;
#endif
    return fetch_anywhere;
}

} // namespace

bool fetch_plane(abi::TextureCall& call, const TextureObject& texture) {
    if (!is_simple(call, texture)) return false;
    const ImageLevel& level = texture.image.level[0];
    const Sampler& sampler = texture.sampler;
    const TexelFormat& format = texture.image.format;
    const bool unsigned_reals =
        format.kind == Kind::unsigned_integer && format.bits <= 16 && sampler.to_real && !sampler.srgb;
    const bool by_integers = call.flags & Call::integer_coordinates;
    if (sampler.linear && !by_integers && !unsigned_reals && format.kind != Kind::single) return false;
    Plane plane{level,
                {format, sampler.to_real, sampler.srgb},
                dimension_of(sampler, 0, level.width),
                dimension_of(sampler, 1, level.height),
                {},
                format.bytes(),
                format.kind == Kind::unsigned_integer && format.bits == 8 && !sampler.srgb,
                0};
    if (!by_integers) plane.border = store_color(sampler.border_color, plane.reading);
    if (texture.image.dimensions == 1) { // the only row of a plane
        plane.y.size = 1;
        plane.y.address = texture.image.layered ? Sampler::clamp : sampler.address[1];
    }
    for (unsigned i = 0; i < format.channels && plane.plain_bytes; ++i)
        plane.border_bytes |= (plane.border.channel[i] & 255) << (8 * i);
    static const FetchLanes fetch = best_for_cpu();
    fetch(call, plane, texture.image);
    return true;
}

} // namespace ptarmigan::runtime
