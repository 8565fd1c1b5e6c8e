// SPDX-License-Identifier: Apache-2.0
// The tensor core's sums by vector code: lanes are rows of A or columns of B ("lines"), the lines of the other matrix
// are broadcast element by element. Included by product_avx512.cpp and product_avx2.cpp behind their Lanes; README.md
// says why the result is exact.
#pragma once

#include "runtime/tensor_core/dense_pair.h"
#include "runtime/tensor_core/packed_lines.h"

#include <initializer_list>

namespace ptarmigan::runtime::tensor_core {
namespace {

enum class Sum : std::uint8_t { f32_25, f16_25, f32_13, f16_13 }; ///< result, fraction bits of the addends

constexpr bool is_half(Sum sum) {
    return sum == Sum::f16_25 || sum == Sum::f16_13;
}

/// What all sums of a call have in common.
struct SumFrame {
    int lift;   ///< what the packed exponents lack
    int least;  ///< of E, packed
    int needed; ///< E, packed, from which on flushed elements don't matter
    bool negate;
};

constexpr int nothing = -4096; ///< the exponent of zeros

/// One sum for each lane: of `products` products and `c`. Lanes that this can't do are added to `left`.
template <Sum sum, unsigned products>
inline Lanes::Float sum_lanes(const SumFrame& frame, const LaneBlock& lanes, const Line& line, unsigned first,
                              Lanes::Float c, Lanes::Mask& left) {
    using L = Lanes;
    constexpr int fraction_bits = sum == Sum::f32_25 || sum == Sum::f16_25 ? 25 : 13;
    L::Int most = L::all(0);
    for (unsigned group = first / 4; group < (first + products) / 4; ++group)
        most = L::greater_bytes(
            most, L::sub_bytes(L::load(lanes.exponents + group * L::width), L::all(line.exponents[group])));
    most = L::greater_bytes(most, L::down<16>(most));
    most = L::both(L::greater_bytes(most, L::down<8>(most)), L::all(0xff));
    const L::Int of_products =
        L::where(L::is_equal(most, L::all(0)), L::all(nothing), L::sub(most, L::all(packed_bias)));

    const L::Int c_field = L::both(L::down<23>(L::bits(c)), L::all(0xff));
    left = L::or_else(left, L::is_equal(c_field, L::all(0xff))); // infinity, NaN
    const L::Int c_exponent = L::greater(L::sub(c_field, L::all(127)), L::all(-126));
    const L::Int c_formal = is_half(sum) ? L::greater(c_exponent, L::all(-14)) : c_exponent;
    const L::Int of_c =
        L::where(L::is_equal(L::up<1>(L::bits(c)), L::all(0)), L::all(nothing), L::sub(c_formal, L::all(frame.lift)));
    const L::Int top = L::greater(L::greater(of_products, of_c), L::all(frame.least));
    left = L::or_else(left, L::is_greater(L::all(frame.needed), top));

    // From 2^60 on no product leaves anything; below 2^-100 there are none.
    const L::Float scale =
        L::power(L::sub(L::all(fraction_bits), L::smaller(L::greater(top, L::all(-100)), L::all(60))));
    L::Int sums[2] = {L::all(0), L::all(0)};
#pragma GCC unroll 16
    for (unsigned k = first; k < first + products; ++k) {
        const L::Float product = L::mul(L::load(lanes.values + k * L::width), L::all(line.values[k]));
        sums[k % 2] = L::add(sums[k % 2], L::truncate(L::mul(product, scale)));
    }
    L::Int of_all = L::add(sums[0], sums[1]);
    if (frame.negate) of_all = L::sub(L::all(0), of_all);
    const L::Int shift = L::sub(L::all(fraction_bits - frame.lift), top);
    const L::Int addend = L::cut(c, c_exponent, shift);
    const L::Int total = L::add(of_all, addend);
    left = L::or_else(left, L::is_negative(L::both(L::either(of_all, total), L::either(addend, total))));

    L::Float rounded = L::to_float_toward_zero(total);
    const L::Int exponent = L::sub(L::all(0), shift);
    if constexpr (is_half(sum)) {
        // What was cut off becomes a sticky bit.
        const L::Int sticky = L::where(L::is_equal(L::truncate(rounded), total), L::all(0), L::all(1));
        rounded = L::number(L::any_of(L::bits(rounded), sticky));
        const L::Float half = L::round_to_f16(L::mul(rounded, L::power(exponent)));
        return L::number(L::where(L::is_equal(L::bits(half), L::all(0x80000000u)), L::all(0), L::bits(half)));
    }
    // Results that may be subnormal or overflow are left.
    const L::Int clamped = L::greater(L::smaller(exponent, L::all(96)), L::all(-125));
    left = L::or_else(
        left, L::but_not(L::but_not(L::mask_of(~0u), L::is_equal(exponent, clamped)), L::is_equal(total, L::all(0))));
    L::Float result = L::mul(rounded, L::power(clamped));
    if constexpr (sum == Sum::f32_13) result = L::number(L::both(L::bits(result), L::all(~0x3ff)));
    return result;
}

/// How a call goes through its matrices.
struct Plan {
    const MatrixProduct& product; ///< dense
    const Operands& operands;
    bool rows_are_lanes;
    SumFrame frame;
    Window window_a, window_b;
    const MatrixProduct& given; ///< as the caller has it, for lanes that are left
    const Operands& given_operands;
};

/// The elements that the vector code has left, in place of the lanes.
[[gnu::noinline, gnu::cold]] inline void finish(const Plan& plan, unsigned lane_line, unsigned line, std::uint32_t left,
                                                const std::uint32_t* c, std::uint32_t* d) {
    for (unsigned lane = 0; lane < Lanes::width; ++lane) {
        if (!(left >> lane & 1)) continue;
        const unsigned row = plan.rows_are_lanes ? lane_line + lane : line,
                       column = plan.rows_are_lanes ? line : lane_line + lane;
        d[lane] = wide_element_of(plan.given, plan.given_operands, row, column, c[lane]);
    }
}

template <Sum sum, unsigned products, unsigned sums, bool add_c>
inline Lanes::Float element_lanes(const Plan& plan, const LaneBlock& lanes, const Line& line, Lanes::Float c,
                                  unsigned lane_line, unsigned line_number) {
    using L = Lanes;
    L::Mask left = lanes.special;
    if (line.special) left = L::mask_of(~0u);
    L::Float result = add_c ? L::all(0.0f) : c;
    for (unsigned i = 0; i < sums; ++i)
        result = sum_lanes<sum, products>(plan.frame, lanes, line, i * products, result, left);
    if constexpr (add_c) {
        left = L::or_else(left, L::is_equal(L::both(L::bits(c), L::all(0x7f800000)), L::all(0x7f800000)));
        result = L::add_to_nearest(c, result);
    }
    if (const std::uint32_t bits = L::bits_of(left) & ((1u << L::width) - 1); bits != 0) [[unlikely]] {
        std::uint32_t c_of[L::width], d_of[L::width];
        L::store(c_of, L::bits(c));
        L::store(d_of, L::bits(result));
        finish(plan, lane_line, line_number, bits, c_of, d_of);
        result = L::number(L::load(d_of));
    }
    return result;
}

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

/// All lines of one block of lanes, which are columns of B: rows of D as they lie.
template <Sum sum, unsigned products, unsigned sums, bool add_c>
inline void multiply_columns(const Plan& plan, const LaneBlock& lanes, const PackedLines& rows, unsigned first_row,
                             unsigned column) {
    for (unsigned i = 0; i < rows.count; ++i) {
        const std::size_t index = std::size_t{first_row + i} * plan.product.n + column;
        const Lanes::Float c =
            plan.product.c_is_zero ? Lanes::all(0.0f) : load_row(plan.product.c, plan.operands.c, index);
        store_row(plan.product.d, plan.operands.d, index,
                  element_lanes<sum, products, sums, add_c>(plan, lanes, rows.line(i), c, column, first_row + i));
    }
}

/// The same with rows of A as lanes: eight columns at a time are turned.
template <Sum sum, unsigned products, unsigned sums, bool add_c>
inline void multiply_rows(const Plan& plan, const LaneBlock& lanes, const PackedLines& columns, unsigned first_column,
                          unsigned row) {
    using L = Lanes;
    for (unsigned i = 0; i < columns.count; i += 8) {
        const std::size_t index = std::size_t{row} * plan.product.n + first_column + i;
        L::Int c[8], d[8];
        if (plan.product.c_is_zero)
            for (auto& column : c) column = L::all(0);
        else
            load_tile(plan.product.c, plan.operands.c, index, plan.product.n, c);
        for (unsigned j = 0; j < 8; ++j)
            d[j] = L::bits(element_lanes<sum, products, sums, add_c>(plan, lanes, columns.line(i + j), L::number(c[j]),
                                                                     row, first_column + i + j));
        store_tile(plan.product.d, plan.operands.d, index, plan.product.n, d);
    }
}

template <Sum sum, unsigned products, unsigned sums, bool add_c> void multiply_fused(const Plan& plan) {
    const MatrixProduct& product = plan.product;
    const unsigned lane_lines = plan.rows_are_lanes ? product.m : product.n,
                   lines = plan.rows_are_lanes ? product.n : product.m;
    constexpr unsigned k = products * sums;
    const Format lane_format = plan.rows_are_lanes ? product.a : product.b,
                 format = plan.rows_are_lanes ? product.b : product.a;
    const auto* lane_matrix = static_cast<const std::uint8_t*>(plan.rows_are_lanes ? plan.operands.a : plan.operands.b);
    const auto* matrix = static_cast<const std::uint8_t*>(plan.rows_are_lanes ? plan.operands.b : plan.operands.a);
    const Window &lane_window = plan.rows_are_lanes ? plan.window_a : plan.window_b,
                 &window = plan.rows_are_lanes ? plan.window_b : plan.window_a;
    PackedLines packed;
    LaneBlock block;
    for (unsigned from = 0; from < lines; from += most_lines) {
        packed.pack(format, matrix, from, lines - from < most_lines ? lines - from : most_lines, k, window);
        for (unsigned lane_line = 0; lane_line < lane_lines; lane_line += Lanes::width) {
            block.pack(lane_format, lane_matrix, lane_line, k, lane_window);
            if (plan.rows_are_lanes)
                multiply_rows<sum, products, sums, add_c>(plan, block, packed, from, lane_line);
            else
                multiply_columns<sum, products, sums, add_c>(plan, block, packed, from, lane_line);
        }
    }
}

/// Nothing, if there is no code for such a k.
using MultiplyFused = void (*)(const Plan&);

template <Sum sum> MultiplyFused fused_code(unsigned k) {
    if constexpr (sum == Sum::f32_25)
        if (k == 4) return multiply_fused<sum, 4, 1, false>;
    if constexpr (sum == Sum::f32_25 || sum == Sum::f16_25) {
        if (k == 8) return multiply_fused<sum, 8, 1, false>;
        if (k == 16) return multiply_fused<sum, 16, 1, false>;
    }
    if (k == 32) return multiply_fused<sum, 32, 1, false>;
    if constexpr (sum == Sum::f32_13 || sum == Sum::f16_13)
        if (k == 64) return multiply_fused<sum, 64, 1, false>;
    return nullptr;
}

template <Sum sum> MultiplyFused two_sums_code(unsigned k) {
    if (k == 16) return multiply_fused<sum, 8, 2, true>;
    if (k == 32) return multiply_fused<sum, 16, 2, true>;
    return k == 64 ? multiply_fused<sum, 32, 2, true> : nullptr;
}

inline MultiplyFused fused_code(const MatrixProduct& product) {
    const bool half = product.c == Format::f16 && product.d == Format::f16;
    switch (product.unit) {
    case Unit::fused: return half ? fused_code<Sum::f16_25>(product.k) : fused_code<Sum::f32_25>(product.k);
    case Unit::fused_fp8: return half ? fused_code<Sum::f16_13>(product.k) : fused_code<Sum::f32_13>(product.k);
    case Unit::two_fused: return product.k == 8 ? multiply_fused<Sum::f32_25, 4, 2, false> : nullptr;
    case Unit::fp8_by_f16: return half ? two_sums_code<Sum::f16_25>(product.k) : two_sums_code<Sum::f32_25>(product.k);
    default: return nullptr;
    }
}

/// True if the units of fused sums can be done for such matrices.
inline bool has_fused_code(const MatrixProduct& product) {
    return (product.n % Lanes::width == 0 || (product.m % Lanes::width == 0 && product.n % 8 == 0)) &&
           product.m % 8 == 0 && fused_code(product) != nullptr;
}

inline void multiply_fused_lanes(const MatrixProduct& given, const Operands& given_operands) {
    DensePair dense;
    MatrixProduct product = given;
    Operands operands = given_operands;
    if (!dense.make(product, operands)) return multiply_portably(given, given_operands);
    const Window a = window_of(product.a, operands.a, unsigned{product.m} * product.k);
    const Window b = window_of(product.b, operands.b, unsigned{product.n} * product.k);
    const bool half = product.c == Format::f16 && product.d == Format::f16;
    const int lift = a.top - 127 + b.top - 127;
    int needed = nothing;
    for (const Window& window : {a, b}) // a product of less than 2^(E - 25) leaves nothing
        if (window.flushed && window.flushed_exponent() + 27 > needed) needed = window.flushed_exponent() + 27;
    const Plan plan{product,
                    operands,
                    product.n % Lanes::width != 0,
                    {lift, (half ? -21 : -133) - lift, needed, product.negate_product},
                    a,
                    b,
                    given,
                    given_operands};
    const FloatMode mode(Rounding::nearest_even);
    fused_code(product)(plan);
}

} // namespace
} // namespace ptarmigan::runtime::tensor_core
