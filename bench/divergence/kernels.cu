// SPDX-License-Identifier: Apache-2.0
// CUDA words for portable_kernels.h. kernels.ptx is made of this by
//     nvcc -arch=compute_75 -ptx kernels.cu -o kernels.ptx
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define GLOBAL_X int(blockIdx.x * blockDim.x + threadIdx.x)
#define GLOBAL_Y int(blockIdx.y * blockDim.y + threadIdx.y)
#define FMA fmaf
#define ABS fabsf
#define SQRT sqrtf
#define FUNCTION static __device__
#define TABLE __device__
#include "path_tracer.h"
#include "portable_kernels.h"
