// SPDX-License-Identifier: Apache-2.0
// Times whole processes: start to first kernel result, with an empty cache and with a filled one, and an empty process
// beside them for what the system itself takes.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

extern char** environ;

namespace {

/// Milliseconds from spawn to exit; throws if the program fails.
double run_once(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    auto start = std::chrono::steady_clock::now();
    pid_t child = 0;
    if (posix_spawn(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0)
        throw std::runtime_error("cannot start " + command[0]);
    int status = 0;
    waitpid(child, &status, 0);
    double elapsed = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error(command[0] + " failed");
    return elapsed;
}

void print(const char* name, std::vector<double> times) {
    std::sort(times.begin(), times.end());
    fmt::print("| {:<28} | {:>8.2f} | {:>8.2f} |\n", name, times.front(), times[times.size() / 2]);
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app("Times process start to first kernel result.");
    std::string library, kernels;
    int rounds = 15;
    app.add_option("--libcuda", library, "Driver library to load")->required();
    app.add_option("--kernels", kernels, "Folder with kernels.ptx")->required();
    app.add_option("--rounds", rounds, "Processes per row")->check(CLI::PositiveNumber);
    CLI11_PARSE(app, argc, argv);
    std::string program = (std::filesystem::path(argv[0]).parent_path() / "bench_vector_add").string();
    std::filesystem::path cache = std::filesystem::temp_directory_path() / fmt::format("ptarmigan-bench-{}", getpid());
    setenv("PTARMIGAN_CACHE_DIR", cache.c_str(), 1);
    std::vector<std::string> command{program, library, kernels + "/kernels.ptx"};
    try {
        std::vector<double> empty, cold, warm;
        for (int i = 0; i < rounds; ++i) {
            empty.push_back(run_once({"/bin/true"}));
            std::filesystem::remove_all(cache);
            cold.push_back(run_once(command));
            warm.push_back(run_once(command));
        }
        std::filesystem::remove_all(cache);
        fmt::print("| process                      | min, ms  | median   |\n|---|---|---|\n");
        print("empty process", empty);
        print("vector add, cold cache", cold);
        print("vector add, warm cache", warm);
    } catch (const std::exception& error) {
        std::filesystem::remove_all(cache);
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
    return 0;
}
