// SPDX-License-Identifier: Apache-2.0
// Modules, libraries, functions, launches. Expected codes are the NVIDIA driver's on an H200.
#include "driver.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

extern "C" CUresult cuOccupancyAvailableDynamicSMemPerBlock(std::size_t*, CUfunction, int, int);

using driver_test::kernels;

namespace {

CUresult launch(CUfunction function, unsigned grid, unsigned block, unsigned shared,
                void** parameters, void** extra = nullptr) {
    return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, nullptr, parameters, extra);
}

} // namespace

TEST_CASE("module: loading bad images") {
    driver_test::context();
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, nullptr) == 1);
    CHECK(cuModuleLoadData(nullptr, kernels) == 1);
    CHECK(cuModuleLoadData(&module, "") == 200);
    CHECK(cuModuleLoadData(&module, "no PTX at all") == 200);
    CHECK(cuModuleLoadData(&module, ".target sm_75\n.version 8.0\n") == 200);
    CHECK(cuModuleLoadData(&module, ".version 8.0 hello") == 218);
    char elf[64] = "\x7f"
                   "ELF";
    CHECK(cuModuleLoadData(&module, elf) == 200);
    elf[18] = static_cast<char>(190); // the machine: a GPU's code
    CHECK(cuModuleLoadData(&module, elf) == 209);
    CHECK(cuModuleLoad(&module, "/nonexistent.cubin") == 301);
    CHECK(cuModuleLoad(&module, "") == 1);
    CHECK(cuModuleLoad(&module, nullptr) == 1);
    CHECK(cuModuleLoad(&module, "/tmp") == 2); // a directory: asked of an H100
    CUlibrary library = nullptr;
    CHECK(cuLibraryLoadFromFile(&library, "/tmp", nullptr, nullptr, 0, nullptr, nullptr, 0) == 2);
    CHECK(cuLibraryLoadFromFile(&library, "/nonexistent.cubin", nullptr, nullptr, 0, nullptr, nullptr, 0) == 301);
    unsigned unknown[] = {999};
    void* values[] = {nullptr};
    CHECK(cuModuleLoadDataEx(&module, kernels, 1, unknown, values) == 1);
}

TEST_CASE("module: the error log names line and cause") {
    driver_test::context();
    CUmodule module = nullptr;
    char error[512] = "", info[64] = "old";
    unsigned options[] = {5, 6, 3, 4};
    void* values[] = {error, reinterpret_cast<void*>(sizeof error), info,
                      reinterpret_cast<void*>(sizeof info)};
    const char* bad = ".version 8.0\n.target sm_75\n.address_size 64\n.entry k()\n{\n  "
                      "frobnicate.u32 %r1, 2;\n}\n";
    CHECK(cuModuleLoadDataEx(&module, bad, 4, options, values) == 218);
    std::string log = error;
    INFO(log);
    CHECK(log.find("line 6") != std::string::npos);
    CHECK(log.find("frobnicate") != std::string::npos);
    CHECK(reinterpret_cast<std::uintptr_t>(values[1]) == log.size());
    CHECK(std::string(info).empty());
}

