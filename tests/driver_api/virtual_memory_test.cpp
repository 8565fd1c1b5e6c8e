// SPDX-License-Identifier: Apache-2.0
// Virtual memory management at work: memory that grows, that is seen at two places, that moves while kernels use it; and
// what reports say of accesses to it. What each call answers is compared in answers/virtual_memory_answers.cpp.
#include "driver.h"
#include "fault_child.h"

#include <cstring>
#include <unistd.h>
#include <vector>

extern "C" {
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle*, void*);
CUresult cuMemExportToShareableHandle(void*, CUmemGenericAllocationHandle, int, unsigned long long);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle*, void*, int);
CUresult cuIpcGetMemHandle(CUipcMemHandle*, CUdeviceptr);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr*, CUipcMemHandle, unsigned);
CUresult cuIpcCloseMemHandle(CUdeviceptr);
}

namespace {

constexpr std::size_t page = std::size_t{2} << 20;
const CUmemAccessDesc read_write{{1, 0}, 3};

CUdeviceptr reserve(std::size_t size) {
    driver_test::context();
    CUdeviceptr at = 0;
    REQUIRE(cuMemAddressReserve(&at, size, 0, 0, 0) == 0);
    return at;
}

CUmemGenericAllocationHandle create(std::size_t size, int handle_types = 0) {
    CUmemAllocationProp properties{};
    properties.type = 1, properties.location = {1, 0}, properties.requestedHandleTypes = handle_types;
    CUmemGenericAllocationHandle handle = 0;
    REQUIRE(cuMemCreate(&handle, size, &properties, 0) == 0);
    return handle;
}

void open(CUdeviceptr at, std::size_t size, CUmemGenericAllocationHandle handle) {
    REQUIRE(cuMemMap(at, size, 0, handle, 0) == 0);
    REQUIRE(cuMemSetAccess(at, size, &read_write, 1) == 0);
}

unsigned word(CUdeviceptr at) {
    unsigned value = 0;
    REQUIRE(cuMemcpyDtoH_v2(&value, at, 4) == 0);
    return value;
}

/// `rounds` times, each thread adds one to the word at `data`.
const char* const count = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry count(.param .u64 data, .param .u32 rounds)
{
    .reg .pred %p;
    .reg .b32 %r, %v;
    .reg .b64 %a;
    ld.param.u64 %a, [data];
    ld.param.u32 %r, [rounds];
LOOP:
    red.global.add.u32 [%a], 1;
    ld.global.u32 %v, [%a + 4096];
    add.u32 %v, %v, 1;
    st.global.u32 [%a + 4096], %v;
    sub.u32 %r, %r, 1;
    setp.ne.u32 %p, %r, 0;
    @%p bra LOOP;
    ret;
}
)";

/// A kernel that runs for a while on 16 blocks and what it has to have counted.
struct Counting {
    static constexpr unsigned rounds = 20000, blocks = 16, threads = 32;
    CUstream stream = nullptr;
    explicit Counting(CUdeviceptr at) {
        CUmodule module = nullptr;
        CUfunction function = nullptr;
        REQUIRE(cuModuleLoadData(&module, count) == 0);
        REQUIRE(cuModuleGetFunction(&function, module, "count") == 0);
        REQUIRE(cuStreamCreate(&stream, 1) == 0);
        unsigned times = rounds;
        void* parameters[] = {&at, &times};
        REQUIRE(cuMemsetD32_v2(at, 0, page / 4) == 0);
        REQUIRE(cuCtxSynchronize() == 0); // the stream does not wait for it
        REQUIRE(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr) == 0);
    }
};

} // namespace

TEST_CASE("virtual memory: memory that grows is used as one") {
    constexpr std::size_t chunks = 8;
    const CUdeviceptr at = reserve(64 * page);
    std::vector<unsigned> expected;
    for (std::size_t i = 0; i < chunks; ++i) {
        const auto handle = create((i % 2 + 1) * page);
        open(at + expected.size() * 4, (i % 2 + 1) * page, handle);
        REQUIRE(cuMemRelease(handle) == 0);
        REQUIRE(cuMemsetD32_v2(at + expected.size() * 4, static_cast<unsigned>(i), (i % 2 + 1) * page / 4) == 0);
        expected.resize(expected.size() + (i % 2 + 1) * page / 4, static_cast<unsigned>(i));
    }
    CUdeviceptr data = at;
    unsigned words = static_cast<unsigned>(expected.size());
    void* parameters[] = {&data, &words};
    REQUIRE(cuLaunchKernel(driver_test::function("add_one"), words / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr) == 0);
    std::vector<unsigned> got(expected.size());
    REQUIRE(cuMemcpyDtoH_v2(got.data(), at, got.size() * 4) == 0);
    for (unsigned& value : expected) ++value;
    CHECK(got == expected);
    CHECK(cuMemUnmap(at, words * std::size_t{4}) == 0);
    CHECK(cuMemAddressFree(at, 64 * page) == 0);
}

