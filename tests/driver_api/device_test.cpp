// SPDX-License-Identifier: Apache-2.0
// Initialisation, finding entries, devices, contexts. Expected codes are the NVIDIA driver's on an
// H200.
#include "driver.h"

#include <cstring>

TEST_CASE("driver: entries are found by name and version") {
    void* function = nullptr;
    int result = -1;
    CHECK(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, &result) == 0);
    CHECK(function == reinterpret_cast<void*>(&cuMemAlloc_v2));
    CHECK(result == 0);
    CHECK(cuGetProcAddress_v2("cuNope", &function, 12000, 0, &result) == 0);
    CHECK(function == nullptr);
    CHECK(result == 1);
    CHECK(cuGetProcAddress_v2("cuLibraryLoadData", &function, 11000, 0, &result) == 0);
    CHECK(function == nullptr);
    CHECK(result == 2);
    CHECK(cuGetProcAddress_v2("", &function, 0, 0, nullptr) == 0);
    CHECK(cuGetProcAddress_v2("cuInit", &function, 13060, 0, nullptr) == 1);
    CHECK(cuGetProcAddress_v2("cuInit", &function, 12000, 99, nullptr) == 1);
    CHECK(cuGetProcAddress_v2("cuMemcpy", &function, 12000, 3, nullptr) == 0);
    CHECK(cuGetProcAddress_v2(nullptr, &function, 12000, 0, nullptr) == 1);
    CHECK(cuGetProcAddress_v2("cuInit", nullptr, 12000, 0, nullptr) == 1);
}

TEST_CASE("driver: export tables") {
    const void* table = reinterpret_cast<const void*>(1);
    CUuuid unknown{};
    CHECK(cuGetExportTable(&table, &unknown) == 1);
    CHECK(table == nullptr);
    CHECK(cuGetExportTable(nullptr, &unknown) == 1);
    CHECK(cuGetExportTable(&table, nullptr) == 1);
    const unsigned char cudart[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                      0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};
    CUuuid id;
    std::memcpy(id.bytes, cudart, 16);
    REQUIRE(cuGetExportTable(&table, &id) == 0);
    CHECK(*static_cast<const std::uint64_t*>(table) == 13 * 8);
}

TEST_CASE("driver: error names") {
    const char* text = nullptr;
    CHECK(cuGetErrorName(700, &text) == 0);
    CHECK(std::string(text) == "CUDA_ERROR_ILLEGAL_ADDRESS");
    CHECK(cuGetErrorString(209, &text) == 0);
    CHECK(std::string(text) == "no kernel image is available for execution on the device");
    CHECK(cuGetErrorName(12345, &text) == 1);
    CHECK(text == nullptr);
}

TEST_CASE("driver: device queries") {
    CHECK(cuInit(1) == 1);
    REQUIRE(cuInit(0) == 0);
    CHECK(cuInit(0) == 0);
    int number = 0;
    CHECK(cuDriverGetVersion(&number) == 0);
    CHECK(number == 13050);
    CHECK(cuDeviceGetCount(&number) == 0);
    CHECK(number == 1);
    CUdevice device = -1;
    CHECK(cuDeviceGet(&device, 0) == 0);
    CHECK(cuDeviceGet(&device, 1) == 101);
    char name[64];
    CHECK(cuDeviceGetName(name, 4, 0) == 0);
    CHECK(std::strlen(name) == 3);
    CHECK(cuDeviceGetName(name, 0x7fffffff, 0) == 0); // more than the buffer has
    CHECK(cuDeviceGetName(name, 64, 7) == 101);
    CHECK(cuDeviceGetName(nullptr, 64, 0) == 1);
    CHECK(cuDeviceGetAttribute(&number, 0, 0) == 1);
    CHECK(cuDeviceGetAttribute(&number, 9999, 0) == 1);
    CHECK(cuDeviceGetAttribute(nullptr, 10, 0) == 1);
    CHECK(cuDeviceGetAttribute(&number, 10, 7) == 101);
    CHECK(cuDeviceGetAttribute(&number, 10, 0) == 0);
    CHECK(number == 32);
    CHECK(cuDeviceGetAttribute(&number, 16, 0) == 0); // multiprocessors: the H200's, whatever cores there are
    CHECK(number == 132);
    for (int id = 1; id <= 161; ++id) {
        INFO(id);
        CHECK(cuDeviceGetAttribute(&number, id, 0) == 0);
    }
    CHECK(cuDeviceTotalMem_v2(nullptr, 0) == 1);
    CHECK(cuDeviceGetUuid(nullptr, 0) == 1);
    char bus[16];
    CHECK(cuDeviceGetPCIBusId(bus, 16, 0) == 0);
    CHECK(cuDeviceGetPCIBusId(bus, 5, 0) == 1);
    CHECK(cuDeviceGetPCIBusId(bus, 16, 0) == 0);
    CHECK(cuDeviceGetByPCIBusId(&device, bus) == 0);
    CHECK(device == 0);
    CHECK(cuDeviceGetByPCIBusId(&device, "0000:ff:1f.0") == 101);
}

