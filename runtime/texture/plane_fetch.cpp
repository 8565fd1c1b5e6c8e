// SPDX-License-Identifier: Apache-2.0
// What does not depend on the lane is settled before the loops over lanes;
// coordinates, weights and sums are made for all lanes at once (plane_lanes.h),
// texels are loaded one by one.
#include "runtime/texture/plane_fetch.h"

#include "runtime/texture/plane_lanes.h"
#include "runtime/texture/texel.h"

#include <cstring>

namespace ptarmigan::runtime {
namespace {

using Call = abi::TextureCall;
using Kind = TexelFormat::Kind;

struct Plane {
    const ImageLevel& level;
    Reading reading;
    Dimension x, y;
    StoredTexel border;
    unsigned texel_bytes;
    bool plain_bytes;           ///< one to four unsigned bytes, not gamma-coded
    bool has_border;            ///< of the image in a dimension: texels may be outside
    std::uint32_t bytes;        ///< of all slices, if that is less than 2^31; 0 then
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
    return (call.flags & ~no_matter) == 0 && !image.mipmapped && level.width != 0 && level.height != 0 &&
           level.width < plane::too_large && level.height < plane::too_large;
}

Dimension dimension_of(const Sampler& sampler, unsigned index, std::uint32_t size) {
    Dimension dimension{size, sampler.address[index], sampler.normalized, sampler.linear};
    if (!sampler.normalized && dimension.address != Sampler::border)
        dimension.address = Sampler::clamp; // others need a period of one
    return dimension;
}

/// What takes part in a sum, or is fetched alone: the second texels of a
/// dimension only where there is a fraction.
template <unsigned lanes> struct Corners {
    plane::Axis<lanes> x, y;
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
    /// The offsets in bytes of a corner's texels; those outside are the first of
    /// their row or slice.
    void offsets(const Plane& plane, unsigned corner, std::uint32_t* __restrict offset) const {
        const auto row_bytes = static_cast<std::uint32_t>(plane.level.row);
        const auto slice_bytes = static_cast<std::uint32_t>(plane.level.slice);
        const std::int32_t *column = x.texel[corner & 1], *row = y.texel[corner >> 1];
        for (unsigned lane = 0; lane < lanes; ++lane)
            offset[lane] = slice[lane] * slice_bytes + static_cast<std::uint32_t>(row[lane]) * row_bytes +
                           static_cast<std::uint32_t>(column[lane]) * plane.texel_bytes;
    }
    void replace_outside(const Plane& plane, unsigned corner, std::uint32_t border,
                         std::uint32_t* __restrict words) const {
        const std::int32_t *in_x = x.inside[corner & 1], *in_y = y.inside[corner >> 1];
        if (plane.has_border)
            for (unsigned lane = 0; lane < lanes; ++lane) words[lane] = in_x[lane] & in_y[lane] ? words[lane] : border;
    }
    /// Replaces the words of texels outside by the border's, and of those that
    /// take no part by zero.
    void mask(const Plane& plane, unsigned corner, std::uint32_t border, std::uint32_t* __restrict words) const {
        replace_outside(plane, corner, border, words);
        const std::int32_t always = -1, none_x = corner & 1 ? 0 : always, none_y = corner & 2 ? 0 : always;
        for (unsigned lane = 0; lane < lanes; ++lane) {
            const bool counts = (x.fraction[lane] | none_x) != 0 && (y.fraction[lane] | none_y) != 0;
            words[lane] = counts ? words[lane] : 0;
        }
    }
    StoredTexel load(const Plane& plane, unsigned corner, unsigned lane) const {
        const std::uint8_t* from = place(plane, corner, lane);
        return from ? load_texel(from, plane.reading.format) : plane.border;
    }
};

template <unsigned lanes>
PLANE_INLINE void locate_lanes(const Call& call, const Plane& plane, const Image& image, Corners<lanes>& corners) {
    const unsigned first = has_layer(call) ? 1 : 0;
    float coordinates[2][lanes];
    for (unsigned i = 0; i < 2; ++i)
        for (unsigned lane = 0; lane < lanes; ++lane) // a line is sampled at its upper edge
            coordinates[i][lane] =
                i < image.dimensions ? std::bit_cast<float>(call.coordinates[first + i][lane]) : 0.0f;
    const std::uint32_t last = first != 0 && image.layered ? image.layers - 1 : 0;
    for (unsigned lane = 0; lane < lanes; ++lane) corners.slice[lane] = plane::smaller(call.coordinates[0][lane], last);
    plane::locate(coordinates[0], plane.x, corners.x);
    plane::locate(coordinates[1], plane.y, corners.y);
    plane::weigh(corners.x, corners.y, corners.weight);
}

/// Integer coordinates name texels; there are none outside, and none in lines
/// of arrays.
template <unsigned lanes>
PLANE_INLINE void name_texels(const std::uint32_t* coordinates, std::uint32_t size, plane::Axis<lanes>& axis) {
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

/// Writes channel `channel` of the active lanes.
template <unsigned lanes>
PLANE_INLINE void give(Call& call, unsigned channel, const std::uint32_t (&__restrict words)[lanes]) {
    std::uint32_t* to = call.data[channel];
    const auto active = static_cast<std::uint32_t>(call.active);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) to[lane] = active >> lane & 1 ? words[lane] : to[lane];
}

template <unsigned lanes> PLANE_INLINE void give_zeros(Call& call, unsigned channel) {
    std::uint32_t* to = call.data[channel];
    const auto active = static_cast<std::uint32_t>(call.active);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) to[lane] = active >> lane & 1 ? 0 : to[lane];
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

/// A word by way of a register: compilers that put words into vectors one by
/// one take twice as long.
template <typename Word> PLANE_INLINE Word load_word(const std::uint8_t* from) {
    Word word;
    std::memcpy(&word, from, sizeof word);
    if constexpr (sizeof word < 16) asm("" : "+r"(word));
    return word;
}
struct alignas(16) FourWords {
    std::uint32_t word[4];
};
/// Words of four, eight or sixteen bytes at `offset` from `data`.
template <typename Word, unsigned lanes>
PLANE_INLINE void load_words(const std::uint8_t* data, const std::uint32_t (&__restrict offset)[lanes],
                             Word (&__restrict words)[lanes]) {
#pragma GCC unroll 8
    for (unsigned lane = 0; lane < lanes; ++lane) words[lane] = load_word<Word>(data + offset[lane]);
}
/// The texels of all corners, of four bytes. Neighbours in a row are loaded
/// together where all have them.
template <unsigned lanes>
PLANE_INLINE void load_corner_words(const Plane& plane, const Corners<lanes>& corners,
                                    const std::uint32_t (&offset)[4][lanes], std::uint32_t (&words)[4][lanes]) {
    std::int32_t apart = 0;
    for (unsigned lane = 0; lane < lanes; ++lane) apart |= corners.x.texel[1][lane] - corners.x.texel[0][lane] - 1;
    if (apart != 0) {
        for (unsigned corner = 0; corner < 4; ++corner) load_words(plane.level.data, offset[corner], words[corner]);
        return;
    }
    alignas(64) std::uint64_t pairs[2][lanes];
    for (unsigned row = 0; row < 2; ++row) load_words(plane.level.data, offset[2 * row], pairs[row]);
    for (unsigned corner = 0; corner < 4; ++corner)
        for (unsigned lane = 0; lane < lanes; ++lane)
            words[corner][lane] = static_cast<std::uint32_t>(pairs[corner >> 1][lane] >> (32 * (corner & 1)));
}
/// Texels of one or two bytes, and what lies above them: no byte behind the
/// image's last one is read.
template <unsigned lanes>
PLANE_INLINE void load_parts(const Plane& plane, const std::uint32_t (&__restrict offset)[lanes],
                             std::uint32_t (&__restrict words)[lanes]) {
    const std::uint32_t last = plane.bytes - 4;
#pragma GCC unroll 8
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const std::uint32_t from = plane::smaller(offset[lane], last);
        words[lane] = load_word<std::uint32_t>(plane.level.data + from) >> (8 * (offset[lane] - from));
    }
}

/// The texels of all corners, of one, two or four channels of 16 bits.
template <unsigned lanes>
PLANE_INLINE void load_halves(const Plane& plane, const std::uint32_t (&offset)[4][lanes],
                              std::uint32_t (&texel)[4][4][lanes]) {
    std::uint64_t words[4][lanes];
    std::uint32_t narrow[4][lanes];
    for (unsigned corner = 0; corner < 4; ++corner) {
        if (plane.texel_bytes == 8)
            load_words(plane.level.data, offset[corner], words[corner]);
        else if (plane.texel_bytes == 4)
            load_words(plane.level.data, offset[corner], narrow[corner]);
        else
            load_parts(plane, offset[corner], narrow[corner]);
    }
    for (unsigned corner = 0; corner < 4; ++corner) {
        if (plane.texel_bytes == 8)
            for (unsigned i = 0; i < 4; ++i)
                for (unsigned lane = 0; lane < lanes; ++lane)
                    texel[i][corner][lane] = static_cast<std::uint32_t>(words[corner][lane] >> (16 * i)) & 0xffff;
        else
            for (unsigned i = 0; i < 2; ++i)
                for (unsigned lane = 0; lane < lanes; ++lane)
                    texel[i][corner][lane] = narrow[corner][lane] >> (16 * i) & 0xffff;
    }
}

/// All loads before all uses: words stored one by one can't be read as vectors
/// until they have left the store queue.
template <unsigned lanes>
PLANE_INLINE void load_sum_texels(const Plane& plane, const Corners<lanes>& corners,
                                  std::uint32_t (&texel)[4][4][lanes], std::uint32_t (&bytes)[4][lanes]) {
    std::uint32_t offset[4][lanes];
    for (unsigned corner = 0; corner < 4; ++corner) corners.offsets(plane, corner, offset[corner]);
    if (plane.plain_bytes) {
        if (plane.texel_bytes == 4)
            load_corner_words(plane, corners, offset, bytes);
        else
            for (unsigned corner = 0; corner < 4; ++corner) load_parts(plane, offset[corner], bytes[corner]);
        for (unsigned corner = 0; corner < 4; ++corner) corners.mask(plane, corner, plane.border_bytes, bytes[corner]);
        return;
    }
    const unsigned channels = plane.reading.format.channels;
    if (plane.reading.format.bits == 16) {
        load_halves(plane, offset, texel);
    } else if (channels == 1) {
        load_corner_words(plane, corners, offset, texel[0]);
    } else if (channels == 2) {
        std::uint64_t words[4][lanes];
        for (unsigned corner = 0; corner < 4; ++corner) load_words(plane.level.data, offset[corner], words[corner]);
        for (unsigned corner = 0; corner < 4; ++corner)
            for (unsigned lane = 0; lane < lanes; ++lane) {
                texel[0][corner][lane] = static_cast<std::uint32_t>(words[corner][lane]);
                texel[1][corner][lane] = static_cast<std::uint32_t>(words[corner][lane] >> 32);
            }
    } else {
        FourWords words[4][lanes];
        for (unsigned corner = 0; corner < 4; ++corner) load_words(plane.level.data, offset[corner], words[corner]);
        for (unsigned corner = 0; corner < 4; ++corner)
            for (unsigned lane = 0; lane < lanes; ++lane)
                for (unsigned i = 0; i < 4; ++i) texel[i][corner][lane] = words[corner][lane].word[i];
    }
    for (unsigned i = 0; i < channels; ++i)
        for (unsigned corner = 0; corner < 4; ++corner)
            corners.mask(plane, corner, plane.border.channel[i], texel[i][corner]);
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
                plane::sum_singles(texel[i], corners.weight, result, special);
            else
                plane::sum_halves(texel[i], corners.weight, result, special);
            std::int32_t any = 0;
            for (unsigned lane = 0; lane < lanes; ++lane) any |= special[lane];
            if (any != 0) [[unlikely]]
                for_each_lane(call, [&](unsigned lane) {
                    if (special[lane]) result[lane] = careful_sum(plane, corners, lane, i);
                });
        } else {
            for (unsigned corner = 0; corner < 4 && plane.plain_bytes; ++corner)
                plane::take_bytes(bytes[corner], i, texel[i][corner]);
            plane::sum_integers(texel[i], corners.weight, format.bits == 8 ? 257 : 1, result);
        }
        give(call, i, result);
    }
}

