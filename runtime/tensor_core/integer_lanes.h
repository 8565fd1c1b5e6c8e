// SPDX-License-Identifier: Apache-2.0
// Sums of integer products and of bits. Included behind Lanes, like fused_lanes.h.
//
// The CPU multiplies four bytes of a lane, signed, with four broadcast ones, unsigned (Lanes::per_word is 4), or two of
// 16 bits. Bytes that are not as it wants them are moved by 128, which a correction takes back:
//     sum (v + x) (s - y) = sum v s - y sum v + x sum s - k x y        x, y: 0 or 128
#pragma once

#include "runtime/tensor_core/dense_pair.h"
#include "runtime/tensor_core/packed_lines.h"
#include "runtime/tensor_core/product_code.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ptarmigan::runtime::tensor_core {
namespace {

constexpr unsigned most_bytes_of_line = 128; ///< s4 of k128

constexpr bool has_sign(Format format) {
    return format == Format::s8 || format == Format::s4;
}
constexpr bool is_four_bits(Format format) {
    return format == Format::s4 || format == Format::u4;
}

/// Elements as the CPU's instruction takes them. `of_lanes`: signed bytes; others: unsigned ones.
inline void unpack_integers(Format format, const std::uint8_t* from, unsigned elements, bool of_lanes,
                            std::uint32_t* words) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(words);
    auto* halves = reinterpret_cast<std::int16_t*>(words);
    const bool negative = has_sign(format);
    const auto moved = static_cast<std::uint8_t>(negative == of_lanes ? 0 : 128);
    if (is_four_bits(format)) {
        const int sign = negative ? 8 : 0;
        for (unsigned i = 0; i < elements / 2; ++i) {
            const int low = ((from[i] & 15) ^ sign) - sign, high = (from[i] >> 4 ^ sign) - sign;
            if constexpr (Lanes::per_word == 4) {
                bytes[2 * i] = static_cast<std::uint8_t>(low ^ moved);
                bytes[2 * i + 1] = static_cast<std::uint8_t>(high ^ moved);
            } else {
                halves[2 * i] = static_cast<std::int16_t>(low);
                halves[2 * i + 1] = static_cast<std::int16_t>(high);
            }
        }
    } else if constexpr (Lanes::per_word == 4) {
        for (unsigned i = 0; i < elements; ++i) bytes[i] = static_cast<std::uint8_t>(from[i] ^ moved);
    } else if (negative) {
        for (unsigned i = 0; i < elements; ++i) halves[i] = static_cast<std::int8_t>(from[i]);
    } else {
        for (unsigned i = 0; i < elements; ++i) halves[i] = from[i];
    }
}

/// Lanes of one block, and what does not depend on the other matrix.
struct IntegerBlock {
    alignas(64) std::uint32_t words[most_bytes_of_line / 2 * Lanes::width];
    Lanes::Int correction;
};

template <unsigned words>
inline Lanes::Int integer_sum(const MatrixProduct& product, const std::uint32_t* lanes, Lanes::Int lane_correction,
                              const std::uint32_t* line, int correction, Lanes::Int c) {
    using L = Lanes;
    L::Int sum = L::add(lane_correction, L::all(correction));
    if (!product.saturate) sum = L::add(sum, c);
#pragma GCC unroll 16
    for (unsigned word = 0; word < words; ++word)
        sum = L::dot(sum, L::load(lanes + word * L::width), L::all(line[word]));
    if (!product.saturate) return sum;
    const L::Int total = L::add(sum, c);
    const L::Mask over = L::is_negative(L::both(L::either(sum, total), L::either(c, total)));
    // C's sign is the sum's.
    return L::where(over, L::where(L::is_negative(c), L::all(0x80000000u), L::all(0x7fffffffu)), total);
}

template <unsigned words>
inline Lanes::Int integer_lanes(const MatrixProduct& product, const IntegerBlock& block, const std::uint32_t* line,
                                int correction, Lanes::Int c) {
    return integer_sum<words>(product, block.words, block.correction, line, correction, c);
}

struct IntegerPlan {
    const MatrixProduct& product; ///< dense
    const Operands& operands;
    bool rows_are_lanes;
};

