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

/// What all sums of a call have in common. Exponents stand where f32 has them (field << 23), 127 for numbers from 1 on.
/// In memory, because GCC makes vectors of constants by way of general registers.
struct SumFrame {
    std::int32_t exponent = 0x7f800000, magnitude = 0x7fffffff, one = 1, sign = static_cast<std::int32_t>(0x80000000);
    std::int32_t half_least = 113 << 23; ///< exponent of f16's subnormal numbers
    std::int32_t fraction_bits;
    std::int32_t kept;              ///< bits of the result
    std::int32_t lift;              ///< what the packed numbers' exponents are less
    std::int32_t c_scale;           ///< 2^(fraction_bits - E) has the field c_scale - E; that of products is lift more
    std::int32_t most_scaled;       ///< larger E cut all products
    std::int32_t least;             ///< of E
    std::int32_t above_least, most; ///< where results of f32 are surely normal
    std::int32_t needed;            ///< from this E on flushed numbers don't matter
    bool negate;
    bool is_lean;  ///< products are zero or between above_least and most, and need no most_scaled; nothing is negated
    bool is_plain; ///< nothing was moved or flushed that matters
};

/// Lanes that a sum can't do: those of `lanes`, and those where `signs` is negative.
struct Left {
    Lanes::Mask lanes = Lanes::no_lanes();
    Lanes::Int signs = Lanes::all(0);

    void add(Lanes::Mask more) { lanes = Lanes::or_else(lanes, more); }
    Lanes::Mask all() const { return Lanes::or_else(lanes, Lanes::is_negative(signs)); }
};

constexpr unsigned lines_together = 2; ///< whose products are made side by side

/// Where a lane's addends are cut.
struct Cut {
    Lanes::Int of_products, top; ///< the largest exponent of products (0: all are zero), and of all addends: E
    Lanes::Float scale, c_scale; ///< 2^(fraction_bits - E), of packed products and of C
};

/// E of a sum of `products` products and `c`, which is +0 if it is `from_zero`. Lanes that can't be done are added to
/// `left`.
template <Sum sum, unsigned products, bool windowed, bool is_lean, bool from_zero>
inline Cut find_cut(const SumFrame& frame, const LaneBlock& lanes, const Line& line, unsigned first, Lanes::Float c,
                    Left& left) {
    using L = Lanes;
    const auto all = [](const std::int32_t& constant) { return L::all(constant); };
    const auto bytes_of_products = [&](unsigned group) {
        return L::sub_bytes(L::load(lanes.exponents + group * L::width), L::all(line.exponents[group]));
    };
    L::Int of_products = bytes_of_products(first / 4); // E's field; 0: all products are zero
    for (unsigned group = first / 4 + 1; group < (first + products) / 4; ++group)
        of_products = L::greater_bytes(of_products, bytes_of_products(group));
    of_products = L::greater_bytes(of_products, L::down<16>(of_products));
    of_products = L::both(L::up<23>(L::greater_bytes(of_products, L::down<8>(of_products))), all(frame.exponent));

    L::Int top = of_products;
    if constexpr (!from_zero) {
        L::Int c_exponent = L::both(L::bits(c), all(frame.exponent));
        if constexpr (is_half(sum)) {
            left.add(L::is_equal(c_exponent, all(frame.exponent))); // infinity, NaN
            c_exponent = L::but_zero(L::bits(c), L::greater(c_exponent, all(frame.half_least)));
        } else if constexpr (is_lean) {
            left.add(L::outside_and_some(c_exponent, frame.above_least, frame.most, L::bits(c)));
        }
        top = L::greater(top, c_exponent);
    }
    top = L::greater(top, all(frame.least));
    if constexpr (windowed) left.signs = L::any_of(left.signs, L::sub(top, all(frame.needed)));

    const L::Int c_scale_field = L::sub(all(frame.c_scale), top);
    const L::Float c_scale = L::number(c_scale_field);
    L::Float scale = c_scale;
    if constexpr (windowed)
        scale = L::number(
            L::add(is_lean ? c_scale_field : L::sub(all(frame.c_scale), L::smaller(top, all(frame.most_scaled))),
                   all(frame.lift)));
    return {of_products, top, scale, c_scale};
}

