// SPDX-License-Identifier: Apache-2.0
// Bitonic sort of keys with values; steps inside 1024 elements stay in shared memory.
#include "common/program.h"

KERNEL void bitonic_shared(unsigned* keys, unsigned* values, unsigned size, unsigned first_distance, unsigned whole);
KERNEL void bitonic_global(unsigned* keys, unsigned* values, unsigned size, unsigned distance);

#ifdef __CUDACC__
static __device__ void order(unsigned* keys, unsigned* values, unsigned low, unsigned high, bool up) {
    if ((keys[low] > keys[high]) == up) {
        const unsigned key = keys[low], value = values[low];
        keys[low] = keys[high];
        values[low] = values[high];
        keys[high] = key;
        values[high] = value;
    }
}
__global__ void bitonic_shared(unsigned* keys, unsigned* values, unsigned size, unsigned first_distance, unsigned whole) {
    __shared__ unsigned k[1024], v[1024];
    const unsigned base = blockIdx.x * 1024, t = threadIdx.x;
    for (unsigned i = t; i < 1024; i += 512) {
        k[i] = keys[base + i];
        v[i] = values[base + i];
    }
    for (unsigned current = whole ? 2 : size; current <= size; current *= 2) {
        for (unsigned distance = whole ? current / 2 : first_distance; distance > 0; distance /= 2) {
            __syncthreads();
            const unsigned low = 2 * t - (t & (distance - 1));
            order(k, v, low, low + distance, ((base + low) & current) == 0);
        }
    }
    __syncthreads();
    for (unsigned i = t; i < 1024; i += 512) {
        keys[base + i] = k[i];
        values[base + i] = v[i];
    }
}
__global__ void bitonic_global(unsigned* keys, unsigned* values, unsigned size, unsigned distance) {
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x, low = 2 * t - (t & (distance - 1));
    order(keys, values, low, low + distance, (low & size) == 0);
}
#endif

int main(int argc, char** argv) {
    const test::Program program("bitonic_sort", argc, argv);
    const unsigned n = 1u << program.argument(0, 15);
    test::Random random(11);
    std::vector<unsigned> keys(n), values(n);
    for (unsigned i = 0; i < n; ++i) {
        keys[i] = random.below(1000000);
        values[i] = i;
    }
    const test::Buffer<unsigned> dk(keys), dv(values);
    LAUNCH(bitonic_shared, n / 1024, 512, 0, dk, dv, 1024u, 512u, 1u);
    for (unsigned size = 2048; size <= n; size *= 2) {
        unsigned distance = size / 2;
        for (; distance >= 1024; distance /= 2) LAUNCH(bitonic_global, n / 512, 256, 0, dk, dv, size, distance);
        LAUNCH(bitonic_shared, n / 1024, 512, 0, dk, dv, size, distance, 0u);
    }
    const std::vector<unsigned> sorted = dk.download(), origin = dv.download();
    bool ok = std::is_sorted(sorted.begin(), sorted.end());
    std::vector<bool> seen(n);
    for (unsigned i = 0; i < n; ++i) {
        ok = ok && origin[i] < n && !seen[origin[i]] && keys[origin[i]] == sorted[i];
        if (origin[i] < n) seen[origin[i]] = true;
    }
    return program.finish(ok, "n=%u first=%u last=%u", n, sorted.front(), sorted.back());
}
