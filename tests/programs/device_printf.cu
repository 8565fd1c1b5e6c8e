// SPDX-License-Identifier: Apache-2.0
// printf on the device: the output is caught and compared line by line, whatever the order of the threads.
#include "common/program.h"

#include <set>
#include <unistd.h>

KERNEL void device_printf(int n);

#ifdef __CUDACC__
__global__ void device_printf(int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        printf("thread %d of %s: %5.2f %lld %c %#x|%-6d|%%\n", i, blockIdx.x ? "second" : "first", i * 0.25,
               1ll << (i % 60), 'a' + i % 26, i * 17, -i);
}
#endif

int main(int argc, char** argv) {
    const test::Program program("device_printf", argc, argv);
    const int n = program.argument(0, 50);
    std::FILE* file = std::tmpfile();
    if (file == nullptr) return program.finish(false, "no temporary file");
    std::fflush(stdout);
    const int saved = dup(1);
    dup2(fileno(file), 1);
    LAUNCH(device_printf, 2, 32, 0, n);
    test::synchronize();
    std::fflush(stdout);
    dup2(saved, 1);
    close(saved);
    std::multiset<std::string> expected, actual;
    for (int i = 0; i < std::min(n, 64); ++i) {
        char line[160];
        std::snprintf(line, sizeof line, "thread %d of %s: %5.2f %lld %c %#x|%-6d|%%\n", i, i >= 32 ? "second" : "first",
                      i * 0.25, 1ll << (i % 60), 'a' + i % 26, i * 17, -i);
        expected.insert(line);
    }
    std::rewind(file);
    char line[160];
    while (std::fgets(line, sizeof line, file) != nullptr) actual.insert(line);
    return program.finish(actual == expected, "lines=%zu expected=%zu", actual.size(), expected.size());
}
