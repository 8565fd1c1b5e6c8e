// SPDX-License-Identifier: Apache-2.0
// How the product that an instruction's form says is multiplied.
#pragma once

#include "frontend/ptx/matrix_form.h"
#include "runtime/tensor_core/matrix_product.h"

namespace ptarmigan::runtime::tensor_core {

MatrixProduct product_of(const ptx::MatrixForm& form);

} // namespace ptarmigan::runtime::tensor_core
