// SPDX-License-Identifier: Apache-2.0
// CUDA words for portable_kernels.h. kernels.ptx is made of this by
//     nvcc -arch=compute_75 -ptx kernels.cu -o kernels.ptx
#define KERNEL extern "C" __global__ void
#define DEVICE __device__
#define GLOBAL
#define SHARED __shared__
#define BARRIER __syncthreads()
#define LOCAL_X int(threadIdx.x)
#define LOCAL_Y int(threadIdx.y)
#define GROUP_X int(blockIdx.x)
#define GROUP_Y int(blockIdx.y)
#define GLOBAL_X int(blockIdx.x * blockDim.x + threadIdx.x)
#define GLOBAL_Y int(blockIdx.y * blockDim.y + threadIdx.y)
#define GLOBAL_SIZE_X int(gridDim.x * blockDim.x)
#define FMA fmaf
#define ABS fabsf
#define EXP __expf
#define LOG __logf
#define SQRT sqrtf
#define RSQRT rsqrtf
#define ATOMIC_ADD_SHARED(p, v) atomicAdd(p, v)
#define ATOMIC_ADD_GLOBAL(p, v) atomicAdd(p, v)
#include "portable_kernels.h"

// Sum with a grid-stride loop and warp shuffles: one partial sum per block.
extern "C" __global__ void reduce(const float* in, float* out, int n) {
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    __shared__ float warp_sums[32];
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? warp_sums[threadIdx.x] : 0.0f;
        for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
        if (threadIdx.x == 0) out[blockIdx.x] = sum;
    }
}