// The driver's compiler takes 227 KiB of static shared memory where ptxas by itself takes 48.
TEST_CASE("module: too much static shared memory or constants") {
    driver_test::context();
    const auto load = [](const std::string& variables, std::string& log) {
        const std::string text = ".version 8.0\n.target sm_75\n.address_size 64\n" + variables +
                                 ".entry small() { ret; }\n.entry k()\n{\n  .reg .b32 %r1;\n  mov.u32 %r1, a;\n  "
                                 "st.shared.u32 [%r1], %r1;\n  ret;\n}\n";
        char error[512] = "";
        unsigned options[] = {5, 6};
        void* values[] = {error, reinterpret_cast<void*>(sizeof error)};
        CUmodule module = nullptr;
        const int code = cuModuleLoadDataEx(&module, text.c_str(), 2, options, values);
        log = error;
        return code;
    };
    const std::string word = ".shared .align 4 .b8 a[4];\n";
    std::string log;
    CHECK(load(".shared .align 4 .b8 a[232448];\n", log) == 0);
    CHECK(load(".shared .align 4 .b8 a[300000];\n", log) == 218);
    CHECK(log == "ptxas error   : Entry function 'k' uses too much shared data (0x493e0 bytes, 0x38c00 max)");
    CHECK(load(".const .b8 c[1];\n.const .align 16 .b8 d[65520];\n" + word, log) == 0);
    CHECK(load(".const .b8 c[1];\n.const .align 16 .b8 d[65521];\n" + word, log) == 218);
    CHECK(log == "ptxas error   : File uses too much global constant data (0x10001 bytes, 0x10000 max)");
}

TEST_CASE("module: functions and variables") {
    driver_test::context();
    CUmodule module = nullptr;
    REQUIRE(cuModuleLoadData(&module, kernels) == 0);
    CUfunction function = nullptr;
    CHECK(cuModuleGetFunction(&function, module, "nope") == 500);
    CHECK(cuModuleGetFunction(&function, module, nullptr) == 1);
    CHECK(cuModuleGetFunction(&function, module, "") == 1);
    CHECK(cuModuleGetFunction(&function, nullptr, "store") == 400);
    CHECK(cuModuleGetFunction(&function, reinterpret_cast<CUmodule>(0x1234), "store") == 400);
    REQUIRE(cuModuleGetFunction(&function, module, "store") == 0);
    unsigned count = 0;
    CHECK(cuModuleGetFunctionCount(&count, module) == 0);
    CHECK(count == 3);

    CUdeviceptr pointer = 0;
    std::size_t size = 0;
    unsigned words[4] = {};
    CHECK(cuModuleGetGlobal_v2(&pointer, &size, module, "nope") == 500);
    CHECK(cuModuleGetGlobal_v2(nullptr, nullptr, module, "counter") == 1);
    REQUIRE(cuModuleGetGlobal_v2(&pointer, &size, module, "counter") == 0);
    CHECK(size == 4);
    CHECK(cuMemcpyDtoH_v2(words, pointer, 4) == 0);
    CHECK(words[0] == 7);
    REQUIRE(cuModuleGetGlobal_v2(&pointer, &size, module, "table") == 0);
    CHECK(size == 16);
    CHECK(cuMemcpyDtoH_v2(words, pointer, 16) == 0);
    CHECK(words[3] == 4);
    CHECK(cuMemFree_v2(pointer) == 1);

    CHECK(cuModuleUnload(module) == 0);
    CHECK(cuModuleUnload(module) == 400);
    CHECK(cuModuleUnload(nullptr) == 400);
    CHECK(launch(function, 1, 1, 0, nullptr) == 400);
}

