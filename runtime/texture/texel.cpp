// SPDX-License-Identifier: Apache-2.0
// Formats: what channels hold, from memory and back.
#include "runtime/texture/texel.h"

#include "runtime/texture/gamma_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace ptarmigan::runtime {
namespace {

std::uint32_t bits_of(float value) {
    return std::bit_cast<std::uint32_t>(value);
}

/// The stored bits of channel `index`, sign-extended if the format is signed.
std::uint32_t stored_channel(const std::uint8_t* place, const TexelFormat& format, unsigned index) {
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

/// The stored number that stands for 1.
std::uint32_t full_scale(const TexelFormat& format) {
    const bool is_signed = format.kind == TexelFormat::Kind::signed_integer;
    return (1u << (format.bits - (is_signed ? 1 : 0))) - 1;
}

/// Correctly rounded; the lowest signed value counts as the one above it.
float normalized(std::uint32_t stored, const TexelFormat& format) {
    const auto most = static_cast<float>(full_scale(format));
    if (format.kind == TexelFormat::Kind::unsigned_integer) return static_cast<float>(stored) / most;
    return std::max(static_cast<float>(static_cast<std::int32_t>(stored)) / most, -1.0f);
}

bool is_gamma_coded(const Reading& reading, unsigned channel) {
    const unsigned coded = reading.format.channels == 4 ? 3 : 1;
    return reading.srgb && channel < coded && reading.format.kind == TexelFormat::Kind::unsigned_integer &&
           reading.format.bits == 8;
}

std::uint32_t real_channel(std::uint32_t stored, const Reading& reading, unsigned channel) {
    const TexelFormat& format = reading.format;
    switch (format.kind) {
    case TexelFormat::Kind::single: return stored;
    case TexelFormat::Kind::half: return bits_of(half_to_float(static_cast<std::uint16_t>(stored)));
    default: break;
    }
    if (format.bits == 32) return stored;
    return bits_of(is_gamma_coded(reading, channel) ? gamma_decoded(stored) : normalized(stored, format));
}

/// Toward zero, as the driver cuts border colours and the hardware cuts what sust.p stores.
std::uint32_t cut_to_half(float color) {
    if (std::isnan(color)) {
        const std::uint32_t bits = bits_of(color);
        return (bits >> 16 & 0x8000) | 0x7e00 | (bits >> 13 & 0x1ff);
    }
    const std::uint16_t nearest = float_to_half(color);
    const bool beyond = std::fabs(half_to_float(nearest)) > std::fabs(color);
    return beyond ? nearest - 1u : nearest;
}

std::uint32_t color_channel(float color, const Reading& reading) {
    const TexelFormat& format = reading.format;
    if (format.kind == TexelFormat::Kind::half) return cut_to_half(color);
    if (format.kind == TexelFormat::Kind::single || format.bits == 32) return bits_of(color);
    const bool is_signed = format.kind == TexelFormat::Kind::signed_integer;
    if (reading.real) {
        const float inside = std::isnan(color) ? 0.0f : std::clamp(color, is_signed ? -1.0f : 0.0f, 1.0f);
        return static_cast<std::uint32_t>(static_cast<std::int32_t>(inside * static_cast<float>(full_scale(format))));
    }
    const unsigned rest = 32u - format.bits;
    const std::uint32_t top = bits_of(color) << rest;
    return is_signed ? static_cast<std::uint32_t>(static_cast<std::int32_t>(top) >> rest) : top >> rest;
}

/// std::ldexp(1, exponent) of what floats hold, without a call.
double power_of_two(int exponent) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// sust.p of one channel: integers saturate, floats are cut and scaled to normalized integers.
std::uint32_t converted(std::uint32_t word, const TexelFormat& format) {
    const bool is_signed = format.kind == TexelFormat::Kind::signed_integer;
    if (format.kind == TexelFormat::Kind::half) return cut_to_half(std::bit_cast<float>(word));
    if (format.kind == TexelFormat::Kind::single || format.bits == 32) return word;
    const std::uint32_t most = full_scale(format);
    if (format.always_real) {
        const float real = std::bit_cast<float>(word);
        const double inside = std::isnan(real) ? 0.0 : std::clamp(real, is_signed ? -1.0f : 0.0f, 1.0f);
        // Cut to four bits more than the magnitude has, then scaled and rounded: fitted to the recorded stores.
        const double unit = power_of_two(-std::bit_width(most) - 4);
        const double kept = std::trunc(inside / unit) * unit;
        return static_cast<std::uint32_t>(static_cast<std::int32_t>(std::lround(kept * most)));
    }
    if (!is_signed) return std::min(word, most);
    const auto limit = static_cast<std::int32_t>(most);
    return static_cast<std::uint32_t>(std::clamp(static_cast<std::int32_t>(word), -limit - 1, limit));
}

/// std::ilogb of what floats hold, without a call.
int binary_exponent(double value) {
    return static_cast<int>(std::bit_cast<std::uint64_t>(value) >> 52 & 0x7ff) - 1023;
}

/// As round_single_sum(), to a half, as a float.
float round_to_half(double sum) {
    constexpr double most = 65504, least_normal = 0x1p-14;
    const double magnitude = std::fabs(sum);
    if (!(magnitude <= most)) return static_cast<float>(sum);
    int exponent = -14;
    if (magnitude >= least_normal) exponent = std::ilogb(magnitude);
    const double unit = std::ldexp(1.0, exponent - 10);
    return static_cast<float>(std::copysign(std::floor(magnitude / unit + 0.5) * unit, sum));
}

} // namespace

bool decode_format(unsigned format, unsigned channels, TexelFormat& decoded) {
    using Kind = TexelFormat::Kind;
    using Block = TexelFormat::Block;
    const bool bc6h = format == 0x9b || format == 0x9c;
    if (bc6h ? channels != 3 : channels != 1 && channels != 2 && channels != 4) return false;
    decoded = {};
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
    const auto set_block = [&](Block block, unsigned channels_of_it, Kind kind, unsigned bits) {
        decoded.block = block;
        decoded.always_real = true;
        decoded.opaque = channels_of_it < 4;
        return set(kind, bits) && channels == channels_of_it;
    };
    decoded.gamma = format == 0x92 || format == 0x94 || format == 0x96 || format == 0x9e;
    switch (format) {
    case 0x91:
    case 0x92: return set_block(Block::bc1, 4, Kind::unsigned_integer, 8);
    case 0x93:
    case 0x94: return set_block(Block::bc2, 4, Kind::unsigned_integer, 8);
    case 0x95:
    case 0x96: return set_block(Block::bc3, 4, Kind::unsigned_integer, 8);
    case 0x97: return set_block(Block::bc4, 1, Kind::unsigned_integer, 16);
    case 0x98: return set_block(Block::bc4, 1, Kind::signed_integer, 16);
    case 0x99: return set_block(Block::bc5, 2, Kind::unsigned_integer, 16);
    case 0x9a: return set_block(Block::bc5, 2, Kind::signed_integer, 16);
    case 0x9b: return set_block(Block::bc6h_unsigned, 3, Kind::half, 16);
    case 0x9c: return set_block(Block::bc6h_signed, 3, Kind::half, 16);
    case 0x9d:
    case 0x9e: return set_block(Block::bc7, 4, Kind::unsigned_integer, 8);
    default: break;
    }
    // UNORM_INT8X1 and on: the format says the channels too.
    if (format < 0xc0 || format > 0xcb || channels != 1u << (format - 0xc0) % 3) return false;
    decoded.always_real = true;
    return set(format < 0xc6 ? Kind::unsigned_integer : Kind::signed_integer, (format - 0xc0) / 3 % 2 ? 16 : 8);
}

float half_to_float(std::uint16_t bits) {
    const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) {
        const float value = static_cast<float>(fraction) * 0x1p-24f;
        return sign ? -value : value;
    }
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

std::uint16_t float_to_half(float value) {
    const std::uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffff;
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
    if (magnitude > 0x7f800000) return 0x7fff;
    if (magnitude >= 0x47800000) // 65536 and more
        return sign | 0x7c00;
    if (magnitude < 0x38800000) { // below 2^-14: multiples of 2^-24
        const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
        return sign | static_cast<std::uint16_t>(std::nearbyint(scaled));
    }
    const std::uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return sign | static_cast<std::uint16_t>(std::min<std::uint32_t>((rounded >> 13) - (112u << 10), 0x7c00));
}

float round_single_sum(double sum) {
    constexpr std::uint64_t half_of_last_bit = std::uint64_t{1} << 28, last_bits = (std::uint64_t{1} << 29) - 1;
    // Where floats have all their bits: half of the last one is added to the magnitude, and the rest cut off.
    if (std::fabs(sum) >= 0x1p-125 && std::fabs(sum) < 0x1p127)
        return static_cast<float>(
            std::bit_cast<double>((std::bit_cast<std::uint64_t>(sum) + half_of_last_bit) & ~last_bits));
    const auto nearest = static_cast<float>(sum);
    if (std::fabs(nearest) < 0x1p-126f) return std::copysign(0.0f, nearest);
    const float next = std::nextafter(nearest, sum < 0 ? -INFINITY : INFINITY);
    return sum - nearest == next - sum ? next : nearest;
}

StoredTexel load_texel(const std::uint8_t* place, const TexelFormat& format) {
    StoredTexel texel{};
    for (unsigned i = 0; i < format.channels; ++i) texel.channel[i] = stored_channel(place, format, i);
    return texel;
}

Texel present(const StoredTexel& texel, const Reading& reading) {
    Texel result{};
    for (unsigned i = 0; i < reading.format.channels; ++i)
        result.channel[i] = reading.real ? real_channel(texel.channel[i], reading, i) : texel.channel[i];
    if (reading.format.opaque) result.channel[3] = bits_of(1.0f);
    return result;
}

StoredTexel store_color(const float (&color)[4], const Reading& reading) {
    StoredTexel texel{};
    for (unsigned i = 0; i < 4; ++i) texel.channel[i] = color_channel(color[i], reading);
    return texel;
}

double FilterSum::value(std::uint32_t stored, unsigned channel) const {
    const TexelFormat& format = reading_.format;
    const auto integer = static_cast<std::int32_t>(stored);
    switch (format.kind) {
    case TexelFormat::Kind::unsigned_integer:
        if (is_gamma_coded(reading_, channel)) return gamma_decoded(stored);
        return format.bits == 8 && reading_.real ? stored * 257.0 : stored;
    case TexelFormat::Kind::signed_integer:
        if (!reading_.real) return integer;
        return format.bits == 8 ? integer : std::max(integer, -32767);
    case TexelFormat::Kind::half: return half_to_float(static_cast<std::uint16_t>(stored));
    case TexelFormat::Kind::single: break;
    }
    const float single = std::bit_cast<float>(stored);
    return std::fpclassify(single) == FP_SUBNORMAL ? std::copysign(0.0, single) : single;
}

void FilterSum::add(const StoredTexel& texel, unsigned weight) {
    Slice& slice = slice_[slices_ - 1];
    slice.weights[slice.count] = weight;
    slice.texels[slice.count++] = texel;
}

int FilterSum::exponent(std::uint32_t stored, double value, unsigned channel) const {
    // Eight gamma-coded bytes share the exponent of their largest.
    return binary_exponent(is_gamma_coded(reading_, channel) ? gamma_decoded(stored | 7) : value);
}

int FilterSum::bits_below_largest(unsigned channel) const {
    switch (reading_.format.kind) {
    case TexelFormat::Kind::single: return 27;
    case TexelFormat::Kind::half: return 14;
    default: return is_gamma_coded(reading_, channel) ? 7 : 0;
    }
}

FilterSum::Sum FilterSum::sum(unsigned number, unsigned channel) const {
    const Slice& slice = slice_[number];
    double values[slice_texels];
    int largest = INT_MIN;
    for (unsigned i = 0; i < slice.count; ++i) {
        values[i] = value(slice.texels[i].channel[channel], channel);
        if (slice.weights[i] != 0 && values[i] != 0 && std::isfinite(values[i]))
            largest = std::max(largest, exponent(slice.texels[i].channel[channel], values[i], channel));
    }
    const int below = bits_below_largest(channel);
    const bool aligned = below != 0 && largest != INT_MIN;
    const double up = aligned ? power_of_two(below - largest) : 1, down = 1 / up;
    double total = -0.0;
    for (unsigned i = 0; i < slice.count; ++i) {
        // Infinities and NaNs count even where the weight has been rounded to nothing.
        if (!std::isfinite(values[i])) {
            total += values[i];
            continue;
        }
        const double kept = aligned ? static_cast<double>(static_cast<std::int64_t>(values[i] * up)) * down : values[i];
        total += kept * (slice.weights[i] * part_);
    }
    if (!aligned) return {total, Sum::exact};
    // Slices are aligned to each other by exponents that are multiples of four, of gamma-coded bytes not below -4.
    const int top = std::max((largest + 3) & ~3, is_gamma_coded(reading_, channel) ? -4 : INT_MIN);
    return {total, top - below - 8 - 3};
}

/// `value` rounded down to a multiple of 2^exponent, which it is not many times.
static double rounded_down(double value, int exponent) {
    const double scaled = value * power_of_two(-exponent);
    const auto toward_zero = static_cast<double>(static_cast<std::int64_t>(scaled));
    return (toward_zero - (scaled < toward_zero ? 1 : 0)) * power_of_two(exponent);
}

void FilterSum::add_slices() {
    for (unsigned channel = 0; channel < reading_.format.channels; ++channel) {
        Sum& total = sum_[channel];
        if (bits_below_largest(channel) == 0) {
            for (unsigned i = 0; i < slices_; ++i) total.value += sum(i, channel).value;
            continue;
        }
        Sum sums[most_slices];
        const Sum before = total;
        for (unsigned i = 0; i < std::min(slices_, most_slices); ++i) {
            sums[i] = sum(i, channel);
            total.last_place = std::max(total.last_place, sums[i].last_place);
        }
        const auto aligned = [&](const Sum& sum) {
            // Weights of 256ths end above the last place.
            const bool whole =
                sum.last_place == Sum::exact || (sum.last_place == total.last_place && part_ == 1 / 256.0);
            return whole ? sum.value : rounded_down(sum.value, total.last_place);
        };
        total.value = aligned(before);
        for (unsigned i = 0; i < std::min(slices_, most_slices); ++i) total.value += aligned(sums[i]);
    }
    slices_ = 0;
}

/// A sum of signed bytes in 16 bits: 258 times as much, and an eighth for each 16. Fitted to 8,320 sums of an H200.
static double widened(double sum) {
    return 258 * sum + std::floor(sum / 16) / 8;
}

float FilterSum::finish(double sum) const {
    if (reading_.format.kind == TexelFormat::Kind::signed_integer && reading_.format.bits == 8) sum = widened(sum);
    switch (reading_.format.kind) {
    case TexelFormat::Kind::unsigned_integer: return static_cast<float>(std::floor(sum + 0.5)) / 65535.0f;
    case TexelFormat::Kind::signed_integer:
        return static_cast<float>(std::max(std::floor(sum + 0.5), -32767.0)) / 32767.0f;
    case TexelFormat::Kind::half: return round_to_half(sum);
    case TexelFormat::Kind::single: break;
    }
    return round_single_sum(sum);
}

Texel FilterSum::result() {
    next_step(256);
    // Halves with all bits of the fraction set, and floats.
    const std::uint32_t nan = reading_.format.kind == TexelFormat::Kind::half ? 0x7fffe000 : 0x7fffffff;
    Texel result{};
    for (unsigned i = 0; i < reading_.format.channels; ++i) {
        const double total = sum_[i].value;
        if (!reading_.real) {
            const double half = reading_.format.bits < 32 ? 0.5 : 0; // the widest are cut
            result.channel[i] = static_cast<std::uint32_t>(static_cast<std::int64_t>(std::floor(total + half)));
            continue;
        }
        const float value = is_gamma_coded(reading_, i) ? round_to_half(total) : finish(total);
        result.channel[i] = std::isnan(value) ? nan : bits_of(value);
    }
    if (reading_.format.opaque) result.channel[3] = bits_of(1.0f);
    return result;
}

void store_texel(std::uint8_t* place, const TexelFormat& format, const std::uint32_t* words, unsigned count) {
    for (unsigned i = 0; i < format.channels; ++i) {
        const std::uint32_t word = i < count ? converted(words[i], format) : 0;
        std::memcpy(place + std::size_t{format.bits} / 8 * i, &word, format.bits / 8u);
    }
}

} // namespace ptarmigan::runtime