TEST_CASE("virtual memory: contents belong to the handle") {
    const CUdeviceptr at = reserve(4 * page);
    const auto handle = create(page);
    open(at, page, handle);
    REQUIRE(cuMemsetD32_v2(at, 7, page / 4) == 0);
    REQUIRE(cuMemUnmap(at, page) == 0);
    open(at + page, page, handle);
    CHECK(word(at + page) == 7);
    // And a second place for it, while it is mapped.
    open(at + 3 * page, page, handle);
    CHECK(word(at + 4 * page - 4) == 7);
    REQUIRE(cuMemsetD32_v2(at + 3 * page, 8, 1) == 0);
    CHECK(word(at + page) == 8);
    REQUIRE(cuMemRelease(handle) == 0);
    REQUIRE(cuMemUnmap(at + page, page) == 0);
    CHECK(word(at + 3 * page) == 8);
    CUmemGenericAllocationHandle again = 0;
    REQUIRE(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(at + 3 * page)) == 0);
    REQUIRE(cuMemUnmap(at + 3 * page, page) == 0);
    open(at, page, again);
    CHECK(word(at) == 8);
    CHECK(word(at + 4) == 7);
    REQUIRE(cuMemRelease(again) == 0);
    REQUIRE(cuMemUnmap(at, page) == 0);
    CHECK(cuMemAddressFree(at, 4 * page) == 0);
}

TEST_CASE("virtual memory: new memory is zero and does not have what was there before") {
    const CUdeviceptr at = reserve(page);
    for (int round = 0; round < 3; ++round) {
        const auto handle = create(page);
        open(at, page, handle);
        CHECK(word(at + 512) == 0);
        REQUIRE(cuMemsetD32_v2(at, 5, page / 4) == 0);
        REQUIRE(cuMemUnmap(at, page) == 0);
        REQUIRE(cuMemRelease(handle) == 0);
    }
    CHECK(cuMemAddressFree(at, page) == 0);
}

TEST_CASE("virtual memory: exported while a kernel writes to it") {
    const CUdeviceptr at = reserve(page);
    const auto handle = create(page, 1);
    open(at, page, handle);
    const Counting counting(at);
    int file = -1;
    REQUIRE(cuMemExportToShareableHandle(&file, handle, 1, 0) == 0);
    CUmemGenericAllocationHandle imported = 0;
    REQUIRE(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(file)), 1) == 0);
    close(file);
    REQUIRE(cuStreamSynchronize(counting.stream) == 0);
    CHECK(word(at) == Counting::rounds * Counting::blocks * Counting::threads);
    const CUdeviceptr second = reserve(page);
    open(second, page, imported);
    CHECK(word(second) == Counting::rounds * Counting::blocks * Counting::threads);
    REQUIRE(cuMemsetD32_v2(second, 3, 1) == 0);
    CHECK(word(at) == 3);
    for (const auto place : {at, second}) REQUIRE(cuMemUnmap(place, page) == 0);
    for (const auto made : {handle, imported}) REQUIRE(cuMemRelease(made) == 0);
}

TEST_CASE("virtual memory: allocations are shared while a kernel writes to them") {
    const CUdeviceptr at = driver_test::allocate(page);
    const Counting counting(at);
    CUipcMemHandle handle{};
    REQUIRE(cuIpcGetMemHandle(&handle, at) == 0);
    REQUIRE(cuStreamSynchronize(counting.stream) == 0);
    CHECK(word(at) == Counting::rounds * Counting::blocks * Counting::threads);
    REQUIRE(cuMemFree_v2(at) == 0);
    // Small ones share their pages with neighbours.
    const CUdeviceptr first = driver_test::allocate(8192), second = driver_test::allocate(8192);
    REQUIRE(cuMemsetD32_v2(first, 1, 2048) == 0);
    REQUIRE(cuMemsetD32_v2(second, 2, 2048) == 0);
    REQUIRE(cuIpcGetMemHandle(&handle, first) == 0);
    CHECK(word(first + 8188) == 1);
    CHECK(word(second + 4096) == 2);
    CHECK(cuMemFree_v2(first) == 0);
    CHECK(word(second + 4096) == 2);
    CHECK(cuMemFree_v2(second) == 0);
}

