// SPDX-License-Identifier: Apache-2.0
// Texels: what lies in memory, what registers get, and how weighted sums of them are made and rounded.
#pragma once

#include "runtime/texture/texture.h"

#include <climits>

namespace ptarmigan::runtime {

/// Four channels: bits of float or of integers, as the registers get them.
struct Texel {
    std::uint32_t channel[4];
};

/// Four channels as the format stores them, signed ones extended; missing ones are 0.
struct StoredTexel {
    std::uint32_t channel[4];
};

/// How the channels of a texture become register values.
struct Reading {
    TexelFormat format;
    bool real = false; ///< floats, from integers of 8 and 16 bits scaled to [0, 1] or [-1, 1]
    bool srgb = false; ///< channels of 8 bits but the fourth are gamma-coded
};

/// Half to float, exact; NaNs keep all their bits.
float half_to_float(std::uint16_t bits);
/// Rounds to nearest even.
std::uint16_t float_to_half(float value);

StoredTexel load_texel(const std::uint8_t* place, const TexelFormat& format);
Texel present(const StoredTexel& texel, const Reading& reading);

/// A border colour in the texture's format: numbers are cut to it, of integers that stay integers the low bits count.
StoredTexel store_color(const float (&color)[4], const Reading& reading);

/// A weighted sum of texels as the H200 makes it: integer formats in 16 bits; floats, halves and gamma-coded
/// bytes aligned to the largest of their slice with a few more bits than they have, what lies below cut off; slices
/// aligned to each other more coarsely; rounded once.
class FilterSum {
public:
    static constexpr unsigned most_slices = 4, slice_texels = 4;
    explicit FilterSum(const Reading& reading) : reading_(reading) {}
    /// What is added from here on lies in another level, or in another pair of places. The unit adds its
    /// slices and what it had in one step. Weights are parts of `whole`.
    void next_step(unsigned whole) {
        if (slices_ != 0) add_slices();
        part_ = 1.0 / whole;
    }
    /// How many places of an anisotropic filter are one step: four of bytes, two of wider numbers.
    unsigned places_in_step() const { return reading_.format.bits == 8 ? 4 : 2; }
    void next_slice() { slice_[slices_++].count = 0; }
    /// `weight` may be 0.
    void add(const StoredTexel& texel, unsigned weight);
    Texel result();

private:
    double value(std::uint32_t stored, unsigned channel) const;
    int exponent(std::uint32_t stored, double value, unsigned channel) const;
    /// How many bits below the highest one of a slice's largest texel its sum has; 0 if all count.
    int bits_below_largest(unsigned channel) const;
    /// A number of the unit's: what lies below its last place (an exponent of two) is lost when it is added to others.
    struct Sum {
        static constexpr int exact = INT_MIN; ///< sums of integers, zeros and what is no number
        double value = -0.0;
        int last_place = exact;
    };
    Sum sum(unsigned slice, unsigned channel) const;
    void add_slices();
    float finish(double sum) const;

    const Reading& reading_;
    struct Slice {
        unsigned count;
        unsigned weights[slice_texels];
        StoredTexel texels[slice_texels];
    };
    double part_ = 1 / 256.0; ///< of the whole that a weight of one has
    unsigned slices_ = 0;     ///< begun since sum_ was made
    Slice slice_[most_slices];
    Sum sum_[4]; ///< by channel
};

/// What a sum of floats is rounded to: nearest, away from zero in the middle; what would be subnormal is zero.
float round_single_sum(double sum);

/// sust.p: converts the first `count` words to the format and stores all channels.
void store_texel(std::uint8_t* place, const TexelFormat& format, const std::uint32_t* words, unsigned count);

} // namespace ptarmigan::runtime
