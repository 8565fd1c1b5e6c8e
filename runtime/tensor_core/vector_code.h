// SPDX-License-Identifier: Apache-2.0
// The vector code of this architecture: one file for each, vector_code_<architecture>.cpp, that knows what the CPU has.
#pragma once

#include "runtime/tensor_core/product_code.h"
#include "runtime/tensor_core/product_group.h"

namespace ptarmigan::runtime::tensor_core {

/// can_run() for all but Code::portable.
bool can_run_vectors(Code code);

/// What multiplies such matrices with vectors; null where there is nothing better than multiply_portably().
Multiply vector_multiplier(Code code, const MatrixProduct& product, Accuracy accuracy);
MultiplyGroup vector_group_multiplier(Code code, const MatrixProduct& product, Accuracy accuracy);

/// Tiles have code for groups of such products. Does not ask the system for them.
bool has_tile_code(const MatrixProduct& product, Accuracy accuracy);

} // namespace ptarmigan::runtime::tensor_core
