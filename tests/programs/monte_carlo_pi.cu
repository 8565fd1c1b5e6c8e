// SPDX-License-Identifier: Apache-2.0
// Pi from random points; each thread has its own generator, and the host repeats the counting.
#include "common/program.h"

KERNEL void monte_carlo_pi(unsigned long long* inside, unsigned* per_thread, int points);

#ifdef __CUDACC__
__host__ __device__
#endif
static inline unsigned count_inside(unsigned seed, int points) {
    unsigned state = seed * 747796405u + 2891336453u, count = 0;
    for (int i = 0; i < points; ++i) {
        unsigned xy[2];
        for (unsigned& value : xy) {
            state = state * 747796405u + 2891336453u;
            const unsigned word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
            value = ((word >> 22) ^ word) >> 16;
        }
        count += static_cast<unsigned long long>(xy[0]) * xy[0] + static_cast<unsigned long long>(xy[1]) * xy[1] <
                 4294967296ull;
    }
    return count;
}

#ifdef __CUDACC__
__global__ void monte_carlo_pi(unsigned long long* inside, unsigned* per_thread, int points) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned count = count_inside(thread, points);
    per_thread[thread] = count;
    atomicAdd(inside, static_cast<unsigned long long>(count));
}
#endif

int main(int argc, char** argv) {
    const test::Program program("monte_carlo_pi", argc, argv);
    const int points = program.argument(0, 500), threads = 32 * 128;
    const test::Buffer<unsigned long long> inside(1);
    const test::Buffer<unsigned> counts(threads);
    LAUNCH(monte_carlo_pi, threads / 128, 128, 0, inside, counts, points);
    const std::vector<unsigned> actual = counts.download();
    unsigned long long total = 0;
    int wrong = 0;
    for (int t = 0; t < threads; ++t) {
        const unsigned expected = count_inside(t, points);
        wrong += actual[t] != expected;
        total += expected;
    }
    const double pi = 4.0 * static_cast<double>(total) / (double(points) * threads);
    return program.finish(wrong == 0 && inside.download()[0] == total, "pi=%.5f wrong=%d", pi, wrong);
}
