// SPDX-License-Identifier: Apache-2.0
// Loading a text as a program does: through the driver API, in a process of its own, which has no other memory than its
// own.
#pragma once

#include <optional>
#include <string>

namespace ptarmigan::bench {

struct DriverLoad {
    double seconds = 0;   ///< wall time of cuModuleLoadData and of cuModuleGetFunction for one kernel
    double megabytes = 0; ///< resident memory that it added; the text that it is given not counted
};

/// Loads the text in `file` with the driver `library` in a process of this program; `cache` is its folder of compiled
/// kernels. `eager`: with CUDA_MODULE_LOADING=EAGER, which checks all bodies. Throws if the last kernel is not found.
DriverLoad load_with_driver(const std::string& library, const std::string& file, const std::string& last_kernel,
                            const std::string& cache, bool eager);

/// What that process does instead of main(): `arguments` are load_with_driver's. Nothing if they are not.
std::optional<int> run_as_loader(int count, char** arguments);

/// Resident memory of this process in megabytes.
double resident_megabytes();

} // namespace ptarmigan::bench