/// The corner that a point fetch takes is the first.
template <unsigned lanes>
PLANE_INLINE void load_byte_points(const Plane& plane, const Corners<lanes>& corners, std::uint32_t (&texel)[lanes]) {
    std::uint32_t offset[lanes];
    corners.offsets(plane, 0, offset);
    if (plane.texel_bytes == 4)
        load_words(plane.level.data, offset, texel);
    else
        load_parts(plane, offset, texel);
    corners.replace_outside(plane, 0, plane.border_bytes, texel);
}

template <unsigned lanes>
PLANE_INLINE void fetch_byte_points(Call& call, const Plane& plane, const Corners<lanes>& corners) {
    std::uint32_t texel[lanes];
    if (plane.bytes != 0) {
        load_byte_points(plane, corners, texel);
    } else {
        std::memset(texel, 0, sizeof texel);
        for_each_lane(call, [&](unsigned lane) {
            const std::uint8_t* from = corners.place(plane, 0, lane);
            texel[lane] = from ? load_bytes(from, plane.texel_bytes) : plane.border_bytes;
        });
    }
    for (unsigned i = 0; i < 4; ++i) {
        if (i >= plane.reading.format.channels) {
            give_zeros<lanes>(call, i);
            continue;
        }
        std::uint32_t channel[lanes];
        plane::take_bytes(texel, i, channel);
        if (plane.reading.real) plane::normalize_bytes(channel);
        give(call, i, channel);
    }
}

