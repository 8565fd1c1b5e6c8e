// SPDX-License-Identifier: Apache-2.0
// Functions in sections of their own: what nvcc -rdc=true -gencode arch=compute_90,code=sm_90 links of this file and of
// the same with -DOTHERS.
#ifdef OTHERS
__device__ int table[4] = {10, 20, 30, 40};
__device__ __noinline__ int deep(int x) {
    return x > 0 ? deep(x - 1) + x : 0;
}
__device__ int other(int x) {
    return deep(x % 11) * 2 + table[x & 3];
}
#else
extern __device__ int other(int);
extern __device__ int table[4];
__device__ int (*fp[2])(int);
__device__ int mine(int x) {
    return x * 3;
}
__global__ void k(int* o, int n) {
    int i = threadIdx.x;
    o[i] = other(i) + table[i & 3] + mine(i);
    if (n > 100) {
        fp[0] = other;
        fp[1] = mine;
    }
}
__device__ int ack(int m, int n) {
    if (m == 0) return n + 1;
    if (n == 0) return ack(m - 1, 1);
    return ack(m - 1, ack(m, n - 1));
}
__global__ void r(int* o) {
    o[threadIdx.x] = ack(2, threadIdx.x & 7);
}
#endif
