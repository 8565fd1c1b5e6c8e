// SPDX-License-Identifier: Apache-2.0
// Rows of A and columns of B as the vector code wants them: f32 values, and a byte with the exponent of each element.
// Included behind Lanes, like fused_lanes.h.
//
// A byte is 16 - exponent, 255 of zeros. Lanes have 159 - byte, at least 0, so that a saturated difference of bytes is
// the exponent of a product + 127, and 0 if a factor is zero.
#pragma once

#include "runtime/tensor_core/portable_product.h"
#include "runtime/tensor_core/small_elements.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ptarmigan::runtime::tensor_core {
namespace {

constexpr unsigned most_lines = 64; ///< packed at a time
constexpr unsigned most_k = 64;
constexpr int window_size = 50;
constexpr int largest_packed = 16; ///< exponent
constexpr int least_unmoved = -8;  ///< a matrix whose largest exponent is this may stay: products are normal still
constexpr int most_lift =
    255 - 159; ///< what products may be more than the packed ones, for bytes to hold their exponents

/// Where the exponents of a matrix lie. Those of bf16 and tf32 are moved so that the largest is -8 to 16 (0, if it was
/// less), and numbers that are more than window_size below it are flushed to zero; f16 and fp8 are packed as they are.
struct Window {
    bool widened = false;         ///< fp8 counts as f16
    int moved = 0;                ///< what exponents are less when packed
    int lowest_field = 1;         ///< of numbers that are kept
    int top = 16;                 ///< the largest packed exponent
    int flushed_exponent = -4096; ///< no flushed number's packed exponent was above this
    int lowest = -14;             ///< the least exponent of numbers that are kept, as they were
};

/// Elements in lanes: value, exponent byte, and whether it is infinite or NaN.
struct Unpacked {
    Lanes::Float value;
    Lanes::Int byte;
    Lanes::Mask special;
};

inline Unpacked unpack_tf32(Lanes::Int word, const Window& window) {
    using L = Lanes;
    const L::Int field = L::both(L::down<23>(word), L::all(0xff));
    const L::Mask special = L::is_equal(field, L::all(255));
    const L::Mask outside = L::or_else(L::is_greater(L::all(window.lowest_field), field), special);
    const L::Int moved = L::sub(word, L::all(static_cast<int>(static_cast<unsigned>(window.moved) << 23)));
    return {L::number(L::where(outside, L::all(0), moved)),
            L::where(outside, L::all(255), L::sub(L::all(16 + 127 + window.moved), field)), special};
}

/// The bits that count.
inline Lanes::Int load_tf32(const std::uint8_t* from, unsigned index) {
    return Lanes::both(Lanes::load(reinterpret_cast<const std::uint32_t*>(from + index * 4)), Lanes::all(~0x1fff));
}

/// Calls `body` with the kind of elements as a template argument; not for tf32.
template <typename Body> auto with_small(Format format, const Window& window, const Body& body) {
    switch (format) {
    case Format::f16: return body.template operator()<Small::f16>();
    case Format::e5m2: return body.template operator()<Small::e5m2>();
    case Format::e4m3:
        return window.widened ? body.template operator()<Small::e4m3_as_f16>()
                              : body.template operator()<Small::e4m3>();
    case Format::e3m2: return body.template operator()<Small::e3m2>();
    case Format::e2m3: return body.template operator()<Small::e2m3>();
    case Format::e2m1_in_byte: return body.template operator()<Small::e2m1>();
    default: return body.template operator()<Small::bf16>();
    }
}

/// The elements of some lines, one after the other. Where an element is special, so is its line.
inline void unpack_lines(Format format, const std::uint8_t* from, unsigned lines, unsigned k, const Window& window,
                         float* values, std::uint8_t* bytes, bool* special) {
    using L = Lanes;
    if (format != Format::tf32)
        return with_small(format, window, [&]<Small small>() {
            unpack_small<small>(from, lines * k, k, window.moved, window.lowest_field, values, bytes, special);
        });
    for (unsigned i = 0; i < lines * k; i += L::width) {
        const Unpacked unpacked = unpack_tf32(load_tf32(from, i), window);
        L::store(values + i, unpacked.value);
        L::store_bytes(bytes + i, unpacked.byte);
        if (const std::uint32_t some = L::bits_of(unpacked.special); some != 0) [[unlikely]]
            for (unsigned lane = 0; lane < L::width; ++lane)
                if (some >> lane & 1) special[(i + lane) / k] = true;
    }
}

/// Bits of a matrix's largest finite number and of its smallest one that is not zero, without signs; 0 and 0x7fffffff
/// if there are none.
struct Extent {
    int largest, smallest;
};

/// (magnitude - 1) ^ most is larger for smaller numbers, and negative for zero.
inline Extent extent_of_tf32(const std::uint8_t* matrix, unsigned elements) {
    using L = Lanes;
    L::Int largest = L::all(0), smallest = L::all(0);
    for (unsigned i = 0; i < elements; i += L::width) {
        const L::Int magnitude = L::both(load_tf32(matrix, i), L::all(0x7fffffff));
        const L::Mask special = L::is_greater(magnitude, L::all(0x7f7fffff));
        largest = L::greater(largest, L::where(special, L::all(0), magnitude));
        smallest = L::greater(smallest, L::either(L::add(magnitude, L::all(-1)), L::all(0x7fffffff)));
    }
    return {L::greatest(largest), (L::greatest(smallest) ^ 0x7fffffff) + (L::greatest(smallest) != 0)};
}

inline Extent extent_of_bf16(const std::uint8_t* matrix, unsigned elements) {
    using L = Lanes;
    L::Int largest = L::all(0), smallest = L::all(0);
    for (unsigned i = 0; i < elements; i += 2 * L::width) {
        const L::Int magnitude =
            L::magnitude_of_halves(L::load(reinterpret_cast<const std::uint32_t*>(matrix + i * 2)));
        largest = L::greater_halves(largest, L::but_halves_above(magnitude, largest_of<Small::bf16>));
        smallest = L::greater_halves(smallest, L::either(L::less_one_halves(magnitude), L::all(0x7fff7fff)));
    }
    const auto greatest = [](L::Int halves) {
        return L::greatest(L::greater(L::down<16>(halves), L::both(halves, L::all(0xffff))));
    };
    const int inverse = greatest(smallest);
    return {greatest(largest) << 16, inverse == 0 ? 0x7fffffff : ((inverse ^ 0x7fff) + 1) << 16};
}

/// The window of a matrix.
inline Window window_of(Format format, const void* matrix, unsigned elements) {
    if (format != Format::bf16 && format != Format::tf32) return {};
    const auto* bytes = static_cast<const std::uint8_t*>(matrix);
    const Extent extent = format == Format::bf16 ? extent_of_bf16(bytes, elements) : extent_of_tf32(bytes, elements);
    const int low_field = extent.smallest >> 23;
    int top_field = extent.largest >> 23 > 1 ? extent.largest >> 23 : 1;
    if (extent.largest == 0) top_field = 127; // all are zero
    Window window;
    const int exponent = top_field - 127;
    window.moved = exponent > largest_packed ? exponent - largest_packed : exponent < least_unmoved ? exponent : 0;
    window.top = exponent - window.moved;
    if (top_field > window_size) window.lowest_field = top_field - window_size;
    if (low_field < window.lowest_field) // subnormal numbers have the formal exponent of field 1
        window.flushed_exponent = (window.lowest_field > 1 ? window.lowest_field - 1 : 1) - 127 - window.moved;
    window.lowest = (low_field > window.lowest_field ? low_field : window.lowest_field) - 127;
    return window;
}

/// One line.
struct Line {
    const float* values;
    const std::uint32_t* exponents; ///< four bytes each
    const bool* special;

