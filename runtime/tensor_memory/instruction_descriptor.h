// SPDX-License-Identifier: Apache-2.0
// What the instruction descriptor of a tcgen05.mma says (manual 9.7.16.4.2, 9.7.16.2.1).
#pragma once

#include "runtime/tensor_core/matrix_product.h"
#include "translator/tensor_memory_call.h"

namespace ptarmigan::runtime {

struct InstructionDescriptor {
    using Format = tensor_core::Format;

    Format a{}, b{}, d{};
    unsigned m = 0, n = 0, k = 0; ///< k of the whole product, also where A is sparse
    bool saturates = false, negates_a = false, negates_b = false, transposes_a = false, transposes_b = false;
    unsigned sparsity_selector = 0;
    unsigned scale_a_id = 0, scale_b_id = 0; ///< byte of the columns with the scales
    tensor_core::ScaleFormat scale{};
    const char* fault = nullptr; ///< the rule that it breaks, of static lifetime

    InstructionDescriptor(std::uint32_t bits, abi::TensorMemoryKind kind, std::uint32_t flags, unsigned scales);

    bool has_block_scales() const { return scales_; }

private:
    const char* read_types(std::uint32_t bits, abi::TensorMemoryKind kind);
    const char* check(std::uint32_t bits, abi::TensorMemoryKind kind, std::uint32_t flags, unsigned scales);
    bool scales_ = false;
};

/// Bits of an element in shared memory, where elements of 6 and 4 bits of the mixed kinds take a byte.
unsigned shared_bits(tensor_core::Format format);

} // namespace ptarmigan::runtime
