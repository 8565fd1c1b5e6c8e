// SPDX-License-Identifier: Apache-2.0
// Launches of kernels whose machine code can't be lifted are refused with 801, which libraries were seen to ignore
// (cuBLASLt): what they give then is what was in memory. So the next wait gives 801, too, once.
#pragma once

#include <atomic>

namespace ptarmigan::runtime {

/// Of the process.
inline std::atomic<bool> has_refused_launch{false};

inline void note_refused_launch() {
    has_refused_launch.store(true, std::memory_order_release);
}
/// True once after each note (or several).
inline bool take_refused_launch() {
    return has_refused_launch.load(std::memory_order_relaxed) &&
           has_refused_launch.exchange(false, std::memory_order_acq_rel);
}

} // namespace ptarmigan::runtime
