// SPDX-License-Identifier: Apache-2.0
// ptarmigan: run, check and look into CUDA programs and PTX on the CPU.
#include "tools/ptarmigan/commands.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace ptarmigan::tool {

bool read_file(const std::string& path, std::string& contents) {
    std::ifstream file(path, std::ios::binary);
    if (file)
        contents.assign(std::istreambuf_iterator<char>(file), {});
    if (!file) {
        std::fprintf(stderr, "ptarmigan: cannot read %s\n", path.c_str());
        return false;
    }
    return true;
}

} // namespace ptarmigan::tool

int main(int argc, char** argv) {
    using namespace ptarmigan::tool;
    CLI::App app{"Runs CUDA programs on the CPU, and shows what becomes of their PTX.",
                 "ptarmigan"};
    app.require_subcommand(1);
    app.set_version_flag("--version", "ptarmigan 0.1.0");
    int exit_code = exit_success;
    add_exec_command(app, exit_code);
    add_run_command(app, exit_code);
    add_lint_command(app, exit_code);
    add_dump_command(app, exit_code);
    add_info_command(app, exit_code);
    add_isa_command(app, exit_code);
    add_env_command(app, exit_code);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? exit_success : exit_usage;
    } catch (const std::invalid_argument& error) { // an option's text that only its user can judge
        std::fprintf(stderr, "ptarmigan: %s\n", error.what());
        return exit_usage;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "ptarmigan: %s\n", error.what());
        return exit_failure;
    }
    return exit_code;
}