TEST_CASE("library: loaded lazily, without a context") {
    driver_test::context();
    REQUIRE(cuCtxSetCurrent(nullptr) == 0);
    CUlibrary library = nullptr, bad = nullptr;
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    CUdeviceptr pointer = 0;
    std::size_t size = 0;
    unsigned count = 9;
    int value = 0;
    REQUIRE(cuLibraryLoadData(&bad, "garbage", nullptr, nullptr, 0, nullptr, nullptr, 0) == 0);
    CHECK(cuLibraryGetKernel(&kernel, bad, "store") == 200);
    CHECK(cuLibraryGetKernelCount(&count, bad) == 0);
    CHECK(count == 0);
    CHECK(cuLibraryUnload(bad) == 0);
    CHECK(cuLibraryUnload(bad) == 400);
    CHECK(cuLibraryUnload(nullptr) == 400);

    REQUIRE(cuLibraryLoadData(&library, kernels, nullptr, nullptr, 0, nullptr, nullptr, 0) == 0);
    CHECK(cuLibraryGetKernel(&kernel, library, "nope") == 500);
    REQUIRE(cuLibraryGetKernel(&kernel, library, "add_one") == 0);
    CHECK(cuLibraryGetKernelCount(&count, library) == 0);
    CHECK(count == 3);
    CHECK(cuKernelGetAttribute(&value, 0, kernel, 0) == 0);
    CHECK(value == 1024);
    CHECK(cuKernelGetFunction(&function, kernel) == 201);
    CHECK(cuLibraryGetGlobal(&pointer, &size, library, "counter") == 201);
    CHECK(launch(reinterpret_cast<CUfunction>(kernel), 1, 1, 0, nullptr) == 201);

    driver_test::context();
    CHECK(cuLibraryGetGlobal(&pointer, &size, library, "counter") == 0);
    CHECK(cuLibraryGetGlobal(&pointer, &size, library, "nope") == 500);
    CUdeviceptr data = driver_test::allocate(64);
    CHECK(cuMemsetD32_v2(data, 5, 16) == 0);
    unsigned n = 16;
    void* parameters[] = {&data, &n};
    CHECK(launch(reinterpret_cast<CUfunction>(kernel), 1, 32, 0, parameters) ==
          0); // a CUkernel as CUfunction
    CHECK(cuKernelGetFunction(&function, kernel) == 0);
    CHECK(launch(function, 1, 32, 0, parameters) == 0);
    unsigned words[16];
    CHECK(cuMemcpyDtoH_v2(words, data, 64) == 0);
    CHECK(words[15] == 7);
    CHECK(cuLibraryUnload(library) == 0);
    CHECK(launch(reinterpret_cast<CUfunction>(kernel), 1, 32, 0, parameters) == 400);
    CHECK(launch(function, 1, 32, 0, parameters) == 400);
    CHECK(cuMemFree_v2(data) == 0);
}

TEST_CASE("launch: configuration is checked at the call") {
    CUfunction function = driver_test::function("add_one");
    CUdeviceptr data = driver_test::allocate(64);
    unsigned n = 16;
    void* parameters[] = {&data, &n};
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1025, 1, 1, 0, nullptr, parameters, nullptr) == 1);
    CHECK(cuLaunchKernel(function, 1, 1, 1, 0, 1, 1, 0, nullptr, parameters, nullptr) == 1);
    CHECK(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == 1);
    CHECK(cuLaunchKernel(function, 1, 65536, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == 1);
    CHECK(cuLaunchKernel(function, 1, 1, 65536, 1, 1, 1, 0, nullptr, parameters, nullptr) == 1);
    CHECK(cuLaunchKernel(function, 1u << 31, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == 1);
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 65, 0, nullptr, parameters, nullptr) == 1);
    CHECK(cuLaunchKernel(function, 1, 1, 1, 64, 64, 1, 0, nullptr, parameters, nullptr) == 1);
    CHECK(launch(function, 1, 32, 49153, parameters) == 1);
    CHECK(launch(function, 1, 32, 49152, parameters) == 0);
    CHECK(launch(nullptr, 1, 32, 0, parameters) == 400);
    CHECK(launch(function, 1, 32, 0, nullptr) == 1);
    CHECK(launch(reinterpret_cast<CUfunction>(0x1234), 1, 1, 0, parameters) == 400);
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, reinterpret_cast<CUstream>(0x999),
                         parameters, nullptr) == 400);
    CHECK(cuLaunchKernelEx(nullptr, function, parameters, nullptr) == 1);
    CHECK(cuCtxSynchronize() == 0);
    CHECK(cuMemFree_v2(data) == 0);
}

