// SPDX-License-Identifier: Apache-2.0
// Texels: what lies in memory, what registers get, and how weighted sums of them are made and rounded.
#pragma once

#include "runtime/texture/texture.h"

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

StoredTexel load_texel(const std::uint8_t *place, const TexelFormat &format);
Texel present(const StoredTexel &texel, const Reading &reading);

/// A border colour in the texture's format: numbers are cut to it, of integers that stay integers the low bits count.
StoredTexel store_color(const float (&color)[4], const Reading &reading);

/// A weighted sum of texels, rounded as the H200 does: integer formats to 16 bits, halves to halves.
class FilterSum {
public:
    explicit FilterSum(const Reading &reading) : reading_(reading) {}
    /// `weight` in 256ths; it may be 0.
    void add(const StoredTexel &texel, unsigned weight);
    Texel result() const;

private:
    double value(std::uint32_t stored, unsigned channel) const;
    float finish(double sum) const;

    const Reading &reading_;
    double sum_[4] = {-0.0, -0.0, -0.0, -0.0};
};

/// sust.p: converts the first `count` words to the format and stores all channels.
void store_texel(std::uint8_t *place, const TexelFormat &format, const std::uint32_t *words, unsigned count);

} // namespace ptarmigan::runtime
