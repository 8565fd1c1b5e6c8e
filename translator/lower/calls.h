// SPDX-License-Identifier: Apache-2.0
// Calls of functions that the runtime provides to device code.
#pragma once

#include "frontend/ptx/device_runtime.h"
#include "translator/emit/warp_emitter.h"
#include "translator/lower/lane_array.h"

namespace ptarmigan::translator::lower {

/// Lowers a call of a function without a body: vprintf, malloc, free, __assertfail, ... by name, lane by lane.
/// Operands: d and a are lists whose elements are registers, immediates or frame variables (then e.address() gives
/// the place of the parameter). Throws UnsupportedError for an unknown name.
void runtime_call(WarpEmitter& e, const ptx::Instruction& inst, const ptx::Function& function);

/// A call of the device runtime, whose functions all go through one service.
void device_runtime_call(WarpEmitter& e, const ptx::Instruction& inst, const ptx::Function& function,
                         ptx::DeviceRuntime which);

/// The lanes of argument `index` of a call, spilled for a loop over lanes: numbers as they are, structures by address.
LaneArray call_argument(WarpEmitter& e, const ptx::Instruction& inst, const ptx::Function& function, unsigned index);
/// Writes the call's result, <W x i32> or <W x i64>; nothing if the call has none.
void write_call_result(WarpEmitter& e, const ptx::Instruction& inst, llvm::Value* lanes);

} // namespace ptarmigan::translator::lower
