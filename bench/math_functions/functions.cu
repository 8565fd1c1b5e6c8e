// SPDX-License-Identifier: Apache-2.0
// Each function as nvcc compiles it without fast-math: nvcc -arch=compute_75 -ptx functions.cu -o functions.ptx
#define MATH(name) name
#define F(name, type, expression, from, to)                                                                            \
    extern "C" __global__ void name(const type* in, type* out) {                                                       \
        const int i = blockIdx.x * blockDim.x + threadIdx.x;                                                           \
        const type x = in[i];                                                                                          \
        out[i] = expression;                                                                                           \
    }
#include "functions.def"
#undef F
extern "C" __global__ void copy_float(const float* in, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] + 1.0f;
}
extern "C" __global__ void copy_double(const double* in, double* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] + 1.0;
}
