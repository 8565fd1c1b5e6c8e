// SPDX-License-Identifier: Apache-2.0
// libnvidia-ml.so.1 beside libcuda.so.1: both tell of the same devices, and the one sees what processes do through the other.
#include "runtime/nvml/nvml_calls.h"
#include "runtime/shim/cuda_types.h"

#include <catch2/catch.hpp>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" {
CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int* version);
CUresult cuDeviceGetCount(int* count);
CUresult cuDeviceGetName(char* name, int length, CUdevice device);
CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device);
CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device);
CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device);
CUresult cuDeviceGetUuid_v2(void* uuid, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSynchronize();
CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes);
CUresult cuModuleLoadData(CUmodule* module, const void* image);
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name);
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream, void** parameters, void** extra);
}

namespace {

constexpr std::size_t mebibyte = 1 << 20;

nvmlDevice_t first_device() {
    REQUIRE(nvmlInit_v2() == 0);
    nvmlDevice_t device = nullptr;
    REQUIRE(nvmlDeviceGetHandleByIndex_v2(0, &device) == 0);
    return device;
}

/// What NVML says a process uses; nothing if it is not in the list.
bool listed(nvmlDevice_t device, pid_t process, std::uint64_t& memory) {
    std::vector<nvmlProcessInfo_v2_t> list(256);
    auto count = static_cast<unsigned>(list.size());
    REQUIRE(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list.data()) == 0);
    for (unsigned i = 0; i < count; ++i) {
        if (list[i].pid != static_cast<unsigned>(process)) continue;
        memory = list[i].usedGpuMemory;
        return true;
    }
    return false;
}

/// Runs a program of the driver's in a process of its own until it is told to end. Before any cuInit of this process.
class Other {
public:
    template <class Body> explicit Other(Body&& body) {
        int ready[2], end[2];
        REQUIRE(pipe(ready) == 0);
        REQUIRE(pipe(end) == 0);
        process = fork();
        if (process == 0) {
            close(end[1]);
            char byte = body() ? 'y' : 'n';
            byte = write(ready[1], &byte, 1) == 1 ? byte : 'n';
            _exit(read(end[0], &byte, 1) < 0);
        }
        close(ready[1]);
        close(end[0]);
        char byte = 0;
        REQUIRE(read(ready[0], &byte, 1) == 1);
        REQUIRE(byte == 'y');
        close(ready[0]);
        end_ = end[1];
    }
    void finish() {
        close(end_);
        waitpid(process, nullptr, 0);
    }
    pid_t process = 0;

private:
    int end_ = -1;
};

bool allocate(std::size_t bytes) {
    CUcontext context = nullptr;
    CUdeviceptr memory = 0;
    return cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, 0) == 0 && cuCtxSetCurrent(context) == 0 && cuMemAlloc_v2(&memory, bytes) == 0;
}

/// Counts for about a second and a half on any machine: to the end of a clock.
constexpr char busy_ptx[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry busy() {
    .reg .u64 %start, %now;
    .reg .pred %p;
    mov.u64 %start, %globaltimer;
again:
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %start;
    setp.lt.u64 %p, %now, 1500000000;
    @%p bra again;
    ret;
}
)";

} // namespace

TEST_CASE("nvml: another process's memory is seen while it lives") {
    nvmlDevice_t device = first_device();
    Other other([] { return allocate(64 * mebibyte); });
    std::uint64_t memory = 0;
    REQUIRE(listed(device, other.process, memory));
    CHECK(memory >= 64 * mebibyte);
    CHECK(memory < 96 * mebibyte);
    nvmlMemory_v2_t all{};
    all.version = ptarmigan::nvml::structure_version<nvmlMemory_v2_t>(2);
    REQUIRE(nvmlDeviceGetMemoryInfo_v2(device, &all) == 0);
    CHECK(all.used >= memory);
    CHECK(all.used + all.free + all.reserved == all.total);
    char name[256];
    CHECK(nvmlSystemGetProcessName(static_cast<unsigned>(other.process), name, sizeof name) == 0);
    other.finish();
    CHECK_FALSE(listed(device, other.process, memory));
    CHECK(nvmlShutdown() == 0);
}

TEST_CASE("nvml: a process that only asks uses nothing") {
    nvmlDevice_t device = first_device();
    Other other([] { return cuInit(0) == 0; });
    std::uint64_t memory = 0;
    CHECK_FALSE(listed(device, other.process, memory));
    other.finish();
    CHECK(nvmlShutdown() == 0);
}

