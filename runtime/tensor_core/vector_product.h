// SPDX-License-Identifier: Apache-2.0
// Where the code for each kind of CPU is entered. product_*.cpp are compiled with instructions that not every CPU has,
// so they share no inline functions with others: what they include is local to them. Each architecture defines its own.
#pragma once

#include "runtime/tensor_core/product_code.h"
#include "runtime/tensor_core/product_group.h"

namespace ptarmigan::runtime::tensor_core {

/// Null where there is none for such matrices.
Multiply avx2_multiplier(const MatrixProduct& product, Accuracy accuracy);
Multiply avx512_multiplier(const MatrixProduct& product, Accuracy accuracy);
Multiply avx512_vnni_multiplier(const MatrixProduct& product);
Multiply avx512_bf16_multiplier(const MatrixProduct& product); ///< Accuracy::fast

MultiplyGroup avx2_group_multiplier(const MatrixProduct& product, Accuracy accuracy);
MultiplyGroup avx512_group_multiplier(const MatrixProduct& product, Accuracy accuracy);
MultiplyGroup avx512_vnni_group_multiplier(const MatrixProduct& product);
MultiplyGroup avx512_bf16_group_multiplier(const MatrixProduct& product); ///< Accuracy::fast
MultiplyGroup amx_group_multiplier(const MatrixProduct& product, Accuracy accuracy);

Multiply neon_multiplier(const MatrixProduct& product, Accuracy accuracy);
Multiply neon_i8mm_multiplier(const MatrixProduct& product);
Multiply neon_bf16_multiplier(const MatrixProduct& product); ///< Accuracy::fast
MultiplyGroup neon_group_multiplier(const MatrixProduct& product, Accuracy accuracy);
MultiplyGroup neon_i8mm_group_multiplier(const MatrixProduct& product);
MultiplyGroup neon_bf16_group_multiplier(const MatrixProduct& product); ///< Accuracy::fast

} // namespace ptarmigan::runtime::tensor_core
