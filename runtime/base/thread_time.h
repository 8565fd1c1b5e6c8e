// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <time.h>

namespace ptarmigan::runtime {

/// Nanoseconds of CPU time that the calling thread has had: on a loaded machine the clock runs while it does not.
inline std::uint64_t thread_nanoseconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

} // namespace ptarmigan::runtime
