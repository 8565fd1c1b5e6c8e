// SPDX-License-Identifier: Apache-2.0
// Accuracy::fast for bf16 where the CPU adds two products of a lane at once, of words as they lie in the matrices.
// Included behind Lanes and PairProducts:
//     static Lanes::Float add(Lanes::Float lanes, Lanes::Float of_line, Lanes::Float sum)
#pragma once

#include "runtime/tensor_core/fast_group.h"
#include "runtime/tensor_core/packed_lines.h"

namespace ptarmigan::runtime::tensor_core {
namespace {

template <unsigned words>
inline Lanes::Float sum_pairs(const std::uint32_t* lanes, const std::uint32_t* line, Lanes::Int sign, Lanes::Float c) {
    using L = Lanes;
    L::Float sum = L::number(L::either(L::bits(c), sign));
#pragma GCC unroll 16
    for (unsigned word = 0; word < words; ++word)
        sum = PairProducts::add(L::number(L::load(lanes + word * L::width)), L::number(L::all(line[word])), sum);
    return L::number(L::either(L::bits(sum), sign));
}

template <unsigned k> void multiply_pairs(const MatrixProduct& product, const Operands& operands) {
    using L = Lanes;
    constexpr unsigned words = k / 2;
    const bool rows_are_lanes = product.n % L::width != 0;
    const auto* lane_matrix = static_cast<const std::uint32_t*>(rows_are_lanes ? operands.a : operands.b);
    const auto* matrix = static_cast<const std::uint32_t*>(rows_are_lanes ? operands.b : operands.a);
    const unsigned lane_lines = rows_are_lanes ? product.m : product.n;
    const std::size_t stride = product.n;
    const L::Int sign = L::all(product.negate_product ? 0x80000000u : 0u); // C - P is -(-C + P)
    alignas(64) std::uint32_t lanes[words * L::width];
    for (unsigned lane_line = 0; lane_line < lane_lines; lane_line += L::width) {
        turn_lines(lane_matrix + lane_line * words, words, lanes);
        for (unsigned row = 0; !rows_are_lanes && row < product.m; ++row) {
            const std::size_t index = row * stride + lane_line;
            const L::Float c = product.c_is_zero ? L::all(0.0f) : load_row(Format::f32, operands.c, index);
            store_row(Format::f32, operands.d, index, sum_pairs<words>(lanes, matrix + row * words, sign, c));
        }
        for (unsigned column = 0; rows_are_lanes && column < product.n; column += 8) {
            const std::size_t index = lane_line * stride + column;
            L::Int columns[8];
            if (product.c_is_zero)
                for (auto& of_column : columns) of_column = L::all(0);
            else
                load_tile(Format::f32, operands.c, index, product.n, columns);
            for (unsigned j = 0; j < 8; ++j)
                columns[j] =
                    L::bits(sum_pairs<words>(lanes, matrix + (column + j) * words, sign, L::number(columns[j])));
            store_tile(Format::f32, operands.d, index, product.n, columns);
        }
    }
}

template <unsigned k> void multiply_pair_group(const MatrixProduct& product, const ProductGroup& group) {
    using L = Lanes;
    constexpr unsigned words = k / 2;
    const FloatMode mode(Rounding::nearest_even);
    const Orientation way(product);
    const unsigned all_lanes = way.rows_are_lanes ? product.m * group.a_count : product.n * group.b_count;
    const auto* lane_matrix = static_cast<const std::uint32_t*>(way.rows_are_lanes ? group.a : group.b);
    const auto* lines = static_cast<const float*>(way.rows_are_lanes ? group.b : group.a); // words of two
    auto* lanes = reinterpret_cast<std::uint32_t*>(group_memory(1, std::size_t{all_lanes} * words * 4));
    for (unsigned first = 0; first < all_lanes; first += L::width)
        turn_lines(lane_matrix + std::size_t{first} * words, words, lanes + std::size_t{first} * words);
    run_fast_group<words, PairProducts>({product, group, way, reinterpret_cast<const float*>(lanes), lines});
}

inline bool is_of_pairs(const MatrixProduct& product) {
    const bool fits = product.n % Lanes::width == 0 || (product.m % Lanes::width == 0 && product.n % 8 == 0);
    return product.a == Format::bf16 && product.c == Format::f32 && product.d == Format::f32 && !product.sparse && fits;
}

/// Null where there is none for such matrices.
inline Multiply pair_code(const MatrixProduct& product) {
    if (!is_of_pairs(product)) return nullptr;
    switch (product.k) {
    case 8: return multiply_pairs<8>;
    case 16: return multiply_pairs<16>;
    default: return nullptr;
    }
}

inline MultiplyGroup pair_group_code(const MatrixProduct& product) {
    if (!is_of_pairs(product) || product.m % 8 != 0) return nullptr;
    switch (product.k) {
    case 8: return multiply_pair_group<8>;
    case 16: return multiply_pair_group<16>;
    default: return nullptr;
    }
}

} // namespace
} // namespace ptarmigan::runtime::tensor_core
