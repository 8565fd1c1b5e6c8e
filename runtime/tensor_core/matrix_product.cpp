// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/matrix_product.h"

#include "runtime/tensor_core/portable_product.h"

namespace ptarmigan::runtime::tensor_core {

void multiply(const MatrixProduct& product, const void* a, const void* b, const void* c, void* d,
              const std::uint8_t* selected) {
    multiply_portably(product, {a, b, c, d, selected});
}

} // namespace ptarmigan::runtime::tensor_core
