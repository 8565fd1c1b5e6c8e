// SPDX-License-Identifier: Apache-2.0
// What the runtime asks of the CPU beyond C++: each architecture's header has the same names.
//   float16           IEEE half, converted from and to float, arithmetic in float
//   relax_cpu()       a spinning thread lets its sibling run
//   cpu_ticks()       a counter that never goes back, at a constant rate
//   order_streaming_stores()  stores that went past the caches are visible before what follows
#pragma once

#if defined(__x86_64__)
#include "runtime/base/processor_x86.h" // IWYU pragma: export
#elif defined(__aarch64__)
#include "runtime/base/processor_aarch64.h" // IWYU pragma: export
#endif