/// Channels of 32 bits are given as they are.
template <unsigned lanes>
PLANE_INLINE void fetch_word_points(Call& call, const Plane& plane, const Corners<lanes>& corners) {
    const unsigned channels = plane.reading.format.channels;
    std::uint32_t offset[lanes], word[lanes];
    corners.offsets(plane, 0, offset);
    for (unsigned i = 0; i < 4; ++i) {
        if (i >= channels) {
            give_zeros<lanes>(call, i);
            continue;
        }
        load_words(plane.level.data + 4 * i, offset, word);
        corners.replace_outside(plane, 0, plane.border.channel[i], word);
        give(call, i, word);
    }
}

template <unsigned lanes>
PLANE_INLINE void fetch_points(Call& call, const Plane& plane, const Corners<lanes>& corners) {
    const TexelFormat& format = plane.reading.format;
    if (format.bits == 32 && plane.bytes != 0) return fetch_word_points(call, plane, corners);
    for_each_lane(call, [&](unsigned lane) {
        const std::uint8_t* from = corners.place(plane, 0, lane);
        const Texel texel = present(from ? load_texel(from, format) : plane.border, plane.reading);
        for (unsigned i = 0; i < 4; ++i) call.data[i][lane] = texel.channel[i];
    });
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
        fetch_byte_points(call, plane, corners);
    else
        fetch_points(call, plane, corners);
}

