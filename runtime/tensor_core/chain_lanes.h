// SPDX-License-Identifier: Apache-2.0
// Forms whose elements are chains of IEEE operations: f64, and f16 of m8n8k4. Lanes are columns; the caller has set the
// rounding mode. NaNs are made by the portable code, since CPUs choose others. Included behind Lanes, like
// fused_lanes.h.
#pragma once

#include "runtime/tensor_core/dense_pair.h"
#include "runtime/tensor_core/product_code.h"

#include <cstddef>
#include <cstdint>

namespace ptarmigan::runtime::tensor_core {
namespace {

template <unsigned k> [[gnu::noinline]] void chain_f64(const MatrixProduct& product, const Operands& operands) {
    using L = Lanes;
    constexpr unsigned width = L::width / 2;
    const auto* a = static_cast<const double*>(operands.a);
    const auto* b = static_cast<const double*>(operands.b);
    for (unsigned column = 0; column < product.n; column += width) {
        double turned[k * width];
        for (unsigned j = 0; j < width; ++j)
            for (unsigned i = 0; i < k; ++i) turned[i * width + j] = b[(column + j) * k + i];
        for (unsigned row = 0; row < product.m; ++row) {
            const std::size_t index = std::size_t{row} * product.n + column;
            const L::Double c =
                product.c_is_zero ? L::all(0.0) : L::load(static_cast<const double*>(operands.c) + index);
            L::Double sum = c;
            for (unsigned i = 0; i < k; ++i) sum = L::fma(L::load(turned + i * width), L::all(a[row * k + i]), sum);
            double before[width];
            L::store(before, c);
            L::store(static_cast<double*>(operands.d) + index, sum);
            for (std::uint32_t left = L::nan_lanes(sum); left != 0; left &= left - 1) {
                const auto lane = static_cast<unsigned>(__builtin_ctz(left));
                const std::uint64_t of_c = load_element(Format::f64, before, lane);
                store_element(Format::f64, operands.d, index + lane,
                              element_of(product, operands, row, column + lane, of_c));
            }
        }
    }
}

template <unsigned k> void multiply_chain_f64(const MatrixProduct& product, const Operands& operands) {
    const FloatMode mode(product.rounding);
    chain_f64<k>(product, operands);
}

inline Multiply chain_f64_code(const MatrixProduct& product) {
    if (product.unit != Unit::chain_f64 || product.n % (Lanes::width / 2) != 0) return nullptr;
    switch (product.k) {
    case 4: return multiply_chain_f64<4>;
    case 8: return multiply_chain_f64<8>;
    case 16: return multiply_chain_f64<16>;
    default: return nullptr;
    }
}

/// For eight lanes. Each operation is rounded; f16 are widened exactly.
[[gnu::noinline]] inline void chain_f16(const MatrixProduct& product, const Operands& operands) {
    using L = Lanes;
    const auto* a = static_cast<const std::uint16_t*>(operands.a);
    const auto* b = static_cast<const std::uint16_t*>(operands.b);
    const bool c_half = product.c == Format::f16, d_half = product.d == Format::f16;
    std::uint32_t columns[4 * L::width];
    for (unsigned j = 0; j < L::width; ++j)
        for (unsigned k = 0; k < 4; ++k) columns[k * L::width + j] = b[4 * j + k];
    L::Float y[4];
    for (unsigned k = 0; k < 4; ++k) y[k] = L::widen_f16(L::load(columns + k * L::width));
    for (unsigned row = 0; row < product.m; ++row) {
        const std::size_t index = std::size_t{row} * L::width;
        L::Float x[4], c = L::all(0.0f);
        for (unsigned k = 0; k < 4; ++k) x[k] = L::widen_f16(L::all(int{a[4 * row + k]}));
        if (!product.c_is_zero)
            c = c_half ? L::load_f16(static_cast<const std::uint16_t*>(operands.c) + index)
                       : L::load(static_cast<const float*>(operands.c) + index);
        std::uint32_t of_c[L::width];
        L::store(of_c, L::bits(c));
        L::Float sum;
        if (d_half) {
            const L::Float low = L::fma(x[1], y[1], L::mul(x[0], y[0])), high = L::fma(x[3], y[3], L::mul(x[2], y[2]));
            sum = L::add_to_nearest(L::add_to_nearest(c, low), high);
        } else {
            sum = L::all(0.0f);
            for (unsigned k = 0; k < 4; ++k) sum = L::fma(x[k], y[k], sum);
            sum = L::add_to_nearest(c, sum);
        }
        std::uint32_t of_d[L::width];
        L::store(of_d, L::bits(sum));
        for (std::uint32_t left = L::nan_lanes(sum); left != 0; left &= left - 1) {
            const auto lane = static_cast<unsigned>(__builtin_ctz(left));
            of_d[lane] = wide_element_of(product, operands, row, lane, of_c[lane]);
        }
        const L::Float result = L::number(L::load(of_d));
        if (d_half)
            L::store_f16(static_cast<std::uint16_t*>(operands.d) + index, result);
        else
            L::store(static_cast<float*>(operands.d) + index, result);
    }
}

inline void multiply_chain_f16(const MatrixProduct& product, const Operands& operands) {
    const FloatMode mode(Rounding::nearest_even);
    chain_f16(product, operands);
}

inline bool has_chain_f16_code(const MatrixProduct& product) {
    return product.unit == Unit::scalar_f16 && product.k == 4 && product.n == Lanes::width;
}

} // namespace
} // namespace ptarmigan::runtime::tensor_core
