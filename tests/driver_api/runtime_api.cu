// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's runtime library makes of the driver API beyond plain launches: streams, pools, managed and pinned
// memory, symbols, occupancy, launch attributes, reset, and the error codes that programs see. Exit status 0 or 1.
#include <cstdio>
#include <vector>

namespace {

int failures = 0;

void expect(bool ok, const char* what, int line) {
    if (!ok) {
        std::printf("line %d: %s\n", line, what);
        ++failures;
    }
}
#define OK(call) expect((call) == cudaSuccess, #call, __LINE__)
#define EXPECT(condition) expect((condition), #condition, __LINE__)
/// The call fails with `code`; the error is taken away.
#define FAILS(call, code)                                                                                    \
    do {                                                                                                     \
        expect(static_cast<int>(call) == (code), #call " gives " #code, __LINE__);                            \
        cudaGetLastError();                                                                                  \
    } while (0)

} // namespace

__constant__ int constants[4] = {1, 2, 3, 4};
__device__ int variables[4] = {5, 6, 7, 8};
__managed__ int managed = 42;

__global__ void add_one(int* data, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        data[i] += 1;
}
__global__ void multiply(int* data, int count, int factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        data[i] *= factor;
}
__global__ void add_symbols(int* out) { out[threadIdx.x] = constants[threadIdx.x] + variables[threadIdx.x] + managed; }
__global__ void reverse(int* out) {
    extern __shared__ int shared[];
    shared[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

static void CUDART_CB count_call(void* counter) { *static_cast<int*>(counter) += 1; }
static void CUDART_CB count_callback(cudaStream_t, cudaError_t status, void* counter) {
    *static_cast<int*>(counter) += status == cudaSuccess ? 10 : 1000;
}

static void test_streams() {
    constexpr int count = 1000, blocks = 8, threads = 128;
    cudaStream_t first, second;
    cudaEvent_t start, end;
    int *data, *host, calls = 0, least, greatest, priority;
    OK(cudaStreamCreate(&first));
    OK(cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, -1));
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(least == 0 && greatest == -5);
    OK(cudaStreamGetPriority(second, &priority));
    EXPECT(priority == -1);
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&end));
    OK(cudaMalloc(&data, count * sizeof(int)));
    OK(cudaMallocHost(&host, count * sizeof(int)));
    for (int i = 0; i < count; ++i)
        host[i] = i;
    OK(cudaEventRecord(start, first));
    OK(cudaMemcpyAsync(data, host, count * sizeof(int), cudaMemcpyHostToDevice, first));
    add_one<<<blocks, threads, 0, first>>>(data, count);
    OK(cudaEventRecord(end, first));
    OK(cudaStreamWaitEvent(second, end, 0));
    multiply<<<blocks, threads, 0, second>>>(data, count, 3);
    OK(cudaLaunchHostFunc(second, count_call, &calls));
    OK(cudaStreamAddCallback(second, count_callback, &calls, 0));
    OK(cudaMemcpyAsync(host, data, count * sizeof(int), cudaMemcpyDeviceToHost, second));
    OK(cudaStreamSynchronize(second));
    EXPECT(calls == 11);
    int wrong = 0;
    for (int i = 0; i < count; ++i)
        wrong += host[i] != (i + 1) * 3;
    EXPECT(wrong == 0);
    float time = -1;
    OK(cudaEventElapsedTime(&time, start, end));
    EXPECT(time >= 0);
    OK(cudaStreamQuery(first));
    OK(cudaEventQuery(end));
    cudaStreamCaptureStatus capture;
    OK(cudaStreamIsCapturing(first, &capture));
    EXPECT(capture == cudaStreamCaptureStatusNone);
    OK(cudaStreamDestroy(first));
    OK(cudaStreamDestroy(second));
    OK(cudaEventDestroy(start));
    OK(cudaEventDestroy(end));
    OK(cudaFree(data));
    OK(cudaFreeHost(host));
}

