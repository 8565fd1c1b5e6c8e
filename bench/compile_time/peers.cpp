// SPDX-License-Identifier: Apache-2.0
#include "bench/compile_time/peers.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

extern char** environ;

namespace ptarmigan::bench {
namespace {

/// The first of these programs that is there, or empty.
std::string find_program(const std::string& name, const std::string& folder) {
    std::string path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
    path += ":" + folder;
    for (std::size_t at = 0; at <= path.size();) {
        const std::size_t end = std::min(path.find(':', at), path.size());
        const std::string candidate = path.substr(at, end - at) + "/" + name;
        if (access(candidate.c_str(), X_OK) == 0) return candidate;
        at = end + 1;
    }
    return "";
}

/// Seconds of a run that succeeds, else 0.
double run(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0);
    const auto start = std::chrono::steady_clock::now();
    pid_t child = 0;
    const bool started = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    int status = 1;
    if (started) waitpid(child, &status, 0);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return status == 0 ? elapsed.count() : 0;
}

double fastest(const std::vector<std::string>& command, unsigned rounds) {
    if (command.front().empty()) return 0;
    double best = 0;
    for (unsigned i = 0; i < rounds; ++i) {
        const double seconds = run(command);
        if (seconds == 0) return 0;
        best = best == 0 ? seconds : std::min(best, seconds);
    }
    return best;
}

double megabytes_of(const std::string& path) {
    std::error_code missing;
    const auto size = std::filesystem::file_size(path, missing);
    return missing ? 0 : static_cast<double>(size) / 1e6;
}

} // namespace

std::vector<Peer> peers(const std::string& kernels, const std::string& ir_source, unsigned rounds) {
    const char* toolkit = std::getenv("CUDA_PATH");
    const std::string ptxas =
        find_program("ptxas", std::string(toolkit != nullptr ? toolkit : "/usr/local/cuda") + "/bin");
    const std::string clang = find_program("clang-19", "/usr/lib/llvm-19/bin");
    std::string folder = (std::filesystem::temp_directory_path() / "bench_compile_timeXXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) return {};
    const std::string ir = folder + "/source.ll", empty = folder + "/empty.ll";
    std::ofstream(empty) << "target triple = \"nvptx64-nvidia-cuda\"\n";

    std::vector<Peer> result;
    result.push_back({"ptxas -O0: machine code", megabytes_of(kernels),
                      fastest({ptxas, "-O0", "-arch=sm_90", kernels, "-o", "/dev/null"}, rounds)});
    double read = 0;
    if (!clang.empty() && run({clang, "-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "-std=c++17",
                               "--cuda-gpu-arch=sm_70", "-O0", "-S", "-emit-llvm", ir_source, "-o", ir}) > 0)
        read = fastest({clang, "-cc1", "-triple", "nvptx64-nvidia-cuda", "-emit-llvm-only", "-x", "ir", ir}, rounds);
    const double start_up =
        fastest({clang, "-cc1", "-triple", "nvptx64-nvidia-cuda", "-emit-llvm-only", "-x", "ir", empty}, rounds);
    result.push_back(
        {"clang: LLVM IR text to verified module", megabytes_of(ir), read > start_up ? read - start_up : 0});
    std::filesystem::remove_all(folder);
    return result;
}

} // namespace ptarmigan::bench
