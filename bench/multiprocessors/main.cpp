// SPDX-License-Identifier: Apache-2.0
// What it costs that the device claims as many multiprocessors as an H200 has: programs make their grids that much
// larger. Each case runs with PTARMIGAN_SMS=auto, as many as the host has threads, and with 132, in processes that take
// turns; its grid is so many blocks for each multiprocessor. Results must be the same.
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Case {
    const char *name, *kernel;
    unsigned blocks, threads; ///< for each multiprocessor; of a block
    bool cooperative;
    int n, rounds;        ///< parameters
    std::size_t y, words; ///< elements
    bool exact = true;    ///< the same result whatever the grid
};

constexpr int million = 1 << 20;
const std::vector<Case> cases = {
    {"saxpy of 4M, grid stride", "saxpy", 8, 256, false, 4 * million, 0, 4 * million, 1},
    {"sum of 4M, tree and atomic", "sum", 4, 256, false, 4 * million, 0, 1, 1},
    {"sum of 4M, last block", "sum_of_sums", 2, 512, false, 4 * million, 0, 1, 1 << 12, false},
    {"histogram of 4M", "histogram", 4, 256, false, 4 * million, 0, 1, 256},
    {"matrix 512, persistent blocks", "persistent_tiles", 2, 256, false, 512, 0, 512 * 512, 1},
    {"matrix 512, queue of tiles", "tile_queue", 2, 256, false, 512, 0, 512 * 512, 1},
    {"100 rounds of 64K cells, 256", "diffuse", 1, 256, true, 1 << 16, 100, 1, 1 << 17},
    {"10 rounds of 2M cells, 2 x 512", "diffuse", 2, 512, true, 2 * million, 10, 1, 4 * million},
    {"solver of 64K, 20 rounds, 256", "solver", 1, 256, true, 1 << 16, 20, 4 << 16, 16, false},
    {"solver of 64K, 20 rounds, 3 x 512", "solver", 3, 512, true, 1 << 16, 20, 4 << 16, 16, false},
    {"solver of 1M, 20 rounds, 3 x 512", "solver", 3, 512, true, million, 20, 4 * million, 16, false},
};

class Driver {
public:
    Driver(const char* library, const char* ptx_file) : library_(dlopen(library, RTLD_NOW | RTLD_LOCAL)) {
        if (!library_) throw std::runtime_error(dlerror());
        std::ifstream file(ptx_file);
        if (!file) throw std::runtime_error(std::string("can't read ") + ptx_file);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        void* context = nullptr;
        call<int(unsigned)>("cuInit", 0u);
        call<int(void**, int)>("cuDevicePrimaryCtxRetain", &context, 0);
        call<int(void*)>("cuCtxSetCurrent", context);
        call<int(void**, const void*)>("cuModuleLoadData", &module_, text.c_str());
        constexpr int multiprocessor_count = 16;
        call<int(int*, int, int)>("cuDeviceGetAttribute", &multiprocessors_, multiprocessor_count, 0);
    }