TEST_CASE("launch: the parameter buffer of `extra`") {
    CUfunction function = driver_test::function("add_one");
    CUdeviceptr data = driver_test::allocate(64);
    CHECK(cuMemsetD32_v2(data, 1, 16) == 0);
    struct {
        CUdeviceptr data;
        unsigned count;
    } block{data, 8};
    std::size_t size = 12;
    void* extra[] = {reinterpret_cast<void*>(1), &block, reinterpret_cast<void*>(2), &size,
                     nullptr};
    void* parameters[] = {&block.data, &block.count};
    CHECK(launch(function, 1, 32, 0, nullptr, extra) == 0);
    CHECK(launch(function, 1, 32, 0, parameters, extra) == 1);
    void* bad[] = {reinterpret_cast<void*>(7), &block, nullptr};
    CHECK(launch(function, 1, 32, 0, nullptr, bad) == 1);
    unsigned words[16];
    CHECK(cuMemcpyDtoH_v2(words, data, 64) == 0);
    CHECK(words[7] == 2);
    CHECK(words[8] == 1);
    CHECK(cuMemFree_v2(data) == 0);
}

TEST_CASE("launch: attributes") {
    CUfunction function = driver_test::function("add_one");
    CUdeviceptr data = driver_test::allocate(64);
    unsigned n = 0;
    void* parameters[] = {&data, &n};
    CUlaunchAttribute attribute{};
    CUlaunchConfig config{1, 1, 1, 32, 1, 1, 0, nullptr, &attribute, 1};
    CHECK(cuLaunchKernelEx(&config, function, parameters, nullptr) == 0); // id 0: ignored
    attribute.id = 6;
    CHECK(cuLaunchKernelEx(&config, function, parameters, nullptr) == 0);
    attribute.id = 77;
    CHECK(cuLaunchKernelEx(&config, function, parameters, nullptr) == 1);
    attribute.id = 4;
    attribute.value.clusterDim = {3, 1, 1};
    CHECK(cuLaunchKernelEx(&config, function, parameters, nullptr) == 912);
    CHECK(cuMemFree_v2(data) == 0);
}

TEST_CASE("launch: one kernel with clusters of several shapes") {
    driver_test::context();
    // Thread 0 of CTA i stores nine registers at 9 * i.
    std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry shapes(.param .u64 out)\n"
                       "{ .reg .b32 %r<8>; .reg .b64 %l<4>; .reg .pred %p;\n"
                       "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %nctaid.x; mov.u32 %r2, %ctaid.y; mad.lo.u32 %r0, %r1, %r2, %r0;\n"
                       "ld.param.u64 %l0, [out]; mad.wide.u32 %l0, %r0, 36, %l0;\n";
    const std::vector<std::string> registers = {"cluster_nctaid.x", "cluster_nctaid.y", "cluster_nctaid.z",
                                                "cluster_nctarank", "cluster_ctarank",  "cluster_ctaid.x",
                                                "cluster_ctaid.y",  "clusterid.x",      "nclusterid.y"};
    for (std::size_t i = 0; i < registers.size(); ++i)
        text += "mov.u32 %r3, %" + registers[i] + "; st.global.u32 [%l0+" + std::to_string(4 * i) + "], %r3;\n";
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    REQUIRE(cuModuleLoadData(&module, (text + "ret; }\n").c_str()) == 0);
    REQUIRE(cuModuleGetFunction(&function, module, "shapes") == 0);
    constexpr unsigned width = 8, height = 4;
    CUdeviceptr data = driver_test::allocate(width * height * 36);
    void* parameters[] = {&data};
    CUlaunchAttribute cluster{};
    cluster.id = 4;
    CUlaunchConfig config{width, height, 1, 1, 1, 1, 0, nullptr, &cluster, 1};
    unsigned wrong = 0;
    for (const auto& [x, y] : std::vector<std::pair<unsigned, unsigned>>{{2, 1}, {1, 2}, {4, 2}, {1, 1}, {8, 1}, {2, 4}}) {
        cluster.value.clusterDim = {x, y, 1};
        REQUIRE(cuLaunchKernelEx(&config, function, parameters, nullptr) == 0);
        std::vector<unsigned> words(width * height * 9);
        REQUIRE(cuMemcpyDtoH_v2(words.data(), data, words.size() * 4) == 0);
        for (unsigned cta = 0; cta < width * height; ++cta) {
            const unsigned cx = cta % width, cy = cta / width;
            const unsigned expected[] = {x, y, 1, x * y, cx % x + cy % y * x, cx % x, cy % y, cx / x, height / y};
            for (unsigned i = 0; i < 9; ++i) wrong += words[9 * cta + i] != expected[i];
        }
    }
    CHECK(wrong == 0);
    CHECK(cuMemFree_v2(data) == 0);
    CHECK(cuModuleUnload(module) == 0);
}

