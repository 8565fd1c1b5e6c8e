// SPDX-License-Identifier: Apache-2.0
// Groups of the tensor core's sums: fused_lanes.h with each matrix packed once, and accumulators that stay in registers
// from the first product of a chain to the last.
#pragma once

#include "runtime/tensor_core/fused_lanes.h"
#include "runtime/tensor_core/product_group.h"

namespace ptarmigan::runtime::tensor_core {
namespace {

/// Matrices whose lines are broadcast, all packed.
struct BroadcastLines {
    float* values;
    std::uint8_t* bytes;
    bool* special;
    unsigned k;

    Line line(unsigned i) const {
        return {values + i * k, reinterpret_cast<const std::uint32_t*>(bytes + i * k), special + i};
    }
};

/// All operands of a group in the engine's layout, in the thread's memory.
struct PackedGroup {
    BroadcastLines lines;
    LaneBlock* blocks; ///< Lanes::width lines each

    PackedGroup(unsigned broadcast_lines, unsigned lane_lines, unsigned k) {
        const std::size_t elements = std::size_t{broadcast_lines} * k;
        const std::size_t of_blocks = lane_lines / Lanes::width * sizeof(LaneBlock);
        std::uint8_t* memory = group_memory(1, of_blocks + elements * 5 + broadcast_lines + 64);
        blocks = reinterpret_cast<LaneBlock*>(memory);
        lines.values = reinterpret_cast<float*>(memory + of_blocks);
        lines.bytes = memory + of_blocks + elements * 4;
        lines.special = reinterpret_cast<bool*>(memory + of_blocks + elements * 5);
        lines.k = k;
        for (unsigned i = 0; i < broadcast_lines; ++i) lines.special[i] = false;
    }
};

/// Accumulators' tiles of eight lines of lanes, one chain after the other.
template <class Tile>
inline void run_chains(const MatrixProduct& product, const ProductGroup& group, const Tile& tile) {
    const std::size_t size = std::size_t{product.m} * product.n * (product.d == Format::f16 ? 2 : 4);
    auto* accumulators = static_cast<std::uint8_t*>(group.accumulators);
    for (unsigned i = 0; i < group.chain_count; ++i) {
        const abi::MatrixChain& chain = group.chains[i];
        tile(group.steps + chain.first, chain.count, accumulators + chain.c * size, accumulators + chain.d * size);
    }
}

/// Eight lines of lanes of an accumulator: rows as they lie, or columns that are turned.
inline void load_lines_of_tile(const MatrixProduct& product, bool rows_are_lanes, const std::uint8_t* c,
                               std::size_t index, Lanes::Int (&lines)[8]) {
    if (rows_are_lanes) return load_tile(product.c, c, index, product.n, lines);
    for (unsigned i = 0; i < 8; ++i) lines[i] = Lanes::bits(load_row(product.c, c, index + i * product.n));
}
inline void store_lines_of_tile(const MatrixProduct& product, bool rows_are_lanes, std::uint8_t* d, std::size_t index,
                                Lanes::Int (&lines)[8]) {
    if (rows_are_lanes) return store_tile(product.d, d, index, product.n, lines);
    for (unsigned i = 0; i < 8; ++i) store_row(product.d, d, index + i * product.n, Lanes::number(lines[i]));
}

/// Which way round, and how many lines of one matrix.
struct Orientation {
    bool rows_are_lanes;
    unsigned lane_lines, lines;

