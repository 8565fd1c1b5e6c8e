// SPDX-License-Identifier: Apache-2.0
// Texels as numbers.
#pragma once

#include "runtime/texture/texture.h"

namespace ptarmigan::runtime {

/// Four channels: bits of float or of integers, as the registers get them.
struct Texel {
    std::uint32_t channel[4];
};

/// Half to float, exact; NaNs keep their payload and become quiet.
float half_to_float(std::uint16_t bits);
/// Rounds to nearest even.
std::uint16_t float_to_half(float value);

/// The channel values as the format stores them, missing ones filled in. `as_real`: floats, from integers of 8 and 16
/// bits scaled to [0, 1] or [-1, 1].
Texel load_texel(const std::uint8_t *place, const TexelFormat &format, bool as_real, bool srgb);

/// sust.p: converts the first `count` words to the format and stores all channels.
void store_texel(std::uint8_t *place, const TexelFormat &format, const std::uint32_t *words, unsigned count);

} // namespace ptarmigan::runtime
