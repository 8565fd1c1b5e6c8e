// SPDX-License-Identifier: Apache-2.0
// `ptarmigan exec`: starts an unmodified CUDA program with our libcuda.so.1 and libnvidia-ml.so.1 in front of any
// others, and an nvidia-smi that shows these devices.
// `ptarmigan env` lists the variables that its options set.
#include "runtime/base/env.h"
#include "tools/ptarmigan/commands.h"

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptarmigan::tool {
namespace {

// The shell's codes for a program that can't be started.
constexpr int exit_not_executable = 126, exit_not_found = 127;

struct ExecOptions {
    std::vector<std::optional<std::string>> values; ///< by Env; nothing: not given
    std::vector<std::string> program;
};

/// The folder of libcuda.so.1: lib/ beside the tool's bin/.
std::filesystem::path library_folder() {
    std::error_code error;
    auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    return self.parent_path().parent_path() / "lib";
}

/// Throws std::invalid_argument if an option's value is none that its variable takes.
void check_values(const ExecOptions& options) {
    auto variables = runtime::env_variables();
    for (std::size_t i = 0; i < variables.size(); ++i) {
        std::string problem = runtime::env_problem(static_cast<runtime::Env>(i), options.values[i].value_or(""));
        if (!problem.empty())
            throw std::invalid_argument(std::string(variables[i].option) + " " + *options.values[i] + ": it takes " +
                                        problem);
    }
}

void put_in_front(const char* variable, const std::filesystem::path& folder) {
    std::string path = folder;
    if (const char* inherited = std::getenv(variable); inherited && *inherited) path += std::string(":") + inherited;
    setenv(variable, path.c_str(), 1);
}

} // namespace

int run_program(const std::vector<std::string>& program) {
    auto folder = library_folder();
    std::error_code error;
    if (!std::filesystem::exists(folder / "libcuda.so.1", error)) {
        std::fprintf(stderr, "ptarmigan: %s/libcuda.so.1 is missing; build the target `cuda`\n", folder.c_str());
        return exit_failure;
    }
    put_in_front("LD_LIBRARY_PATH", folder);
    if (const auto commands = folder.parent_path() / "libexec";
        std::getenv("PATH") && std::filesystem::exists(commands / "nvidia-smi", error))
        put_in_front("PATH", commands);
    std::vector<char*> arguments;
    for (const std::string& argument : program) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    int reason = errno;
    std::fprintf(stderr, "ptarmigan: cannot run %s: %s\n", arguments[0], std::strerror(reason));
    return reason == ENOENT ? exit_not_found : exit_not_executable;
}

namespace {

int exec(const ExecOptions& options) {
    check_values(options);
    auto variables = runtime::env_variables();
    for (std::size_t i = 0; i < variables.size(); ++i)
        if (options.values[i]) setenv(variables[i].name, options.values[i]->c_str(), 1);
    return run_program(options.program);
}

} // namespace

void add_exec_command(CLI::App& app, int& exit_code) {
    auto* command = app.add_subcommand(
        "exec", "Run an unmodified CUDA program on the CPU: ptarmigan exec [OPTIONS] -- PROGRAM ARGS...");
    command->footer("The exit status is the program's; 126 or 127 if it can't be started.\n"
                    "Each option sets the environment variable of the same meaning: see `ptarmigan env`.");
    command->prefix_command(false)->positionals_at_end();
    auto options = std::make_shared<ExecOptions>();
    auto variables = runtime::env_variables();
    options->values.resize(variables.size());
    for (std::size_t i = 0; i < variables.size(); ++i)
        command->add_option(variables[i].option, options->values[i], variables[i].meaning)
            ->type_name(*variables[i].fallback ? std::string("[") + variables[i].fallback + "]" : "VALUE");
    command->add_option("program", options->program, "program and its arguments, after --")->required();
    command->callback([options, &exit_code] { exit_code = exec(*options); });
}

void add_env_command(CLI::App& app, int& exit_code) {
    auto* command = app.add_subcommand("env", "List the environment variables and their values now");
    command->callback([&exit_code] {
        auto variables = runtime::env_variables();
        for (std::size_t i = 0; i < variables.size(); ++i) {
            auto variable = static_cast<runtime::Env>(i);
            std::string value = runtime::env_text(variable);
            const char* set = std::getenv(variables[i].name);
            std::string problem = runtime::env_problem(variable, set ? set : "");
            std::printf("%s=%s%s\n    exec %s: %s\n", variables[i].name, value.c_str(),
                        !set              ? ""
                        : problem.empty() ? "  (set)"
                                          : "  (set to something else: ignored)",
                        variables[i].option, variables[i].meaning);
            if (!problem.empty())
                std::fprintf(stderr, "ptarmigan: %s=%s is ignored: it takes %s\n", variables[i].name, set,
                             problem.c_str());
        }
        for (const std::string& line : runtime::unknown_settings())
            std::fprintf(stderr, "ptarmigan: %s\n", line.c_str());
        exit_code = exit_success;
    });
}

} // namespace ptarmigan::tool
