// SPDX-License-Identifier: Apache-2.0
// Values that streams write and wait for, and what others export: between streams, with the host and with kernels.
#include "driver.h"

#include "runtime/shim/stream_types.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" {
CUresult cuStreamWriteValue32_v2(CUstream, CUdeviceptr, std::uint32_t, unsigned);
CUresult cuStreamWriteValue64_v2(CUstream, CUdeviceptr, std::uint64_t, unsigned);
CUresult cuStreamWaitValue32_v2(CUstream, CUdeviceptr, std::uint32_t, unsigned);
CUresult cuStreamWaitValue64_v2(CUstream, CUdeviceptr, std::uint64_t, unsigned);
CUresult cuStreamBatchMemOp_v2(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned);
CUresult cuImportExternalMemory(CUexternalMemory*, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC*);
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr*, CUexternalMemory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC*);
CUresult cuDestroyExternalMemory(CUexternalMemory);
CUresult cuImportExternalSemaphore(CUexternalSemaphore*, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC*);
CUresult cuDestroyExternalSemaphore(CUexternalSemaphore);
CUresult cuSignalExternalSemaphoresAsync(const CUexternalSemaphore*, const CUDA_EXTERNAL_SEMAPHORE_PARAMS*, unsigned,
                                         CUstream);
CUresult cuWaitExternalSemaphoresAsync(const CUexternalSemaphore*, const CUDA_EXTERNAL_SEMAPHORE_PARAMS*, unsigned,
                                       CUstream);
}

namespace {

constexpr CUresult not_ready = 600;

struct Stream {
    CUstream handle = nullptr;
    Stream() { REQUIRE(cuStreamCreate(&handle, 1) == 0); }
    ~Stream() { CHECK(cuStreamDestroy_v2(handle) == 0); }
    /// What a query says after a while.
    CUresult later() const {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return cuStreamQuery(handle);
    }
};

std::uint32_t word(CUdeviceptr at) {
    std::uint32_t value = 0;
    REQUIRE(cuMemcpyDtoH_v2(&value, at, sizeof value) == 0);
    return value;
}

CUdeviceptr zeros(std::size_t bytes) {
    const CUdeviceptr memory = driver_test::allocate(bytes);
    REQUIRE(cuMemsetD8_v2(memory, 0, bytes) == 0);
    return memory;
}

int memory_file(std::size_t size) {
    const int file = memfd_create("test", 0);
    REQUIRE(ftruncate(file, static_cast<off_t>(size)) == 0);
    return file;
}

} // namespace

TEST_CASE("stream values: a stream waits until another one writes") {
    driver_test::context();
    Stream a, b;
    const CUdeviceptr d = zeros(64);
    REQUIRE(cuStreamWaitValue32_v2(a.handle, d + 4, 5, 0) == 0);
    REQUIRE(cuStreamWriteValue32_v2(a.handle, d, 43, 0) == 0);
    CHECK(a.later() == not_ready);
    REQUIRE(cuStreamWriteValue32_v2(b.handle, d + 4, 4, 0) == 0);
    REQUIRE(cuStreamSynchronize(b.handle) == 0);
    CHECK(a.later() == not_ready); // 4 is not enough
    CHECK(word(d) == 0);
    REQUIRE(cuStreamWriteValue32_v2(b.handle, d + 4, 6, 0) == 0);
    CHECK(cuStreamSynchronize(a.handle) == 0);
    CHECK(word(d) == 43);
    CHECK(cuMemFree_v2(d) == 0);
}

TEST_CASE("stream values: a stream waits for the host") {
    driver_test::context();
    Stream a;
    void* memory = nullptr;
    REQUIRE(cuMemHostAlloc(&memory, 4096, 0) == 0);
    auto* words = static_cast<std::atomic<std::uint64_t>*>(memory);
    for (int i = 0; i < 8; ++i) words[i] = 0;
    const auto at = reinterpret_cast<CUdeviceptr>(memory);
    REQUIRE(cuStreamWaitValue64_v2(a.handle, at, std::uint64_t{1} << 40, 0) == 0);
    REQUIRE(cuStreamWaitValue32_v2(a.handle, at + 8, 0x10, 2) == 0);
    REQUIRE(cuStreamWaitValue32_v2(a.handle, at + 16, 7, 1) == 0);
    words[1] = 0x31, words[2] = 8;
    CHECK(a.later() == not_ready);
    words[0] = std::uint64_t{1} << 40;
    CHECK(a.later() == not_ready);
    words[2] = 7;
    CHECK(cuStreamSynchronize(a.handle) == 0);
    CHECK(cuMemFreeHost(memory) == 0);
}

