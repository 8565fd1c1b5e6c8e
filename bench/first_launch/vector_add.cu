// SPDX-License-Identifier: Apache-2.0
// The smallest program: one kernel.
#include <cstdio>
#include <vector>

__global__ void add(const float* a, const float* b, float* sum, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) sum[i] = a[i] + b[i];
}

int main() {
    constexpr int count = 100000;
    std::vector<float> a(count), b(count, 1.0f), sum(count);
    for (int i = 0; i < count; ++i) a[i] = static_cast<float>(i);
    float *device_a = nullptr, *device_b = nullptr, *device_sum = nullptr;
    for (float** pointer : {&device_a, &device_b, &device_sum}) cudaMalloc(pointer, count * sizeof(float));
    cudaMemcpy(device_a, a.data(), count * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(device_b, b.data(), count * sizeof(float), cudaMemcpyHostToDevice);
    add<<<(count + 255) / 256, 256>>>(device_a, device_b, device_sum, count);
    const cudaError_t error = cudaMemcpy(sum.data(), device_sum, count * sizeof(float), cudaMemcpyDeviceToHost);
    bool ok = error == cudaSuccess;
    for (int i = 0; i < count; ++i) ok = ok && sum[i] == static_cast<float>(i + 1);
    std::printf("%s\n", ok ? "PASS" : "FAIL");
    return !ok;
}
