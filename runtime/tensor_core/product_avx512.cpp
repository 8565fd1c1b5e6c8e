// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/vector_product.h"

#include "runtime/tensor_core/lanes_avx512.h"

#include "runtime/tensor_core/chain_lanes.h"
#include "runtime/tensor_core/fast_lanes.h"
#include "runtime/tensor_core/fused_lanes.h"
#include "runtime/tensor_core/integer_lanes.h"

#include "runtime/tensor_core/fast_group.h"
#include "runtime/tensor_core/fused_group.h"
#include "runtime/tensor_core/integer_group.h"

namespace ptarmigan::runtime::tensor_core {

Multiply avx512_multiplier(const MatrixProduct& product, Accuracy accuracy) {
    if (accuracy == Accuracy::fast)
        if (const Multiply fast = fast_code(product)) return fast;
    if (has_fused_code(product)) return multiply_fused_lanes;
    if (const Multiply code = integer_code(product)) return code;
    return chain_f64_code(product);
}

MultiplyGroup avx512_group_multiplier(const MatrixProduct& product, Accuracy accuracy) {
    if (accuracy == Accuracy::fast)
        if (const MultiplyGroup fast = fast_group_code(product)) return fast;
    if (const MultiplyGroup code = fused_group_code(product)) return code;
    return integer_group_code(product);
}

} // namespace ptarmigan::runtime::tensor_core
