// SPDX-License-Identifier: Apache-2.0
// A program run to its end, and what it took.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ptarmigan::bench {

using Environment = std::vector<std::pair<std::string, std::string>>;

struct ProcessRun {
    bool ok = false;           ///< exit status 0
    double wall = 0, cpu = 0;  ///< seconds; CPU: user and system, with children that it waited for
    double peak_megabytes = 0; ///< resident, at least this process's own at the time
    std::string output;        ///< stdout and stderr
};

/// Runs `command` (a path or a name in PATH) with `environment` on top of this process's. Not thread-safe.
ProcessRun run_process(const std::vector<std::string>& command, const Environment& environment = {});

} // namespace ptarmigan::bench
