// SPDX-License-Identifier: Apache-2.0
// CUDA's math functions beside the host's: nanoseconds of processor time for 16 values of a buffer that stays in the
// cache, less those of an addition. Results are compared first.
//   bench_math_functions LIBCUDA PTX
#include "host.h"

#include "tests/recordings/driver.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using recordings::Driver;
constexpr int threads = 256, values = 16384, rounds = 200;

double processor_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}
/// For 16 values.
double fastest(const std::function<void()>& pass) {
    double best = 1e9;
    for (int round = 0; round < rounds; ++round) {
        const double start = processor_seconds();
        pass();
        best = std::min(best, processor_seconds() - start);
    }
    return best * 1e9 / (values / 16);
}

template <typename T> std::vector<unsigned char> between(double from, double to) {
    std::vector<unsigned char> bytes(values * sizeof(T));
    unsigned state = 1;
    for (int i = 0; i < values; ++i) {
        state = state * 1664525 + 1013904223;
        reinterpret_cast<T*>(bytes.data())[i] = T(from + (to - from) * state / 4294967296.0);
    }
    return bytes;
}
template <typename T> double largest_error(const std::vector<unsigned char>& a, const std::vector<unsigned char>& b) {
    double worst = 0;
    for (int i = 0; i < values; ++i) {
        const double x = reinterpret_cast<const T*>(a.data())[i], y = reinterpret_cast<const T*>(b.data())[i];
        worst = std::max(worst, std::abs(x - y) / std::max(1.0, std::abs(y)));
    }
    return worst;
}

} // namespace

int main(int argc, char** argv) try {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s LIBCUDA PTX\n", argv[0]);
        return 2;
    }
    setenv("PTARMIGAN_TIER", "best", 0); // what is timed is good code
    setenv("PTARMIGAN_WORKERS", "1", 0);
    Driver driver(argv[1]);
    std::ifstream file(argv[2]);
    std::stringstream text;
    text << file.rdbuf();
    void* module = driver.load(text.str());
    recordings::Address in = driver.allocate(values * 8), out = driver.allocate(values * 8);
    void* arguments[] = {&in, &out};
    const auto kernel = [&](const char* name) {
        return fastest([&] {
            driver.launch(module, name, values / threads, threads, 1, arguments);
            driver.call("cuCtxSynchronize");
        });
    };
    std::printf("| function | ptarmigan ns | host ns | host / ptarmigan |\n|---|---|---|---|\n");
    for (int i = 0; i < host_function_count; ++i) {
        const HostFunction& function = host_functions[i];
        const bool wide = function.bytes == 8;
        const auto data =
            wide ? between<double>(function.from, function.to) : between<float>(function.from, function.to);
        driver.upload(in, data.data(), data.size());
        const double ours = kernel(function.name) - kernel(wide ? "copy_double" : "copy_float");
        driver.launch(module, function.name, values / threads, threads, 1, arguments);
        driver.call("cuCtxSynchronize");
        std::vector<unsigned char> result(data.size()), expected(data.size());
        driver.download(result.data(), out, result.size());
        const double host = fastest([&] { function.run(data.data(), expected.data(), values); });
        const double error = wide ? largest_error<double>(result, expected) : largest_error<float>(result, expected);
        const bool wrong = !(error < (wide ? 1e-11 : 1e-5));
        // Less than the addition's noise is no time.
        if (ours < 0.5)
            std::printf("| %s | %.2f | %.2f | - |%s\n", function.name, ours, host, wrong ? " WRONG" : "");
        else
            std::printf("| %s | %.2f | %.2f | %.2f |%s\n", function.name, ours, host, host / ours,
                        wrong ? " WRONG" : "");
        if (wrong) return std::fprintf(stderr, "%s: error %g\n", function.name, error), 1;
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
