// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/vector_product.h"

#include "runtime/tensor_core/lanes_avx2.h"

#include "runtime/tensor_core/lane_products.h"

namespace ptarmigan::runtime::tensor_core {

Multiply avx2_multiplier(const MatrixProduct& product, Accuracy accuracy) {
    return lane_multiplier(product, accuracy);
}

MultiplyGroup avx2_group_multiplier(const MatrixProduct& product, Accuracy accuracy) {
    return lane_group_multiplier(product, accuracy);
}

} // namespace ptarmigan::runtime::tensor_core
