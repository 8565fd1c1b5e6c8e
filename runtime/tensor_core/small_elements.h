// SPDX-License-Identifier: Apache-2.0
// f16, bf16, fp8, fp6 and fp4 (in bytes) as numbers and exponent bytes (packed_lines.h), two in a lane. Included behind
// Lanes.
#pragma once

#include <cstdint>

namespace ptarmigan::runtime::tensor_core {
namespace {

/// e4m3_as_f16: with the exponents that the numbers have as f16, where all are normal.
enum class Small : std::uint8_t { f16, bf16, e5m2, e4m3, e4m3_as_f16, e3m2, e2m3, e2m1 };

constexpr bool is_byte(Small small) {
    return small >= Small::e5m2;
}

/// The largest finite magnitude, in halves.
template <Small small>
constexpr int largest_of = small == Small::f16 || small == Small::e5m2 ? 0x7bff
                           : small == Small::bf16                      ? 0x7f7f
                           : small < Small::e3m2                       ? 0x7e << 7
                                                                       : 0x7fff;

/// What the bias of a byte's format is; f16's is 15.
template <Small small> constexpr int bias_of = small == Small::e3m2 ? 3 : small < Small::e3m2 ? 7 : 1;

/// Bytes in halves to f16; but for e5m2 times 2^(bias - 15).
template <Small small> inline Lanes::Int halves_of_bytes(Lanes::Int bytes) {
    using L = Lanes;
    if constexpr (small == Small::e5m2) return L::up<8>(bytes); // f16's upper half
    const L::Int sign = L::up<10>(L::both(bytes, L::all(0x00200020)));
    if constexpr (small == Small::e3m2) return L::any_of(L::up<8>(L::both(bytes, L::all(0x001f001f))), sign);
    if constexpr (small == Small::e2m3) return L::any_of(L::up<7>(L::both(bytes, L::all(0x001f001f))), sign);
    if constexpr (small == Small::e2m1) return L::any_of(L::up<7>(L::both(bytes, L::all(0x001c001c))), sign);
    return L::any_of(L::up<7>(L::both(bytes, L::all(0x007f007f))), L::up<8>(L::both(bytes, L::all(0x00800080))));
}

/// An exponent byte in each half.
template <Small small> inline Lanes::Int bytes_of(Lanes::Int magnitude) {
    using L = Lanes;
    if constexpr (small == Small::f16 || small == Small::e5m2) return L::bytes_of_f16(magnitude, 16 + 15);
    const L::Int bytes = L::bytes_of_f16(magnitude, 16 + bias_of<small>);
    if constexpr (small != Small::e4m3_as_f16) return bytes;
    // Those of 1, 2 to 3 and 4 to 7 units have exponents that are 3, 2 and 1 below the format's least.
    return L::count_below(bytes, magnitude);
}

/// The numbers of halves.
template <Small small> inline Lanes::Float numbers_of(Lanes::Float widened) {
    if constexpr (!is_byte(small) || small == Small::e5m2) return widened;
    return Lanes::mul(widened, Lanes::all(static_cast<float>(1 << (15 - bias_of<small>))));
}

/// The lines of `count` elements that are infinite or NaN.
template <Small small>
[[gnu::noinline, gnu::cold]] inline void find_special(const std::uint8_t* from, unsigned count, unsigned first,
                                                      unsigned k, bool* special) {
    for (unsigned i = 0; i < count; ++i) {
        bool found = false;
        if constexpr (is_byte(small))
            found = (from[i] & 0x7f) > (small == Small::e5m2 ? 0x7b : 0x7e);
        else
            found = ((from[2 * i + 1] & 0x7f) << 8 | from[2 * i]) > largest_of<small>;
        if (found) special[(first + i) / k] = true;
    }
}

/// Elements of lines that follow each other, 2 * Lanes::width at a time. bf16 loses `moved` of its exponents, and
/// numbers whose fields are below `lowest`.
template <Small small>
inline void unpack_small(const std::uint8_t* from, unsigned elements, unsigned k, int moved, int lowest, float* values,
                         std::uint8_t* bytes, bool* special) {
    using L = Lanes;
    constexpr unsigned size = is_byte(small) ? 1 : 2;
    for (unsigned i = 0; i < elements; i += 2 * L::width) {
        const std::uint8_t* here = from + i * size;
        L::Int halves;
        if constexpr (is_byte(small))
            halves = halves_of_bytes<small>(L::load_bytes_as_halves(here));
        else
            halves = L::load(reinterpret_cast<const std::uint32_t*>(here));
        const L::Int magnitude = L::magnitude_of_halves(halves);
        if constexpr (small == Small::bf16) {
            L::Int numbers, low, high;
            L::store_halves_as_bytes(bytes + i, L::bytes_of_bf16(halves, magnitude, moved, lowest, numbers));
            L::widen_halves(numbers, low, high);
            L::store(values + i, L::number(L::up<16>(low)));
            L::store(values + i + L::width, L::number(L::up<16>(high)));
        } else {
            L::Float low, high;
            L::store_halves_as_bytes(bytes + i, bytes_of<small>(magnitude));
            L::widen_f16_halves(halves, low, high);
            L::store(values + i, numbers_of<small>(low));
            L::store(values + i + L::width, numbers_of<small>(high));
        }
        if (L::has_halves_above(magnitude, largest_of<small>)) [[unlikely]]
            find_special<small>(here, 2 * L::width, i, k, special);
    }
}

/// Lines that become lanes: words are turned first, and a lane then has two or four elements. Gives the lanes with
/// infinities or NaNs.
template <Small small>
inline Lanes::Mask turn_small(const std::uint8_t* from, unsigned k, int moved, int lowest, Lanes::Int biases,
                              float* values, std::uint32_t* exponents) {
    using L = Lanes;
    const auto* words = reinterpret_cast<const std::uint32_t*>(from);
    const unsigned line_words = is_byte(small) ? k / 4 : k / 2;
    L::Int most = L::all(0);
    /// Elements k and k + next of each lane; the result has their bytes in its halves.
    const auto unpack = [&](L::Int halves, float* to, unsigned next) {
        const L::Int magnitude = L::magnitude_of_halves(halves);
        most = L::greater_halves(most, magnitude);
        if constexpr (small == Small::bf16) {
            L::Int numbers;
            const L::Int bytes = L::bytes_of_bf16(halves, magnitude, moved, lowest, numbers);
            L::store(to, L::number(L::up<16>(numbers)));
            L::store(to + next * L::width, L::number(L::both(numbers, L::all(0xffff0000u))));
            return bytes;
        } else {
            L::store(to, numbers_of<small>(L::widen_f16(L::both(halves, L::all(0xffff)))));
            L::store(to + next * L::width, numbers_of<small>(L::widen_f16(L::down<16>(halves))));
            return bytes_of<small>(magnitude);
        }
    };
    for (unsigned first = 0; first < line_words; first += 8) {
        const unsigned count = line_words - first < 8 ? 4 : 8;
        L::Int pairs[8];
        if (count == 8)
            L::load_lines(words + first, line_words, pairs);
        else
            L::load_short_lines(words + first, line_words, pairs);
        if constexpr (is_byte(small)) {
            const L::Int low = L::all(0x00ff00ff);
            for (unsigned i = 0; i < count; ++i) {
                float* to = values + 4 * (first + i) * L::width;
                const L::Int even = unpack(halves_of_bytes<small>(L::both(pairs[i], low)), to, 2);
                const L::Int odd = unpack(halves_of_bytes<small>(L::both(L::down<8>(pairs[i]), low)), to + L::width, 2);
                L::store(exponents + (first + i) * L::width, L::sub_bytes(biases, L::any_of(even, L::up<8>(odd))));
            }
        } else {
            for (unsigned i = 0; i < count; i += 2) {
                float* to = values + 2 * (first + i) * L::width;
                const L::Int low = unpack(pairs[i], to, 1), high = unpack(pairs[i + 1], to + 2 * L::width, 1);
                L::store(exponents + (first + i) / 2 * L::width,
                         L::sub_bytes(biases, L::swap_inner_bytes(L::any_of(low, L::up<8>(high)))));
            }
        }
    }
    return L::lanes_above(most, largest_of<small>);
}

} // namespace
} // namespace ptarmigan::runtime::tensor_core
