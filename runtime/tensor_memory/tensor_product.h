// SPDX-License-Identifier: Apache-2.0
// One tcgen05.mma (manual 9.7.16.10): matrices from shared and tensor memory through the tensor core to D in tensor
// memory.
#pragma once

#include "runtime/tensor_memory/instruction_descriptor.h"
#include "runtime/tensor_memory/tensor_memory.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ptarmigan::runtime {

/// What one thread has asked for.
struct TensorProduct {
    abi::TensorMemoryKind kind{};
    std::uint32_t flags = 0; ///< abi::TensorMemoryCall::flags
    unsigned scales = 0, halvings = 0;
    std::uint64_t a = 0, b = 0, zero_columns = 0;
    std::uint32_t d = 0, scale_a = 0, scale_b = 0, metadata = 0, descriptor = 0;
    bool accumulates = true;
    std::array<std::uint32_t, 8> lanes{}; ///< whose bits are set stay as they are
};

/// The CTA that takes part: its tensor memory and its shared memory.
struct ProductCta {
    TensorMemory* memory;
    std::span<const std::uint8_t> shared;
};

/// A rule that the instruction breaks, of static lifetime; null: it is done. `ctas`: one, or the pair, the even one
/// first.
const char* multiply(const TensorProduct& product, std::span<const ProductCta> ctas);

} // namespace ptarmigan::runtime
