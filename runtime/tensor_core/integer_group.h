// SPDX-License-Identifier: Apache-2.0
// Groups of sums of integers. Included behind Lanes, like integer_lanes.h.
#pragma once

#include "runtime/tensor_core/integer_lanes.h"
#include "runtime/tensor_core/product_group.h"

namespace ptarmigan::runtime::tensor_core {
namespace {

template <unsigned k> void multiply_integer_group(const MatrixProduct& product, const ProductGroup& group) {
    using L = Lanes;
    constexpr unsigned words = k / L::per_word;
    const bool rows_are_lanes = product.n % L::width != 0;
    const unsigned of_a = product.m * group.a_count, of_b = product.n * group.b_count;
    const unsigned all_lanes = rows_are_lanes ? of_a : of_b, all_lines = rows_are_lanes ? of_b : of_a;
    const unsigned lane_lines = rows_are_lanes ? product.m : product.n, lines = rows_are_lanes ? product.n : product.m;
    const Format lane_format = rows_are_lanes ? product.a : product.b, format = rows_are_lanes ? product.b : product.a;
    const auto* lane_matrix = static_cast<const std::uint8_t*>(rows_are_lanes ? group.a : group.b);
    const auto* matrix = static_cast<const std::uint8_t*>(rows_are_lanes ? group.b : group.a);
    const unsigned lane_bytes = is_four_bits(lane_format) ? k / 2 : k;

    // Packed lanes, what is to be added to each lane, packed lines, what is to be added to each line.
    auto* packed = reinterpret_cast<std::uint32_t*>(
        group_memory(1, ((std::size_t{all_lanes} + all_lines) * (words + 1)) * sizeof(std::uint32_t)));
    std::uint32_t *lane_corrections = packed + all_lanes * words, *packed_lines = lane_corrections + all_lanes;
    auto* line_corrections = reinterpret_cast<int*>(packed_lines + all_lines * words);

    const bool moves = L::per_word == 4;
    const int lane_moved = moves && !has_sign(lane_format) ? 128 : 0, moved = moves && has_sign(format) ? 128 : 0;
    const bool as_it_is = moves && format == Format::u8;
    if (!as_it_is) unpack_integers(format, matrix, all_lines * k, false, packed_lines);
    const std::uint32_t* elements = as_it_is ? reinterpret_cast<const std::uint32_t*>(matrix) : packed_lines;
    for (unsigned i = 0; i < all_lines; ++i) {
        line_corrections[i] = -static_cast<int>(k) * lane_moved * moved;
        if (lane_moved == 0) continue;
        const auto* bytes_of_line = reinterpret_cast<const std::uint8_t*>(elements + i * words);
        int sum = 0;
        for (unsigned j = 0; j < k; ++j) sum += bytes_of_line[j];
        line_corrections[i] += lane_moved * sum;
    }
    alignas(64) std::uint32_t flat[L::width * words];
    const L::Int ones = L::all(moves ? 0x01010101u : 0x00010001u);
    for (unsigned first = 0; first < all_lanes; first += L::width) {
        const std::uint8_t* from = lane_matrix + std::size_t{first} * lane_bytes;
        std::uint32_t* to = packed + first * words;
        if (moves && lane_format == Format::s8) { // as the CPU wants them
            turn_lines(reinterpret_cast<const std::uint32_t*>(from), words, to);
        } else {
            unpack_integers(lane_format, from, L::width * k, true, flat);
            turn_lines(flat, words, to);
        }
        L::Int sum = L::all(0);
        for (unsigned word = 0; moved != 0 && word < words; ++word)
            sum = L::dot(sum, L::load(to + word * L::width), ones);
        L::store(lane_corrections + first, L::sub(L::all(0), L::up<7>(sum)));
    }

    const std::size_t size = std::size_t{product.m} * product.n;
    auto* accumulators = static_cast<std::uint32_t*>(group.accumulators);
    for (unsigned i = 0; i < group.chain_count; ++i) {
        const abi::MatrixChain& chain = group.chains[i];
        for (unsigned lane_line = 0; lane_line < lane_lines; lane_line += L::width) {
            for (unsigned line = 0; line < lines; line += 8) {
                const std::size_t at = rows_are_lanes ? std::size_t{lane_line} * product.n + line
                                                      : std::size_t{line} * product.n + lane_line;
                const std::uint32_t* c = accumulators + chain.c * size + at;
                std::uint32_t* d = accumulators + chain.d * size + at;
                L::Int tile[8];
                if (rows_are_lanes)
                    L::load_lines(c, product.n, tile);
                else
                    for (unsigned j = 0; j < 8; ++j) tile[j] = L::load(c + j * product.n);
                for (unsigned number = chain.first; number < unsigned{chain.first} + chain.count; ++number) {
                    const abi::MatrixStep& step = group.steps[number];
                    const unsigned of_lanes = (rows_are_lanes ? step.a : step.b) * lane_lines + lane_line,
                                   of_lines = (rows_are_lanes ? step.b : step.a) * lines + line;
                    const L::Int correction = L::load(lane_corrections + of_lanes);
                    const std::uint32_t* of_block = packed + of_lanes * words;
                    for (unsigned j = 0; j < 8; ++j)
                        tile[j] = integer_sum<words>(product, of_block, correction, elements + (of_lines + j) * words,
                                                     line_corrections[of_lines + j], tile[j]);
                }
                if (rows_are_lanes)
                    store_tile(Format::s32, d, 0, product.n, tile);
                else
                    for (unsigned j = 0; j < 8; ++j) L::store(d + j * product.n, tile[j]);
            }
        }
    }
}

inline MultiplyGroup integer_group_code(const MatrixProduct& product) {
    if (!integer_code(product) || product.sparse) return nullptr;
    switch (product.k) {
    case 16: return multiply_integer_group<16>;
    case 32: return multiply_integer_group<32>;
    case 64: return multiply_integer_group<64>;
    default: return nullptr;
    }
}

} // namespace
} // namespace ptarmigan::runtime::tensor_core
