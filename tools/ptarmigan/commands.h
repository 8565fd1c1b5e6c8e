// SPDX-License-Identifier: Apache-2.0
// The subcommands of `ptarmigan`. Each adds itself and its options to the application; its callback
// does the work and leaves the exit code: 0 success, 1 the work failed, 2 usage.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ptarmigan::tool {

inline constexpr int exit_success = 0, exit_failure = 1, exit_usage = 2;

void add_exec_command(CLI::App& app, int& exit_code);
void add_run_command(CLI::App& app, int& exit_code);
void add_lint_command(CLI::App& app, int& exit_code);
void add_dump_command(CLI::App& app, int& exit_code);
void add_compile_command(CLI::App& app, int& exit_code);
void add_cache_command(CLI::App& app, int& exit_code);
void add_info_command(CLI::App& app, int& exit_code);
void add_isa_command(CLI::App& app, int& exit_code);
void add_driver_command(CLI::App& app, int& exit_code);
void add_env_command(CLI::App& app, int& exit_code);
void add_smi_command(CLI::App& app);

/// `ptarmigan smi WORDS`, and `nvidia-smi WORDS` where this program is called so: nvidia-smi's options and exit codes.
int run_smi(const std::vector<std::string>& words);

/// Replaces this process by a program that finds our libcuda.so.1. Returns only if that can't be done, with the exit
/// status for it and a message on stderr.
int run_program(const std::vector<std::string>& program);

/// Reads a whole file. False, with a message on stderr, if it can't be read.
bool read_file(const std::string& path, std::string& contents);

} // namespace ptarmigan::tool
