// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ptarmigan::runtime {

using float16 = _Float16;

inline void relax_cpu() {
    __builtin_ia32_pause();
}
inline std::uint64_t cpu_ticks() {
    return __builtin_ia32_rdtsc();
}
/// Nothing but a fence orders them here.
inline void order_streaming_stores() {
    __builtin_ia32_sfence();
}

} // namespace ptarmigan::runtime