    /// The one that is `i` behind this one.
    Line after(unsigned i, unsigned k) const { return {values + i * k, exponents + i * k / 4, special + i}; }
    /// True if one of eight from this one on has infinities or NaNs.
    bool is_any_special() const {
        std::uint64_t some;
        std::memcpy(&some, special, sizeof some);
        return some != 0;
    }
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
        unpack_lines(format, matrix + std::size_t{first} * k * bit_size(format) / 8, lines, k, window, values, bytes,
                     special);
    }
    Line line(unsigned i) const {
        return {values + i * k, reinterpret_cast<const std::uint32_t*>(bytes + i * k), special + i};
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
        const L::Int biases = L::all(0x01010101u * static_cast<unsigned>(bias));
        const std::uint8_t* from = matrix + std::size_t{first} * k * bit_size(format) / 8;
        if (format != Format::tf32) {
            with_small(format, window, [&]<Small small>() {
                special = turn_small<small>(from, k, window.moved, window.lowest_field, biases, values, exponents);
            });
            return;
        }
        alignas(64) float flat[L::width * most_k];
        alignas(64) std::uint8_t bytes[L::width * most_k];
        bool is_special[L::width] = {};
        unpack_lines(format, from, L::width, k, window, flat, bytes, is_special);
        std::uint32_t some = 0;
        for (unsigned i = 0; i < L::width; ++i) some |= std::uint32_t{is_special[i]} << i;
        special = L::mask_of(some);
        turn_lines(reinterpret_cast<const std::uint32_t*>(flat), k, reinterpret_cast<std::uint32_t*>(values));
        turn_lines(reinterpret_cast<const std::uint32_t*>(bytes), k / 4, exponents);
        for (unsigned i = 0; i < k / 4; ++i)
            L::store(exponents + i * L::width, L::sub_bytes(biases, L::load(exponents + i * L::width)));
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