/// A lane's products, cut, as integers: in two parts, so that neither overflows.
struct Parts {
    Lanes::Int even, odd;
};

/// 16 products fit; more of 25 bits are added in two parts of that many (of every 8 where A has gaps, 2 of 4 each).
template <Sum sum, unsigned products>
constexpr bool is_crowded = products > 16 && (sum == Sum::f32_25 || sum == Sum::f16_25);

/// Cuts and adds the products of some lines with the same lanes.
template <Sum sum, unsigned products, unsigned k_of_line, unsigned lines>
inline void add_products(const LaneBlock& lanes, const Line& line, unsigned first, const Cut* cuts, Parts* parts) {
    using L = Lanes;
    L::Float scales[lines];
    L::Int even[lines], odd[lines];
    for (unsigned i = 0; i < lines; ++i) {
        scales[i] = cuts[i].scale;
        even[i] = odd[i] = L::all(0);
    }
#pragma GCC unroll 16
    for (unsigned k = 0; k < products; ++k) {
        const L::Float of_lanes = L::load(lanes.values + (first + k) * L::width);
        constexpr bool crowded = is_crowded<sum, products>;
        const bool is_even = (k & (crowded ? 4 : 1)) == 0;
#pragma GCC unroll 4
        for (unsigned i = 0; i < lines; ++i) {
            const L::Float product = L::mul(of_lanes, L::all(line.values[i * k_of_line + first + k]));
            L::Int& to = is_even ? even[i] : odd[i];
            to = L::add(to, L::truncate(L::mul(product, scales[i])));
        }
    }
    for (unsigned i = 0; i < lines; ++i) parts[i] = {even[i], odd[i]};
}

/// The sum of products and C, rounded as the tensor core does. Without `is_nearest` the thread rounds toward zero.
template <Sum sum, unsigned products, bool is_lean, bool is_nearest, bool from_zero>
inline Lanes::Float round_sum(const SumFrame& frame, const Cut& cut, const Parts& parts, Lanes::Float c, Left& left) {
    using L = Lanes;
    const auto all = [](const std::int32_t& constant) { return L::all(constant); };
    L::Int sum_of_products = L::add(parts.even, parts.odd);
    if constexpr (is_crowded<sum, products>) {
        left.signs = L::any_of(left.signs,
                               L::both(L::either(parts.even, sum_of_products), L::either(parts.odd, sum_of_products)));
        left.add(L::is_equal(sum_of_products, all(frame.sign))); // has no negative
    }
    if constexpr (!is_lean)
        if (frame.negate) sum_of_products = L::sub(L::all(0), sum_of_products);
    L::Int total = sum_of_products;
    if constexpr (!from_zero) {
        const L::Int addend = L::truncate(L::mul(c, cut.c_scale));
        total = L::add(sum_of_products, addend);
        left.signs = L::any_of(left.signs, L::both(L::either(sum_of_products, total), L::either(addend, total)));
    }

    L::Float rounded = is_nearest ? L::to_float_toward_zero(total) : L::to_float_if_toward_zero(total);
    const L::Float unit = L::number(L::sub(cut.top, all(frame.fraction_bits)));
    if constexpr (is_half(sum)) {
        // What was cut off becomes a sticky bit.
        rounded = L::number(L::or_unless_equal(L::bits(rounded), all(frame.one), L::truncate(rounded), total));
        const L::Float half = L::round_to_f16(L::mul(rounded, unit));
        return L::number(L::but_zero(L::bits(half), L::bits(half))); // no -0
    }
    // Results that may be subnormal or overflow are left, C's infinities and NaNs with them, but not where all is zero.
    if constexpr (!is_lean)
        left.add(L::outside_and_some(cut.top, frame.above_least, frame.most,
                                     from_zero ? cut.of_products : L::any_of(cut.of_products, L::bits(c))));
    const L::Float result = L::mul(rounded, unit);
    return sum == Sum::f32_13 ? L::number(L::both(L::bits(result), all(frame.kept))) : result;
}

