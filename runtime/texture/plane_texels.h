// SPDX-License-Identifier: Apache-2.0
// Texels for all lanes of a step: where they lie, what is loaded instead of those outside, and what point fetches make
// of them.
#pragma once

#include "runtime/texture/plane_lanes.h"
#include "runtime/texture/texel.h"
#include "translator/kernel_abi.h"

#include <cstring>

namespace ptarmigan::runtime::plane {

using Call = abi::TextureCall;

struct Plane {
    const ImageLevel& level; ///< whose beginning places are counted from
    Reading reading;
    Dimension x, y;
    StoredTexel border;
    unsigned texel_bytes;
    bool plain_bytes;           ///< one to four bytes, not gamma-coded
    bool has_signs;             ///< integers with signs
    bool has_border;            ///< of the image in a dimension: texels may be outside
    std::uint32_t bytes;        ///< of all slices, if that is less than 2^31; 0 then
    std::uint32_t border_bytes; ///< then: the border's colour as they lie in memory
};

/// What takes part in a sum, or is fetched alone: the second texels of a dimension only where there is a fraction. The
/// loads below take this or another type with its functions.
template <unsigned lanes> struct Corners {
    Axis<lanes> x, y;
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
    /// Where four bytes lie that hold a texel of fewer: no byte behind the image's last one is read.
    static std::uint32_t word_around(const Plane& plane, std::uint32_t offset) {
        return smaller(offset, plane.bytes - 4);
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
template <typename Places, unsigned lanes>
PLANE_INLINE void load_corner_words(const Plane& plane, const Places& corners, const std::uint32_t (&offset)[4][lanes],
                                    std::uint32_t (&words)[4][lanes]) {
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
/// Texels of one or two bytes, and what lies above them.
template <typename Places, unsigned lanes>
PLANE_INLINE void load_parts(const Plane& plane, const Places&, const std::uint32_t (&__restrict offset)[lanes],
                             std::uint32_t (&__restrict words)[lanes]) {
#pragma GCC unroll 8
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const std::uint32_t from = Places::word_around(plane, offset[lane]);
        words[lane] = load_word<std::uint32_t>(plane.level.data + from) >> (8 * (offset[lane] - from));
    }
}

/// The texels of all corners, of one, two or four channels of 16 bits.
template <typename Places, unsigned lanes>
PLANE_INLINE void load_halves(const Plane& plane, const Places& corners, const std::uint32_t (&offset)[4][lanes],
                              std::uint32_t (&texel)[4][4][lanes]) {
    std::uint64_t words[4][lanes];
    std::uint32_t narrow[4][lanes];
    for (unsigned corner = 0; corner < 4; ++corner) {
        if (plane.texel_bytes == 8)
            load_words(plane.level.data, offset[corner], words[corner]);
        else if (plane.texel_bytes == 4)
            load_words(plane.level.data, offset[corner], narrow[corner]);
        else
            load_parts(plane, corners, offset[corner], narrow[corner]);
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
template <typename Places, unsigned lanes>
PLANE_INLINE void load_sum_texels(const Plane& plane, const Places& corners, std::uint32_t (&texel)[4][4][lanes],
                                  std::uint32_t (&bytes)[4][lanes]) {
    std::uint32_t offset[4][lanes];
    for (unsigned corner = 0; corner < 4; ++corner) corners.offsets(plane, corner, offset[corner]);
    if (plane.plain_bytes) {
        if (plane.texel_bytes == 4)
            load_corner_words(plane, corners, offset, bytes);
        else
            for (unsigned corner = 0; corner < 4; ++corner) load_parts(plane, corners, offset[corner], bytes[corner]);
        for (unsigned corner = 0; corner < 4; ++corner) corners.mask(plane, corner, plane.border_bytes, bytes[corner]);
        return;
    }
    const unsigned channels = plane.reading.format.channels;
    if (plane.reading.format.bits == 16) {
        load_halves(plane, corners, offset, texel);
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
        for (unsigned corner = 0; corner < 4; ++corner) {
            if (plane.has_signs) extend_signs(texel[i][corner], 16);
            corners.mask(plane, corner, plane.border.channel[i], texel[i][corner]);
        }
}

/// Channel `index` of four corners of bytes.
template <unsigned lanes>
PLANE_INLINE void take_corner_bytes(const Plane& plane, const std::uint32_t (&bytes)[4][lanes], unsigned index,
                                    std::uint32_t (&texel)[4][lanes]) {
    for (unsigned corner = 0; corner < 4; ++corner) {
        take_bytes(bytes[corner], index, texel[corner]);
        if (plane.has_signs) extend_signs(texel[corner], 8);
    }
}

/// The corner that a point fetch takes is the first.
template <typename Places, unsigned lanes>
PLANE_INLINE void load_byte_points(const Plane& plane, const Places& corners, std::uint32_t (&texel)[lanes]) {
    std::uint32_t offset[lanes];
    corners.offsets(plane, 0, offset);
    if (plane.texel_bytes == 4)
        load_words(plane.level.data, offset, texel);
    else
        load_parts(plane, corners, offset, texel);
    corners.replace_outside(plane, 0, plane.border_bytes, texel);
}

template <unsigned lanes, typename Places>
PLANE_INLINE void fetch_byte_points(Call& call, const Plane& plane, const Places& corners) {
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
        take_bytes(texel, i, channel);
        if (plane.has_signs) extend_signs(channel, 8);
        if (plane.reading.real) normalize(channel, plane.has_signs ? 127.0f : 255.0f);
        give(call, i, channel);
    }
}

/// Channels of 32 bits are given as they are.
template <unsigned lanes, typename Places>
PLANE_INLINE void fetch_word_points(Call& call, const Plane& plane, const Places& corners) {
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

template <unsigned lanes, typename Places>
PLANE_INLINE void fetch_points(Call& call, const Plane& plane, const Places& corners) {
    const TexelFormat& format = plane.reading.format;
    if (format.bits == 32 && plane.bytes != 0) return fetch_word_points<lanes>(call, plane, corners);
    for_each_lane(call, [&](unsigned lane) {
        const Texel texel = present(corners.load(plane, 0, lane), plane.reading);
        for (unsigned i = 0; i < 4; ++i) call.data[i][lane] = texel.channel[i];
    });
}

} // namespace ptarmigan::runtime::plane
