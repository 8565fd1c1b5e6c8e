// SPDX-License-Identifier: Apache-2.0
// The device through the driver API, for programs that the host compiler builds. The kernels come from the PTX file
// PROGRAM_PTX (set by the build) or the one that the environment variable of that name gives; several files, with `:`
// between them, are linked.
#pragma once

#include "tests/support/cuda_driver.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

#define KERNEL extern "C"
#define LAUNCH(kernel, grid, block, shared, ...) \
    test::Device::get().launch(#kernel, static_cast<decltype(&kernel)>(nullptr), grid, block, shared, ##__VA_ARGS__)
#define LAUNCH_COOPERATIVE(kernel, grid, block, shared, ...) \
    test::Device::get().launch_cooperative(#kernel, static_cast<decltype(&kernel)>(nullptr), grid, block, shared, ##__VA_ARGS__)
#define SET_SYMBOL(symbol, value) test::Device::get().set_symbol(#symbol, &(value), sizeof(value))

namespace test {

inline void check(CUresult status, const char* what) {
    if (status == 0) return;
    const char* text = nullptr;
    cuGetErrorString(status, &text);
    std::printf("FAIL %s: error %d, %s\n", what, status, text ? text : "unknown");
    std::exit(1);
}

inline void synchronize() { check(cuCtxSynchronize(), "synchronisation"); }

/// The first device with the program's module loaded.
class Device {
public:
    static Device& get() {
        static Device device;
        return device;
    }

    /// The stream of the launches that follow; null is the default one.
    void use_stream(CUstream stream) { stream_ = stream; }

    template <class... Parameters, class... Arguments>
    void launch(const char* name, void (*)(Parameters...), dim3 grid, dim3 block, unsigned shared,
                Arguments&&... arguments) {
        static_assert(sizeof...(Parameters) == sizeof...(Arguments));
        std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
        check(launch_with(false, name, grid, block, shared, values, std::index_sequence_for<Parameters...>()), name);
    }
    /// True if it was launched, false if the grid is too large to be resident.
    template <class... Parameters, class... Arguments>
    bool launch_cooperative(const char* name, void (*)(Parameters...), dim3 grid, dim3 block, unsigned shared,
                            Arguments&&... arguments) {
        std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
        const CUresult status = launch_with(true, name, grid, block, shared, values, std::index_sequence_for<Parameters...>());
        constexpr int too_large = 720; // CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
        if (status != too_large) check(status, name);
        return status == 0;
    }

    void set_symbol(const char* name, const void* value, std::size_t bytes) {
        CUdeviceptr address = 0;
        std::size_t size = 0;
        check(cuModuleGetGlobal_v2(&address, &size, module_, name), name);
        check(size >= bytes ? cuMemcpyHtoD_v2(address, value, bytes) : 1, name);
    }

private:
    Device() {
        CUdevice device = 0;
        check(cuInit(0), "cuInit");
        check(cuDeviceGet(&device, 0), "cuDeviceGet");
        check(cuDevicePrimaryCtxRetain(&context_, device), "cuDevicePrimaryCtxRetain");
        check(cuCtxSetCurrent(context_), "cuCtxSetCurrent");
        const char* path = std::getenv("PROGRAM_PTX");
        const std::string paths = path ? path : PROGRAM_PTX;
        if (paths.find(':') != std::string::npos)
            load_linked(paths + ":");
        else
            load_text(paths);
    }

    void load_text(const std::string& path) {
        std::ifstream file(path, std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        check(text.empty() ? 1 : cuModuleLoadData(&module_, text.c_str()), PROGRAM_PTX);
    }

    /// Each path ends in `:`.
    void load_linked(const std::string& paths) {
        constexpr int ptx_input = 1; // CU_JIT_INPUT_PTX
        CUlinkState link = nullptr;
        void* image = nullptr;
        check(cuLinkCreate_v2(0, nullptr, nullptr, &link), "cuLinkCreate");
        for (std::size_t start = 0, end; (end = paths.find(':', start)) != std::string::npos; start = end + 1) {
            const std::string path = paths.substr(start, end - start);
            check(cuLinkAddFile_v2(link, ptx_input, path.c_str(), 0, nullptr, nullptr), path.c_str());
        }
        check(cuLinkComplete(link, &image, nullptr), "cuLinkComplete");
        check(cuModuleLoadData(&module_, image), "the linked image");
        check(cuLinkDestroy(link), "cuLinkDestroy");
    }

    template <class Tuple, std::size_t... indices>
    CUresult launch_with(bool cooperative, const char* name, dim3 grid, dim3 block, unsigned shared, Tuple& values,
                     std::index_sequence<indices...>) {
        CUfunction function = nullptr;
        check(cuModuleGetFunction(&function, module_, name), name);
        void* pointers[] = {static_cast<void*>(&std::get<indices>(values))..., nullptr};
        if (cooperative)
            return cuLaunchCooperativeKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream_, pointers);
        return cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream_, pointers, nullptr);
    }

    CUcontext context_ = nullptr;
    CUmodule module_ = nullptr;
    CUstream stream_ = nullptr;
};

/// Device memory.
template <class T>
class Buffer {
public:
    explicit Buffer(std::size_t count) : count_(count) {
        Device::get();
        check(cuMemAlloc_v2(&data_, count * sizeof(T)), "cuMemAlloc");
        check(cuMemsetD8_v2(data_, 0, count * sizeof(T)), "cuMemsetD8");
    }
    explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) { upload(values); }
    Buffer(const Buffer&) = delete;
    ~Buffer() { cuMemFree_v2(data_); }

    operator T*() const { return reinterpret_cast<T*>(data_); }
    void upload(const std::vector<T>& values) {
        check(cuMemcpyHtoD_v2(data_, values.data(), values.size() * sizeof(T)), "copy to device");
    }
    std::vector<T> download() const {
        std::vector<T> values(count_);
        check(cuMemcpyDtoH_v2(values.data(), data_, count_ * sizeof(T)), "copy to host");
        add_to_digest(values.data(), count_ * sizeof(T));
        return values;
    }

private:
    CUdeviceptr data_ = 0;
    std::size_t count_;
};

} // namespace test
