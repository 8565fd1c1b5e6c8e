// SPDX-License-Identifier: Apache-2.0
// OpenCL C for clang's NVPTX back end without its library: address spaces, vectors, images' modes. Compiled, never run.
typedef float float4 __attribute__((ext_vector_type(4)));
typedef unsigned uint;

__constant int weights[5] = {1, 4, 6, 4, 1};

static uint get(void) { return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x(); }

__kernel __attribute__((reqd_work_group_size(64, 2, 1))) void blur(__global const float *in, __global float *out,
                                                                     __local float *tile, __constant float *scale, int n) {
    const int i = (int)get();
    __private float sums[5];
    __local int shared_count;
    tile[i & 63] = in[i];
    __syncthreads();
    for (int k = 0; k < 5; ++k) sums[k] = tile[(i + k) & 63] * (float)weights[k] * scale[k];
    float total = 0.f;
    for (int k = 0; k < n % 5; ++k) total += sums[k];
    if (i == 0) shared_count = n;
    __syncthreads();
    out[i] = total / (float)shared_count;
}

__kernel void mix(__global float4 *v, __global char *bytes, __global long *l, float4 by_value) {
    const uint i = get();
    v[i] = v[i].yxwz + by_value * 0.5f;
    bytes[i] = (char)(bytes[i] ^ 0x55);
    l[i] = l[i] / (long)(i + 1u);
}
