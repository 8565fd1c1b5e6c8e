// SPDX-License-Identifier: Apache-2.0
// Rows of A and columns of B as the vector code wants them: f32 values, and a byte with the exponent of each element.
// Included behind Lanes, like fused_lanes.h.
//
// A byte is 16 - exponent, 255 of zeros. Lanes have 159 - byte, at least 0, so that a saturated difference of bytes is
// the exponent of a product + 127, and 0 if a factor is zero.
#pragma once

#include "runtime/tensor_core/portable_product.h"

#include <cstddef>
#include <cstdint>

namespace ptarmigan::runtime::tensor_core {
namespace {

constexpr unsigned most_lines = 64; ///< packed at a time
constexpr unsigned most_k = 64;
constexpr int window_size = 50;
constexpr int largest_packed = 16; ///< exponent
constexpr int most_lift =
    255 - 159; ///< what products may be more than the packed ones, for bytes to hold their exponents

/// Where the exponents of a matrix lie. Those of bf16 and tf32 are moved so that the largest is 0 to 16, and numbers
/// that are more than window_size below it are flushed to zero; f16 and fp8 are packed as they are.
struct Window {
    bool widened = false;         ///< fp8 counts as f16
    int moved = 0;                ///< what exponents are less when packed
    int lowest_field = 1;         ///< of numbers that are kept
    int top = 16;                 ///< the largest packed exponent
    int flushed_exponent = -4096; ///< no flushed number's packed exponent was above this
};

/// An element by elements of a block, in lanes: value, exponent byte, and whether it is infinite or NaN.
struct Unpacked {
    Lanes::Float value;
    Lanes::Int byte;
    Lanes::Mask special;
};

inline Unpacked unpack_f16(Lanes::Int half) {
    using L = Lanes;
    const L::Int magnitude = L::both(half, L::all(0x7fff)), field = L::greater(L::down<10>(magnitude), L::all(1));
    const L::Int byte = L::sub(L::all(16 + 15), field);
    return {L::widen_f16(half), L::where(L::is_equal(magnitude, L::all(0)), L::all(255), byte),
            L::is_greater(magnitude, L::all(0x7bff))};
}

inline Unpacked unpack_e5m2(Lanes::Int byte) {
    return unpack_f16(Lanes::up<8>(byte)); // its upper half
}

inline Unpacked unpack_e4m3(Lanes::Int word) {
    using L = Lanes;
    const L::Int magnitude = L::both(word, L::all(0x7f)), field = L::greater(L::down<3>(magnitude), L::all(1));
    const L::Int half = L::any_of(L::up<7>(magnitude), L::up<8>(L::both(word, L::all(0x80)))); // * 2^-8
    const L::Int byte = L::sub(L::all(16 + 7), field);
    return {L::mul(L::widen_f16(half), L::all(256.0f)), L::where(L::is_equal(magnitude, L::all(0)), L::all(255), byte),
            L::is_equal(magnitude, L::all(0x7f))};
}

/// The same with the exponents that the numbers have as f16, where all are normal.
inline Unpacked unpack_widened_e4m3(Lanes::Int word) {
    using L = Lanes;
    Unpacked unpacked = unpack_e4m3(word);
    const L::Int field = L::both(L::down<23>(L::bits(unpacked.value)), L::all(0xff));
    unpacked.byte = L::where(L::is_equal(field, L::all(0)), L::all(255), L::sub(L::all(16 + 127), field));
    return unpacked;
}

/// bf16 in the upper half of a word, or tf32.
inline Unpacked unpack_wide(Lanes::Int word, const Window& window) {
    using L = Lanes;
    const L::Int field = L::both(L::down<23>(word), L::all(0xff));
    const L::Mask special = L::is_equal(field, L::all(255));
    const L::Mask outside = L::or_else(L::is_greater(L::all(window.lowest_field), field), special);
    const L::Int moved = L::sub(word, L::all(static_cast<int>(static_cast<unsigned>(window.moved) << 23)));
    return {L::number(L::where(outside, L::all(0), moved)),
            L::where(outside, L::all(255), L::sub(L::all(16 + 127 + window.moved), field)), special};
}

inline Lanes::Int load_wide(Format format, const std::uint8_t* from, unsigned index) {
    if (format == Format::bf16) return Lanes::up<16>(Lanes::load_halves(from + index * 2));
    return Lanes::both(Lanes::load(reinterpret_cast<const std::uint32_t*>(from + index * 4)), Lanes::all(~0x1fff));
}

inline unsigned bits_of_format(Format format) {
    return format == Format::tf32 ? 32 : format == Format::f16 || format == Format::bf16 ? 16 : 8;
}

/// The lines of `count` elements of 16 bits that are infinite or NaN: those above `finite`.
[[gnu::noinline, gnu::cold]] inline void find_special(const std::uint8_t* from, unsigned count, unsigned finite,
                                                      unsigned first, unsigned k, bool* special) {
    for (unsigned i = 0; i < count; ++i)
        if (((from[2 * i + 1] & 0x7fu) << 8 | from[2 * i]) > finite) special[(first + i) / k] = true;
}

/// The elements of some lines, one after the other. Where an element is special, so is its line.
inline void unpack_lines(Format format, const std::uint8_t* from, unsigned lines, unsigned k, const Window& window,
                         float* values, std::uint8_t* bytes, bool* special) {
    using L = Lanes;
    unsigned i = 0;
    if (format == Format::f16) {
        for (; i + 2 * L::width <= lines * k; i += 2 * L::width)
            if (L::unpack_f16(from + i * 2, values + i, bytes + i)) [[unlikely]]
                find_special(from + i * 2, 2 * L::width, 0x7bff, i, k, special);
    } else if (format == Format::bf16) {
        for (; i + 2 * L::width <= lines * k; i += 2 * L::width)
            if (L::unpack_bf16(from + i * 2, values + i, bytes + i, window.moved, window.lowest_field)) [[unlikely]]
                find_special(from + i * 2, 2 * L::width, 0x7f7f, i, k, special);
    }
    for (; i < lines * k; i += L::width) {
        Unpacked unpacked;
        switch (format) {
        case Format::f16: unpacked = unpack_f16(L::load_halves(from + i * 2)); break;
        case Format::e5m2: unpacked = unpack_e5m2(L::load_bytes(from + i)); break;
        case Format::e4m3:
            unpacked =
                window.widened ? unpack_widened_e4m3(L::load_bytes(from + i)) : unpack_e4m3(L::load_bytes(from + i));
            break;
        default: unpacked = unpack_wide(load_wide(format, from, i), window);
        }
        L::store(values + i, unpacked.value);
        L::store_bytes(bytes + i, unpacked.byte);
        if (const std::uint32_t some = L::bits_of(unpacked.special); some != 0) [[unlikely]]
            for (unsigned lane = 0; lane < L::width; ++lane)
                if (some >> lane & 1) special[(i + lane) / k] = true;
    }
}

/// The window of a matrix.
inline Window window_of(Format format, const void* matrix, unsigned elements) {
    using L = Lanes;
    if (format != Format::bf16 && format != Format::tf32) return {};
    L::Int most = L::all(0), least = L::all(255);
    for (unsigned i = 0; i < elements; i += L::width) {
        const L::Int word = load_wide(format, static_cast<const std::uint8_t*>(matrix), i);
        const L::Int field = L::both(L::down<23>(word), L::all(0xff));
        const L::Mask special = L::is_equal(field, L::all(255)), zero = L::is_equal(L::up<1>(word), L::all(0));
        most = L::greater(most, L::where(special, L::all(0), field));
        least = L::smaller(least, L::where(zero, L::all(255), field));
    }
    std::uint32_t fields[L::width], low[L::width];
    L::store(fields, most);
    L::store(low, least);
    int top_field = 1, low_field = 255;
    for (const std::uint32_t field : fields)
        if (static_cast<int>(field) > top_field) top_field = static_cast<int>(field);
    for (const std::uint32_t field : low)
        if (static_cast<int>(field) < low_field) low_field = static_cast<int>(field);
    Window window;
    const int exponent = top_field - 127;
    window.moved = exponent > largest_packed ? exponent - largest_packed : exponent < 0 ? exponent : 0;
    window.top = exponent - window.moved;
    if (top_field > window_size) window.lowest_field = top_field - window_size;
    if (low_field < window.lowest_field) // subnormal numbers have the formal exponent of field 1
        window.flushed_exponent = (window.lowest_field > 1 ? window.lowest_field - 1 : 1) - 127 - window.moved;
    return window;
}

/// One line.
struct Line {
    const float* values;
    const std::uint32_t* exponents; ///< four bytes each
    bool special;
};

/// Lines whose elements are broadcast.
struct PackedLines {
    alignas(64) float values[most_lines * most_k];
    alignas(64) std::uint8_t bytes[most_lines * most_k];
    bool special[most_lines];
    unsigned count, k;