/// One sum for each lane.
template <Sum sum, unsigned products, bool windowed, bool is_lean, bool is_nearest, bool from_zero>
inline Lanes::Float sum_lanes(const SumFrame& frame, const LaneBlock& lanes, const Line& line, unsigned first,
                              Lanes::Float c, Left& left) {
    const Cut cut = find_cut<sum, products, windowed, is_lean, from_zero>(frame, lanes, line, first, c, left);
    Parts parts;
    add_products<sum, products, 0, 1>(lanes, line, first, &cut, &parts);
    return round_sum<sum, products, is_lean, is_nearest, from_zero>(frame, cut, parts, c, left);
}

/// The same of eight lines of `k` elements: a step of all at a time, because a sum's steps wait for each other longer
/// than CPUs look ahead.
template <Sum sum, unsigned products, bool windowed, unsigned k, bool is_nearest, bool from_zero>
inline void sum_lean_tile(const SumFrame& frame, const LaneBlock& lanes, const Line& line, unsigned first,
                          const Lanes::Int (&c)[8], Lanes::Int (&results)[8], Left& left) {
    using L = Lanes;
    Cut cuts[8];
    Parts parts[8];
#pragma GCC unroll 8
    for (unsigned i = 0; i < 8; ++i)
        cuts[i] = find_cut<sum, products, windowed, true, from_zero>(frame, lanes, line.after(i, k), first,
                                                                     L::number(c[i]), left);
    for (unsigned i = 0; i < 8; i += lines_together)
        add_products<sum, products, k, lines_together>(lanes, line.after(i, k), first, cuts + i, parts + i);
#pragma GCC unroll 8
    for (unsigned i = 0; i < 8; ++i)
        results[i] = L::bits(
            round_sum<sum, products, true, is_nearest, from_zero>(frame, cuts[i], parts[i], L::number(c[i]), left));
}

