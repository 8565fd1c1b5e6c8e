// SPDX-License-Identifier: Apache-2.0
// The device through the CUDA runtime, for programs that nvcc builds.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <vector>

#include <cuda_runtime.h>

#define KERNEL extern "C" __global__
#define LAUNCH(kernel, grid, block, shared, ...)                                                   \
    (kernel<<<grid, block, shared>>>(__VA_ARGS__), test::check(cudaGetLastError(), "launch of " #kernel))
#define LAUNCH_COOPERATIVE(kernel, grid, block, shared, ...) test::launch_cooperative(kernel, grid, block, shared, __VA_ARGS__)
#define SET_SYMBOL(symbol, value)                                                                  \
    test::check(cudaMemcpyToSymbol(symbol, &(value), sizeof(value)), "copy to " #symbol)

namespace test {

inline void check(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    std::printf("FAIL %s: %s\n", what, cudaGetErrorString(status));
    std::exit(1);
}

/// True if it was launched, false if the grid is too large to be resident.
template <class... Parameters, class... Arguments>
bool launch_cooperative(void (*kernel)(Parameters...), dim3 grid, dim3 block, unsigned shared, Arguments&&... arguments) {
    std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
    const cudaError_t status = std::apply(
        [&](auto&... value) {
            void* pointers[] = {static_cast<void*>(&value)...};
            return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), grid, block, pointers, shared, 0);
        },
        values);
    if (status == cudaErrorCooperativeLaunchTooLarge) {
        cudaGetLastError();
        return false;
    }
    check(status, "cooperative launch");
    return true;
}

inline void synchronize() { check(cudaDeviceSynchronize(), "synchronisation"); }

/// Device memory.
template <class T>
class Buffer {
public:
    explicit Buffer(std::size_t count) : count_(count) {
        check(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
        check(cudaMemset(data_, 0, count * sizeof(T)), "cudaMemset");
    }
    explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) { upload(values); }
    Buffer(const Buffer&) = delete;
    ~Buffer() { cudaFree(data_); }

    operator T*() const { return data_; }
    void upload(const std::vector<T>& values) {
        check(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "copy to device");
    }
    std::vector<T> download() const {
        std::vector<T> values(count_);
        check(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "copy to host");
        add_to_digest(values.data(), count_ * sizeof(T));
        return values;
    }

private:
    T* data_ = nullptr;
    std::size_t count_;
};

} // namespace test