TEST_CASE("nvml: a forked child counts nothing for its parent") {
    nvmlDevice_t device = first_device();
    Other parent([] {
        if (!allocate(32 * mebibyte)) return false;
        if (fork() == 0) {
            sleep(2);
            _exit(0);
        }
        return true;
    });
    std::uint64_t memory = 0;
    REQUIRE(listed(device, parent.process, memory));
    CHECK(memory < 64 * mebibyte);
    std::vector<nvmlProcessInfo_v2_t> list(256);
    auto count = static_cast<unsigned>(list.size());
    REQUIRE(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list.data()) == 0);
    unsigned same = 0;
    for (unsigned i = 0; i < count; ++i) same += list[i].pid == static_cast<unsigned>(parent.process);
    CHECK(same == 1);
    parent.finish();
    CHECK(nvmlShutdown() == 0);
}

TEST_CASE("nvml: utilisation follows kernels") {
    nvmlDevice_t device = first_device();
    Other other([] {
        CUmodule module = nullptr;
        CUfunction busy = nullptr;
        return allocate(mebibyte) && cuModuleLoadData(&module, busy_ptx) == 0 && cuModuleGetFunction(&busy, module, "busy") == 0 &&
               cuLaunchKernel(busy, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == 0;
    });
    nvmlUtilization_t utilization{};
    unsigned most = 0;
    for (int i = 0; i < 8; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        REQUIRE(nvmlDeviceGetUtilizationRates(device, &utilization) == 0);
        CHECK(utilization.gpu <= 100);
        most = std::max(most, utilization.gpu);
    }
    CHECK(most > 90);
    CHECK(utilization.memory == 0);
    kill(other.process, SIGKILL);
    other.finish();
    CHECK(nvmlShutdown() == 0);
}

TEST_CASE("nvml: it tells what libcuda tells") {
    nvmlDevice_t device = first_device();
    REQUIRE(cuInit(0) == 0);
    int version = 0, nvml_version = 0, major = 0, minor = 0, cc_major = 0, cc_minor = 0, count = 0;
    CHECK(cuDriverGetVersion(&version) == 0);
    CHECK(nvmlSystemGetCudaDriverVersion_v2(&nvml_version) == 0);
    CHECK(version == nvml_version);
    unsigned devices = 0;
    CHECK(cuDeviceGetCount(&count) == 0);
    CHECK(nvmlDeviceGetCount_v2(&devices) == 0);
    CHECK(static_cast<int>(devices) == count);
    CHECK(nvmlDeviceGetCudaComputeCapability(device, &major, &minor) == 0);
    constexpr int attribute_major = 75, attribute_minor = 76, clock_rate = 13;
    CHECK(cuDeviceGetAttribute(&cc_major, attribute_major, 0) == 0);
    CHECK(cuDeviceGetAttribute(&cc_minor, attribute_minor, 0) == 0);
    CHECK(major == cc_major);
    CHECK(minor == cc_minor);
    int khz = 0;
    unsigned mhz = 0;
    CHECK(cuDeviceGetAttribute(&khz, clock_rate, 0) == 0);
    CHECK(nvmlDeviceGetMaxClockInfo(device, 1, &mhz) == 0);
    CHECK(static_cast<int>(mhz) == khz / 1000);
    char name[96], nvml_name[96], bus[32];
    REQUIRE(cuDeviceGetName(name, sizeof name, 0) == 0);
    REQUIRE(nvmlDeviceGetName(device, nvml_name, sizeof nvml_name) == 0);
    CHECK(std::string(name).substr(0, 63) == nvml_name);
    nvmlPciInfo_t pci{};
    REQUIRE(cuDeviceGetPCIBusId(bus, sizeof bus, 0) == 0);
    REQUIRE(nvmlDeviceGetPciInfo_v3(device, &pci) == 0);
    CHECK(std::string(bus) == pci.busIdLegacy);
    CHECK("0000" + std::string(bus) == pci.busId);
    std::size_t total = 0;
    nvmlMemory_v2_t memory{};
    memory.version = ptarmigan::nvml::structure_version<nvmlMemory_v2_t>(2);
    REQUIRE(cuDeviceTotalMem_v2(&total, 0) == 0);
    REQUIRE(nvmlDeviceGetMemoryInfo_v2(device, &memory) == 0);
    CHECK(memory.total == total);
    unsigned char uuid[16];
    char text[96], expected[96];
    REQUIRE(cuDeviceGetUuid_v2(uuid, 0) == 0);
    REQUIRE(nvmlDeviceGetUUID(device, text, sizeof text) == 0);
    std::snprintf(expected, sizeof expected, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", uuid[0], uuid[1], uuid[2], uuid[3], uuid[4], uuid[5], uuid[6], uuid[7], uuid[8],
                  uuid[9], uuid[10], uuid[11], uuid[12], uuid[13], uuid[14], uuid[15]);
    CHECK(std::string(text) == expected);
    CHECK(nvmlShutdown() == 0);
}