TEST_CASE("driver: without a current context most calls give 201") {
    driver_test::context();
    REQUIRE(cuCtxSetCurrent(nullptr) == 0);
    CUcontext current = reinterpret_cast<CUcontext>(1);
    CHECK(cuCtxGetCurrent(&current) == 0);
    CHECK(current == nullptr);
    CUdevice device = 0;
    CUdeviceptr pointer = 0;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUmodule module = nullptr;
    void* host = nullptr;
    std::size_t size = 0;
    CHECK(cuCtxGetDevice(&device) == 201);
    CHECK(cuMemAlloc_v2(&pointer, 16) == 201);
    CHECK(cuMemFree_v2(0) == 0);
    CHECK(cuCtxSynchronize() == 201);
    CHECK(cuMemGetInfo_v2(&size, &size) == 201);
    CHECK(cuStreamCreate(&stream, 0) == 201);
    CHECK(cuEventCreate(&event, 0) == 201);
    CHECK(cuModuleLoadData(&module, driver_test::kernels) == 201);
    CHECK(cuMemHostAlloc(&host, 16, 0) == 201);
    CHECK(cuMemAllocManaged(&pointer, 16, 1) == 201);
    CHECK(cuCtxGetLimit(&size, 0) == 201);
    CHECK(cuCtxPopCurrent_v2(&current) == 201);
    CHECK(cuMemcpyHtoD_v2(0, nullptr, 0) == 201);
    CHECK(cuStreamSynchronize(nullptr) == 201);
    CHECK(cuStreamQuery(nullptr) == 201);
    CHECK(cuCtxDestroy_v2(nullptr) == 1);
}

TEST_CASE("driver: user contexts form a stack") {
    CUcontext primary = driver_test::context();
    CUcontext made = nullptr, current = nullptr;
    REQUIRE(cuCtxCreate_v2(&made, 0, 0) == 0);
    CHECK(cuCtxGetCurrent(&current) == 0);
    CHECK(current == made);
    CHECK(made != primary);
    CHECK(cuCtxPopCurrent_v2(&current) == 0);
    CHECK(current == made);
    CHECK(cuCtxGetCurrent(&current) == 0);
    CHECK(current == primary);
    CHECK(cuCtxPushCurrent_v2(made) == 0);
    CHECK(cuCtxDestroy_v2(made) == 0);
    CHECK(cuCtxDestroy_v2(reinterpret_cast<CUcontext>(0x1234)) == 201);
    CHECK(cuCtxSetCurrent(reinterpret_cast<CUcontext>(0x1234)) == 201);
    driver_test::context();
}

// CUDA 13's cuCtxCreate is this entry, and programs give it parameters that ask for nothing. The codes are an H100's.
TEST_CASE("driver: contexts are made with parameters that ask for nothing") {
    driver_test::context();
    long affinity[2] = {}, graphics[2] = {};
    const auto affinities = reinterpret_cast<CUexecAffinityParam*>(affinity);
    const auto cig = reinterpret_cast<CUctxCigParam*>(graphics);
    const auto create = [](CUctxCreateParams parameters) {
        CUcontext made = nullptr;
        const CUresult code = cuCtxCreate_v4(&made, &parameters, 0, 0);
        if (code == 0) CHECK(cuCtxDestroy_v2(made) == 0);
        return code;
    };
    CHECK(create({nullptr, 0, nullptr}) == 0);
    CHECK(create({affinities, 0, nullptr}) == 0);
    CHECK(create({nullptr, 1, nullptr}) == 1);
    CHECK(create({affinities, 1, nullptr}) == 224);
    CHECK(create({nullptr, 0, cig}) == 801);
    CHECK(create({affinities, 1, cig}) == 801);
    CUcontext made = nullptr;
    CHECK(cuCtxCreate_v4(&made, nullptr, 0, 0) == 0);
    CHECK(cuCtxDestroy_v2(made) == 0);
    CHECK(cuCtxCreate_v3(&made, affinities, 0, 0, 0) == 0);
    CHECK(cuCtxDestroy_v2(made) == 0);
    CHECK(cuCtxCreate_v3(&made, nullptr, 1, 0, 0) == 1);
    CHECK(cuCtxCreate_v3(&made, affinities, 1, 0, 0) == 224);
    driver_test::context();
}

TEST_CASE("driver: limits are those of the hardware") {
    driver_test::context();
    std::size_t value = 0;
    CHECK(cuCtxGetLimit(&value, 0) == 0);
    CHECK(value == 1024);
    CHECK(cuCtxGetLimit(&value, 3) == 215);
    CHECK(cuCtxGetLimit(&value, 10) == 1);
    CHECK(cuCtxSetLimit(0, 1000) == 0);
    CHECK(cuCtxGetLimit(&value, 0) == 0);
    CHECK(value == 1008);
    CHECK(cuCtxSetLimit(0, 1048576) == 1);
    CHECK(cuCtxSetLimit(0, 1024) == 0);
    CHECK(cuCtxSetLimit(7, 100) == 800);
}

TEST_CASE("driver: unsupported entries say 801") {
    CHECK(cuStreamBeginRecaptureToGraph() == 801);
}
