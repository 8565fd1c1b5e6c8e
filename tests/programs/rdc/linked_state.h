// SPDX-License-Identifier: Apache-2.0
// What the two files of linked_state share: variables and functions that the other file defines.
#pragma once

constexpr int table_size = 64;
constexpr int operation_count = 3;

#ifdef __CUDACC__
using Operation = int (*)(int, int);

extern __constant__ int table[table_size];
extern __device__ int history[8];
extern __device__ Operation operations[operation_count];
extern __device__ int* latest;
__device__ int look_up(int index);
__device__ int sum_of_block(int value);
__device__ int collatz_even(int n, int depth);
__device__ int collatz_odd(int n, int depth);

/// Inline: a weak copy in each file.
template <int factor>
__device__ __noinline__ int scaled(int value) {
    return factor * value + 1;
}
#endif
