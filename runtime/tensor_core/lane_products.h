// SPDX-License-Identifier: Apache-2.0
// What eight lanes multiply. Included behind Lanes: by product_avx2.cpp and product_neon*_aarch64.cpp.
#pragma once

#include "runtime/tensor_core/vector_product.h"

#include "runtime/tensor_core/chain_lanes.h"
#include "runtime/tensor_core/fast_lanes.h"
#include "runtime/tensor_core/fused_lanes.h"
#include "runtime/tensor_core/integer_lanes.h"

#include "runtime/tensor_core/fast_group.h"
#include "runtime/tensor_core/fused_group.h"
#include "runtime/tensor_core/integer_group.h"

namespace ptarmigan::runtime::tensor_core {
namespace {

/// b1: by 64 bits, which the instruction counts.
template <bool is_and> void multiply_bits(const MatrixProduct& product, const Operands& operands) {
    const unsigned words = product.k / 64;
    const auto* c = static_cast<const std::uint32_t*>(operands.c);
    auto* d = static_cast<std::uint32_t*>(operands.d);
    for (unsigned row = 0; row < product.m; ++row) {
        for (unsigned column = 0; column < product.n; ++column) {
            const std::size_t index = std::size_t{row} * product.n + column;
            std::uint32_t sum = product.c_is_zero ? 0 : c[index];
            for (unsigned word = 0; word < words; ++word) {
                const std::uint64_t x = load_element(Format::f64, operands.a, row * words + word);
                const std::uint64_t y = load_element(Format::f64, operands.b, column * words + word);
                sum += static_cast<std::uint32_t>(__builtin_popcountll(is_and ? x & y : x ^ y));
            }
            d[index] = sum;
        }
    }
}

/// Null where there is none for such matrices.
inline Multiply lane_multiplier(const MatrixProduct& product, Accuracy accuracy) {
    if (accuracy == Accuracy::fast)
        if (const Multiply fast = fast_code(product)) return fast;
    if (has_fused_code(product)) return multiply_fused_lanes;
    if (const Multiply code = integer_code(product)) return code;
    if (const Multiply code = chain_f64_code(product)) return code;
    if (has_chain_f16_code(product)) return multiply_chain_f16;
    if (product.k % 64 == 0 && product.unit == Unit::bits_and) return multiply_bits<true>;
    if (product.k % 64 == 0 && product.unit == Unit::bits_xor) return multiply_bits<false>;
    return nullptr;
}

inline MultiplyGroup lane_group_multiplier(const MatrixProduct& product, Accuracy accuracy) {
    if (accuracy == Accuracy::fast)
        if (const MultiplyGroup fast = fast_group_code(product)) return fast;
    if (const MultiplyGroup code = fused_group_code(product)) return code;
    return integer_group_code(product);
}

} // namespace
} // namespace ptarmigan::runtime::tensor_core
