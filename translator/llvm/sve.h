// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "translator/compile.h"

namespace ptarmigan::translator {

/// Bits of the SVE vectors that code for `target` is made of, whatever its instructions on shorter ones; 0: NEON's
/// only. Such code runs where vectors are just that long. The length follows from the CPU's name, and so is part of
/// TargetCpu::key(): 256 on a neoverse-v1, 512 on an a64fx. All other CPUs have 128 bits, which NEON has, too.
unsigned sve_bits(const TargetCpu& target);

/// The name of an SVE CPU with vectors of so many bits; null where code is NEON's.
const char* sve_cpu(unsigned bits);

} // namespace ptarmigan::translator
