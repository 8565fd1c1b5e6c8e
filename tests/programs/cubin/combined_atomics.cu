// SPDX-License-Identifier: Apache-2.0
// combined_atomics.ptx: nvcc 13.0 -ptx -arch=compute_80. What ptxas makes of the atomic operations is in tests/driver_api/machine_code_test.cpp.
extern "C" __global__ void narrower_branches(const unsigned* in, unsigned* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    const unsigned v = in[i];
    __shared__ unsigned total[8];
    if (t < 8) total[t] = 0;
    __syncthreads();
    if (v & 2) {
        atomicAdd(&total[1], v);
        if (v & 4) atomicMax(&total[2], v);
    }
    __syncthreads();
    if (t < 8) out[i] = total[t];
}
extern "C" __global__ void behind_votes(const unsigned* in, unsigned* out) {
    __shared__ unsigned total;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned v = in[i];
    unsigned s = 0;
    if (v & 1) s = __popc(__ballot_sync(__activemask(), v & 2));
    if (!threadIdx.x) total = 0;
    __syncthreads();
    const unsigned w = __ballot_sync(~0u, v & 4);
    if (!(threadIdx.x & 31)) atomicAdd(&total, w);
    __syncthreads();
    out[i] = total ^ s;
}
__managed__ int managed = 7;
extern "C" __global__ void use_managed() { managed += 63; }
