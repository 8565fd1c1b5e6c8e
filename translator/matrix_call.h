// SPDX-License-Identifier: Apache-2.0
// Part of kernel_abi.h: calls of the tensor core by a warp (PTX manual 9.7.14, 9.7.15).
#pragma once

#include "frontend/ptx/matrix_form.h"

#include <cstddef>
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
    std::uint32_t scale_a[32], scale_b[32]; ///< block-scaled products
    std::uint32_t scale_selectors[32];      ///< from the low byte on: byte-id-a, thread-id-a, byte-id-b, thread-id-b
    alignas(64) std::uint32_t a[a_words][32];
    std::uint32_t b[b_words][32];
    std::uint32_t c[accumulator_words][32];
    std::uint32_t d[accumulator_words][32]; ///< written for all lanes
};

/// What a warp of a warpgroup does. All but multiply only where asynchronous work may be late (AsyncMode).
enum class WarpgroupOperation : std::uint32_t {
    multiply, ///< wgmma.mma_async
    commit,   ///< wgmma.commit_group
    wait,     ///< wgmma.wait_group
};

/// One instruction of a warp: its share of a product, 16 of 64 rows. Registers as in MatrixCall. The struct ends with
/// as many of them as the instruction has.
struct WarpgroupCall {
    static constexpr unsigned a_words = 4;
    ptx::MatrixForm form;
    std::uint64_t active;     ///< lanes of the step that execute the instruction
    std::uint32_t line;       ///< of the PTX text
    std::uint32_t first_lane; ///< of the warp, that is the step's lane 0
    std::uint32_t operation;  ///< WarpgroupOperation
    std::uint32_t detail;     ///< sparse products: whose metadata count; wait: groups that may be pending
    std::uint64_t a, b;       ///< matrix descriptors, of the first active lane
    std::uint32_t adds;       ///< scale-d of any active lane: not 0: D is added to
    std::uint32_t registers;  ///< of `d`
    std::uint32_t metadata[32];
    alignas(64) std::uint32_t a_registers[a_words][32];
    std::uint32_t d[128][32]; ///< multiply: read and written; wait: registers that may hold accumulators, likewise
};
/// `d`, of which a wait may have more.
inline std::uint32_t (*registers_of(WarpgroupCall& call))[32] {
    return reinterpret_cast<std::uint32_t(*)[32]>(reinterpret_cast<std::uint8_t*>(&call) + offsetof(WarpgroupCall, d));
}
inline const std::uint32_t (*registers_of(const WarpgroupCall& call))[32] {
    return registers_of(const_cast<WarpgroupCall&>(call));
}

/// One product of a group: of which matrices.
struct MatrixStep {
    std::uint8_t a, b;
};
/// Accumulator `d` becomes accumulator `c` plus the products of `count` steps from `first` on, one after the other.
struct MatrixChain {
    std::uint16_t first, count;
    std::uint8_t c, d;
};

/// What is done with a group's accumulators.
enum class MatrixGroupOperation : std::uint32_t {
    multiply,        ///< chains of products of accumulators in registers
    multiply_packed, ///< likewise of `packed`; there each chain's `c` is its `d`
    pack,            ///< all of them from registers to `packed`, whatever lanes are active
    unpack,          ///< the other way round
};

/// Products of one form by a step of a whole warp: chains, in order. Registers as in MatrixCall, those of each matrix
/// behind each other. C and D have one type.
struct MatrixGroup {
    static constexpr unsigned most_a = 32, most_b = 32, most_accumulators = 64, most_steps = 128;
    static constexpr unsigned most_words = 192; ///< arrays of 32 words for all matrices together
    ptx::MatrixForm form;
    std::uint64_t active; ///< lanes that execute the instructions
    const MatrixStep* steps;
    const MatrixChain* chains;
    std::uint32_t (*a)[32];
    std::uint32_t (*b)[32];
    std::uint32_t (*accumulators)[32];
    std::uint16_t a_count, b_count, accumulator_count, chain_count;
    std::uint32_t operation; ///< MatrixGroupOperation
    std::uint32_t unused;
    /// Accumulators in the tensor core's layout, which follows from the form. Each takes as many bytes as its
    /// registers. From an address on that is a multiple of 64.
    void* packed;
};

} // namespace ptarmigan::abi
