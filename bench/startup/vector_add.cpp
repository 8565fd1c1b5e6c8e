// SPDX-License-Identifier: Apache-2.0
// The smallest useful program: one vector add through the driver API, checked. bench_startup times it as a process.
#include "bench/kernels/peers.h"

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s LIBCUDA KERNELS.ptx\n", argv[0]);
        return 2;
    }
    constexpr int count = 1024;
    bench::KernelCase problem;
    problem.kernel = "saxpy";
    problem.buffers = {bench::Bytes(count * 4), bench::Bytes(count * 4)};
    for (int i = 0; i < count; ++i) {
        bench::as<float>(problem.buffers[0])[i] = float(i);
        bench::as<float>(problem.buffers[1])[i] = 1.0f;
    }
    problem.arguments = {bench::buffer(0), bench::buffer(1), bench::scalar(2.0f), bench::scalar(count)};
    problem.grid = {count / 256, 1, 1};
    problem.block = {256, 1, 1};
    problem.output = 1;
    try {
        auto peer = bench::make_cuda_peer(argv[1], argv[2]);
        peer->prepare(problem);
        peer->run();
        bench::Bytes result = peer->output();
        for (int i = 0; i < count; ++i)
            if (bench::as<float>(result)[i] != 2.0f * float(i) + 1.0f) return 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
