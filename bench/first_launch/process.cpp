// SPDX-License-Identifier: Apache-2.0
#include "bench/first_launch/process.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace ptarmigan::bench {
namespace {

double seconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

std::string read_all(std::FILE* file) {
    std::string text;
    char piece[4096];
    std::rewind(file);
    while (const std::size_t got = std::fread(piece, 1, sizeof piece, file)) text.append(piece, got);
    return text;
}

} // namespace

ProcessRun run_process(const std::vector<std::string>& command, const Environment& environment) {
    // A file, not a pipe: nobody has to read while the program runs.
    std::FILE* output = std::tmpfile();
    if (!output) throw std::runtime_error("no temporary file");
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::fflush(nullptr);
    const auto start = std::chrono::steady_clock::now();
    const pid_t child = fork();
    if (child == 0) {
        dup2(fileno(output), STDOUT_FILENO);
        dup2(fileno(output), STDERR_FILENO);
        for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
        execvp(arguments[0], arguments.data());
        _exit(127);
    }
    ProcessRun run;
    int status = 0;
    rusage usage{};
    if (child > 0 && wait4(child, &status, 0, &usage) == child) {
        run.wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        run.cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
        run.peak_megabytes = static_cast<double>(usage.ru_maxrss) / 1024;
        run.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        run.output = read_all(output);
    }
    std::fclose(output);
    return run;
}

} // namespace ptarmigan::bench
