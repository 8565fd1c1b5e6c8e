// SPDX-License-Identifier: Apache-2.0
// Processes that run programs, so that a crash, a hang or a driver that is out of order ends one of them and nothing else.
#pragma once

#include "tests/tools/fuzz/configurations.h"
#include "tests/tools/fuzz/runner.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fuzz {

/// What became of a program: sixteen hexadecimal digits of a hash, or "error: ...".
using Result = std::string;
Result result_of(const unsigned char* memory, std::size_t bytes);
inline bool is_error(const Result& result) { return result.starts_with("error"); }

struct Task {
    unsigned configuration; ///< index into the list that Workers was given
    std::vector<std::uint32_t> seeds;
};

class Workers {
public:
    using MakeProgram = std::function<Program(std::uint32_t seed)>;

    /// `time_limit`: seconds for one program, from its text to its result.
    /// run() starts no task any more after `seconds`; 0: there is no limit.
    Workers(std::string library, std::vector<Configuration> configurations, unsigned time_limit, unsigned seconds)
        : library_(std::move(library)), configurations_(std::move(configurations)), time_limit_(time_limit), seconds_(seconds) {}

    /// Runs the tasks, `jobs` at a time; `visit` sees each result in this process.
    void run(std::vector<Task> tasks, unsigned jobs, const MakeProgram& make,
             const std::function<void(unsigned configuration, std::uint32_t seed, const Result& result)>& visit) const;
    /// One program in a process of its own. `memory`: what it left, if it ended.
    Result run_one(unsigned configuration, const Program& program, std::vector<unsigned char>* memory = nullptr) const;

private:
    struct Child;
    Child start(Task task, const MakeProgram& make, bool sends_memory) const;

    std::string library_;
    std::vector<Configuration> configurations_;
    unsigned time_limit_, seconds_;
};

} // namespace fuzz
