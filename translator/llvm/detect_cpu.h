// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "translator/compile.h"

#include <string>

namespace ptarmigan::translator {

/// This machine's CPU by what CPUID and XCR0 (AArch64: the auxiliary vector) say. Never by model number: virtual
/// machines report models whose features they lack. Every feature that LLVM may choose an instruction by is written as
/// + or -, so that the feature string is the whole truth and the CPU's name only selects scheduling and tuning.
TargetCpu detect_cpu();

/// The vectors that code for `target` is made of and wider ones of this machine that it leaves unused, in words; empty
/// where the target's name says it.
std::string describe_vectors(const TargetCpu& target);

} // namespace ptarmigan::translator
