// SPDX-License-Identifier: Apache-2.0
// CUDA words for portable_kernels.h. kernels.ptx is made of this by
//     nvcc -arch=compute_75 -ptx kernels.cu -o kernels.ptx
#include <cuda_fp16.h>
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define SHARED __shared__
#define BARRIER __syncthreads()
#define UNROLL _Pragma("unroll")
#define LOCAL_X int(threadIdx.x)
#define LOCAL_Y int(threadIdx.y)
#define GROUP_X int(blockIdx.x)
#define GROUP_Y int(blockIdx.y)
#define GLOBAL_X int(blockIdx.x * blockDim.x + threadIdx.x)
#define GLOBAL_Y int(blockIdx.y * blockDim.y + threadIdx.y)
#define FMA fmaf
#define FMAX fmaxf
#define MIN min
#define MAX max
#define EXP __expf
#define RSQRT rsqrtf
#define SQRT sqrtf
#define FENCE __threadfence()
#define ATOMIC_ADD_GLOBAL(p, v) atomicAdd(p, v)
#define REVERSE __brev
#define DP4A __dp4a
#define HALF __half
#define LOAD_HALF(p, i) __half2float((p)[i])
#include "portable_kernels.h"
