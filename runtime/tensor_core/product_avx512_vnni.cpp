// SPDX-License-Identifier: Apache-2.0
// Integers on CPUs with AVX512_VNNI: four products a lane and instruction.
#include "runtime/tensor_core/vector_product.h"

#include "runtime/tensor_core/lanes_avx512.h"

#include "runtime/tensor_core/integer_lanes.h"

#include "runtime/tensor_core/integer_group.h"

namespace ptarmigan::runtime::tensor_core {

Multiply avx512_vnni_multiplier(const MatrixProduct& product) {
    return integer_code(product);
}

MultiplyGroup avx512_vnni_group_multiplier(const MatrixProduct& product) {
    return integer_group_code(product);
}

} // namespace ptarmigan::runtime::tensor_core
