// SPDX-License-Identifier: Apache-2.0
// The ways to multiply that this CPU can do, for tests and benchmarks; multiply() takes the best one.
#pragma once

#include "runtime/tensor_core/portable_product.h"

#include <cstdint>

namespace ptarmigan::runtime::tensor_core {

/// amx: groups of bytes and, fast, of bf16 on tiles; else as avx512. neon: with what the CPU has for bytes and bf16.
enum class Code : std::uint8_t { portable, avx2, avx512, amx, neon };
/// All but amx, which needs the system's leave.
constexpr Code codes[] = {Code::portable, Code::avx2, Code::avx512, Code::neon};

/// Asking for amx asks the system to let the process use tiles, after which it refuses alternate signal stacks of less
/// than some 11 KB.
bool can_run(Code code);
/// The last one of `codes` that can run.
Code best_code();

/// What PTARMIGAN_MMA said when it was first asked for.
Accuracy wanted_accuracy();

using Multiply = void (*)(const MatrixProduct&, const Operands&);

/// What multiplies such matrices with instructions up to those of `code`, which must be able to run. With
/// Accuracy::exact always the same bits.
Multiply multiplier(Code code, const MatrixProduct& product, Accuracy accuracy = Accuracy::exact);

} // namespace ptarmigan::runtime::tensor_core
