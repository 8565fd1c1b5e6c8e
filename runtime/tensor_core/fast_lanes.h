// SPDX-License-Identifier: Apache-2.0
// Accuracy::fast: sums in f32, a fused multiply-add for each k in ascending order. Included behind Lanes, like
// fused_lanes.h.
#pragma once

#include "runtime/tensor_core/dense_pair.h"
#include "runtime/tensor_core/packed_lines.h"

#include <cstddef>
#include <cstdint>

namespace ptarmigan::runtime::tensor_core {
namespace {

/// Elements of a matrix from `index` on.
template <Format format> inline Lanes::Float widen(const std::uint8_t* from, unsigned index) {
    using L = Lanes;
    const auto small = [&]<Small kind>() {
        return numbers_of<kind>(L::widen_f16(halves_of_bytes<kind>(L::load_bytes(from + index))));
    };
    if constexpr (format == Format::f16) return L::load_f16(from + index * 2);
    if constexpr (format == Format::e5m2) return L::widen_f16(L::up<8>(L::load_bytes(from + index)));
    if constexpr (format == Format::e4m3) {
        const L::Int magnitude = L::both(L::load_bytes(from + index), L::all(0x7f));
        const L::Float value = small.template operator()<Small::e4m3>();
        return L::number(L::where(L::is_equal(magnitude, L::all(0x7f)), L::all(0x7fffffff), L::bits(value)));
    }
    if constexpr (format == Format::e3m2) return small.template operator()<Small::e3m2>();
    if constexpr (format == Format::e2m3) return small.template operator()<Small::e2m3>();
    if constexpr (format == Format::e2m1_in_byte) return small.template operator()<Small::e2m1>();
    if constexpr (format == Format::bf16) return L::number(L::up<16>(L::load_halves(from + index * 2)));
    return L::number(load_tf32(from, index));
}

template <Format format> inline void widen_elements(const std::uint8_t* from, unsigned elements, float* values) {
    for (unsigned i = 0; i < elements; i += Lanes::width) Lanes::store(values + i, widen<format>(from, i));
}

inline void widen_lines(Format format, const std::uint8_t* matrix, unsigned first, unsigned lines, unsigned k,
                        float* values) {
    const std::uint8_t* from = matrix + std::size_t{first} * k * bit_size(format) / 8;
    const unsigned elements = lines * k;
    switch (format) {
    case Format::f16: return widen_elements<Format::f16>(from, elements, values);
    case Format::e5m2: return widen_elements<Format::e5m2>(from, elements, values);
    case Format::e4m3: return widen_elements<Format::e4m3>(from, elements, values);
    case Format::e3m2: return widen_elements<Format::e3m2>(from, elements, values);
    case Format::e2m3: return widen_elements<Format::e2m3>(from, elements, values);
    case Format::e2m1_in_byte: return widen_elements<Format::e2m1_in_byte>(from, elements, values);
    case Format::bf16: return widen_elements<Format::bf16>(from, elements, values);
    default: return widen_elements<Format::tf32>(from, elements, values);
    }
}

template <unsigned k>
inline Lanes::Float fast_sum(const float* lanes, const float* line, Lanes::Int sign, Lanes::Float c) {
    using L = Lanes;
    L::Float sum = L::number(L::either(L::bits(c), sign));
#pragma GCC unroll 16
    for (unsigned i = 0; i < k; ++i) sum = L::fma(L::load(lanes + i * L::width), L::all(line[i]), sum);
    return L::number(L::either(L::bits(sum), sign));
}

template <unsigned k> void multiply_fast(const MatrixProduct& product, const Operands& operands) {
    using L = Lanes;
    const bool rows_are_lanes = product.n % L::width != 0;
    const Format lane_format = rows_are_lanes ? product.a : product.b, format = rows_are_lanes ? product.b : product.a;
    const auto* lane_matrix = static_cast<const std::uint8_t*>(rows_are_lanes ? operands.a : operands.b);
    const auto* matrix = static_cast<const std::uint8_t*>(rows_are_lanes ? operands.b : operands.a);
    const unsigned lane_lines = rows_are_lanes ? product.m : product.n,
                   all_lines = rows_are_lanes ? product.n : product.m;
    const std::size_t stride = product.n;
    // C - P is -(-C + P).
    const L::Int sign = L::all(product.negate_product ? 0x80000000u : 0u);
    alignas(64) float flat[L::width * k], lanes[L::width * k], lines[most_lines * k];
    for (unsigned first = 0; first < all_lines; first += most_lines) {
        const unsigned count = all_lines - first < most_lines ? all_lines - first : most_lines;
        widen_lines(format, matrix, first, count, k, lines);
        for (unsigned lane_line = 0; lane_line < lane_lines; lane_line += L::width) {
            widen_lines(lane_format, lane_matrix, lane_line, L::width, k, flat);
            turn_lines(reinterpret_cast<const std::uint32_t*>(flat), k, reinterpret_cast<std::uint32_t*>(lanes));
            for (unsigned i = 0; !rows_are_lanes && i < count; ++i) {
                const std::size_t index = (first + i) * stride + lane_line;
                const L::Float c = product.c_is_zero ? L::all(0.0f) : load_row(product.c, operands.c, index);
                store_row(product.d, operands.d, index, fast_sum<k>(lanes, lines + i * k, sign, c));
            }
            for (unsigned i = 0; rows_are_lanes && i < count; i += 8) {
                const std::size_t index = lane_line * stride + first + i;
                L::Int columns[8];
                if (product.c_is_zero)
                    for (auto& column : columns) column = L::all(0);
                else
                    load_tile(product.c, operands.c, index, product.n, columns);
                for (unsigned j = 0; j < 8; ++j)
                    columns[j] = L::bits(fast_sum<k>(lanes, lines + (i + j) * k, sign, L::number(columns[j])));
                store_tile(product.d, operands.d, index, product.n, columns);
            }
        }
    }
}

template <unsigned k> void multiply_fast_lanes(const MatrixProduct& given, const Operands& given_operands) {
    DensePair dense;
    MatrixProduct product = given;
    Operands operands = given_operands;
    if (!dense.make(product, operands)) return multiply_portably(given, given_operands);
    const FloatMode mode(Rounding::nearest_even);
    multiply_fast<k>(product, operands);
}

inline Multiply fast_code(const MatrixProduct& product) {
    const bool fits = product.n % Lanes::width == 0 || (product.m % Lanes::width == 0 && product.n % 8 == 0);
    const bool sums = product.unit == Unit::fused || product.unit == Unit::fused_fp8 ||
                      product.unit == Unit::two_fused || product.unit == Unit::fp8_by_f16;
    if (!fits || !sums || product.m % 8 != 0) return nullptr;
    switch (product.k) {
    case 4: return multiply_fast_lanes<4>;
    case 8: return multiply_fast_lanes<8>;
    case 16: return multiply_fast_lanes<16>;
    case 32: return multiply_fast_lanes<32>;
    case 64: return multiply_fast_lanes<64>;
    default: return nullptr;
    }
}

} // namespace
} // namespace ptarmigan::runtime::tensor_core