/// `sums` sums, one after the other; the first one's C is +0 if the given one is added behind them.
template <Sum sum, unsigned products, bool windowed, unsigned sums, bool add_c>
inline Lanes::Float sums_of_lanes(const SumFrame& frame, const LaneBlock& lanes, const Line& line, Lanes::Float c,
                                  Left& left) {
    Lanes::Float result = sum_lanes<sum, products, windowed, false, add_c, add_c>(frame, lanes, line, 0, c, left);
    for (unsigned i = 1; i < sums; ++i)
        result =
            sum_lanes<sum, products, windowed, false, add_c, false>(frame, lanes, line, i * products, result, left);
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
    const std::uint8_t *lane_scales, *line_scales; ///< null, if there are none

    bool is_lean() const { return frame.is_lean && !lane_scales; }
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

constexpr int most_scale = 60; ///< so that no sum comes near its least exponent, -133

/// Exponents of the scales of lanes times that of a line; larger ones and NaN are left.
inline Lanes::Int scale_lanes(const Plan& plan, unsigned lane_line, unsigned line, Lanes::Mask& left) {
    using L = Lanes;
    const L::Int bytes = L::load_bytes(plan.lane_scales + lane_line);
    const L::Int scale = L::add(bytes, L::all(int{plan.line_scales[line]} - 2 * 127));
    left = L::or_else(left, L::is_equal(bytes, L::all(255)));
    left = L::or_else(left, L::is_greater(scale, L::all(most_scale)));
    left = L::or_else(left, L::is_greater(L::all(-most_scale), scale));
    return plan.line_scales[line] == 255 ? (left = L::mask_of(~0u), L::all(0)) : scale;
}

/// x * 2^exponent; where x is not zero and x or the product is not normal, lanes are left.
inline Lanes::Float times_power(Lanes::Float x, Lanes::Int exponent, Lanes::Mask& left) {
    using L = Lanes;
    const L::Int bits = L::bits(x), field = L::both(L::down<23>(bits), L::all(0xff));
    const L::Mask zero = L::is_equal(L::both(bits, L::all(0x7fffffff)), L::all(0));
    const L::Int moved = L::add(field, exponent);
    L::Mask wrong = L::or_else(L::is_greater(L::all(1), moved), L::is_greater(moved, L::all(254)));
    wrong = L::or_else(wrong, L::or_else(L::is_equal(field, L::all(0)), L::is_equal(field, L::all(255))));
    left = L::or_else(left, L::but_not(wrong, zero));
    return L::number(L::where(zero, bits, L::add(bits, L::up<23>(exponent))));
}

/// C's infinities and NaNs.
inline Lanes::Mask special_lanes(Lanes::Float c) {
    using L = Lanes;
    return L::is_equal(L::both(L::bits(c), L::all(0x7f800000)), L::all(0x7f800000));
}

/// One line of any kind.
template <Sum sum, unsigned products, bool windowed, unsigned sums, bool add_c>
inline Lanes::Float element_lanes(const Plan& plan, const LaneBlock& lanes, const Line& line, Lanes::Float c,
                                  unsigned lane_line, unsigned line_number) {
    using L = Lanes;
    Left left;
    left.add(*line.special ? L::mask_of(~0u) : lanes.special);
    L::Float result = c;
    [[maybe_unused]] L::Int scale = L::all(0);
    constexpr bool may_scale = sum == Sum::f32_25 && !windowed && sums == 1 && products > 16;
    if constexpr (may_scale)
        if (plan.lane_scales) {
            scale = scale_lanes(plan, lane_line, line_number, left.lanes);
            result = times_power(c, L::sub(L::all(0), scale), left.lanes);
        }
    result = sums_of_lanes<sum, products, windowed, sums, add_c>(plan.frame, lanes, line, result, left);
    if constexpr (may_scale)
        if (plan.lane_scales) result = times_power(result, scale, left.lanes);
    if constexpr (add_c) {
        left.add(special_lanes(c));
        result = L::add_to_nearest(c, result);
    }
    if (const std::uint32_t bits = L::bits_of(left.all()) & ((1u << L::width) - 1); bits != 0) [[unlikely]] {
        std::uint32_t c_of[L::width], d_of[L::width];
        L::store(c_of, L::bits(c));
        L::store(d_of, L::bits(result));
        finish(plan, lane_line, line_number, bits, c_of, d_of);
        result = L::number(L::load(d_of));
    }
    return result;
}

/// Eight lines, one after the other.
template <Sum sum, unsigned products, bool windowed, unsigned sums, bool add_c>
[[gnu::noinline]] void tile_of_any(const Plan& plan, const LaneBlock& lanes, const Line& first, Lanes::Int (&tile)[8],
                                   unsigned lane_line, unsigned line_number) {
    for (unsigned i = 0; i < 8; ++i)
        tile[i] = Lanes::bits(element_lanes<sum, products, windowed, sums, add_c>(
            plan, lanes, first.after(i, products * sums), Lanes::number(tile[i]), lane_line, line_number + i));
}

/// Eight lines of lanes: C, and then D. False, and nothing is done, if some lane's element can't be done.
template <Sum sum, unsigned products, bool windowed, unsigned sums, bool add_c>
inline bool lean_tile(const SumFrame& frame, const LaneBlock& lanes, const Line& first, Lanes::Int (&tile)[8]) {
    using L = Lanes;
    Left left;
    left.add(lanes.special);
    L::Int results[8];
    constexpr unsigned k = products * sums;
    sum_lean_tile<sum, products, windowed, k, add_c, add_c>(frame, lanes, first, 0, tile, results, left);
    for (unsigned i = 1; i < sums; ++i)
        sum_lean_tile<sum, products, windowed, k, add_c, false>(frame, lanes, first, i * products, results, results,
                                                                left);
    if constexpr (add_c)
        for (unsigned i = 0; i < 8; ++i) {
            const L::Float c = L::number(tile[i]);
            left.add(special_lanes(c));
            results[i] = L::bits(L::add_to_nearest(c, L::number(results[i])));
        }
    if (L::bits_of(left.all()) != 0) [[unlikely]]
        return false;
    for (unsigned i = 0; i < 8; ++i) tile[i] = results[i];
    return true;
}

/// Eight lines of lanes: C, and then D. What can't be done for some lane is found once for all, and done anew then.
template <Sum sum, unsigned products, bool windowed, unsigned sums, bool add_c>
inline void tile_lanes(const Plan& plan, const LaneBlock& lanes, const Line& first, Lanes::Int (&tile)[8],
                       unsigned lane_line, unsigned line_number) {
    if (plan.is_lean() && !first.is_any_special()) [[likely]] {
        if constexpr (windowed) {
            if (!plan.frame.is_plain) {
                if (lean_tile<sum, products, true, sums, add_c>(plan.frame, lanes, first, tile)) return;
            } else if (lean_tile<sum, products, false, sums, add_c>(plan.frame, lanes, first, tile)) {
                return;
            }
        } else if (lean_tile<sum, products, false, sums, add_c>(plan.frame, lanes, first, tile)) {
            return;
        }
    }
    tile_of_any<sum, products, windowed, sums, add_c>(plan, lanes, first, tile, lane_line, line_number);
}

/// All lines of one block of lanes, which are columns of B: rows of D as they lie.
template <Sum sum, unsigned products, bool windowed, unsigned sums, bool add_c>
inline void multiply_columns(const Plan& plan, const LaneBlock& lanes, const PackedLines& rows, unsigned first_row,
                             unsigned column) {
    using L = Lanes;
    for (unsigned i = 0; i < rows.count; i += 8) {
        const std::size_t index = std::size_t{first_row + i} * plan.product.n + column;
        L::Int tile[8];
        for (unsigned j = 0; j < 8; ++j)
            tile[j] = plan.product.c_is_zero
                          ? L::all(0)
                          : L::bits(load_row(plan.product.c, plan.operands.c, index + j * plan.product.n));
        tile_lanes<sum, products, windowed, sums, add_c>(plan, lanes, rows.line(i), tile, column, first_row + i);
        for (unsigned j = 0; j < 8; ++j)
            store_row(plan.product.d, plan.operands.d, index + j * plan.product.n, L::number(tile[j]));
    }
}

/// The same with rows of A as lanes: eight columns at a time are turned.
template <Sum sum, unsigned products, bool windowed, unsigned sums, bool add_c>
inline void multiply_rows(const Plan& plan, const LaneBlock& lanes, const PackedLines& columns, unsigned first_column,
                          unsigned row) {
    using L = Lanes;
    for (unsigned i = 0; i < columns.count; i += 8) {
        const std::size_t index = std::size_t{row} * plan.product.n + first_column + i;
        L::Int tile[8];
        if (plan.product.c_is_zero)
            for (auto& column : tile) column = L::all(0);
        else
            load_tile(plan.product.c, plan.operands.c, index, plan.product.n, tile);
        tile_lanes<sum, products, windowed, sums, add_c>(plan, lanes, columns.line(i), tile, row, first_column + i);
        store_tile(plan.product.d, plan.operands.d, index, plan.product.n, tile);
    }
}

template <Sum sum, unsigned products, bool windowed, unsigned sums, bool add_c> void multiply_fused(const Plan& plan) {
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
            block.pack(lane_format, lane_matrix, lane_line, k, lane_window, plan.window_a.moved + plan.window_b.moved);
            if (plan.rows_are_lanes)
                multiply_rows<sum, products, windowed, sums, add_c>(plan, block, packed, from, lane_line);
            else
                multiply_columns<sum, products, windowed, sums, add_c>(plan, block, packed, from, lane_line);
        }
    }
}

