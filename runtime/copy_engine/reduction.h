// SPDX-License-Identifier: Apache-2.0
// The reductions of cp.reduce.async.bulk and its tensor forms (PTX manual 9.7.9.25.4.2
// and 9.7.9.25.5.3).
#pragma once

#include "runtime/copy_engine/tensor_map.h"

namespace ptarmigan::runtime {

using abi::BulkReduction;

/// Reduces `count` elements of `source` into `target`; each one atomically, because other CTAs may
/// reduce into the same memory. Null if elements of the type can't be reduced so.
using ReduceRun = void (*)(std::uint8_t* target, const std::uint8_t* source, std::size_t count);
/// By generated code (reduction_code.h) where there is some.
ReduceRun reduce_run(BulkReduction operation, TensorType type);
/// Element by element: says what is right.
ReduceRun reduce_run_portably(BulkReduction operation, TensorType type);

} // namespace ptarmigan::runtime