namespace {

std::string report_of_access(int flags, bool mapped, bool write, bool given_back = false) {
    return driver_test::said_by_child([&] {
        CUmodule module = nullptr;
        CUfunction kernel = nullptr;
        CUdeviceptr at = 0;
        CUmemGenericAllocationHandle handle = 0;
        CUmemAllocationProp properties{};
        properties.type = 1, properties.location = {1, 0};
        const CUmemAccessDesc access{{1, 0}, flags};
        if (!driver_test::begin_on(0)) return -1;
        if (cuModuleLoadData(&module, write ? driver_test::kernels : R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry store(.param .u64 address, .param .u32 value)
{
    .reg .b32 %r;
    .reg .b64 %a;
    ld.param.u64 %a, [address];
    ld.volatile.global.u32 %r, [%a];
    ret;
}
)") || cuModuleGetFunction(&kernel, module, "store")) return -1;
        if (cuMemAddressReserve(&at, page, 0, 0, 0)) return -1;
        if (mapped && (cuMemCreate(&handle, page, &properties, 0) || cuMemMap(at, page, 0, handle, 0))) return -1;
        if (mapped && flags && cuMemSetAccess(at, page, &access, 1)) return -1;
        if (given_back && cuMemAddressFree(at, page)) return -1;
        at += 4096;
        unsigned value = 1;
        void* parameters[] = {&at, &value};
        if (cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr)) return -1;
        return cuCtxSynchronize();
    });
}

} // namespace

namespace {

/// Copies of 16 bytes at `at`, each way and with each kind of other end, are refused.
bool are_copies_refused(CUdeviceptr at, CUdeviceptr other) {
    char host[16]{};
    for (const CUdeviceptr good : {other, reinterpret_cast<CUdeviceptr>(host)})
        if (cuMemcpy(at, good, 16) != 1 || cuMemcpy(good, at, 16) != 1) return false;
    auto* const bytes = reinterpret_cast<void*>(at);
    return cuMemcpyHtoD_v2(other, bytes, 16) == 1 && cuMemcpyDtoH_v2(bytes, other, 16) == 1;
}

/// Another process's memory: what is opened can be copied, what lies beside it there and what is closed can't.
int copy_closed() {
    int handles[2], ends[2];
    CUipcMemHandle handle{};
    CUdeviceptr at = 0, other = 0;
    if (pipe(handles) != 0 || pipe(ends) != 0) return -1;
    if (fork() == 0) {
        close(handles[0]), close(ends[1]);
        CUdeviceptr first = 0;
        if (driver_test::begin_on(0) && cuMemAlloc_v2(&first, 4096) == 0 && cuIpcGetMemHandle(&handle, first) == 0 &&
            write(handles[1], &handle, sizeof handle) == ssize_t(sizeof handle))
            static_cast<void>(!read(ends[0], &handle, 1)); // until the other is done
        _exit(0);
    }
    close(handles[1]), close(ends[0]);
    if (read(handles[0], &handle, sizeof handle) != ssize_t(sizeof handle)) return -2;
    if (!driver_test::begin_on(0) || cuMemAlloc_v2(&other, 4096) != 0) return -3;
    if (cuIpcOpenMemHandle_v2(&at, handle, 1) != 0) return -4;
    if (cuMemcpy(other, at, 4096) != 0 || cuMemcpy(at, other, 4096) != 0) return -5;
    if (!are_copies_refused(at + 4096, other) || !are_copies_refused(at + 4088, other)) return -6;
    if (cuIpcCloseMemHandle(at) != 0) return -7;
    return are_copies_refused(at, other) ? 0 : -8;
}

} // namespace

TEST_CASE("fault: closed_memory", "[.]") {
    using Catch::Contains;
    CHECK_THAT(driver_test::said_by_child(copy_closed), Contains("code 0"));
}

TEST_CASE("fault: reserved_memory", "[.]") {
    using Catch::Contains;
    CHECK_THAT(report_of_access(0, false, true), Contains("code 700") && Contains("reserved (cuMemAddressReserve), but nothing is mapped there"));
    CHECK_THAT(report_of_access(0, false, true, true), Contains("code 700") && Contains("device memory that has been given back"));
    CHECK_THAT(report_of_access(0, true, true), Contains("code 700") && Contains("mapped, but no access was set for the device (cuMemSetAccess)"));
    CHECK_THAT(report_of_access(1, true, true), Contains("code 700") && Contains("mapped for reading only (cuMemSetAccess)"));
    CHECK_THAT(report_of_access(1, true, false), Contains("code 0"));
    CHECK_THAT(report_of_access(3, true, true), Contains("code 0"));
}