/// Nothing, if there is no code for such a k.
using MultiplyFused = void (*)(const Plan&);

template <Sum sum, bool windowed> MultiplyFused fused_code(unsigned k) {
    if constexpr (windowed)
        if (k == 4) return multiply_fused<sum, 4, windowed, 1, false>;
    if constexpr (sum == Sum::f32_25 || sum == Sum::f16_25) {
        if (k == 8) return multiply_fused<sum, 8, windowed, 1, false>;
        if (k == 16) return multiply_fused<sum, 16, windowed, 1, false>;
    }
    if (k == 32) return multiply_fused<sum, 32, windowed, 1, false>;
    if constexpr (!windowed)
        if (k == 64) return multiply_fused<sum, 64, windowed, 1, false>;
    return nullptr;
}

template <Sum sum> MultiplyFused two_sums_code(unsigned k) {
    if (k == 16) return multiply_fused<sum, 8, false, 2, true>;
    if (k == 32) return multiply_fused<sum, 16, false, 2, true>;
    return k == 64 ? multiply_fused<sum, 32, false, 2, true> : nullptr;
}

inline bool is_windowed(Format format) {
    return format == Format::bf16 || format == Format::tf32;
}

inline MultiplyFused fused_code(const MatrixProduct& product) {
    const bool half = product.c == Format::f16 && product.d == Format::f16;
    switch (product.unit) {
    case Unit::scaled:
    case Unit::fused:
        if (half) return fused_code<Sum::f16_25, false>(product.k);
        return is_windowed(product.a) ? fused_code<Sum::f32_25, true>(product.k)
                                      : fused_code<Sum::f32_25, false>(product.k);
    case Unit::fused_fp8:
        return half ? fused_code<Sum::f16_13, false>(product.k) : fused_code<Sum::f32_13, false>(product.k);
    case Unit::two_fused: return product.k == 8 ? multiply_fused<Sum::f32_25, 4, true, 2, false> : nullptr;
    case Unit::fp8_by_f16: return half ? two_sums_code<Sum::f16_25>(product.k) : two_sums_code<Sum::f32_25>(product.k);
    default: return nullptr;
    }
}