    /// The fastest of `launches`, in milliseconds, and a digest of the results.
    double run(const Case& given, int launches, std::uint64_t& digest) {
        std::vector<float> x(static_cast<std::size_t>(4 * million));
        std::uint32_t state = 12345;
        for (float& value : x) {
            state = state * 1664525u + 1013904223u;
            value = static_cast<float>(state >> 8) / 16777216.0f;
        }
        std::vector<float> y(given.y, 0.0f);
        std::vector<std::uint32_t> words(given.words, 1u);
        const std::uint64_t device_x = upload(x.data(), x.size() * 4);
        void* function = nullptr;
        call<int(void**, void*, const char*)>("cuModuleGetFunction", &function, module_, given.kernel);
        double best = 1e30;
        for (int i = 0; i < launches; ++i) {
            if (std::strcmp(given.kernel, "diffuse") != 0) std::fill(words.begin(), words.end(), 0u);
            std::uint64_t device_y = upload(y.data(), y.size() * 4),
                          device_words = upload(words.data(), words.size() * 4);
            std::uint64_t own_x = device_x;
            int n = given.n, rounds = given.rounds;
            void* parameters[] = {&own_x, &device_y, &device_words, &n, &rounds};
            const unsigned blocks = given.blocks * static_cast<unsigned>(multiprocessors_);
            const auto start = std::chrono::steady_clock::now();
            if (given.cooperative)
                call<Cooperative>("cuLaunchCooperativeKernel", function, blocks, 1u, 1u, given.threads, 1u, 1u, 0u,
                                  static_cast<void*>(nullptr), static_cast<void**>(parameters));
            else
                call<Launch>("cuLaunchKernel", function, blocks, 1u, 1u, given.threads, 1u, 1u, 0u,
                             static_cast<void*>(nullptr), static_cast<void**>(parameters),
                             static_cast<void**>(nullptr));
            call<int()>("cuCtxSynchronize");
            const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
            best = std::min(best, time.count());
            if (i == 0) digest = digest_of(given, device_y, device_words);
            call<int(std::uint64_t)>("cuMemFree_v2", device_y);
            call<int(std::uint64_t)>("cuMemFree_v2", device_words);
        }
        call<int(std::uint64_t)>("cuMemFree_v2", device_x);
        return best;
    }

private:
    using Cooperative = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**);
    using Launch = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                       void**);
    template <typename Signature, typename... Arguments> void call(const char* name, Arguments... arguments) {
        auto* const function = reinterpret_cast<Signature*>(dlsym(library_, name));
        if (!function) throw std::runtime_error(std::string("no ") + name);
        if (const int status = function(arguments...); status != 0)
            throw std::runtime_error(std::string(name) + " gives " + std::to_string(status));
    }
    std::uint64_t upload(const void* data, std::size_t bytes) {
        std::uint64_t address = 0;
        call<int(std::uint64_t*, std::size_t)>("cuMemAlloc_v2", &address, bytes);
        call<int(std::uint64_t, const void*, std::size_t)>("cuMemcpyHtoD_v2", address, data, bytes);
        return address;
    }
    std::uint64_t digest_of(const Case& given, std::uint64_t y, std::uint64_t words) {
        std::vector<std::uint32_t> all(given.y + given.words);
        call<int(void*, std::uint64_t, std::size_t)>("cuMemcpyDtoH_v2", static_cast<void*>(all.data()), y, given.y * 4);
        call<int(void*, std::uint64_t, std::size_t)>("cuMemcpyDtoH_v2", static_cast<void*>(all.data() + given.y), words,
                                                     given.words * 4);
        if (std::strcmp(given.kernel, "tile_queue") == 0) all.back() = 0; // counts the blocks too
        std::uint64_t digest = 14695981039346656037u;
        for (const std::uint32_t word : all) digest = (digest ^ word) * 1099511628211u;
        return digest;
    }

    void *library_, *module_ = nullptr;
    int multiprocessors_ = 0;
};

/// Lines "case milliseconds digest" on stdout.
void run_cases(const char* library, const char* ptx_file, int launches, const std::string& only) {
    Driver driver(library, ptx_file);
    for (std::size_t i = 0; i < cases.size(); ++i) {
        if (std::string(cases[i].name).find(only) == std::string::npos) continue;
        std::uint64_t digest = 0;
        const double time = driver.run(cases[i], launches, digest);
        std::printf("%zu %.6f %llu\n", i, time, static_cast<unsigned long long>(digest));
        std::fflush(stdout);
    }
}

struct Outcome {
    double best = 1e30;
    std::uint64_t digest = 0;
};

/// Runs all cases in a process of their own.
void measure(char** arguments, const char* multiprocessors, std::map<std::size_t, Outcome>& outcomes) {
    setenv("PTARMIGAN_SMS", multiprocessors, 1);
    std::string command = std::string(arguments[0]) + " --child";
    for (char** argument = arguments + 1; *argument; ++argument) command += " '" + std::string(*argument) + "'";
    FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) throw std::runtime_error("can't start a process");
    std::size_t number = 0;
    double time = 0;
    unsigned long long digest = 0;
    while (std::fscanf(pipe, "%zu %lf %llu", &number, &time, &digest) == 3) {
        Outcome& outcome = outcomes[number];
        outcome.best = std::min(outcome.best, time);
        outcome.digest = digest;
    }
    if (pclose(pipe) != 0) throw std::runtime_error("a process has failed");
}

} // namespace

/// usage: bench_multiprocessors LIBCUDA PTX [ROUNDS [TEXT]]: only cases whose name contains TEXT
int main(int argc, char** argv) {
    const bool child = argc > 1 && std::strcmp(argv[1], "--child") == 0;
    char** arguments = child ? argv + 1 : argv;
    argc -= child;
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s LIBCUDA PTX [ROUNDS [TEXT]]\n", argv[0]);
        return 2;
    }
    const int rounds = argc > 3 ? std::atoi(arguments[3]) : 3;
    const std::string only = argc > 4 ? arguments[4] : "";
    try {
        if (child) {
            run_cases(arguments[1], arguments[2], 8, only);
            return 0;
        }
        std::map<std::size_t, Outcome> few, many;
        for (int round = 0; round < rounds; ++round) {
            measure(argv, "auto", few);
            measure(argv, "132", many);
        }
        bool wrong = false;
        std::printf(
            "| blocks for each multiprocessor             | ms, as many as threads | ms, 132 | ratio |\n|---|---|---|---|\n");
        for (const auto& [number, outcome] : few) {
            const bool differs = cases[number].exact && outcome.digest != many[number].digest;
            wrong = wrong || differs;
            std::printf("| %-42s | %22.2f | %7.2f | %5.2f |%s\n", cases[number].name, outcome.best, many[number].best,
                        many[number].best / outcome.best, differs ? " WRONG" : "");
        }
        return wrong;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
