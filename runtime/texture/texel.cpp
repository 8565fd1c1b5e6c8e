// SPDX-License-Identifier: Apache-2.0
// Formats: what channels hold, from memory and back.
#include "runtime/texture/texel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace ptarmigan::runtime {
namespace {

constexpr std::uint32_t one = 0x3f800000;

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

/// The stored bits of channel `index`, sign-extended if the format is signed.
std::uint32_t raw_channel(const std::uint8_t *place, const TexelFormat &format, unsigned index) {
    const bool is_signed = format.kind == TexelFormat::Kind::signed_integer;
    if (format.bits == 8)
        return is_signed ? static_cast<std::uint32_t>(static_cast<std::int8_t>(place[index])) : place[index];
    if (format.bits == 16) {
        std::uint16_t value = 0;
        std::memcpy(&value, place + 2u * index, 2);
        return is_signed ? static_cast<std::uint32_t>(static_cast<std::int16_t>(value)) : value;
    }
    std::uint32_t value = 0;
    std::memcpy(&value, place + 4u * index, 4);
    return value;
}

/// Correctly rounded; the lowest signed value counts as the one above it.
float normalized(std::uint32_t raw, const TexelFormat &format) {
    if (format.kind == TexelFormat::Kind::unsigned_integer)
        return static_cast<float>(raw) / static_cast<float>((1u << format.bits) - 1);
    const auto most = static_cast<float>((1u << (format.bits - 1)) - 1);
    return std::max(static_cast<float>(static_cast<std::int32_t>(raw)) / most, -1.0f);
}

float srgb_to_linear(float value) {
    if (value <= 0.04045f)
        return value / 12.92f;
    return static_cast<float>(std::pow((static_cast<double>(value) + 0.055) / 1.055, 2.4));
}

std::uint32_t real_channel(std::uint32_t raw, const TexelFormat &format, bool srgb) {
    switch (format.kind) {
    case TexelFormat::Kind::single: return raw;
    case TexelFormat::Kind::half: return bits_of(half_to_float(static_cast<std::uint16_t>(raw)));
    default: break;
    }
    if (format.bits == 32)
        return raw;
    const float value = normalized(raw, format);
    return bits_of(srgb ? srgb_to_linear(value) : value);
}

} // namespace

bool decode_format(unsigned format, unsigned channels, TexelFormat &decoded) {
    using Kind = TexelFormat::Kind;
    if (channels != 1 && channels != 2 && channels != 4)
        return false;
    decoded.channels = static_cast<std::uint8_t>(channels);
    const auto set = [&](Kind kind, unsigned bits) {
        decoded.kind = kind;
        decoded.bits = static_cast<std::uint8_t>(bits);
        return true;
    };
    switch (format) {
    case 0x01: return set(Kind::unsigned_integer, 8);
    case 0x02: return set(Kind::unsigned_integer, 16);
    case 0x03: return set(Kind::unsigned_integer, 32);
    case 0x08: return set(Kind::signed_integer, 8);
    case 0x09: return set(Kind::signed_integer, 16);
    case 0x0a: return set(Kind::signed_integer, 32);
    case 0x10: return set(Kind::half, 16);
    case 0x20: return set(Kind::single, 32);
    default: break;
    }
    // UNORM_INT8X1 and on: the format says the channels too.
    if (format < 0xc0 || format > 0xcb || channels != 1u << (format - 0xc0) % 3)
        return false;
    decoded.always_real = true;
    return set(format < 0xc6 ? Kind::unsigned_integer : Kind::signed_integer, (format - 0xc0) / 3 % 2 ? 16 : 8);
}

float half_to_float(std::uint16_t bits) {
    const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    if (exponent == 31)
        return std::bit_cast<float>(sign | 0x7f800000 | (fraction ? 0x400000 | fraction << 13 : 0));
    if (exponent == 0) {
        const float value = static_cast<float>(fraction) * 0x1p-24f;
        return sign ? -value : value;
    }
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

std::uint16_t float_to_half(float value) {
    const std::uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffff;
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
    if (magnitude > 0x7f800000)
        return 0x7fff;
    if (magnitude >= 0x47800000) // 65536 and more
        return sign | 0x7c00;
    if (magnitude < 0x38800000) { // below 2^-14: multiples of 2^-24
        const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
        return sign | static_cast<std::uint16_t>(std::nearbyint(scaled));
    }
    const std::uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return sign | static_cast<std::uint16_t>(std::min<std::uint32_t>((rounded >> 13) - (112u << 10), 0x7c00));
}

Texel load_texel(const std::uint8_t *place, const TexelFormat &format, bool as_real, bool srgb) {
    const bool real = as_real || format.is_real() || format.always_real;
    Texel texel{{0, 0, 0, real ? one : 1u}};
    for (unsigned i = 0; i < format.channels; ++i) {
        const std::uint32_t raw = raw_channel(place, format, i);
        texel.channel[i] = real ? real_channel(raw, format, srgb && i < 3) : raw;
    }
    return texel;
}

void store_texel(std::uint8_t *place, const TexelFormat &format, const std::uint32_t *words, unsigned count) {
    for (unsigned i = 0; i < format.channels; ++i) {
        std::uint32_t word = i < count ? words[i] : 0;
        if (format.kind == TexelFormat::Kind::half)
            word = float_to_half(std::bit_cast<float>(word));
        std::memcpy(place + std::size_t{format.bits} / 8 * i, &word, format.bits / 8u);
    }
}

} // namespace ptarmigan::runtime
