// SPDX-License-Identifier: Apache-2.0
// Integers on CPUs with FEAT_I8MM: four products a lane and instruction (USDOT).
#include "runtime/tensor_core/vector_product.h"

#include "runtime/tensor_core/lanes_neon_aarch64.h"

#include "runtime/tensor_core/integer_lanes.h"

#include "runtime/tensor_core/integer_group.h"

namespace ptarmigan::runtime::tensor_core {

Multiply neon_i8mm_multiplier(const MatrixProduct& product) {
    return integer_code(product);
}

MultiplyGroup neon_i8mm_group_multiplier(const MatrixProduct& product) {
    return integer_group_code(product);
}

} // namespace ptarmigan::runtime::tensor_core
