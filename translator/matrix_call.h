// SPDX-License-Identifier: Apache-2.0
// Part of kernel_abi.h: one call of the tensor core by a warp (PTX manual 9.7.14).
#pragma once

#include "frontend/ptx/matrix_form.h"

#include <cstdint>

namespace ptarmigan::abi {

/// One product. Registers of the operands as [register][lane]; those of 64 bits take two arrays: lanes 0 to 15, then
/// the others. Steps of less than a warp leave the arrays' ends free. Which lane holds what:
/// frontend/ptx/matrix_fragments.h.
struct MatrixCall {
    static constexpr unsigned a_words = 16, b_words = 8, accumulator_words = 8;
    ptx::MatrixForm form;
    std::uint64_t active;     ///< lanes of the step that execute the instruction
    std::uint32_t line;       ///< of the PTX text
    std::uint32_t selector;   ///< mma.sp: whose metadata count
    std::uint32_t first_lane; ///< of the warp, that is the step's lane 0
    std::uint32_t unused;
    std::uint32_t metadata[32];
    alignas(64) std::uint32_t a[a_words][32];
    std::uint32_t b[b_words][32];
    std::uint32_t c[accumulator_words][32];
    std::uint32_t d[accumulator_words][32]; ///< written for all lanes
};

} // namespace ptarmigan::abi
