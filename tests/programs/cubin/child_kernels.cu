// SPDX-License-Identifier: Apache-2.0
// Kernels that launch kernels, one of them itself. nvcc 13.0 -arch=sm_90 -rdc=true -dc -cubin, then nvlink with child_kernels_library.ptx
// (ptxas -c) in place of libcudadevrt, whose functions end in the same calls of the driver but are 200 KB.
extern "C" __global__ void child(int* sums, int value) {
    atomicAdd(sums + threadIdx.x, value);
    if (threadIdx.x == 0 && blockIdx.x == 0 && value > 1) child<<<1, 8>>>(sums, value - 1);
}
extern "C" __global__ void parent(int* sums) {
    if (threadIdx.x == 0) child<<<dim3(2, 1, 1), 8>>>(sums, 3);
}
