// SPDX-License-Identifier: Apache-2.0
// Votes, matches, shuffles with widths and under divergence, and groups of lanes with their own member masks.
#include "common/program.h"

constexpr int results_per_thread = 10;

KERNEL void warp_collectives(const unsigned* values, unsigned* results);

#ifdef __CUDACC__
__global__ void warp_collectives(const unsigned* values, unsigned* results) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, all = 0xffffffffu;
    const unsigned value = values[thread];
    unsigned* out = results + thread * results_per_thread;
    out[0] = __ballot_sync(all, value & 1);
    out[1] = __any_sync(all, value > 90) | __all_sync(all, value < 97) << 1;
    out[2] = __match_any_sync(all, value % 5);
    int equal;
    out[3] = __match_all_sync(all, value / 200, &equal) + equal;
    out[4] = __shfl_sync(all, value, lane + 3, 8);
    out[5] = __shfl_up_sync(all, value, 2, 16);
    out[6] = __shfl_xor_sync(all, value, 5);
    // Sixteen lanes each, at one instruction but under different masks.
    const unsigned half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    out[7] = __ballot_sync(half, value & 2);
    // Only some lanes take part. The active mask may be any set of them that holds the lane itself.
    const unsigned members = __ballot_sync(all, value % 3 == 0);
    out[8] = 0;
    if (value % 3 == 0) {
        const unsigned active = __activemask(), voters = __ballot_sync(members, (active & ~members) == 0 && active >> lane & 1);
        out[8] = __popc(voters & (1u << lane) - 1) + 1;
    }
    unsigned sum = value;
    for (int step = 1; step < 32; step *= 2) sum += __shfl_xor_sync(all, sum, step);
    out[9] = sum;
}
#endif

int main(int argc, char** argv) {
    const test::Program program("warp_collectives", argc, argv);
    const int blocks = program.argument(0, 20), threads = blocks * 96;
    test::Random random(22);
    std::vector<unsigned> values(threads);
    for (unsigned& value : values) value = random.below(97);
    const test::Buffer<unsigned> input(values), output(threads * results_per_thread);
    LAUNCH(warp_collectives, blocks, 96, 0, input, output);
    const std::vector<unsigned> actual = output.download();
    int wrong = 0;
    for (int t = 0; t < threads; ++t) {
        const unsigned* warp = &values[t / 32 * 32];
        const unsigned lane = t % 32, value = values[t];
        unsigned expected[results_per_thread] = {};
        bool any = false, same = true;
        for (unsigned l = 0; l < 32; ++l) {
            const unsigned bit = 1u << l;
            expected[0] |= warp[l] & 1 ? bit : 0;
            any = any || warp[l] > 90;
            expected[2] |= warp[l] % 5 == value % 5 ? bit : 0;
            same = same && warp[l] / 200 == value / 200;
            expected[7] |= l / 16 == lane / 16 && (warp[l] & 2) ? bit : 0;
            expected[8] += value % 3 == 0 && warp[l] % 3 == 0 && l <= lane;
            expected[9] += warp[l];
        }
        expected[1] = any | 1 << 1;
        expected[3] = same ? 0xffffffffu + 1 : 0;
        expected[4] = warp[lane / 8 * 8 + (lane + 3) % 8];
        expected[5] = warp[lane % 16 < 2 ? lane : lane - 2];
        expected[6] = warp[lane ^ 5];
        for (int r = 0; r < results_per_thread; ++r) wrong += actual[t * results_per_thread + r] != expected[r];
    }
    return program.finish(wrong == 0, "threads=%d wrong=%d", threads, wrong);
}
