// SPDX-License-Identifier: Apache-2.0
// The half of device_launch whose kernels launch themselves and each other.
#include "device_launch.h"

__device__ static void insertion_sort(int* values, int low, int high) {
    for (int i = low + 1; i <= high; ++i) {
        const int value = values[i];
        int j = i - 1;
        for (; j >= low && values[j] > value; --j) values[j + 1] = values[j];
        values[j + 1] = value;
    }
}

extern "C" __global__ void quicksort(int* values, int low, int high) {
    if (threadIdx.x != 0 || low >= high) return;
    if (high - low < 16) return insertion_sort(values, low, high);
    const int pivot = values[(low + high) / 2];
    int i = low, j = high;
    while (i <= j) {
        while (values[i] < pivot) ++i;
        while (values[j] > pivot) --j;
        if (i > j) break;
        const int value = values[i];
        values[i++] = values[j];
        values[j--] = value;
    }
    cudaStream_t left, right;
    cudaStreamCreateWithFlags(&left, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&right, cudaStreamNonBlocking);
    quicksort<<<1, 64, 0, left>>>(values, low, j);
    quicksort<<<1, 64, 0, right>>>(values, i, high);
    cudaStreamDestroy(left);
    cudaStreamDestroy(right);
}

__global__ void count_node(int* nodes, int level, int levels) {
    if (threadIdx.x == 0) atomicAdd(nodes + level, 1);
    if (threadIdx.x < 2 && level < levels) count_node<<<1, 32, 0, cudaStreamFireAndForget>>>(nodes, level + 1, levels);
}

__global__ void note_step(int* trace, int step) { trace[step] = trace[step] == 0 && (step == 0 || trace[step - 1] == step) ? step + 1 : -1; }

/// Adds the upper half of the numbers to the lower one, until one is left: each step is a grid.
extern "C" __global__ void halve(int* values, int* trace, int n, int step) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] += values[i + n];
    if (i != 0) return;
    if (n > 1) halve<<<(n / 2 + 127) / 128, 128, 0, cudaStreamTailLaunch>>>(values, trace, n / 2, step + 1);
    note_step<<<1, 1>>>(trace, step);
}

__global__ void add_index(int* values, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] += i;
}

extern "C" __global__ void fill_and_copy(int* from, int* to, int n) {
    cudaMemsetAsync(from, 0, n * sizeof(int), 0); // the library of CUDA 13.0 stores zeros whatever the value
    add_index<<<(n + 63) / 64, 64>>>(from, n);
    cudaMemcpyAsync(to, from, n * sizeof(int), cudaMemcpyDeviceToDevice, 0);
    add_index<<<(n + 63) / 64, 64>>>(to, n);
}

struct Item {
    char unused;
    int number;
    double factor;
};
__global__ void add_square(int* sum, Item item) {
    extern __shared__ int block_sum[];
    if (threadIdx.x == 0) *block_sum = 0;
    __syncthreads();
    atomicAdd(block_sum, item.number * static_cast<int>(item.factor));
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(sum, *block_sum);
}

/// Three children of each block, by different threads; and a launch that fails.
extern "C" __global__ void sum_squares(int* sums, int blocks) {
    const int i = blockIdx.x;
    if (threadIdx.x % 20 == 3 && threadIdx.x < 60) add_square<<<1, 32, sizeof(int)>>>(sums + i, {0, i, static_cast<double>(i)});
    if (threadIdx.x == 5) {
        add_square<<<1, 4096, sizeof(int)>>>(sums + i, {0, 1, 1.0});
        sums[blocks + i] = cudaGetLastError();
        if (cudaGetLastError() != cudaSuccess) sums[blocks + i] = -1;
    }
}