TEST_CASE("stream values: batches make their steps in order") {
    driver_test::context();
    Stream a, b;
    const CUdeviceptr d = zeros(64);
    CUstreamBatchMemOpParams steps[4] = {};
    for (auto& step : steps) step.value = {2, d, 1, 0, 0};
    steps[1].value = {1, d + 8, 9, 1, 0};
    steps[2].barrier = {6, 0};
    steps[3].value = {5, d + 16, 0x500000006, 0, 0};
    REQUIRE(cuStreamBatchMemOp_v2(a.handle, 4, steps, 0) == 0);
    CHECK(a.later() == not_ready);
    CHECK(word(d) == 1);
    CHECK(word(d + 16) == 0);
    REQUIRE(cuStreamWriteValue64_v2(b.handle, d + 8, 9, 0) == 0);
    CHECK(cuStreamSynchronize(a.handle) == 0);
    CHECK(word(d + 16) == 6);
    CHECK(word(d + 20) == 5);
    steps[3].operation = 99;
    steps[0].value.value = 77;
    CHECK(cuStreamBatchMemOp_v2(a.handle, 4, steps, 0) == 1);
    CHECK(word(d) == 1); // nothing of a batch with a bad step
    CHECK(cuMemFree_v2(d) == 0);
}

TEST_CASE("stream values: many streams wait for one") {
    driver_test::context();
    constexpr unsigned count = 40;
    std::vector<Stream> waiting(count);
    Stream writer;
    const CUdeviceptr d = zeros(4096);
    for (unsigned i = 0; i < count; ++i) {
        REQUIRE(cuStreamWaitValue32_v2(waiting[i].handle, d, 1, 0) == 0);
        REQUIRE(cuStreamWriteValue32_v2(waiting[i].handle, d + 4 + 4 * i, i + 1, 0) == 0);
    }
    CHECK(waiting[count - 1].later() == not_ready);
    REQUIRE(cuStreamWriteValue32_v2(writer.handle, d, 1, 0) == 0);
    for (const Stream& stream : waiting) CHECK(cuStreamSynchronize(stream.handle) == 0);
    for (unsigned i = 0; i < count; ++i) CHECK(word(d + 4 + 4 * i) == i + 1);
    CHECK(cuMemFree_v2(d) == 0);
}

TEST_CASE("external memory: a file's bytes are device memory") {
    driver_test::context();
    constexpr std::size_t size = 3 << 20, offset = 1 << 20;
    const int file = memory_file(size);
    auto* bytes = static_cast<unsigned char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    REQUIRE(bytes != MAP_FAILED);
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {};
    description.type = 1, description.handle.fd = file, description.size = size;
    CUexternalMemory memory = nullptr;
    REQUIRE(cuImportExternalMemory(&memory, &description) == 0);
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC part = {};
    part.offset = offset, part.size = size - offset;
    CUdeviceptr buffer = 0;
    REQUIRE(cuExternalMemoryGetMappedBuffer(&buffer, memory, &part) == 0);
    CHECK(cuDestroyExternalMemory(memory) == 0);
    CHECK(cuDestroyExternalMemory(memory) == 400);
    bytes[offset] = 7;
    CHECK(word(buffer) == 7);
    CUfunction kernel = driver_test::function("store");
    std::uint32_t value = 0x01020304;
    CUdeviceptr where = buffer + 4096;
    void* arguments[] = {&where, &value};
    REQUIRE(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) == 0);
    REQUIRE(cuCtxSynchronize() == 0);
    CHECK(bytes[offset + 4096] == 4);
    CHECK(cuMemFree_v2(buffer) == 0);
    CHECK(bytes[offset + 4096] == 4);
    munmap(bytes, size);
    description.handle.fd = 900;
    CHECK(cuImportExternalMemory(&memory, &description) != 0);
}

TEST_CASE("external semaphores: an eventfd and a counter in a file") {
    driver_test::context();
    Stream a, b;
    const CUdeviceptr d = zeros(64);
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC description = {};
    CUDA_EXTERNAL_SEMAPHORE_PARAMS values = {};
    CUexternalSemaphore semaphore = nullptr;
    const int event = eventfd(0, 0);
    description.type = 1, description.handle.fd = event;
    REQUIRE(cuImportExternalSemaphore(&semaphore, &description) == 0);
    REQUIRE(cuWaitExternalSemaphoresAsync(&semaphore, &values, 1, a.handle) == 0);
    REQUIRE(cuStreamWriteValue32_v2(a.handle, d, 1, 0) == 0);
    CHECK(a.later() == not_ready);
    REQUIRE(cuSignalExternalSemaphoresAsync(&semaphore, &values, 1, b.handle) == 0);
    CHECK(cuStreamSynchronize(a.handle) == 0);
    CHECK(word(d) == 1);
    CHECK(cuDestroyExternalSemaphore(semaphore) == 0);
    // A counter that the host moves.
    const int file = memory_file(4096);
    auto* counter = static_cast<std::atomic<std::uint64_t>*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    description.type = 9, description.handle.fd = file;
    REQUIRE(cuImportExternalSemaphore(&semaphore, &description) == 0);
    values.params.fence.value = 5;
    REQUIRE(cuWaitExternalSemaphoresAsync(&semaphore, &values, 1, a.handle) == 0);
    *counter = 4;
    CHECK(a.later() == not_ready);
    *counter = 6;
    CHECK(cuStreamSynchronize(a.handle) == 0);
    values.params.fence.value = 9;
    REQUIRE(cuSignalExternalSemaphoresAsync(&semaphore, &values, 1, a.handle) == 0);
    CHECK(cuStreamSynchronize(a.handle) == 0);
    CHECK(*counter == 9);
    CHECK(cuDestroyExternalSemaphore(semaphore) == 0);
    CHECK(cuMemFree_v2(d) == 0);
    munmap(counter, 4096);
}