template <unsigned words>
inline void multiply_integer_block(const IntegerPlan& plan, const IntegerBlock& block, unsigned lane_line,
                                   unsigned first, unsigned lines, const std::uint32_t* packed,
                                   const int* corrections) {
    using L = Lanes;
    const MatrixProduct& product = plan.product;
    const auto* c = static_cast<const std::uint32_t*>(plan.operands.c);
    auto* d = static_cast<std::uint32_t*>(plan.operands.d);
    if (!plan.rows_are_lanes) {
        for (unsigned i = 0; i < lines; ++i) {
            const std::size_t index = std::size_t{first + i} * product.n + lane_line;
            const L::Int row = product.c_is_zero ? L::all(0) : L::load(c + index);
            L::store(d + index, integer_lanes<words>(product, block, packed + i * words, corrections[i], row));
        }
        return;
    }
    for (unsigned i = 0; i < lines; i += 8) {
        const std::size_t index = std::size_t{lane_line} * product.n + first + i;
        L::Int columns[8];
        if (product.c_is_zero)
            for (auto& column : columns) column = L::all(0);
        else
            L::load_lines(c + index, product.n, columns);
        for (unsigned j = 0; j < 8; ++j)
            columns[j] = integer_lanes<words>(product, block, packed + (i + j) * words, corrections[i + j], columns[j]);
        store_tile(Format::s32, d, index, product.n, columns);
    }
}

template <unsigned k> void multiply_integer_lanes(const MatrixProduct& given, const Operands& given_operands) {
    using L = Lanes;
    constexpr unsigned words = k / L::per_word;
    DensePair dense;
    MatrixProduct product = given;
    Operands operands = given_operands;
    if (!dense.make(product, operands)) return multiply_portably(given, given_operands);
    const bool rows_are_lanes = product.n % L::width != 0;
    const Format lane_format = rows_are_lanes ? product.a : product.b, format = rows_are_lanes ? product.b : product.a;
    const auto* lane_matrix = static_cast<const std::uint8_t*>(rows_are_lanes ? operands.a : operands.b);
    const auto* matrix = static_cast<const std::uint8_t*>(rows_are_lanes ? operands.b : operands.a);
    const unsigned lane_lines = rows_are_lanes ? product.m : product.n,
                   all_lines = rows_are_lanes ? product.n : product.m;
    const unsigned lane_bytes = is_four_bits(lane_format) ? k / 2 : k, bytes = is_four_bits(format) ? k / 2 : k;
    const IntegerPlan plan{product, operands, rows_are_lanes};
    const bool moves = L::per_word == 4;
    const int lane_moved = moves && !has_sign(lane_format) ? 128 : 0, moved = moves && has_sign(format) ? 128 : 0;

    alignas(64) std::uint32_t packed[most_lines * most_bytes_of_line / 2];
    alignas(64) std::uint32_t flat[L::width * most_bytes_of_line / 2];
    int corrections[most_lines];
    IntegerBlock block;
    const L::Int ones = L::all(L::per_word == 4 ? 0x01010101u : 0x00010001u);
    for (unsigned first = 0; first < all_lines; first += most_lines) {
        const unsigned lines = all_lines - first < most_lines ? all_lines - first : most_lines;
        const std::uint8_t* from = matrix + std::size_t{first} * bytes;
        const bool as_it_is = L::per_word == 4 && format == Format::u8;
        if (!as_it_is) unpack_integers(format, from, lines * k, false, packed);
        const std::uint32_t* elements = as_it_is ? reinterpret_cast<const std::uint32_t*>(from) : packed;
        for (unsigned i = 0; i < lines; ++i) {
            corrections[i] = -static_cast<int>(k) * lane_moved * moved;
            if (lane_moved == 0) continue;
            const auto* bytes_of_line = reinterpret_cast<const std::uint8_t*>(elements + i * words);
            int sum = 0;
            for (unsigned j = 0; j < k; ++j) sum += bytes_of_line[j];
            corrections[i] += lane_moved * sum;
        }
        for (unsigned lane_line = 0; lane_line < lane_lines; lane_line += L::width) {
            const std::uint8_t* lane_from = lane_matrix + std::size_t{lane_line} * lane_bytes;
            if (L::per_word == 4 && lane_format == Format::s8) { // as the CPU wants them
                turn_lines(reinterpret_cast<const std::uint32_t*>(lane_from), words, block.words);
            } else {
                unpack_integers(lane_format, lane_from, L::width * k, true, flat);
                turn_lines(flat, words, block.words);
            }
            L::Int sum = L::all(0);
            for (unsigned word = 0; moved != 0 && word < words; ++word)
                sum = L::dot(sum, L::load(block.words + word * L::width), ones);
            block.correction = L::sub(L::all(0), L::up<7>(sum));
            multiply_integer_block<words>(plan, block, lane_line, first, lines, elements, corrections);
        }
    }
}

inline Multiply integer_code(const MatrixProduct& product) {
    const bool fits = product.n % Lanes::width == 0 || (product.m % Lanes::width == 0 && product.n % 8 == 0);
    if (product.unit != Unit::integer || product.m % 8 != 0 || !fits) return nullptr;
    switch (product.k) {
    case 16: return multiply_integer_lanes<16>;
    case 32: return multiply_integer_lanes<32>;
    case 64: return multiply_integer_lanes<64>;
    case 128: return multiply_integer_lanes<128>;
    default: return nullptr;
    }
}

} // namespace
} // namespace ptarmigan::runtime::tensor_core
