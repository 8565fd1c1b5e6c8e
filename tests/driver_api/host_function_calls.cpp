// SPDX-License-Identifier: Apache-2.0
// Which driver calls a host function of a stream may make:
//   host_function_calls LIBCUDA           prints "call TAB result"; so host_function_calls_h100.txt was made, on an H100
//                                         (driver 580.159.04, 2026-11-23; cuStreamAddCallback gives the same)
//   host_function_calls LIBCUDA RECORDED  compares
// Not asked: waiting for the own stream, or an event behind the host function: the driver hangs.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

const char* const text = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 to) {
    .reg .b64 %a;
    ld.param.u64 %a, [to];
    st.global.u32 [%a], 7;
    ret;
}
)";

void* library = nullptr;
template <class... Arguments> int call(const char* name, Arguments... arguments) {
    void* entry = dlsym(library, name);
    if (!entry) {
        std::fprintf(stderr, "no %s\n", name);
        std::_Exit(2);
    }
    return reinterpret_cast<int (*)(Arguments...)>(entry)(arguments...);
}

void must(int result, const char* what) {
    if (result == 0) return;
    std::fprintf(stderr, "%d from %s\n", result, what);
    std::_Exit(2);
}

using Handle = void*;
using Address = std::uint64_t;

struct Objects {
    Handle context{}, own{}, other{}, event{}, module{}, function{};
    Address memory{}, more_memory{};
    void* host{};
};

void nothing(void*) {}

/// In an order that leaves what later calls need. Each is made inside a host function of `own`.
std::vector<std::pair<std::string, std::function<int()>>> calls(Objects& o) {
    static int number = 0;
    static const char* word = nullptr;
    static Handle handle = nullptr;
    static Address address = 0;
    static std::size_t size = 0, total = 0;
    static unsigned words[4] = {1, 2, 3, 4};
    static void* parameters[] = {&o.memory};
    const auto launch = [&o](Handle stream) {
        return call("cuLaunchKernel", o.function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, stream, &parameters[0],
                    static_cast<void**>(nullptr));
    };
    const auto copy = [&o](Handle stream) {
        return call("cuMemcpyHtoDAsync_v2", o.memory, static_cast<const void*>(o.host), std::size_t{16}, stream);
    };
    const Handle null = nullptr;
    return {
        {"cuDriverGetVersion", [] { return call("cuDriverGetVersion", &number); }},
        {"cuInit", [] { return call("cuInit", 0u); }},
        {"cuGetErrorName", [] { return call("cuGetErrorName", 1, &word); }},
        {"cuGetProcAddress", [] { return call("cuGetProcAddress_v2", "cuMemAlloc", &handle, 12000, std::uint64_t{0}, &number); }},
        {"cuDeviceGet", [] { return call("cuDeviceGet", &number, 0); }},
        {"cuDeviceGetCount", [] { return call("cuDeviceGetCount", &number); }},
        {"cuDeviceGetAttribute", [] { return call("cuDeviceGetAttribute", &number, 16, 0); }},
        {"cuDevicePrimaryCtxRetain", [] { return call("cuDevicePrimaryCtxRetain", &handle, 0); }},
        {"cuCtxCreate", [] { return call("cuCtxCreate_v2", &handle, 0u, 0); }},
        {"cuCtxGetCurrent", [] { return call("cuCtxGetCurrent", &handle); }},
        {"cuCtxSetCurrent", [&o] { return call("cuCtxSetCurrent", o.context); }},
        {"cuCtxPushCurrent", [&o] { return call("cuCtxPushCurrent_v2", o.context); }},
        {"cuCtxPopCurrent", [] { return call("cuCtxPopCurrent_v2", &handle); }},
        {"cuCtxGetDevice", [] { return call("cuCtxGetDevice", &number); }},
        {"cuCtxGetApiVersion", [&o] { return call("cuCtxGetApiVersion", o.context, reinterpret_cast<unsigned*>(&number)); }},
        {"cuCtxGetLimit", [] { return call("cuCtxGetLimit", &size, 0); }},
        {"cuCtxSynchronize", [] { return call("cuCtxSynchronize"); }},
        {"cuMemAlloc", [] { return call("cuMemAlloc_v2", &address, std::size_t{4096}); }},
        {"cuMemFree", [&o] { return call("cuMemFree_v2", o.more_memory); }},
        {"cuMemAllocAsync other", [&o] { return call("cuMemAllocAsync", &address, std::size_t{4096}, o.other); }},
        {"cuMemFreeAsync other", [&o] { return call("cuMemFreeAsync", o.more_memory, o.other); }},
        {"cuMemAllocManaged", [] { return call("cuMemAllocManaged", &address, std::size_t{4096}, 1u); }},
        {"cuMemHostAlloc", [] { return call("cuMemHostAlloc", &handle, std::size_t{4096}, 0u); }},
        {"cuMemHostGetDevicePointer", [&o] { return call("cuMemHostGetDevicePointer_v2", &address, o.host, 0u); }},
        {"cuMemGetInfo", [] { return call("cuMemGetInfo_v2", &size, &total); }},
        {"cuPointerGetAttribute", [&o] { return call("cuPointerGetAttribute", static_cast<void*>(&number), 2, o.memory); }},
        {"cuMemcpyHtoD", [&o] { return call("cuMemcpyHtoD_v2", o.memory, static_cast<const void*>(words), sizeof words); }},
        {"cuMemcpyDtoH", [&o] { return call("cuMemcpyDtoH_v2", static_cast<void*>(words), o.memory, sizeof words); }},
        {"cuMemcpyHtoDAsync own", [&o, copy] { return copy(o.own); }},
        {"cuMemcpyHtoDAsync other", [&o, copy] { return copy(o.other); }},
        {"cuMemsetD32", [&o] { return call("cuMemsetD32_v2", o.memory, 1u, std::size_t{4}); }},
        {"cuModuleLoadData", [] { return call("cuModuleLoadData", &handle, static_cast<const void*>(text)); }},
        {"cuModuleGetFunction", [&o] { return call("cuModuleGetFunction", &handle, o.module, "k"); }},
        {"cuModuleUnload", [&o] { return call("cuModuleUnload", o.module); }},
        {"cuFuncGetAttribute", [&o] { return call("cuFuncGetAttribute", &number, 0, o.function); }},
        {"cuOccupancyMaxActiveBlocksPerMultiprocessor",
         [&o] { return call("cuOccupancyMaxActiveBlocksPerMultiprocessor", &number, o.function, 128, std::size_t{0}); }},
        {"cuLaunchKernel own", [&o, launch] { return launch(o.own); }},
        {"cuLaunchKernel other", [&o, launch] { return launch(o.other); }},
        {"cuLaunchHostFunc own", [&o] { return call("cuLaunchHostFunc", o.own, nothing, static_cast<void*>(nullptr)); }},
        {"cuStreamCreate", [] { return call("cuStreamCreate", &handle, 1u); }},
        {"cuStreamSynchronize other", [&o] { return call("cuStreamSynchronize", o.other); }},
        {"cuStreamSynchronize null", [null] { return call("cuStreamSynchronize", null); }},
        {"cuStreamQuery own", [&o] { return call("cuStreamQuery", o.own); }},
        {"cuStreamQuery other", [&o] { return call("cuStreamQuery", o.other); }},
        {"cuStreamGetPriority", [&o] { return call("cuStreamGetPriority", o.own, &number); }},
        {"cuEventCreate", [] { return call("cuEventCreate", &handle, 0u); }},
        {"cuEventQuery", [&o] { return call("cuEventQuery", o.event); }},
        {"cuEventSynchronize before", [&o] { return call("cuEventSynchronize", o.event); }},
        {"cuStreamWaitEvent other", [&o] { return call("cuStreamWaitEvent", o.other, o.event, 0u); }},
        {"cuEventRecord other", [&o] { return call("cuEventRecord", o.event, o.other); }},
        {"cuEventDestroy", [&o] { return call("cuEventDestroy_v2", o.event); }},
        {"cuStreamDestroy other", [&o] { return call("cuStreamDestroy_v2", o.other); }},
    };
}

