// SPDX-License-Identifier: Apache-2.0
// Cases that print one line each, run on a GPU (the recording) or on Ptarmigan (compared with it). A case may end in an
// error that sticks to its context: cases run in child processes, each of which goes on until that happens.
#pragma once

#include "tests/recordings/driver.h"

#include <functional>
#include <string>
#include <vector>

namespace recordings {

struct Case {
    std::string name; ///< one line without ": "
    /// Returns what is compared, one line; its word * stands for any. A std::runtime_error becomes "error: " and its text.
    std::function<std::string(Driver&)> run;
};

/// PROGRAM LIBCUDA RECORDING.txt compares (with --every N behind it every Nth case), PROGRAM LIBCUDA --record prints. Returns main's status.
int run_cases(int count, char** arguments, const std::vector<Case>& cases);

std::string hex(std::uint64_t value);

} // namespace recordings
