// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ptarmigan::runtime {

using float16 = __fp16; // GCC 12 has no _Float16 in C++ here

/// ISB takes some ten nanoseconds, which YIELD does not on CPUs without siblings.
inline void relax_cpu() {
    asm volatile("isb" ::: "memory");
}
inline std::uint64_t cpu_ticks() {
    std::uint64_t ticks = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
/// LLVM makes STNP of them, which other stores' release orders as any store.
inline void order_streaming_stores() {}

} // namespace ptarmigan::runtime
