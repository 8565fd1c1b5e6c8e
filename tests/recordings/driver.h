// SPDX-License-Identifier: Apache-2.0
// A CUDA driver by the path of its library, so that one program runs on the real one and on Ptarmigan's.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace recordings {

using Address = std::uint64_t;

/// libcuda.so.1 of a path, the primary context of device 0 current. The library stays loaded.
class Driver {
public:
    explicit Driver(const char* path) : library_(dlopen(path, RTLD_NOW)) {
        if (!library_) throw std::runtime_error(dlerror());
        call<unsigned>("cuInit", 0);
        int device = 0;
        call<int*, int>("cuDeviceGet", &device, 0);
        void* context = nullptr;
        call<void**, int>("cuDevicePrimaryCtxRetain", &context, device);
        call<void*>("cuCtxSetCurrent", context);
    }

    /// Calls an entry by its exported name; throws std::runtime_error unless it returns 0.
    template <class... Parameters> void call(const char* name, Parameters... arguments) {
        auto function = reinterpret_cast<int (*)(Parameters...)>(dlsym(library_, name));
        if (!function) throw std::runtime_error(std::string("no ") + name);
        if (int code = function(arguments...)) throw std::runtime_error(std::string(name) + ": error " + std::to_string(code));
    }

    Address allocate(std::size_t bytes) {
        Address address = 0;
        call<Address*, std::size_t>("cuMemAlloc_v2", &address, bytes);
        return address;
    }
    void upload(Address to, const void* data, std::size_t bytes) {
        call<Address, const void*, std::size_t>("cuMemcpyHtoD_v2", to, data, bytes);
    }
    void download(void* data, Address from, std::size_t bytes) {
        call<void*, Address, std::size_t>("cuMemcpyDtoH_v2", data, from, bytes);
    }
    void* load(const std::string& text) {
        void* module = nullptr;
        call<void**, const void*>("cuModuleLoadData", &module, text.c_str());
        return module;
    }
    void unload(void* module) { call<void*>("cuModuleUnload", module); }
    void launch(void* module, const std::string& kernel, unsigned grid, unsigned block_x, unsigned block_y, void** parameters) {
        void* function = nullptr;
        call<void**, void*, const char*>("cuModuleGetFunction", &function, module, kernel.c_str());
        call<void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**>(
            "cuLaunchKernel", function, grid, 1, 1, block_x, block_y, 1, 0, nullptr, parameters, nullptr);
    }

private:
    void* library_;
};

/// FNV-1a over bytes.
inline std::uint64_t hash_bytes(const void* data, std::size_t bytes, std::uint64_t hash = 0xcbf29ce484222325) {
    for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;
    return hash;
}

} // namespace recordings
