// SPDX-License-Identifier: Apache-2.0
// The half of linked_state that defines what the kernels use.
#include "linked_state.h"

#include <cstdio>

__constant__ int table[table_size];
__device__ int history[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ int* latest = &history[7];

static __device__ int bias = 100; // the other file has one of its own
static __device__ __noinline__ int mix(int a, int b) {
    return a * 31 + b + bias;
}

__device__ int look_up(int index) {
    return mix(table[index % table_size], scaled<3>(index));
}

static __device__ int add(int a, int b) {
    return a + b;
}
static __device__ int subtract(int a, int b) {
    return a - b;
}
__device__ Operation operations[operation_count] = {add, subtract, mix};

extern __shared__ int scratch[];

__device__ int sum_of_block(int value) {
    scratch[threadIdx.x] = value;
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) scratch[threadIdx.x] += scratch[threadIdx.x + step];
    }
    __syncthreads();
    return scratch[0];
}

/// Calls back into the other file, which calls here: recursion over files.
__device__ int collatz_even(int n, int depth) {
    if (n <= 1 || depth > 40) return depth;
    return n % 2 == 0 ? collatz_even(n / 2, depth + 1) : collatz_odd(n, depth);
}

extern "C" __global__ void announce(int n) {
    if (threadIdx.x < n) printf("file 2 thread %d of %d\n", static_cast<int>(threadIdx.x), n);
}
