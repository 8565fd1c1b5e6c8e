// SPDX-License-Identifier: Apache-2.0
// IEEE operations by integer arithmetic, so that no mode of the CPU matters; with the NaNs of the tensor core's forms.
#pragma once

#include "runtime/tensor_core/matrix_product.h"

#include <cstdint>

namespace ptarmigan::runtime::tensor_core {

/// x * y + z of f32, to nearest even, subnormal numbers kept; NaN is 0x7fffffff.
std::uint32_t fma_f32(std::uint32_t x, std::uint32_t y, std::uint32_t z);
inline std::uint32_t add_f32(std::uint32_t x, std::uint32_t y) {
    return fma_f32(x, 0x3f800000, y);
}
inline std::uint32_t multiply_f32(std::uint32_t x, std::uint32_t y) {
    return fma_f32(x, y, 0x80000000);
}

/// a * b + c of f64. Of NaNs b's survives, else c's, else a's, made quiet; what is invalid gives 0xfff8000000000000.
std::uint64_t fma_f64(std::uint64_t a, std::uint64_t b, std::uint64_t c, Rounding rounding);

} // namespace ptarmigan::runtime::tensor_core
