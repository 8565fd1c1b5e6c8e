// SPDX-License-Identifier: Apache-2.0
// Runs the kernels of cases.cpp, each in a process of its own because some may hang, and prints or compares what each thread
// stored. Recorded on an H200:
//   divergence /path/of/libcuda.so.1 --record > divergence_h200.txt
// Compared:
//   divergence LIBCUDA divergence_h200.txt
// A line: name, tab, numbers of the threads in hexadecimal, or "hang", or "error N". A line that begins with ~ holds what the
// hardware happened to give where the manual defines nothing: it is not compared.
#include "tests/recordings/divergence/cases.h"
#include "tests/recordings/driver.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/// Long enough for an emulated CPU that others use, too: where a GPU hangs, we answer `deadlock` at once.
constexpr unsigned seconds_to_hang = 60;
/// What becomes of a hang where every thread waits for another one: CUDA_ERROR_LAUNCH_FAILED.
constexpr const char* deadlock = "error 719";

/// What the child prints.
std::string run_here(const char* library, const divergence::Case& which) {
    recordings::Driver driver(library);
    std::vector<std::uint32_t> words(which.threads, 0xffffffffu);
    recordings::Address out = driver.allocate(words.size() * 4);
    driver.upload(out, words.data(), words.size() * 4);
    void* parameters[] = {&out};
    driver.launch(driver.load(divergence::text_of(which)), "k", 1, which.threads, 1, parameters);
    driver.download(words.data(), out, words.size() * 4);
    std::string text;
    for (std::uint32_t word : words) {
        char number[16];
        std::snprintf(number, sizeof number, text.empty() ? "%x" : " %x", word);
        text += number;
    }
    return text;
}

std::string run_case(const char* library, const divergence::Case& which) {
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) return "no pipe";
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(seconds_to_hang);
        std::string text;
        try {
            text = run_here(library, which);
        } catch (const std::exception& error) {
            text = std::strstr(error.what(), "error ") ? std::strstr(error.what(), "error ") : error.what();
        }
        const ssize_t written = write(pipe_ends[1], text.data(), text.size());
        _exit(written != ssize_t(text.size()));
    }
    close(pipe_ends[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t size; (size = read(pipe_ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, std::size_t(size));
    close(pipe_ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return text.empty() ? "hang" : text;
}

int compare(const char* library, const char* path) {
    std::ifstream file(path);
    std::map<std::string, std::string> expected;
    for (std::string line; std::getline(file, line);) {
        const std::size_t tab = line.find('\t');
        if (tab != line.npos && line[0] != '~' && line[0] != '#') expected[line.substr(0, tab)] = line.substr(tab + 1);
    }
    if (expected.empty()) throw std::runtime_error(std::string("nothing in ") + path);
    unsigned failed = 0, compared = 0;
    for (const divergence::Case& which : divergence::cases()) {
        const auto found = expected.find(which.name);
        if (found == expected.end()) continue;
        ++compared;
        const std::string got = run_case(library, which);
        if (got == found->second || (found->second == "hang" && got == deadlock)) continue;
        ++failed;
        std::printf("%s:\n  recorded %s\n  got      %s\n", which.name.c_str(), found->second.c_str(), got.c_str());
    }
    std::printf("%u compared, %u differ\n", compared, failed);
    return failed != 0 || compared == 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s LIBCUDA --record | --text | RECORDING\n", argv[0]);
        return 2;
    }
    try {
        if (std::strcmp(argv[2], "--text") == 0) {
            for (const divergence::Case& which : divergence::cases()) std::printf("// %s\n%s\n", which.name.c_str(), divergence::text_of(which).c_str());
            return 0;
        }
        if (std::strcmp(argv[2], "--record") != 0) return compare(argv[1], argv[2]);
        for (const divergence::Case& which : divergence::cases())
            std::printf("%s\t%s\n", which.name.c_str(), run_case(argv[1], which).c_str());
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
