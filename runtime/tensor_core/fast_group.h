// SPDX-License-Identifier: Apache-2.0
// Groups of fast sums: eight lines of accumulators in registers over a whole chain. Included behind fast_lanes.h.
#pragma once

#include "runtime/tensor_core/fast_lanes.h"
#include "runtime/tensor_core/fused_group.h"

namespace ptarmigan::runtime::tensor_core {
namespace {

/// Eight lines of one product; `lines` lie behind each other.
template <unsigned k> inline void add_fast(const float* lanes, const float* lines, Lanes::Float (&sums)[8]) {
    using L = Lanes;
#pragma GCC unroll 4
    for (unsigned i = 0; i < k; ++i) {
        const L::Float values = L::load(lanes + i * L::width);
#pragma GCC unroll 8
        for (unsigned j = 0; j < 8; ++j) sums[j] = L::fma(values, L::all(lines[j * k + i]), sums[j]);
    }
}

template <unsigned k> void multiply_fast_group(const MatrixProduct& product, const ProductGroup& group) {
    using L = Lanes;
    const FloatMode mode(Rounding::nearest_even);
    const Orientation way(product);
    const unsigned of_a = product.m * group.a_count, of_b = product.n * group.b_count;
    const unsigned all_lanes = way.rows_are_lanes ? of_a : of_b, all_lines = way.rows_are_lanes ? of_b : of_a;
    const Format lane_format = way.rows_are_lanes ? product.a : product.b,
                 format = way.rows_are_lanes ? product.b : product.a;
    const auto* lane_matrix = static_cast<const std::uint8_t*>(way.rows_are_lanes ? group.a : group.b);
    const auto* matrix = static_cast<const std::uint8_t*>(way.rows_are_lanes ? group.b : group.a);

    auto* lanes = reinterpret_cast<float*>(group_memory(1, (std::size_t{all_lanes} + all_lines) * k * sizeof(float)));
    float* lines = lanes + std::size_t{all_lanes} * k;
    widen_lines(format, matrix, 0, all_lines, k, lines);
    alignas(64) float flat[L::width * k];
    for (unsigned first = 0; first < all_lanes; first += L::width) {
        widen_lines(lane_format, lane_matrix, first, L::width, k, flat);
        turn_lines(reinterpret_cast<const std::uint32_t*>(flat), k,
                   reinterpret_cast<std::uint32_t*>(lanes + first * k));
    }
    run_chains(product, group,
               [&](const abi::MatrixStep* steps, unsigned count, const std::uint8_t* c, std::uint8_t* d) {
                   for (unsigned lane_line = 0; lane_line < way.lane_lines; lane_line += L::width) {
                       for (unsigned line = 0; line < way.lines; line += 8) {
                           const std::size_t index = way.index(lane_line, line, product.n);
                           L::Int tile[8];
                           L::Float sums[8];
                           load_lines_of_tile(product, way.rows_are_lanes, c, index, tile);
                           for (unsigned i = 0; i < 8; ++i) sums[i] = L::number(tile[i]);
                           for (unsigned step = 0; step < count; ++step) {
                               const unsigned of_lanes = way.lane_matrix(steps[step]) * way.lane_lines + lane_line,
                                              of_lines = way.line_matrix(steps[step]) * way.lines + line;
                               add_fast<k>(lanes + of_lanes * k, lines + of_lines * k, sums);
                               if (product.d == Format::f16) // each instruction's result is one
                                   for (auto& sum : sums) sum = L::round_to_f16(sum);
                           }
                           for (unsigned i = 0; i < 8; ++i) tile[i] = L::bits(sums[i]);
                           store_lines_of_tile(product, way.rows_are_lanes, d, index, tile);
                       }
                   }
               });
}

inline MultiplyGroup fast_group_code(const MatrixProduct& product) {
    if (!fast_code(product) || product.sparse) return nullptr;
    switch (product.k) {
    case 4: return multiply_fast_group<4>;
    case 8: return multiply_fast_group<8>;
    case 16: return multiply_fast_group<16>;
    case 32: return multiply_fast_group<32>;
    default: return nullptr;
    }
}

} // namespace
} // namespace ptarmigan::runtime::tensor_core
