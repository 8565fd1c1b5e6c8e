// SPDX-License-Identifier: Apache-2.0
// Unit::scaled_groups, quicker than element by element: sums of groups are small integers.
#pragma once

#include "runtime/tensor_core/portable_product.h"

namespace ptarmigan::runtime::tensor_core {

/// What multiply_portably() does, for products of that unit.
void multiply_scale_groups(const MatrixProduct& product, const Operands& operands);

} // namespace ptarmigan::runtime::tensor_core
