// SPDX-License-Identifier: Apache-2.0
// The programs that are measured: built by nvcc from the sources beside this file, or CuPy.
#pragma once

#include "bench/first_launch/process.h"

#include <string>
#include <vector>

namespace ptarmigan::bench {

struct Program {
    std::string name;
    std::vector<std::string> command;
    Environment environment;
    std::vector<std::string> ptx; ///< files with the kernels' PTX; known after a run where it is made by one
    std::string missing;          ///< why it can't be run; empty if it can
};

struct ProgramSettings {
    std::string sources; ///< folder of the .cu files
    std::string work;    ///< folder for what is built; kept from run to run
    std::string nvcc;    ///< path or name
    std::string python;  ///< with CuPy; empty: none
};

/// Those whose name contains `only`. Builds what is older than its source. A program that can't be built says why in
/// `missing`.
std::vector<Program> make_programs(const ProgramSettings& settings, const std::string& only);

/// For CuPy: what NVRTC made during a run, as files for ptxas. Nothing for others.
void find_ptx(Program& program, const ProgramSettings& settings);

/// What ptxas takes for the named kernels of the program's PTX, all in one file after another; CPU seconds, negative
/// where there is no ptxas or it fails.
double ptxas_seconds(const Program& program, const std::vector<std::string>& kernels, const std::string& ptxas);

} // namespace ptarmigan::bench
