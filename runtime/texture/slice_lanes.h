// SPDX-License-Identifier: Apache-2.0
// Fetches from several slices (levels, layers of volumes, faces of cubes) as loops over all lanes: where directions
// meet a cube, and sums over slices. What they give is what project() and FilterSum give
// (tests/unit/runtime/slice_fetch_test.cpp compares them).
#pragma once

#include "runtime/texture/plane_texels.h"
#include "translator/builtins/library/sfu_tables.h"

namespace ptarmigan::runtime::plane {

/// What takes part in the sum of one slice, lane by lane in slices of other places and sizes.
template <unsigned lanes> struct SliceCorners : Corners<lanes> {
    std::uint32_t start[lanes], row[lanes]; ///< bytes: where the slice begins, from one row to the next
    std::int32_t inside[lanes];             ///< 0 where the whole slice is the border's colour
    std::int32_t present[lanes];            ///< 0 where the slice takes no part

    void offsets(const Plane& plane, unsigned corner, std::uint32_t* __restrict offset) const {
        const std::int32_t *column = this->x.texel[corner & 1], *line = this->y.texel[corner >> 1];
        for (unsigned lane = 0; lane < lanes; ++lane)
            offset[lane] = start[lane] + static_cast<std::uint32_t>(line[lane]) * row[lane] +
                           static_cast<std::uint32_t>(column[lane]) * plane.texel_bytes;
    }
    /// Rows begin at whole words.
    static std::uint32_t word_around(const Plane&, std::uint32_t offset) { return offset & ~3u; }
    void replace_outside(const Plane& plane, unsigned corner, std::uint32_t border,
                         std::uint32_t* __restrict words) const {
        const std::int32_t *in_x = this->x.inside[corner & 1], *in_y = this->y.inside[corner >> 1];
        if (plane.has_border)
            for (unsigned lane = 0; lane < lanes; ++lane)
                words[lane] = in_x[lane] & in_y[lane] & inside[lane] ? words[lane] : border;
    }
    void mask(const Plane& plane, unsigned corner, std::uint32_t border, std::uint32_t* __restrict words) const {
        replace_outside(plane, corner, border, words);
        const std::int32_t none_x = corner & 1 ? 0 : -1, none_y = corner & 2 ? 0 : -1;
        for (unsigned lane = 0; lane < lanes; ++lane) {
            const bool counts = (this->x.fraction[lane] | none_x) != 0 && (this->y.fraction[lane] | none_y) != 0;
            words[lane] = counts && present[lane] != 0 ? words[lane] : 0;
        }
    }
    StoredTexel load(const Plane& plane, unsigned corner, unsigned lane) const {
        if (!(this->x.inside[corner & 1][lane] & this->y.inside[corner >> 1][lane] & inside[lane])) return plane.border;
        return load_texel(plane.level.data + start[lane] +
                              static_cast<std::uint32_t>(this->y.texel[corner >> 1][lane]) * row[lane] +
                              static_cast<std::uint32_t>(this->x.texel[corner & 1][lane]) * plane.texel_bytes,
                          plane.reading.format);
    }
};

PLANE_INLINE double power_of_two(std::int32_t exponent) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// The sum of a slice: `sum` units of 2^unit. What is added to it keeps multiples of 2^place, or of a larger one.
template <unsigned lanes> struct SlicePart {
    double sum[lanes];
    std::int32_t unit[lanes], place[lanes];

    /// Of SinglesSum or HalvesSum.
    template <typename Sum> PLANE_INLINE void take(const Sum& from) {
        for (unsigned lane = 0; lane < lanes; ++lane) {
            const std::int32_t largest = from.most[lane] - Sum::bias;
            sum[lane] = from.sum(lane);
            unit[lane] = largest - Sum::below - 8;
            place[lane] = ((largest + 3) & ~3) - Sum::below - 8 - 3;
        }
    }
};

/// What has been added up of one channel: multiples of 2^place.
template <unsigned lanes> struct SliceTotal {
    double whole[lanes];
    std::int32_t place[lanes];
    std::int32_t signs[lanes]; ///< of texels of 32 bits; all bits of halves

    PLANE_INLINE void clear() {
        for (unsigned lane = 0; lane < lanes; ++lane) {
            whole[lane] = 0;
            place[lane] = -512; // below all places
            signs[lane] = 0;
        }
    }
    /// The slices of a level, one or two, in one step of the unit's.
    PLANE_INLINE void add(const SlicePart<lanes>& front, const SlicePart<lanes>& behind, bool two) {
        if (two) {
            for (unsigned lane = 0; lane < lanes; ++lane) {
                const std::int32_t last = larger(larger(place[lane], front.place[lane]), behind.place[lane]);
                whole[lane] = std::floor(whole[lane] * power_of_two(place[lane] - last)) +
                              std::floor(front.sum[lane] * power_of_two(front.unit[lane] - last)) +
                              std::floor(behind.sum[lane] * power_of_two(behind.unit[lane] - last));
                place[lane] = last;
            }
            return;
        }
        for (unsigned lane = 0; lane < lanes; ++lane) {
            const std::int32_t last = larger(place[lane], front.place[lane]);
            whole[lane] = std::floor(whole[lane] * power_of_two(place[lane] - last)) +
                          std::floor(front.sum[lane] * power_of_two(front.unit[lane] - last));
            place[lane] = last;
        }
    }
    /// As floats; `special` as sum_singles() has it.
    PLANE_INLINE void finish_singles(std::uint32_t* __restrict result, std::int32_t* __restrict special) const {
        for (unsigned lane = 0; lane < lanes; ++lane) {
            const auto value = static_cast<float>(rounded_to_single(whole[lane]) * power_of_two(place[lane]));
            const auto bits = std::bit_cast<std::int32_t>(value);
            special[lane] |= ((bits >> 23 & 255) < 3 ? -1 : 0) & (signs[lane] < 0 ? -1 : 0);
            result[lane] = static_cast<std::uint32_t>(bits);
        }
    }
    /// As halves that are floats; `special` as sum_halves() has it.
    PLANE_INLINE void finish_halves(std::uint32_t* __restrict result, std::int32_t* __restrict special) const {
        constexpr std::uint64_t half_of_last_bit = std::uint64_t{1} << 41, last_bits = (std::uint64_t{1} << 42) - 1;
        for (unsigned lane = 0; lane < lanes; ++lane) {
            const double total = whole[lane] * power_of_two(place[lane]);
            const auto rounded =
                std::bit_cast<double>((std::bit_cast<std::uint64_t>(total) + half_of_last_bit) & ~last_bits);
            special[lane] |= (std::fabs(total) < 0x1p-14 ? -1 : 0) & (signs[lane] != 0 ? -1 : 0);
            result[lane] = std::bit_cast<std::uint32_t>(static_cast<float>(rounded));
        }
    }
};

PLANE_INLINE float choose(std::int32_t mask, float yes, float no) {
    return std::bit_cast<float>((std::bit_cast<std::int32_t>(yes) & mask) | (std::bit_cast<std::int32_t>(no) & ~mask));
}

/// unit_reciprocal() of numbers without signs.
template <unsigned lanes> PLANE_INLINE void make_reciprocals(float (&values)[lanes]) {
    double row[3][lanes];
    std::int32_t square[lanes], steps[lanes];
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const int* from = sfu::rcp_table[std::bit_cast<std::uint32_t>(values[lane]) >> 16 & 127];
        for (unsigned i = 0; i < 3; ++i) row[i][lane] = from[i];
    }
    for (unsigned lane = 0; lane < lanes; ++lane) {
        // Of a number of 17 bits, the lowest of which is 0; rows are cut one by one.
        const std::int32_t twice = (std::bit_cast<std::int32_t>(values[lane]) & 0xffff) * 2;
        std::int32_t sum = 0;
#pragma GCC unroll 16
        for (int bit = 1; bit < 17; ++bit) sum += -(twice >> bit & 1) & (twice >> (18 - bit));
        square[lane] = sum >> 1;
    }
    for (unsigned lane = 0; lane < lanes; ++lane) { // less than 2^53, and positive
        const double x = std::bit_cast<std::int32_t>(values[lane]) & 0xffff;
        const double polynomial = row[0][lane] * 8192 + row[1][lane] * x + row[2][lane] * square[lane] + 0x47e7;
        steps[lane] = static_cast<std::int32_t>(polynomial * 0x1p-15);
    }
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const float value = values[lane];
        const std::int32_t exponent = std::bit_cast<std::int32_t>(value) >> 23 & 255;
        const std::int32_t magnitude = ((253 - exponent) << 23) + steps[lane] - (1 << 23);
        float result = std::bit_cast<float>(magnitude < 1 << 23 ? 0 : magnitude);
        result = exponent == 0 ? std::numeric_limits<float>::infinity() : result;
        values[lane] = value != value ? value : result;
    }
}