TEST_CASE("function: attributes and parameters") {
    CUfunction function = driver_test::function("add_one");
    int value = 0;
    std::size_t offset = 0, size = 0;
    CHECK(cuFuncGetAttribute(&value, 5, function) == 0);
    CHECK(value == 75);
    CHECK(cuFuncGetAttribute(&value, 8, function) == 0);
    CHECK(value == 49152);
    CHECK(cuFuncGetAttribute(&value, 99, function) == 1);
    CHECK(cuFuncGetAttribute(&value, 4, nullptr) == 400);
    CHECK(cuFuncSetAttribute(function, 8, 232449) == 1);
    CHECK(cuFuncSetAttribute(function, 8, -1) == 1);
    CHECK(cuFuncSetAttribute(function, 4, 10) == 1);
    CHECK(cuFuncSetAttribute(function, 9, 101) == 1);
    // Of CUDA 13.5: whether kernels may change its nodes, and the mode of its shared memory, which wins over the size.
    CHECK(cuFuncGetAttribute(&value, 16, function) == 0);
    CHECK(value == 0);
    CHECK(cuFuncSetAttribute(function, 16, 0) == 1);
    CHECK(cuFuncSetAttribute(function, 17, 5) == 1);
    unsigned n = 0;
    CUdeviceptr data = driver_test::allocate(64);
    void* parameters[] = {&data, &n};
    for (const int mode : {1, 2, 0}) { // 1: no more than any device has, whatever 8 says
        REQUIRE(cuFuncSetAttribute(function, 8, mode == 1 ? 100000 : 49152) == 0);
        REQUIRE(cuFuncSetAttribute(function, 17, mode) == 0);
        CHECK(cuFuncGetAttribute(&value, 17, function) == 0);
        CHECK(value == mode);
        CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 100000, nullptr, parameters, nullptr) == (mode == 2 ? 0 : 1));
    }
    CHECK(cuCtxSynchronize() == 0);
    CHECK(cuMemFree_v2(data) == 0);
    CHECK(cuFuncGetParamInfo(function, 1, &offset, &size) == 0);
    CHECK(offset == 8);
    CHECK(size == 4);
    CHECK(cuFuncGetParamInfo(function, 2, &offset, &size) == 1);
    CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 0, 0) == 1);
    CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 1024, 0) == 0);
    CHECK(value == 2);
}

// As NVIDIA's cuda_occupancy.h computes it for 9.0.
TEST_CASE("function: dynamic shared memory that is left is no more than the function may take") {
    CUfunction function = driver_test::function("add_one");
    const auto left = [&](int blocks) {
        std::size_t bytes = 1;
        CHECK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, blocks, 256) == 0);
        return bytes;
    };
    CHECK(left(1) == 49152);
    CHECK(left(8) == 233472 / 8 / 128 * 128 - 1024);
    REQUIRE(cuFuncSetAttribute(function, 8, 100000) == 0);
    CHECK(left(1) == 100000);
    CHECK(left(2) == 100000);
    CHECK(left(4) == 233472 / 4 - 1024);
    REQUIRE(cuFuncSetAttribute(function, 8, 49152) == 0);
}
