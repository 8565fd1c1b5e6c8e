// SPDX-License-Identifier: Apache-2.0
// OpenCL words for portable_kernels.h.
#define KERNEL __kernel void
#define DEVICE static
#define GLOBAL __global
#define SHARED __local
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define LOCAL_X ((int)get_local_id(0))
#define LOCAL_Y ((int)get_local_id(1))
#define GROUP_X ((int)get_group_id(0))
#define GROUP_Y ((int)get_group_id(1))
#define GLOBAL_X ((int)get_global_id(0))
#define GLOBAL_Y ((int)get_global_id(1))
#define GLOBAL_SIZE_X ((int)get_global_size(0))
#define FMA fma
#define ABS fabs
#define EXP native_exp
#define LOG native_log
#define SQRT sqrt
#define RSQRT native_rsqrt
#define ATOMIC_ADD_SHARED(p, v) atomic_add(p, v)
#define ATOMIC_ADD_GLOBAL(p, v) atomic_add(p, v)
#include "portable_kernels.h"

// The same sum with a tree in local memory: OpenCL 1.2 has no shuffles.
__kernel void reduce(__global const float* in, __global float* out, int n) {
    __local float sums[256];
    float sum = 0.0f;
    for (int i = GLOBAL_X; i < n; i += GLOBAL_SIZE_X) sum += in[i];
    sums[LOCAL_X] = sum;
    BARRIER;
    for (int d = 128; d; d >>= 1) {
        if (LOCAL_X < d) sums[LOCAL_X] += sums[LOCAL_X + d];
        BARRIER;
    }
    if (LOCAL_X == 0) out[GROUP_X] = sums[0];
}
