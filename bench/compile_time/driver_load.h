// SPDX-License-Identifier: Apache-2.0
// Loading a text as a program does: through the driver API, in a process of its own.
#pragma once

#include <string>

namespace ptarmigan::bench {

struct DriverLoad {
    double seconds = 0;   ///< wall time of cuModuleLoadData and of cuModuleGetFunction for one kernel
    double megabytes = 0; ///< resident memory that it added; the text that it is given not counted
};

/// Loads `text` with the driver `library` in a child process; `cache` is its folder of compiled kernels. `eager`: with
/// CUDA_MODULE_LOADING=EAGER, which checks all bodies. Throws if the last kernel is not found.
DriverLoad load_with_driver(const std::string& library, const std::string& text, const std::string& last_kernel,
                            const std::string& cache, bool eager);

/// Resident memory of this process in megabytes.
double resident_megabytes();

} // namespace ptarmigan::bench
