// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/vector_product.h"

#include "runtime/tensor_core/lanes_neon_aarch64.h"

#include "runtime/tensor_core/lane_products.h"

namespace ptarmigan::runtime::tensor_core {

Multiply neon_multiplier(const MatrixProduct& product, Accuracy accuracy) {
    return lane_multiplier(product, accuracy);
}

MultiplyGroup neon_group_multiplier(const MatrixProduct& product, Accuracy accuracy) {
    return lane_group_multiplier(product, accuracy);
}

} // namespace ptarmigan::runtime::tensor_core
