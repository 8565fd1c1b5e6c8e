// SPDX-License-Identifier: Apache-2.0
// Runs programs through a CUDA driver, ours or a GPU's.
#pragma once

#include "tests/recordings/driver.h"
#include "tests/tools/fuzz/generator.h"

#include <cstdint>
#include <vector>

namespace fuzz {

/// All that a program leaves in memory: output_bytes per thread, scratch, common.
inline constexpr std::size_t memory_bytes = max_threads * (output_bytes + scratch_bytes) + common_bytes;

class Runner {
public:
    /// Opens the library; the environment must be set by then.
    explicit Runner(const char* library);
    /// memory_bytes, as the program leaves them. Throws std::runtime_error.
    std::vector<unsigned char> run(const Program& program);

private:
    recordings::Driver driver_;
    recordings::Address in_ = 0, memory_ = 0;
};

/// The first bytes of a file that --run takes say how to launch it.
std::string launch_line(const Program& program);
/// From a text that begins with launch_line(); throws std::runtime_error if it does not.
Program program_of(std::string text);

} // namespace fuzz
