// SPDX-License-Identifier: Apache-2.0
// OpenCL words for portable_kernels.h.
#define KERNEL __kernel void
#define GLOBAL __global
#define SHARED __local
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define UNROLL _Pragma("unroll")
#define LOCAL_X ((int)get_local_id(0))
#define LOCAL_Y ((int)get_local_id(1))
#define GROUP_X ((int)get_group_id(0))
#define GROUP_Y ((int)get_group_id(1))
#define GLOBAL_X ((int)get_global_id(0))
#define GLOBAL_Y ((int)get_global_id(1))
#define FMA fma
#define FMAX fmax
#define MIN min
#define MAX max
#define EXP native_exp
#define RSQRT native_rsqrt
#define SQRT sqrt
#define FENCE mem_fence(CLK_GLOBAL_MEM_FENCE)
#define ATOMIC_ADD_GLOBAL(p, v) atomic_add(p, v)
#define HALF half
#define LOAD_HALF(p, i) vload_half((i), (p))
unsigned reverse_bits(unsigned x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    x = (x >> 8 & 0x00ff00ffu) | (x & 0x00ff00ffu) << 8;
    return x >> 16 | x << 16;
}
#define REVERSE reverse_bits
int dot_bytes(int a, int b, int c) {
    char4 x = as_char4(a), y = as_char4(b);
    return c + x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}
#define DP4A dot_bytes
#include "portable_kernels.h"
