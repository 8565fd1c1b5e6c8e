// SPDX-License-Identifier: Apache-2.0
// Chunks of saxpy on several streams with asynchronous copies, ordered by events, through the CUDA runtime; through the driver API:
// driver/saxpy_streams.cpp.
#include "common/program.h"

extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __fadd_rn(__fmul_rn(a, x[i]), y[i]);
}

int main(int argc, char** argv) {
    const test::Program program("saxpy_streams", argc, argv);
    constexpr int streams = 4;
    const int n = program.argument(0, 400000) / streams * streams, chunk = n / streams;
    test::Random random(18);
    const std::vector<float> x = random.floats(n, -1, 1), y = random.floats(n, -1, 1);
    float *host_x, *host_y, *dx, *dy;
    test::check(cudaMallocHost(&host_x, n * sizeof(float)), "cudaMallocHost");
    test::check(cudaMallocHost(&host_y, n * sizeof(float)), "cudaMallocHost");
    test::check(cudaMalloc(&dx, n * sizeof(float)), "cudaMalloc");
    test::check(cudaMalloc(&dy, n * sizeof(float)), "cudaMalloc");
    std::copy(x.begin(), x.end(), host_x);
    std::copy(y.begin(), y.end(), host_y);
    cudaStream_t queue[streams], second;
    cudaEvent_t uploaded[streams], start, stop;
    test::check(cudaStreamCreate(&second), "cudaStreamCreate");
    test::check(cudaEventCreate(&start), "cudaEventCreate");
    test::check(cudaEventCreate(&stop), "cudaEventCreate");
    test::check(cudaEventRecord(start, second), "cudaEventRecord");
    for (int s = 0; s < streams; ++s) {
        const int first = s * chunk;
        const std::size_t bytes = chunk * sizeof(float);
        test::check(cudaStreamCreateWithFlags(&queue[s], cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
        test::check(cudaEventCreateWithFlags(&uploaded[s], cudaEventDisableTiming), "cudaEventCreateWithFlags");
        test::check(cudaMemcpyAsync(dx + first, host_x + first, bytes, cudaMemcpyHostToDevice, queue[s]), "copy");
        test::check(cudaMemcpyAsync(dy + first, host_y + first, bytes, cudaMemcpyHostToDevice, queue[s]), "copy");
        test::check(cudaEventRecord(uploaded[s], queue[s]), "cudaEventRecord");
        test::check(cudaStreamWaitEvent(second, uploaded[s], 0), "cudaStreamWaitEvent");
        saxpy<<<test::blocks_for(chunk, 256), 256, 0, second>>>(2.5f, dx + first, dy + first, chunk);
        test::check(cudaGetLastError(), "launch");
        test::check(cudaMemcpyAsync(host_y + first, dy + first, bytes, cudaMemcpyDeviceToHost, second), "copy");
    }
    test::check(cudaEventRecord(stop, second), "cudaEventRecord");
    test::check(cudaEventSynchronize(stop), "cudaEventSynchronize");
    float milliseconds = -1;
    test::check(cudaEventElapsedTime(&milliseconds, start, stop), "cudaEventElapsedTime");
    test::check(cudaEventQuery(uploaded[0]), "cudaEventQuery");
    int wrong = 0;
    for (int i = 0; i < n; ++i) {
        const volatile float product = 2.5f * x[i];
        wrong += host_y[i] != product + y[i];
    }
    test::add_to_digest(host_y, n * sizeof(float));
    for (int s = 0; s < streams; ++s) {
        test::check(cudaStreamDestroy(queue[s]), "cudaStreamDestroy");
        test::check(cudaEventDestroy(uploaded[s]), "cudaEventDestroy");
    }
    cudaFree(dx);
    cudaFree(dy);
    cudaFreeHost(host_x);
    cudaFreeHost(host_y);
    return program.finish(wrong == 0 && milliseconds >= 0, "n=%d wrong=%d", n, wrong);
}