    explicit Orientation(const MatrixProduct& product)
        : rows_are_lanes(product.n % Lanes::width != 0), lane_lines(rows_are_lanes ? product.m : product.n),
          lines(rows_are_lanes ? product.n : product.m) {}
    unsigned lane_matrix(const abi::MatrixStep& step) const { return rows_are_lanes ? step.a : step.b; }
    unsigned line_matrix(const abi::MatrixStep& step) const { return rows_are_lanes ? step.b : step.a; }
    std::size_t index(unsigned lane_line, unsigned line, unsigned n) const {
        return rows_are_lanes ? std::size_t{lane_line} * n + line : std::size_t{line} * n + lane_line;
    }
};

template <Sum sum, unsigned products, bool windowed, unsigned sums, bool add_c>
void multiply_fused_group(const MatrixProduct& product, const ProductGroup& group) {
    const FloatMode mode(add_c ? Rounding::nearest_even : Rounding::toward_zero);
    constexpr unsigned k = products * sums;
    MatrixProduct stacked = product;
    stacked.m = static_cast<std::uint16_t>(product.m * group.a_count);
    stacked.n = static_cast<std::uint16_t>(product.n * group.b_count);
    const Operands given{group.a, group.b, nullptr, nullptr, nullptr};
    Operands operands = given;
    if constexpr (add_c) {
        const std::size_t bytes_a = std::size_t{stacked.m} * k, bytes_b = std::size_t{stacked.n} * k;
        std::uint8_t* parted = group_memory(2, bytes_a + bytes_b);
        part_for_two_sums(group.a, stacked.m, k, parted);
        part_for_two_sums(group.b, stacked.n, k, parted + bytes_a);
        operands.a = parted;
        operands.b = parted + bytes_a;
    }
    Window a = window_of(product.a, operands.a, unsigned{stacked.m} * k);
    Window b = window_of(product.b, operands.b, unsigned{stacked.n} * k);
    a.widened = b.widened = add_c;
    const Orientation way(product);
    const Plan plan{stacked, operands, way.rows_are_lanes, frame_of(product, a, b), a, b, stacked, given};

    const unsigned all_lanes = way.rows_are_lanes ? stacked.m : stacked.n,
                   all_lines = way.rows_are_lanes ? stacked.n : stacked.m;
    const Format lane_format = way.rows_are_lanes ? product.a : product.b,
                 format = way.rows_are_lanes ? product.b : product.a;
    const void *lane_matrix = way.rows_are_lanes ? operands.a : operands.b,
               *matrix = way.rows_are_lanes ? operands.b : operands.a;
    const PackedGroup packed(all_lines, all_lanes, k);
    unpack_lines(format, static_cast<const std::uint8_t*>(matrix), all_lines, k, way.rows_are_lanes ? b : a,
                 packed.lines.values, packed.lines.bytes, packed.lines.special);
    for (unsigned first = 0; first < all_lanes; first += Lanes::width)
        packed.blocks[first / Lanes::width].pack(lane_format, static_cast<const std::uint8_t*>(lane_matrix), first, k,
                                                 way.rows_are_lanes ? a : b, a.moved + b.moved);

    run_chains(product, group,
               [&](const abi::MatrixStep* steps, unsigned count, const std::uint8_t* c, std::uint8_t* d) {
                   for (unsigned lane_line = 0; lane_line < way.lane_lines; lane_line += Lanes::width) {
                       for (unsigned line = 0; line < way.lines; line += 8) {
                           const std::size_t index = way.index(lane_line, line, product.n);
                           Lanes::Int tile[8];
                           load_lines_of_tile(product, way.rows_are_lanes, c, index, tile);
                           for (unsigned step = 0; step < count; ++step) {
                               const unsigned of_lanes = way.lane_matrix(steps[step]) * way.lane_lines + lane_line,
                                              of_lines = way.line_matrix(steps[step]) * way.lines + line;
                               const LaneBlock& block = packed.blocks[of_lanes / Lanes::width];
                               tile_lanes<sum, products, windowed, sums, add_c>(
                                   plan, block, packed.lines.line(of_lines), tile, of_lanes, of_lines);
                               // C's addition is in f32; sums of halves are rounded already.
                               if constexpr (add_c && is_half(sum))
                                   for (auto& line_of_tile : tile)
                                       line_of_tile = Lanes::bits(Lanes::round_to_f16(Lanes::number(line_of_tile)));
                           }
                           store_lines_of_tile(product, way.rows_are_lanes, d, index, tile);
                       }
                   }
               });
}

template <Sum sum, bool windowed> MultiplyGroup fused_group_code(unsigned k) {
    if constexpr (windowed)
        if (k == 4) return multiply_fused_group<sum, 4, windowed, 1, false>;
    if (k == 8) return multiply_fused_group<sum, 8, windowed, 1, false>;
    return k == 16 ? multiply_fused_group<sum, 16, windowed, 1, false> : nullptr;
}

inline MultiplyGroup fused_group_code(const MatrixProduct& product) {
    if (!has_fused_code(product)) return nullptr;
    const bool half = product.d == Format::f16;
    switch (product.unit) {
    case Unit::fused:
        if (half) return fused_group_code<Sum::f16_25, false>(product.k);
        return is_windowed(product.a) ? fused_group_code<Sum::f32_25, true>(product.k)
                                      : fused_group_code<Sum::f32_25, false>(product.k);
    case Unit::two_fused: return product.k == 8 ? multiply_fused_group<Sum::f32_25, 4, true, 2, false> : nullptr;
    case Unit::fp8_by_f16:
        if (product.k == 16)
            return half ? multiply_fused_group<Sum::f16_25, 8, false, 2, true>
                        : multiply_fused_group<Sum::f32_25, 8, false, 2, true>;
        if (product.k == 32)
            return half ? multiply_fused_group<Sum::f16_25, 16, false, 2, true>
                        : multiply_fused_group<Sum::f32_25, 16, false, 2, true>;
        return nullptr;
    default: return nullptr;
    }
}

} // namespace
} // namespace ptarmigan::runtime::tensor_core
