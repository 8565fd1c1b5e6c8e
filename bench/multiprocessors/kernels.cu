// SPDX-License-Identifier: Apache-2.0
// Kernels whose grids are as large as the device: what they compute does not depend on the number of blocks.
//     nvcc -arch=compute_75 -ptx kernels.cu -o kernels.ptx
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void saxpy(const float* x, float* y, unsigned*, int n, int) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2.0f * x[i] + y[i];
}

/// The sum of the block's values in its first thread, by halves.
static __device__ unsigned tree_sum(unsigned value, unsigned* shared) {
    shared[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half != 0; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    return shared[0];
}

extern "C" __global__ void sum(const float* x, float*, unsigned* words, int n, int) {
    __shared__ unsigned shared[512];
    unsigned mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += __float_as_uint(x[i]);
    const unsigned all = tree_sum(mine, shared);
    if (threadIdx.x == 0) atomicAdd(words, all);
}

/// The block that comes last adds up what all have left.
extern "C" __global__ void sum_of_sums(const float* x, float*, unsigned* words, int n, int) {
    __shared__ unsigned shared[512];
    __shared__ bool last;
    unsigned mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += __float_as_uint(x[i]);
    const unsigned all = tree_sum(mine, shared);
    if (threadIdx.x == 0) {
        words[2 + blockIdx.x] = all;
        __threadfence();
        last = atomicInc(&words[1], gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    mine = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) mine += ((volatile unsigned*)words)[2 + i];
    __syncthreads();
    const unsigned total = tree_sum(mine, shared);
    if (threadIdx.x == 0) words[0] += total;
}

extern "C" __global__ void histogram(const float* x, float*, unsigned* words, int n, int) {
    __shared__ unsigned bins[256];
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[__float_as_uint(x[i]) >> 13 & 255], 1);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&words[i], bins[i]);
}

/// One tile of 16 x 16 of x * x, n x n.
static __device__ void multiply_tile(const float* x, float* y, int n, int tile) {
    __shared__ float a[16][16], b[16][16];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int row = tile / (n / 16) * 16 + ty, column = tile % (n / 16) * 16 + tx;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        a[ty][tx] = x[row * n + k + tx];
        b[ty][tx] = x[(k + ty) * n + column];
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += a[ty][i] * b[i][tx];
        __syncthreads();
    }
    y[row * n + column] = sum;
}

extern "C" __global__ void persistent_tiles(const float* x, float* y, unsigned*, int n, int) {
    for (int tile = blockIdx.x; tile < n / 16 * (n / 16); tile += gridDim.x) multiply_tile(x, y, n, tile);
}

/// Tiles are handed out by a counter.
extern "C" __global__ void tile_queue(const float* x, float* y, unsigned* words, int n, int) {
    __shared__ int next;
    for (;;) {
        if (threadIdx.x == 0) next = atomicAdd(words, 1);
        __syncthreads();
        const int tile = next;
        __syncthreads();
        if (tile >= n / 16 * (n / 16)) return;
        multiply_tile(x, y, n, tile);
    }
}

/// Rounds over a row of cells, a sync each.
extern "C" __global__ void diffuse(const float* x, float* y, unsigned* words, int n, int rounds) {
    const cg::grid_group grid = cg::this_grid();
    unsigned *from = words, *to = words + n;
    for (int round = 0; round < rounds; ++round) {
        for (int i = grid.thread_rank(); i < n; i += grid.size())
            to[i] = from[i == 0 ? n - 1 : i - 1] * 3 + from[i] + from[i + 1 == n ? 0 : i + 1] * 5 + round;
        grid.sync();
        unsigned* next = from;
        from = to;
        to = next;
    }
}

/// Adds the grid's sum of `value` to `result`. Functions of their own, so that three blocks of 512 threads have room
/// for their registers on a multiprocessor.
static __device__ __noinline__ void add_dot(double value, double* result) {
    __shared__ double shared[512];
    shared[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half != 0; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(result, shared[0]);
}

static __device__ __noinline__ double multiply(const float* direction, float* product, int n, int first, int step) {
    double dot = 0;
#pragma unroll 1
    for (int i = first; i < n; i += step) {
        const float left = i == 0 ? 0 : direction[i - 1], right = i + 1 == n ? 0 : direction[i + 1];
        product[i] = 2.01f * direction[i] - left - right;
        dot += (double)direction[i] * product[i];
    }
    return dot;
}

static __device__ __noinline__ double move(float* y, float alpha, int n, int first, int step) {
    double dot = 0;
#pragma unroll 1
    for (int i = first; i < n; i += step) {
        y[i] += alpha * y[2 * n + i];
        y[n + i] -= alpha * y[3 * n + i];
        dot += (double)y[n + i] * y[n + i];
    }
    return dot;
}

static __device__ __noinline__ void turn(float* y, float beta, int n, int first, int step) {
#pragma unroll 1
    for (int i = first; i < n; i += step) y[2 * n + i] = y[n + i] + beta * y[2 * n + i];
}

static __device__ __noinline__ void start(const float* x, float* y, int n, int first, int step) {
#pragma unroll 1
    for (int i = first; i < n; i += step) {
        y[i] = 0;
        y[n + i] = y[2 * n + i] = x[i];
        y[3 * n + i] = 0;
    }
}

static __device__ __noinline__ void sync_grid() {
    cg::this_grid().sync();
}

/// Conjugate gradients for a row of springs: three syncs and two trees of barriers a round. y: solution, residual,
/// direction, product; words: sums.
extern "C" __global__ void solver(const float* x, float* y, unsigned* words, int n, int rounds) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    double* dots = (double*)words;
    if (first < 3) dots[first] = 0;
    start(x, y, n, first, step);
    sync_grid();
    add_dot(move(y, 0, n, first, step), &dots[0]);
    sync_grid();
    double old = dots[0];
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
        add_dot(multiply(y + 2 * n, y + 3 * n, n, first, step), &dots[1]);
        sync_grid();
        add_dot(move(y, (float)(old / dots[1]), n, first, step), &dots[2]);
        sync_grid();
        const double now = dots[2];
        const float beta = (float)(now / old);
        turn(y, beta, n, first, step);
        if (first == 0) dots[1] = 0;
        old = now;
        sync_grid();
        if (first == 0) dots[2] = 0; // others add to it behind the next sync
    }
}