using FetchLanes = void (*)(Call&, const Plane&, const Image&);
/// For steps of up to 16 and of up to 32 lanes.
struct Fetches {
    FetchLanes half, whole;
};

template <unsigned lanes> void fetch_anywhere(Call& call, const Plane& plane, const Image& image) {
    fetch_lanes<lanes>(call, plane, image);
}

#if defined(__x86_64__)
template <unsigned lanes>
__attribute__((target("avx2,fma"))) void fetch_avx2(Call& call, const Plane& plane, const Image& image) {
    fetch_lanes<lanes>(call, plane, image);
}
template <unsigned lanes>
__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,prefer-vector-width=512"))) void
fetch_avx512(Call& call, const Plane& plane, const Image& image) {
    fetch_lanes<lanes>(call, plane, image);
}
#endif

Fetches fetches_of(PlaneCode most) {
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    if (most == PlaneCode::avx512 && avx512) return {fetch_avx512<16>, fetch_avx512<32>};
    if (most != PlaneCode::portable && avx2) return {fetch_avx2<16>, fetch_avx2<32>};
#endif
    return {fetch_anywhere<16>, fetch_anywhere<32>};
}

} // namespace

bool fetch_plane(abi::TextureCall& call, const TextureObject& texture, PlaneCode most) {
    if (!is_simple(call, texture)) return false;
    const ImageLevel& level = texture.image.level[0];
    const Sampler& sampler = texture.sampler;
    const TexelFormat& format = texture.image.format;
    const bool unsigned_reals =
        format.kind == Kind::unsigned_integer && format.bits <= 16 && sampler.to_real && !sampler.srgb;
    const bool by_integers = call.flags & Call::integer_coordinates;
    if (sampler.linear && !by_integers && !unsigned_reals && !format.is_real()) return false;
    Plane plane{level,
                {format, sampler.to_real, sampler.srgb},
                dimension_of(sampler, 0, level.width),
                dimension_of(sampler, 1, level.height),
                {},
                format.bytes(),
                format.kind == Kind::unsigned_integer && format.bits == 8 && !sampler.srgb,
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
    static const Fetches best = fetches_of(PlaneCode::avx512);
    const Fetches fetch = most == PlaneCode::avx512 ? best : fetches_of(most);
    (call.active >> 16 == 0 ? fetch.half : fetch.whole)(call, plane, texture.image);
    return true;
}

} // namespace ptarmigan::runtime
