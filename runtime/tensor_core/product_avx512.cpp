// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/vector_product.h"

#if defined(__x86_64__)

#include "runtime/tensor_core/lanes_avx512.h"

#include "runtime/tensor_core/fused_lanes.h"

namespace ptarmigan::runtime::tensor_core {

Multiply avx512_multiplier(const MatrixProduct& product) {
    return has_fused_code(product) ? multiply_fused_lanes : nullptr;
}

} // namespace ptarmigan::runtime::tensor_core

#endif