    void pack(Format format, const std::uint8_t* matrix, unsigned first, unsigned lines, unsigned k_of_line,
              const Window& window) {
        count = lines;
        k = k_of_line;
        for (unsigned i = 0; i < lines; ++i) special[i] = false;
        unpack_lines(format, matrix + std::size_t{first} * k * bits_of_format(format) / 8, lines, k, window, values,
                     bytes, special);
    }
    Line line(unsigned i) const {
        return {values + i * k, reinterpret_cast<const std::uint32_t*>(bytes + i * k), special[i]};
    }
};

/// `words` words of each of Lanes::width lines: those of the same place become lanes.
inline void turn_lines(const std::uint32_t* lines, unsigned words, std::uint32_t* to) {
    using L = Lanes;
    L::Int part[8];
    unsigned word = 0;
    for (; word + 8 <= words; word += 8) {
        L::load_lines(lines + word, words, part);
        for (unsigned i = 0; i < 8; ++i) L::store(to + (word + i) * L::width, part[i]);
    }
    if (words - word >= 4) {
        L::load_short_lines(lines + word, words, part);
        for (unsigned i = 0; i < 4; ++i) L::store(to + (word + i) * L::width, part[i]);
        word += 4;
    }
    for (; word < words; ++word) // fewer than four
        for (unsigned lane = 0; lane < L::width; ++lane) to[word * L::width + lane] = lines[lane * words + word];
}

/// Lines that are lanes.
struct LaneBlock {
    alignas(64) float values[most_k * Lanes::width];                ///< by k, lane
    alignas(64) std::uint32_t exponents[most_k / 4 * Lanes::width]; ///< by four k, lane
    Lanes::Mask special;