inline SumFrame frame_of(const MatrixProduct& product, const Window& a, const Window& b) {
    const bool half = product.c == Format::f16 && product.d == Format::f16, windowed = is_windowed(product.a);
    const int lift = a.moved + b.moved;
    const auto at = [](int field) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(field) << 23); };
    const int fraction_bits = product.unit == Unit::fused_fp8 ? 13 : 25;
    SumFrame frame{};
    frame.fraction_bits = at(fraction_bits);
    frame.kept = product.unit == Unit::fused_fp8 ? ~0x3ff : ~0;
    frame.lift = at(lift);
    frame.c_scale = at(fraction_bits + 254);
    const int most_scaled = fraction_bits + lift + 253;
    frame.most_scaled = at(most_scaled < 255 ? most_scaled : 255);
    // f16's is the hardware's; that of f32 would be -133, but what lies so low is left.
    int least = half ? 127 - 21 : lift > 1 ? 25 + lift : 26;
    if (least > 254) least = 254;
    const int most = 247;
    frame.least = at(least);
    frame.above_least = at(least + 1);
    frame.most = at(most);
    // Products of less than 2^(E - 25) leave nothing.
    const int of_a = a.flushed_exponent + b.top, of_b = b.flushed_exponent + a.top;
    int needed = 127 + 27 + lift + (of_a > of_b ? of_a : of_b);
    // Below, products may leave nothing where the hardware keeps some.
    if (lift < -26 && needed < 27) needed = 27;
    if (lift > most_lift || needed > 255)
        frame.needed = 0x7fffffff;
    else
        frame.needed = at(needed < 0 ? 0 : needed);
    frame.is_plain = lift == 0 && needed <= least;
    frame.negate = product.negate_product;
    // Of f16 and smaller formats products are between 2^-28 and 2^32.
    frame.is_lean = !frame.negate;
    if (windowed)
        frame.is_lean &= lift <= most_lift && most_scaled >= 255 && a.lowest + b.lowest + 127 > least &&
                         a.top + b.top + lift + 127 <= most;
    return frame;
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
    Window a = window_of(product.a, operands.a, unsigned{product.m} * product.k);
    Window b = window_of(product.b, operands.b, unsigned{product.n} * product.k);
    a.widened = b.widened = product.unit == Unit::fp8_by_f16;
    const bool rows_are_lanes = product.n % Lanes::width != 0;
    const Scales& scales = given_operands.scales;
    const bool has_scales = product.unit == Unit::scaled;
    const Plan plan{product,
                    operands,
                    rows_are_lanes,
                    frame_of(product, a, b),
                    a,
                    b,
                    given,
                    given_operands,
                    !has_scales      ? nullptr
                    : rows_are_lanes ? scales.a
                                     : scales.b,
                    !has_scales      ? nullptr
                    : rows_are_lanes ? scales.b
                                     : scales.a};
    const MultiplyFused code = fused_code(product);
    // Only what is said to round to nearest does, and nothing makes subnormal numbers that count.
    const FloatMode mode(product.unit == Unit::fp8_by_f16 ? Rounding::nearest_even : Rounding::toward_zero);
    code(plan);
}

} // namespace
} // namespace ptarmigan::runtime::tensor_core