/// Where directions meet a cube: coordinates of the face from 0 to 1.
template <unsigned lanes> struct CubeLanes {
    float s[lanes], t[lanes];
    std::uint32_t face[lanes];

    PLANE_INLINE void meet(const float (&direction)[3][lanes]) {
        float scale[lanes];
        for (unsigned lane = 0; lane < lanes; ++lane) {
            float largest = std::fabs(direction[0][lane]); // NaN only if all are
            for (unsigned i = 1; i < 3; ++i) {
                const float size = std::fabs(direction[i][lane]);
                largest = !(size <= largest) && size == size ? size : largest;
            }
            scale[lane] = largest;
        }
        make_reciprocals(scale);
        for (unsigned lane = 0; lane < lanes; ++lane) {
            const float x = direction[0][lane] * scale[lane], y = direction[1][lane] * scale[lane],
                        z = direction[2][lane] * scale[lane];
            const float ax = size_of(x), ay = size_of(y), az = size_of(z);
            const std::int32_t along_x = (ax > ay ? -1 : 0) & (ax > az ? -1 : 0),
                               along_y = ~along_x & (ay > az ? -1 : 0);
            const float major = choose(along_x, x, choose(along_y, y, z));
            const std::int32_t below = major < 0 ? -1 : 0;
            face[lane] = static_cast<std::uint32_t>((~along_x & ~along_y & 4) + (along_y & 2) + (below & 1));
            // Along x: z or -z; along y: x; along z: x or -x.
            const float across = choose(along_x, z, x);
            s[lane] = choose((along_x & ~below) | (~along_x & ~along_y & below), -across, across);
            t[lane] = choose(along_y, choose(below, -z, z), -y);
        }
        for (unsigned lane = 0; lane < lanes; ++lane) {
            s[lane] = on_face(s[lane]);
            t[lane] = on_face(t[lane]);
        }
    }

private:
    PLANE_INLINE static float size_of(float value) { return value != value ? -1.0f : std::fabs(value); }
    /// From -1..1 to 0..1 without rounding, but that what a double can't tell from zero beside one is zero.
    PLANE_INLINE static float on_face(float value) {
        constexpr float parts = 1 << coordinate::normalized_bits, half = parts / 2;
        const float magnitude = std::fabs(value);
        const std::int32_t counts = (magnitude > 0x1p-54f ? -1 : 0) & (magnitude <= 4.0f ? -1 : 0), // not NaN
            infinite = magnitude > 4.0f ? -1 : 0;
        const std::int32_t place = floor_to_int(choose(counts, value, 0.0f) * half) + static_cast<std::int32_t>(half);
        return choose(infinite, value, static_cast<float>(place) / parts);
    }
};

} // namespace ptarmigan::runtime::plane
