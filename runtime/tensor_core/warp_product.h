// SPDX-License-Identifier: Apache-2.0
// mma.sync, mma.sp and wmma.mma as generated code calls them.
#pragma once

#include "translator/kernel_abi.h"

namespace ptarmigan::runtime::tensor_core {

/// Computes `d` of a call with the registers of a warp. `lanes`: those that execute the instruction. Unless it is all
/// of them nothing is done, as on a GPU, where the registers of D keep what they were: here that is C if it has D's
/// type, zeros otherwise. stderr says so once.
void multiply_fragments(abi::MatrixCall& call, std::uint32_t lanes);

/// The same for a group: accumulators of its chains' results are replaced, or are their C's where a part of the warp is
/// missing. Or moves accumulators, as its operation says.
void multiply_group(const abi::MatrixGroup& group, std::uint32_t lanes);

/// Copies a lane's registers between the calls of a step and of the warp: the operands', and the results back.
void deposit_lane(const abi::MatrixCall& step, unsigned lane_of_step, abi::MatrixCall& warp, unsigned lane);
void collect_lane(const abi::MatrixCall& warp, unsigned lane, abi::MatrixCall& step, unsigned lane_of_step);

/// abi::Services::matrix and matrix_group.
void matrix_service(abi::CtaContext*, std::uint32_t step, abi::MatrixCall* call);
void matrix_group_service(abi::CtaContext*, std::uint32_t step, const abi::MatrixGroup* group);

} // namespace ptarmigan::runtime::tensor_core
