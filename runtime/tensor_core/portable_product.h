// SPDX-License-Identifier: Apache-2.0
// Matrix products by integer arithmetic, an element at a time: what says which bits are right, what does the elements
// that vector code leaves, and what runs on CPUs without vector code.
#pragma once

#include "runtime/tensor_core/matrix_product.h"

#include <cstddef>
#include <cstdint>

namespace ptarmigan::runtime::tensor_core {

/// The matrices of one call.
struct Operands {
    const void *a, *b, *c;
    void* d;
    const std::uint8_t* selected;
    Scales scales{};
};

/// What multiply() promises.
void multiply_portably(const MatrixProduct& product, const Operands& operands);

/// One element of D, as bits, from the bits of C (or zero, where it is not read).
std::uint64_t element_of(const MatrixProduct& product, const Operands& operands, unsigned row, unsigned column,
                         std::uint64_t c);

/// The same with C and the result as f32, which holds every f16. For products of such types.
std::uint32_t wide_element_of(const MatrixProduct& product, const Operands& operands, unsigned row, unsigned column,
                              std::uint32_t c);

/// Bits of element `index` of a matrix.
std::uint64_t load_element(Format format, const void* matrix, std::size_t index);
void store_element(Format format, void* matrix, std::size_t index, std::uint64_t bits);

} // namespace ptarmigan::runtime::tensor_core
