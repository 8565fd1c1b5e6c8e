// SPDX-License-Identifier: Apache-2.0
// What `.target sm_10` to `sm_13` means beyond the set of instructions.
#pragma once

#include "frontend/ptx/module.h"

namespace ptarmigan::ptx {

/// Before sm_20 single precision had no subnormal numbers: forms of f32 that take .ftz get it,
/// except those that have an f64 too, of which slct always gets it and cvt from PTX 1.5 on (manual sections 9.7.3 and
/// 9.7.9.21; ptxas 13.0 makes the same machine code of them as of .ftz).
void imply_flush_to_zero(Instruction& instruction, Version version);

} // namespace ptarmigan::ptx
