// SPDX-License-Identifier: Apache-2.0
// Generated code for reductions: sixteen bytes by one compare-and-swap.
#pragma once

#include "runtime/copy_engine/reduction.h"

namespace ptarmigan::runtime {

/// What reduce_run_portably() does, several elements by one atomic access of 16 bytes, made when it
/// is first asked for. Null where elements of the type can't be reduced so, and on CPUs without AVX2,
/// F16C and cmpxchg16b. Thread-safe.
ReduceRun reduce_run_generated(BulkReduction operation, TensorType type);

} // namespace ptarmigan::runtime