    void pack(Format format, const std::uint8_t* matrix, unsigned first, unsigned k, const Window& window, int lift) {
        using L = Lanes;
        // What E is more than the sum of packed exponents goes into the lanes' bytes.
        const int bias = lift > most_lift ? 255 : 159 + lift < 0 ? 0 : 159 + lift;
        alignas(64) float flat[L::width * most_k];
        alignas(64) std::uint8_t bytes[L::width * most_k];
        bool is_special[L::width] = {};
        unpack_lines(format, matrix + std::size_t{first} * k * bits_of_format(format) / 8, L::width, k, window, flat,
                     bytes, is_special);
        std::uint32_t some = 0;
        for (unsigned i = 0; i < L::width; ++i) some |= std::uint32_t{is_special[i]} << i;
        special = L::mask_of(some);
        turn_lines(reinterpret_cast<const std::uint32_t*>(flat), k, reinterpret_cast<std::uint32_t*>(values));
        turn_lines(reinterpret_cast<const std::uint32_t*>(bytes), k / 4, exponents);
        for (unsigned i = 0; i < k / 4; ++i)
            L::store(exponents + i * L::width, L::sub_bytes(L::all(0x01010101u * static_cast<unsigned>(bias)),
                                                            L::load(exponents + i * L::width)));
    }
};

/// A row of C or D of as many columns as there are lanes.
inline Lanes::Float load_row(Format format, const void* matrix, std::size_t index) {
    return format == Format::f16 ? Lanes::load_f16(static_cast<const std::uint16_t*>(matrix) + index)
                                 : Lanes::load(static_cast<const float*>(matrix) + index);
}
inline void store_row(Format format, void* matrix, std::size_t index, Lanes::Float row) {
    if (format == Format::f16)
        Lanes::store_f16(static_cast<std::uint16_t*>(matrix) + index, row);
    else
        Lanes::store(static_cast<float*>(matrix) + index, row);
}

/// A tile of C of eight columns, as columns of lanes.
inline void load_tile(Format format, const void* matrix, std::size_t index, unsigned stride, Lanes::Int (&columns)[8]) {
    if (format != Format::f16)
        return Lanes::load_lines(static_cast<const std::uint32_t*>(matrix) + index, stride, columns);
    alignas(64) float wide[Lanes::width * 8];
    for (unsigned row = 0; row < Lanes::width; ++row)
        Lanes::store8(wide + row * 8,
                      Lanes::load8_f16(static_cast<const std::uint16_t*>(matrix) + index + row * stride));
    Lanes::load_lines(reinterpret_cast<const std::uint32_t*>(wide), 8, columns);
}

/// Columns of lanes to a tile of D. Changes `columns`.
inline void store_tile(Format format, void* matrix, std::size_t index, unsigned stride, Lanes::Int (&columns)[8]) {
    Lanes::transpose_halves(columns);
    for (unsigned i = 0; i < 8; ++i) {
        for (unsigned half = 0; half < Lanes::width / 8; ++half) {
            const std::size_t at = index + (i + 8 * half) * stride;
            if (format == Format::f16)
                Lanes::store8_f16(static_cast<std::uint16_t*>(matrix) + at, Lanes::eight_of(columns[i], half));
            else
                Lanes::store8(static_cast<float*>(matrix) + at, Lanes::eight_of(columns[i], half));
        }
    }
}

} // namespace
} // namespace ptarmigan::runtime::tensor_core