struct Call {
    const std::function<int()>* make;
    int result;
};

void make_call(void* of) {
    auto& wanted = *static_cast<Call*>(of);
    wanted.result = (*wanted.make)();
}

} // namespace

int main(int count, char** words) {
    if (count < 2 || !(library = dlopen(words[1], RTLD_NOW))) return 2;
    alarm(30);
    Objects o;
    must(call("cuInit", 0u), "cuInit");
    must(call("cuDevicePrimaryCtxRetain", &o.context, 0), "cuDevicePrimaryCtxRetain");
    must(call("cuCtxSetCurrent", o.context), "cuCtxSetCurrent");
    must(call("cuStreamCreate", &o.own, 1u), "cuStreamCreate");
    must(call("cuStreamCreate", &o.other, 1u), "cuStreamCreate");
    must(call("cuEventCreate", &o.event, 0u), "cuEventCreate");
    must(call("cuEventRecord", o.event, o.own), "cuEventRecord");
    must(call("cuMemAlloc_v2", &o.memory, std::size_t{4096}), "cuMemAlloc");
    must(call("cuMemAlloc_v2", &o.more_memory, std::size_t{4096}), "cuMemAlloc");
    must(call("cuMemHostAlloc", &o.host, std::size_t{4096}, 2u), "cuMemHostAlloc");
    must(call("cuModuleLoadData", &o.module, static_cast<const void*>(text)), "cuModuleLoadData");
    must(call("cuModuleGetFunction", &o.function, o.module, "k"), "cuModuleGetFunction");
    std::map<std::string, int> recorded;
    if (count > 2) {
        std::ifstream file(words[2]);
        std::string name;
        int result = 0;
        while (std::getline(file, name, '\t') && file >> result >> std::ws)
            recorded[name] = result;
    }
    int wrong = 0;
    std::size_t compared = 0;
    for (const auto& [name, make] : calls(o)) {
        Call wanted{&make, -1};
        must(call("cuLaunchHostFunc", o.own, make_call, static_cast<void*>(&wanted)), "cuLaunchHostFunc");
        must(call("cuStreamSynchronize", o.own), "cuStreamSynchronize");
        if (count < 3) {
            std::printf("%s\t%d\n", name.c_str(), wanted.result);
            continue;
        }
        const auto expected = recorded.find(name);
        if (expected != recorded.end() && ++compared && expected->second == wanted.result) continue;
        std::fprintf(stderr, "%s: %d, recorded %d\n", name.c_str(), wanted.result,
                     expected == recorded.end() ? -1 : expected->second);
        ++wrong;
    }
    must(call("cuCtxSynchronize"), "cuCtxSynchronize");
    return wrong != 0 || compared != recorded.size();
}