static void test_memory() {
    int *pointer, *mapped, *shared;
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    OK(cudaMallocAsync(&pointer, 4096, stream));
    OK(cudaMemsetAsync(pointer, 1, 4096, stream));
    OK(cudaFreeAsync(pointer, stream));
    OK(cudaStreamSynchronize(stream));
    cudaMemPool_t pool, made;
    unsigned long long threshold = 99;
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    EXPECT(threshold == 0);
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    OK(cudaMemPoolCreate(&made, &properties));
    OK(cudaMallocFromPoolAsync(&pointer, 100, made, stream));
    OK(cudaFreeAsync(pointer, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemPoolDestroy(made));

    OK(cudaMallocManaged(&shared, 4096));
    shared[999] = 999;
    add_one<<<8, 128>>>(shared, 1000);
    OK(cudaDeviceSynchronize());
    EXPECT(shared[999] == 1000);
    cudaMemLocation location = {cudaMemLocationTypeDevice, 0};
    OK(cudaMemPrefetchAsync(shared, 4096, location, 0, nullptr));
    OK(cudaMemAdvise(shared, 4096, cudaMemAdviseSetReadMostly, location));
    cudaPointerAttributes attributes;
    OK(cudaPointerGetAttributes(&attributes, shared));
    EXPECT(attributes.type == cudaMemoryTypeManaged);
    OK(cudaPointerGetAttributes(&attributes, &location));
    EXPECT(attributes.type == cudaMemoryTypeUnregistered);
    OK(cudaFree(shared));

    OK(cudaHostAlloc(&mapped, 4096, cudaHostAllocMapped));
    OK(cudaHostGetDevicePointer(&pointer, mapped, 0));
    EXPECT(pointer == mapped);
    OK(cudaPointerGetAttributes(&attributes, mapped));
    EXPECT(attributes.type == cudaMemoryTypeHost);
    OK(cudaFreeHost(mapped));
    std::vector<char> plain(1 << 16);
    OK(cudaHostRegister(plain.data(), plain.size(), 0));
    FAILS(cudaHostRegister(plain.data(), plain.size(), 0), 712);
    OK(cudaHostUnregister(plain.data()));

    FAILS(cudaMalloc(&pointer, 1ull << 50), 2);
    FAILS(cudaFree(reinterpret_cast<void*>(0x1234)), 1);
    OK(cudaStreamDestroy(stream));
}

static void test_pitched_copies() {
    std::vector<char> image(1000, 3), back(1000), volume(1024);
    char* pitched;
    std::size_t pitch;
    OK(cudaMallocPitch(&pitched, &pitch, 100, 10));
    EXPECT(pitch == 512);
    OK(cudaMemcpy2D(pitched, pitch, image.data(), 100, 100, 10, cudaMemcpyHostToDevice));
    OK(cudaMemset2D(pitched, pitch, 9, 50, 10));
    OK(cudaMemcpy2D(back.data(), 100, pitched, pitch, 100, 10, cudaMemcpyDeviceToHost));
    EXPECT(back[0] == 9 && back[49] == 9 && back[50] == 3 && back[999] == 3);
    OK(cudaFree(pitched));
    cudaPitchedPtr box;
    OK(cudaMalloc3D(&box, make_cudaExtent(64, 4, 4)));
    OK(cudaMemset3D(box, 5, make_cudaExtent(64, 4, 4)));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = box;
    copy.dstPtr = make_cudaPitchedPtr(volume.data(), 64, 64, 4);
    copy.extent = make_cudaExtent(64, 4, 4);
    copy.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&copy));
    EXPECT(volume[0] == 5 && volume[1023] == 5);
    OK(cudaFree(box.ptr));
}

static void test_symbols() {
    int values[4] = {10, 20, 30, 40}, *out;
    std::size_t size = 0;
    OK(cudaMalloc(&out, sizeof values));
    EXPECT(managed == 42);
    managed = 43;
    OK(cudaMemcpyToSymbol(constants, values, sizeof values));
    OK(cudaGetSymbolSize(&size, variables));
    EXPECT(size == 16);
    add_symbols<<<1, 4>>>(out);
    OK(cudaMemcpy(values, out, sizeof values, cudaMemcpyDeviceToHost));
    EXPECT(values[0] == 10 + 5 + 43 && values[3] == 40 + 8 + 43);
    OK(cudaMemcpyFromSymbol(values, variables, sizeof values));
    EXPECT(values[2] == 7);
    OK(cudaFree(out));
}

