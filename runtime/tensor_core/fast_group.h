// SPDX-License-Identifier: Apache-2.0
// Groups of fast sums: some lines of two vectors of accumulators in registers over a whole chain. Included behind
// fast_lanes.h.
#pragma once

#include "runtime/tensor_core/fast_lanes.h"
#include "runtime/tensor_core/fused_group.h"

namespace ptarmigan::runtime::tensor_core {
namespace {

/// Lines at once of which `left` are to be done, times two vectors: registers for accumulators, of which 32 registers
/// hold 16 and 16 registers 12. Eight are what two multiply-adds a cycle wait for.
constexpr unsigned lines_at_once(unsigned left) {
    if (Lanes::width == 16) return 8;
    return left >= 12 || left % 4 != 0 ? 6 : 4;
}

/// What a step of k does.
struct MultiplyAdd {
    static Lanes::Float add(Lanes::Float lanes, Lanes::Float of_line, Lanes::Float sum) {
        return Lanes::fma(lanes, of_line, sum);
    }
};

/// Some lines of one product, which lie behind each other, times some vectors of lanes.
template <unsigned k, class Step, unsigned vectors, unsigned count>
inline void add_fast(const float* const (&lanes)[vectors], const float* lines, Lanes::Float (&sums)[vectors][count]) {
    using L = Lanes;
#pragma GCC unroll 16
    for (unsigned i = 0; i < k; ++i) {
        L::Float values[vectors];
        for (unsigned v = 0; v < vectors; ++v) values[v] = L::load(lanes[v] + i * L::width);
#pragma GCC unroll 8
        for (unsigned j = 0; j < count; ++j) {
            const L::Float of_line = L::all(lines[j * k + i]);
            for (unsigned v = 0; v < vectors; ++v) sums[v][j] = Step::add(values[v], of_line, sums[v][j]);
        }
    }
}

/// Matrices of a group as `Step` takes them, `k` words to a line.
struct FastGroup {
    const MatrixProduct& product;
    const ProductGroup& group;
    const Orientation& way;
    const float *lanes, *lines;

    std::uint8_t* accumulator(unsigned number) const {
        const std::size_t size = std::size_t{product.m} * product.n * (product.d == Format::f16 ? 2 : 4);
        return static_cast<std::uint8_t*>(group.accumulators) + number * size;
    }
};

/// Lanes of a chain's accumulator.
struct ChainLanes {
    const abi::MatrixChain* chain;
    unsigned lane_line;
};

/// `lines` lines from `line` on of chains whose lines are the same, from their first product to their last.
template <unsigned k, class Step, unsigned lines, unsigned vectors>
inline void run_fast_lines(const FastGroup& the, const ChainLanes (&places)[vectors], unsigned line) {
    using L = Lanes;
    const MatrixProduct& product = the.product;
    L::Float sums[vectors][lines];
#pragma GCC unroll 2
    for (unsigned v = 0; v < vectors; ++v) {
        const std::uint8_t* c = the.accumulator(places[v].chain->c);
        const std::size_t index = the.way.index(places[v].lane_line, line, product.n);
        if (the.way.rows_are_lanes) {
            L::Int tile[8];
            load_tile(product.c, c, index, product.n, tile);
#pragma GCC unroll 8
            for (unsigned i = 0; i < lines; ++i) sums[v][i] = L::number(tile[i]);
        } else if (product.c == Format::f32) {
#pragma GCC unroll 8
            for (unsigned i = 0; i < lines; ++i)
                sums[v][i] = L::load(reinterpret_cast<const float*>(c) + index + i * product.n);
        } else {
#pragma GCC unroll 8
            for (unsigned i = 0; i < lines; ++i) sums[v][i] = load_row(product.c, c, index + i * product.n);
        }
    }
    const unsigned count = places[0].chain->count;
    for (unsigned step = 0; step < count; ++step) {
        const float* lanes[vectors];
        for (unsigned v = 0; v < vectors; ++v)
            lanes[v] =
                the.lanes + (the.way.lane_matrix(the.group.steps[places[v].chain->first + step]) * the.way.lane_lines +
                             places[v].lane_line) *
                                std::size_t{k};
        const unsigned matrix = the.way.line_matrix(the.group.steps[places[0].chain->first + step]);
        add_fast<k, Step, vectors>(lanes, the.lines + (matrix * the.way.lines + line) * std::size_t{k}, sums);
        if (product.d == Format::f16) // each instruction's result is one
            for (auto& vector : sums)
                for (auto& sum : vector) sum = L::round_to_f16(sum);
    }
#pragma GCC unroll 2
    for (unsigned v = 0; v < vectors; ++v) {
        std::uint8_t* d = the.accumulator(places[v].chain->d);
        const std::size_t index = the.way.index(places[v].lane_line, line, product.n);
        if (the.way.rows_are_lanes) {
            L::Int tile[8] = {};
#pragma GCC unroll 8
            for (unsigned i = 0; i < lines; ++i) tile[i] = L::bits(sums[v][i]);
            store_tile(product.d, d, index, product.n, tile);
        } else if (product.d == Format::f32) {
#pragma GCC unroll 8
            for (unsigned i = 0; i < lines; ++i)
                L::store(reinterpret_cast<float*>(d) + index + i * product.n, sums[v][i]);
        } else {
#pragma GCC unroll 8
            for (unsigned i = 0; i < lines; ++i) store_row(product.d, d, index + i * product.n, sums[v][i]);
        }
    }
}

/// All lines of them.
template <unsigned k, class Step, unsigned vectors>
inline void run_fast_chains(const FastGroup& the, const ChainLanes (&places)[vectors]) {
    for (unsigned line = 0; line < the.way.lines;) {
        const unsigned count = lines_at_once(the.way.lines - line);
        if constexpr (Lanes::width == 16)
            run_fast_lines<k, Step, 8>(the, places, line);
        else if (count == 6)
            run_fast_lines<k, Step, 6>(the, places, line);
        else
            run_fast_lines<k, Step, 4>(the, places, line);
        line += count;
    }
}

/// True if two chains that follow each other may be done side by side: their lines are the same, and the second one
/// does not need what the first one makes, nor the other way round.
inline bool go_together(const FastGroup& the, const abi::MatrixChain& first, const abi::MatrixChain& second) {
    if (first.count != second.count || second.c == first.d || second.d == first.c || second.d == first.d) return false;
    for (unsigned step = 0; step < first.count; ++step)
        if (the.way.line_matrix(the.group.steps[first.first + step]) !=
            the.way.line_matrix(the.group.steps[second.first + step]))
            return false;
    return true;
}

/// All chains of a group.
template <unsigned k, class Step> inline void run_fast_group(const FastGroup& the) {
    using L = Lanes;
    const Orientation& way = the.way;
    const abi::MatrixChain* const end = the.group.chains + the.group.chain_count;
    for (const abi::MatrixChain* chain = the.group.chains; chain < end; ++chain) {
        unsigned lane_line = 0;
        for (; lane_line + 2 * L::width <= way.lane_lines; lane_line += 2 * L::width)
            run_fast_chains<k, Step, 2>(the, {{chain, lane_line}, {chain, lane_line + L::width}});
        if (lane_line == way.lane_lines) continue;
        if (way.lane_lines == L::width && chain + 1 < end && go_together(the, chain[0], chain[1])) {
            run_fast_chains<k, Step, 2>(the, {{chain, 0}, {chain + 1, 0}});
            ++chain;
            continue;
        }
        run_fast_chains<k, Step, 1>(the, {{chain, lane_line}});
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
    run_fast_group<k, MultiplyAdd>({product, group, way, lanes, lines});
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
