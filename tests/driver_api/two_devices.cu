// SPDX-License-Identifier: Apache-2.0
// Two devices through NVIDIA's runtime library: what each has of its own, and what goes from one to the other.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

int failures = 0;

void check(bool good, const char* what, int line) {
    if (good) return;
    std::printf("line %d: %s\n", line, what);
    ++failures;
}
#define CHECK(...) check((__VA_ARGS__), #__VA_ARGS__, __LINE__)
#define OK(...) check((__VA_ARGS__) == cudaSuccess, #__VA_ARGS__, __LINE__)

constexpr int count = 1000;

} // namespace

__device__ int own = 5;
__constant__ int factor = 1;
__managed__ int common = 7;

__global__ void scale(int* data) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = data[i] * factor + own;
}

__global__ void sum(const int* from, int* to) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd_system(to, from[i]);
}

__global__ void change(int value) {
    own = value;
    atomicAdd_system(&common, value);
}

int main() {
    int devices = 0;
    OK(cudaGetDeviceCount(&devices));
    CHECK(devices == 2);
    if (devices != 2) return 1;
    cudaDeviceProp one, other;
    OK(cudaGetDeviceProperties(&one, 0));
    OK(cudaGetDeviceProperties(&other, 1));
    CHECK(std::memcmp(&one.uuid, &other.uuid, sizeof one.uuid) != 0);
    CHECK(one.pciDeviceID != other.pciDeviceID);
    char bus[32];
    int found = -1;
    OK(cudaDeviceGetPCIBusId(bus, sizeof bus, 1));
    OK(cudaDeviceGetByPCIBusId(&found, bus));
    CHECK(found == 1);
    CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
    static_cast<void>(cudaGetLastError());
    // Each device has its own memory.
    std::size_t before[2], after[2], all = 0;
    void* large = nullptr;
    for (int device = 0; device < 2; ++device) {
        OK(cudaSetDevice(device));
        OK(cudaMemGetInfo(&before[device], &all));
    }
    CHECK(all == other.totalGlobalMem);
    OK(cudaMalloc(&large, 64 << 20));
    for (int device = 0; device < 2; ++device) {
        OK(cudaSetDevice(device));
        OK(cudaMemGetInfo(&after[device], &all));
        CHECK(before[device] - after[device] == (device == 1 ? std::size_t{64} << 20 : 0));
    }
    OK(cudaFree(large));
    // Each device has its own variables; managed ones are common.
    std::vector<int> host(count);
    for (int i = 0; i < count; ++i) host[i] = i;
    int* data[2] = {};
    for (int device = 0; device < 2; ++device) {
        OK(cudaSetDevice(device));
        int now = -1;
        OK(cudaGetDevice(&now));
        CHECK(now == device);
        OK(cudaMalloc(&data[device], count * sizeof(int)));
        OK(cudaMemcpy(data[device], host.data(), count * sizeof(int), cudaMemcpyHostToDevice));
        const int by = device + 2;
        OK(cudaMemcpyToSymbol(factor, &by, sizeof by));
        change<<<1, 1>>>(10 * (device + 1));
        scale<<<(count + 127) / 128, 128>>>(data[device]);
        OK(cudaDeviceSynchronize());
    }
    CHECK(common == 7 + 10 + 20);
    for (int device = 0; device < 2; ++device) {
        std::vector<int> back(count);
        OK(cudaMemcpy(back.data(), data[device], count * sizeof(int), cudaMemcpyDefault));
        CHECK(back[10] == 10 * (device + 2) + 10 * (device + 1));
        cudaPointerAttributes attributes;
        OK(cudaPointerGetAttributes(&attributes, data[device]));
        CHECK(attributes.type == cudaMemoryTypeDevice);
        CHECK(attributes.device == device);
    }
    // From one to the other, with and without peer access.
    OK(cudaSetDevice(0));
    OK(cudaMemcpyPeer(data[0], 0, data[1], 1, count * sizeof(int)));
    int value = 0;
    OK(cudaMemcpy(&value, data[0] + 10, sizeof value, cudaMemcpyDefault));
    CHECK(value == 50);
    int can = 0;
    OK(cudaDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 1);
    OK(cudaDeviceCanAccessPeer(&can, 1, 1));
    CHECK(can == 0);
    OK(cudaDeviceEnablePeerAccess(1, 0));
    CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
    static_cast<void>(cudaGetLastError());
    CHECK(cudaDeviceEnablePeerAccess(0, 0) != cudaSuccess);
    static_cast<void>(cudaGetLastError());
    int* total = nullptr;
    OK(cudaMalloc(&total, sizeof(int)));
    OK(cudaMemset(total, 0, sizeof(int)));
    sum<<<(count + 127) / 128, 128>>>(data[1], total);
    OK(cudaMemcpy(&value, total, sizeof value, cudaMemcpyDefault));
    CHECK(value == 3 * (count - 1) * count / 2 + 20 * count);
    OK(cudaDeviceDisablePeerAccess(1));
    CHECK(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
    static_cast<void>(cudaGetLastError());
    // Streams and events belong to one; waiting goes across.
    cudaStream_t streams[2];
    cudaEvent_t events[2];
    for (int device = 0; device < 2; ++device) {
        OK(cudaSetDevice(device));
        OK(cudaStreamCreate(&streams[device]));
        OK(cudaEventCreate(&events[device]));
    }
    OK(cudaEventRecord(events[1], streams[1]));
    CHECK(cudaEventRecord(events[1], streams[0]) == cudaErrorInvalidResourceHandle);
    static_cast<void>(cudaGetLastError());
    OK(cudaStreamWaitEvent(streams[0], events[1], 0));
    OK(cudaSetDevice(0));
    OK(cudaStreamSynchronize(streams[0]));
    // Pools, and access to them.
    OK(cudaSetDevice(1));
    int* pooled = nullptr;
    OK(cudaMallocAsync(&pooled, 4096, streams[1]));
    OK(cudaMemsetAsync(pooled, 1, 4096, streams[1]));
    OK(cudaStreamSynchronize(streams[1]));
    cudaMemPool_t pool;
    OK(cudaDeviceGetDefaultMemPool(&pool, 1));
    cudaMemAccessDesc access = {};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = 0;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    OK(cudaMemPoolSetAccess(pool, &access, 1));
    OK(cudaSetDevice(0));
    scale<<<1, 1, 0, streams[0]>>>(pooled);
    OK(cudaStreamSynchronize(streams[0]));
    OK(cudaMemcpy(&value, pooled, sizeof value, cudaMemcpyDefault));
    CHECK(value == 0x01010101 * 2 + 10);
    OK(cudaFreeAsync(pooled, streams[0]));
    // A device for each thread.
    int results[2] = {};
    std::vector<std::thread> threads;
    for (int device = 0; device < 2; ++device)
        threads.emplace_back([&, device] {
            int* mine = nullptr;
            if (cudaSetDevice(device) || cudaMalloc(&mine, sizeof(int)) || cudaMemset(mine, 0, sizeof(int))) return;
            for (int i = 0; i < 50; ++i) sum<<<8, 128>>>(data[device], mine);
            if (cudaMemcpy(&results[device], mine, sizeof(int), cudaMemcpyDefault) || cudaFree(mine)) return;
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(results[0] == 50 * (3 * (count - 1) * count / 2 + 20 * count));
    CHECK(results[1] == results[0]);
    // A reset of one leaves the other alone.
    OK(cudaSetDevice(1));
    OK(cudaDeviceReset());
    OK(cudaSetDevice(0));
    OK(cudaMemcpy(&value, data[0], sizeof value, cudaMemcpyDefault));
    OK(cudaDeviceSynchronize());
    std::printf(failures ? "%d failures\n" : "ok\n", failures);
    return failures != 0;
}
