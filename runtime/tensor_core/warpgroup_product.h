// SPDX-License-Identifier: Apache-2.0
// wgmma.mma_async as a warp does it: 16 of the 64 rows, B and perhaps A from shared memory.
#pragma once

#include "runtime/tensor_core/shared_matrix.h"
#include "translator/matrix_call.h"

#include <cstddef>
#include <cstdint>

namespace ptarmigan::runtime::tensor_core {

/// Multiplies what warps of warpgroups ask for. Not thread-safe; keeps its room between calls.
class WarpgroupMultiplier {
public:
    /// D of the call's product for the warp that is number `warp` (0..3) of its warpgroup; `d` has C and becomes D.
    /// False if an operand lies outside of `memory`: `d` is as it was then.
    bool multiply(const abi::WarpgroupCall& call, unsigned warp, const SharedMemory& memory, std::uint32_t (*d)[32]);

private:
    static constexpr std::size_t most_a = 16 * 32, most_b = 256 * 64, most_d = 16 * 256 * 4; ///< bytes
    static constexpr std::size_t most_selected = 16 * 32;

    alignas(64) std::uint8_t a_[most_a], b_[most_b], d_[most_d];
    std::uint8_t selected_[most_selected];
};

/// Registers of D.
unsigned warpgroup_registers(const ptx::MatrixForm& form);

/// Copies a lane's operands from the call of a step to that of its warp, and its registers back.
void deposit_lane(const abi::WarpgroupCall& step, unsigned lane_of_step, abi::WarpgroupCall& warp, unsigned lane);
void collect_lane(const abi::WarpgroupCall& warp, unsigned lane, abi::WarpgroupCall& step, unsigned lane_of_step);

} // namespace ptarmigan::runtime::tensor_core