static void test_functions() {
    int *out, blocks = 0, min_grid = 0, block_size = 0, last = -1;
    std::size_t shared = 0;
    cudaFuncAttributes attributes;
    OK(cudaMalloc(&out, 64 * sizeof(int)));
    OK(cudaFuncGetAttributes(&attributes, reverse));
    EXPECT(attributes.maxThreadsPerBlock == 1024 && attributes.maxDynamicSharedSizeBytes == 49152);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse, 128, 0));
    EXPECT(blocks == 16);
    OK(cudaOccupancyMaxPotentialBlockSize(&min_grid, &block_size, reverse, 0, 0));
    EXPECT(block_size == 1024 && min_grid == 2 * 132);
    OK(cudaOccupancyAvailableDynamicSMemPerBlock(&shared, reverse, 1, 128));
    OK(cudaFuncSetCacheConfig(reverse, cudaFuncCachePreferShared));
    OK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
    reverse<<<1, 64, 90000>>>(out);
    FAILS(cudaGetLastError(), 0);
    reverse<<<1, 64, 300000>>>(out);
    FAILS(cudaGetLastError(), 1);
    OK(cudaMemcpy(&last, out + 63, sizeof last, cudaMemcpyDeviceToHost));
    EXPECT(last == 0);

    cudaLaunchAttribute attribute[1];
    attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute[0].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(64);
    config.dynamicSmemBytes = 256;
    config.attrs = attribute;
    config.numAttrs = 1;
    OK(cudaLaunchKernelEx(&config, reverse, out));
    void* arguments[] = {&out};
    OK(cudaLaunchKernel(reinterpret_cast<void*>(reverse), dim3(1), dim3(64), arguments, 256, nullptr));
    OK(cudaDeviceSynchronize());
    OK(cudaFree(out));
}

static void test_device() {
    int device = -1, version = 0;
    char bus[32];
    std::size_t free_bytes = 0, total = 0, limit = 0;
    OK(cudaGetDevice(&device));
    EXPECT(device == 0);
    FAILS(cudaSetDevice(3), 101);
    OK(cudaDriverGetVersion(&version));
    EXPECT(version >= 13000);
    OK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
    OK(cudaDeviceGetByPCIBusId(&device, bus));
    OK(cudaMemGetInfo(&free_bytes, &total));
    EXPECT(free_bytes > 0 && free_bytes <= total);
    OK(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
    EXPECT(limit == 1024);
    OK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
}

static void test_reset() {
    int *data, values[4] = {};
    OK(cudaDeviceReset());
    OK(cudaMalloc(&data, sizeof values));
    add_symbols<<<1, 4>>>(data);
    OK(cudaMemcpy(values, data, sizeof values, cudaMemcpyDeviceToHost));
    EXPECT(values[0] == 1 + 5 + 42); // modules were loaded anew
}

/// Last of all: the process cannot use the device afterwards.
static void test_fault() {
    int* pointer;
    add_one<<<1, 1>>>(reinterpret_cast<int*>(0x10), 1);
    FAILS(cudaGetLastError(), 0);
    FAILS(cudaDeviceSynchronize(), 700);
    FAILS(cudaMalloc(&pointer, 16), 700);
}

/// A captured kernel's node names the kernel as the program does.
static void test_captured_kernel() {
    int* data = nullptr;
    OK(cudaMalloc(&data, 64));
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    multiply<<<2, 3, 0, stream>>>(data, 16, 5);
    OK(cudaStreamEndCapture(stream, &graph));
    cudaGraphNode_t node = nullptr;
    size_t count = 1;
    OK(cudaGraphGetNodes(graph, &node, &count));
    cudaKernelNodeParams params{};
    OK(cudaGraphKernelNodeGetParams(node, &params));
    EXPECT(params.func == reinterpret_cast<void*>(multiply));
    EXPECT(params.gridDim.x == 2 && params.blockDim.x == 3);
    EXPECT(params.kernelParams != nullptr && *static_cast<int*>(params.kernelParams[2]) == 5);
    int factor = 7; // and takes others
    params.kernelParams[2] = &factor;
    OK(cudaGraphKernelNodeSetParams(node, &params));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(data));
}

int main() {
    test_streams();
    test_captured_kernel();
    test_memory();
    test_pitched_copies();
    test_symbols();
    test_functions();
    test_device();
    test_reset();
    test_fault();
    std::printf("%s runtime_api: %d failures\n", failures ? "FAIL" : "PASS", failures);
    return failures != 0;
}
