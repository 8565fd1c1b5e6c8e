// SPDX-License-Identifier: Apache-2.0
// Memory: what is checked, and with which code. Expected codes are the NVIDIA driver's on an H200.
#include "driver.h"

#include <cstring>
#include <vector>

extern "C" {
CUresult cuMemcpyAsync(CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void*, std::size_t, CUstream);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr*, CUdeviceptr*, std::size_t*, std::size_t, CUmemcpyAttributes*, std::size_t*, std::size_t, CUstream);
CUresult cuMemcpy3DBatchAsync_v2(std::size_t, const CUDA_MEMCPY3D_BATCH_OP*, unsigned long long, CUstream);
CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, std::size_t, CUstream);
CUresult cuMemcpyPeer(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t);
}

using driver_test::allocate;

namespace {

constexpr std::size_t page = std::size_t{2} << 20; ///< of maps

/// Each kind of copy and fill refuses the `size` bytes at `nothing`, which begin or end where no memory is; `other` has
/// as many.
void check_refused(CUdeviceptr nothing, CUdeviceptr other, std::size_t size) {
    auto* const bytes = reinterpret_cast<void*>(nothing);
    CUstream stream = nullptr;
    REQUIRE(cuStreamCreate(&stream, 1) == 0);
    std::vector<char> host(size);
    const auto h = reinterpret_cast<CUdeviceptr>(host.data());
    CHECK(cuMemcpyHtoD_v2(nothing, host.data(), size) == 1);
    CHECK(cuMemcpyHtoD_v2(other, bytes, size) == 1);
    CHECK(cuMemcpyHtoDAsync_v2(other, bytes, size, stream) == 1);
    CHECK(cuMemcpyDtoH_v2(host.data(), nothing, size) == 1);
    CHECK(cuMemcpyDtoH_v2(bytes, other, size) == 1);
    CHECK(cuMemcpyDtoHAsync_v2(bytes, other, size, stream) == 1);
    CHECK(cuMemcpyDtoD_v2(nothing, other, size) == 1);
    CHECK(cuMemcpyDtoD_v2(other, nothing, size) == 1);
    CHECK(cuMemcpyPeer(nothing, driver_test::context(), other, driver_test::context(), size) == 1);
    CHECK(cuMemsetD8_v2(nothing, 1, size) == 1);
    CHECK(cuMemsetD8Async(nothing, 1, size, stream) == 1);
    CHECK(cuMemsetD2D8_v2(nothing, size - 1, 1, 1, 2) == 1);
    for (const CUdeviceptr good : {other, h}) {
        for (const bool writes : {false, true}) {
            CUdeviceptr to = writes ? nothing : good, from = writes ? good : nothing;
            std::size_t count = size, first = 0;
            CHECK(cuMemcpy(to, from, size) == 1);
            CHECK(cuMemcpyAsync(to, from, size, stream) == 1);
            CUmemcpyAttributes in_order{1, {}, {}, 0};
            CHECK(cuMemcpyBatchAsync_v2(&to, &from, &count, 1, &in_order, &first, 1, stream) == 1);
            CUDA_MEMCPY2D box{};
            box.srcMemoryType = box.dstMemoryType = 4; // whatever it is
            box.srcDevice = from;
            box.dstDevice = to;
            box.srcPitch = box.dstPitch = size - 1;
            box.WidthInBytes = 1;
            box.Height = 2;
            CHECK(cuMemcpy2D_v2(&box) == 1);
            CUDA_MEMCPY3D deep{};
            deep.srcMemoryType = deep.dstMemoryType = 4;
            deep.srcDevice = from;
            deep.dstDevice = to;
            deep.srcPitch = deep.dstPitch = size - 1;
            deep.srcHeight = deep.dstHeight = 1;
            deep.WidthInBytes = deep.Height = 1;
            deep.Depth = 2;
            CHECK(cuMemcpy3D_v2(&deep) == 1);
            CUDA_MEMCPY3D_BATCH_OP part{};
            part.src.type = part.dst.type = 1;
            part.src.op.ptr.ptr = from;
            part.dst.op.ptr.ptr = to;
            part.extent[0] = size;
            part.extent[1] = part.extent[2] = 1;
            part.srcAccessOrder = 1;
            CHECK(cuMemcpy3DBatchAsync_v2(1, &part, 0, stream) == 1);
        }
    }
    CHECK(cuStreamSynchronize(stream) == 0);
    CHECK(cuStreamDestroy_v2(stream) == 0);
}

} // namespace

TEST_CASE("memory: allocation and freeing") {
    driver_test::context();
    CUdeviceptr pointer = 0, base = 0;
    std::size_t size = 0;
    CHECK(cuMemAlloc_v2(&pointer, 0) == 1);
    CHECK(cuMemAlloc_v2(nullptr, 16) == 1);
    CHECK(cuMemAlloc_v2(&pointer, 1ull << 50) == 2);
    CHECK(cuMemAlloc_v2(&pointer, 1ull << 63) == 2);
    CHECK(cuMemFree_v2(0x1234) == 1);
    pointer = allocate(1000);
    CHECK(pointer % 512 == 0);
    CHECK(cuMemGetAddressRange_v2(&base, &size, pointer + 999) == 0);
    CHECK(base == pointer);
    CHECK(size == 1000);
    CHECK(cuMemFree_v2(pointer + 256) == 1);
    CHECK(cuMemFree_v2(pointer) == 0);
    CHECK(cuMemFree_v2(pointer) == 1);
    CHECK(cuMemGetAddressRange_v2(&base, &size, 0x1234) == 500);
    CHECK(cuMemAllocPitch_v2(&pointer, &size, 513, 3, 4) == 0);
    CHECK(size == 1024);
    CHECK(cuMemFree_v2(pointer) == 0);
    CHECK(cuMemAllocPitch_v2(&pointer, &size, 513, 3, 2) == 1);
}

TEST_CASE("memory: copies check their ranges at the call") {
    CUdeviceptr d = allocate(4096);
    std::vector<unsigned char> host(8192, 5);
    auto h = reinterpret_cast<CUdeviceptr>(host.data());
    CHECK(cuMemcpyHtoD_v2(d, host.data(), 4096) == 0);
    CHECK(cuMemcpyHtoD_v2(d, host.data(), 4097) == 1);
    CHECK(cuMemcpyHtoD_v2(0, host.data(), 16) == 1);
    CHECK(cuMemcpyHtoD_v2(d, nullptr, 16) == 1);
    CHECK(cuMemcpyHtoD_v2(0, nullptr, 0) == 0);
    CHECK(cuMemcpyHtoD_v2(d, reinterpret_cast<void*>(d + 64), 16) == 0);
    CHECK(cuMemcpyDtoH_v2(nullptr, d, 16) == 1);
    CHECK(cuMemcpyDtoH_v2(host.data(), 0x1234, 16) == 1);
    CHECK(cuMemcpyDtoH_v2(host.data(), h + 64, 16) == 1);
    CHECK(cuMemcpyDtoD_v2(d, 0x1234, 16) == 1);
    CHECK(cuMemcpyDtoD_v2(h, h + 64, 16) == 1);
    CHECK(cuMemcpy(h, h + 100, 16) == 0);
    CHECK(cuMemFree_v2(d) == 0);
    CHECK(cuMemcpyHtoD_v2(d, host.data(), 16) == 1);
}

TEST_CASE("memory: what was freed or is only reserved is not taken for the host's") {
    const CUdeviceptr other = allocate(2 * page), small = allocate(4096), large = allocate(8 * page);
    REQUIRE(cuMemFree_v2(small) == 0);
    REQUIRE(cuMemFree_v2(large) == 0);
    check_refused(small, other, 16);
    check_refused(large + page, other, 2 * page);

    CUdeviceptr reserved = 0;
    REQUIRE(cuMemAddressReserve(&reserved, 4 * page, 0, 0, 0) == 0);
    check_refused(reserved, other, 16);
    check_refused(reserved + 4 * page - 16, other, 16);
    // The second of four pages has memory.
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp properties{};
    properties.type = 1, properties.location = {1, 0};
    const CUmemAccessDesc read_write{{1, 0}, 3};
    REQUIRE(cuMemCreate(&handle, page, &properties, 0) == 0);
    REQUIRE(cuMemMap(reserved + page, page, 0, handle, 0) == 0);
    check_refused(reserved + page, other, 16); // no access yet
    REQUIRE(cuMemSetAccess(reserved + page, page, &read_write, 1) == 0);
    CHECK(cuMemcpy(reserved + page, other, page) == 0);
    check_refused(reserved, other, 16);
    check_refused(reserved + page - 8, other, 16);
    check_refused(reserved + page, other, page + 1);
    check_refused(reserved + 2 * page, other, 16);
    REQUIRE(cuMemUnmap(reserved + page, page) == 0);
    check_refused(reserved + page, other, 16);
    CHECK(cuMemRelease(handle) == 0);
    CHECK(cuMemAddressFree(reserved, 4 * page) == 0);
    check_refused(reserved, other, 16);
    check_refused(reserved - 8, other, 16);
    check_refused(reserved + 4 * page - 8, other, 2 * page);
    // The host's memory never lies there, and it can be reserved again, alone or with what is beside it.
    CUdeviceptr again = 0, beside = 0;
    REQUIRE(cuMemAddressReserve(&again, 2 * page, 0, reserved + page, 0) == 0);
    CHECK(again == reserved + page);
    check_refused(again, other, 16);
    REQUIRE(cuMemAddressReserve(&beside, 2 * page, 0, reserved, 0) == 0);
    CHECK(beside != reserved);
    CHECK(cuMemAddressFree(beside, 2 * page) == 0);
    CHECK(cuMemAddressFree(again, 2 * page) == 0);
    CHECK(cuMemFree_v2(other) == 0);
}

TEST_CASE("memory: fills check alignment and range") {
    CUdeviceptr d = allocate(4096);
    unsigned words[4] = {};
    CHECK(cuMemsetD32_v2(d + 1, 0, 1) == 1);
    CHECK(cuMemsetD16_v2(d + 1, 0, 1) == 1);
    CHECK(cuMemsetD8_v2(0, 0, 1) == 1);
    CHECK(cuMemsetD8_v2(0, 0, 0) == 0);
    CHECK(cuMemsetD8_v2(d, 0, 4097) == 1);
    CHECK(cuMemsetD8_v2(reinterpret_cast<CUdeviceptr>(words), 0, 16) == 1);
    CHECK(cuMemsetD2D8_v2(d, 8, 0, 16, 2) == 1);
    CHECK(cuMemsetD32_v2(d, 0x01020304, 4) == 0);
    CHECK(cuMemsetD16_v2(d + 4, 0xaabb, 1) == 0);
    CHECK(cuMemsetD2D8_v2(d + 8, 4, 0xff, 1, 2) == 0);
    CHECK(cuMemcpyDtoH_v2(words, d, 16) == 0);
    CHECK(words[0] == 0x01020304);
    CHECK(words[1] == 0x0102aabb);
    CHECK(words[2] == 0x010203ff);
    CHECK(words[3] == 0x010203ff);
    CHECK(cuMemFree_v2(d) == 0);
}

TEST_CASE("memory: two-dimensional copies") {
    CUdeviceptr d = allocate(1024);
    std::vector<unsigned char> host(100), back(100, 0);
    for (int i = 0; i < 100; ++i)
        host[i] = static_cast<unsigned char>(i);
    CUDA_MEMCPY2D box{};
    box.srcMemoryType = 1;
    box.srcHost = host.data();
    box.srcPitch = 10;
    box.dstMemoryType = 2;
    box.dstDevice = d;
    box.dstPitch = 64;
    box.WidthInBytes = 10;
    box.Height = 10;
    CHECK(cuMemcpy2D_v2(&box) == 0);
    CHECK(cuMemcpy2D_v2(nullptr) == 1);
    CUDA_MEMCPY2D inner{};
    inner.srcMemoryType = 2;
    inner.srcDevice = d;
    inner.srcPitch = 64;
    inner.srcXInBytes = 2;
    inner.srcY = 3;
    inner.dstMemoryType = 1;
    inner.dstHost = back.data();
    inner.dstPitch = 5;
    inner.WidthInBytes = 5;
    inner.Height = 4;
    CHECK(cuMemcpy2D_v2(&inner) == 0);
    CHECK(back[0] == 32);
    CHECK(back[4] == 36);
    CHECK(back[5] == 42);
    CHECK(back[19] == 66);
    inner.srcPitch = 3;
    CHECK(cuMemcpy2D_v2(&inner) == 1);
    inner.srcPitch = 64;
    inner.srcMemoryType = 9;
    CHECK(cuMemcpy2D_v2(&inner) == 1);
    inner.srcMemoryType = 3;
    CHECK(cuMemcpy2D_v2(&inner) == 1); // an array is asked for, and there is none
    CHECK(cuMemFree_v2(d) == 0);
}

TEST_CASE("memory: boxes whose ends overflow are refused") {
    CUdeviceptr d = allocate(1024);
    std::vector<unsigned char> host(100);
    CUDA_MEMCPY2D good{};
    good.srcMemoryType = 1;
    good.srcHost = host.data();
    good.dstMemoryType = 2;
    good.dstDevice = d;
    good.WidthInBytes = 10;
    good.Height = 4;
    CHECK(cuMemcpy2D_v2(&good) == 0);
    for (auto place : {&CUDA_MEMCPY2D::srcXInBytes, &CUDA_MEMCPY2D::srcY,
                       &CUDA_MEMCPY2D::dstXInBytes, &CUDA_MEMCPY2D::dstY})
        for (std::size_t far : {SIZE_MAX, SIZE_MAX - 3, SIZE_MAX - 9, SIZE_MAX / 2 + 1}) {
            CUDA_MEMCPY2D box = good;
            box.*place = far;
            CHECK(cuMemcpy2D_v2(&box) == 1);
        }
    CUDA_MEMCPY2D box = good;
    box.WidthInBytes = SIZE_MAX;
    CHECK(cuMemcpy2D_v2(&box) == 1);
    box = good;
    box.srcPitch = SIZE_MAX / 2;
    CHECK(cuMemcpy2D_v2(&box) == 1);
    CUDA_MEMCPY3D deep{};
    deep.srcMemoryType = 1;
    deep.srcHost = host.data();
    deep.dstMemoryType = 2;
    deep.dstDevice = d;
    deep.WidthInBytes = 10;
    deep.Height = 2;
    deep.Depth = 2;
    CHECK(cuMemcpy3D_v2(&deep) == 0);
    deep.dstZ = SIZE_MAX;
    CHECK(cuMemcpy3D_v2(&deep) == 1);
    CHECK(cuMemFree_v2(d) == 0);
}

TEST_CASE("memory: host memory") {
    driver_test::context();
    void* pinned = nullptr;
    CUdeviceptr device = 0;
    std::vector<char> buffer(1 << 16);
    CHECK(cuMemHostAlloc(&pinned, 0, 0) == 0);
    CHECK(cuMemHostAlloc(&pinned, 16, 0x100) == 1);
    REQUIRE(cuMemHostAlloc(&pinned, 4096, 0) == 0);
    CHECK(cuMemHostGetDevicePointer_v2(&device, pinned, 0) == 0);
    CHECK(device == reinterpret_cast<CUdeviceptr>(pinned));
    CHECK(cuMemFreeHost(pinned) == 0);
    CHECK(cuMemFreeHost(buffer.data()) == 1);
    CHECK(cuMemFreeHost(nullptr) == 0);
    CHECK(cuMemHostGetDevicePointer_v2(&device, buffer.data(), 0) == 1);
    CHECK(cuMemHostRegister_v2(nullptr, 16, 0) == 1);
    CHECK(cuMemHostRegister_v2(buffer.data(), 0, 0) == 1);
    CHECK(cuMemHostRegister_v2(buffer.data(), buffer.size(), 0) == 0);
    CHECK(cuMemHostRegister_v2(buffer.data(), buffer.size(), 0) == 712);
    CHECK(cuMemHostUnregister(buffer.data()) == 0);
    CHECK(cuMemHostUnregister(buffer.data()) == 713);
    // Memory that is not there, whole or in part, would be touched by the next copy.
    CHECK(cuMemHostRegister_v2(reinterpret_cast<void*>(0x10), 4096, 0) == 1);
    CHECK(cuMemHostRegister_v2(buffer.data(), std::size_t{1} << 46, 0) == 1);
    CHECK(cuMemHostRegister_v2(buffer.data(), SIZE_MAX, 0) == 1);
}

TEST_CASE("memory: managed, pools and pointer attributes") {
    driver_test::context();
    CUdeviceptr pointer = 0, device = allocate(16);
    CHECK(cuMemAllocManaged(&pointer, 0, 1) == 1);
    CHECK(cuMemAllocManaged(&pointer, 16, 0) == 1);
    CHECK(cuMemAllocManaged(&pointer, 16, 9) == 1);
    REQUIRE(cuMemAllocManaged(&pointer, 16, 1) == 0);
    *reinterpret_cast<int*>(pointer) = 5;
    CHECK(cuMemFree_v2(pointer) == 0);
    CHECK(cuMemAllocAsync(&pointer, 0, nullptr) == 0);
    REQUIRE(cuMemAllocAsync(&pointer, 4096, nullptr) == 0);
    CHECK(cuMemFreeAsync(pointer, nullptr) == 0);
    CHECK(cuMemFreeAsync(pointer, nullptr) == 1);
    CHECK(cuMemFreeAsync(0, nullptr) == 0);
    unsigned value = 0;
    CHECK(cuPointerGetAttribute(&value, 2, device) == 0);
    CHECK(value == 2);
    CHECK(cuPointerGetAttribute(&value, 99, device) == 1);
    CHECK(cuPointerGetAttribute(&value, 2, reinterpret_cast<CUdeviceptr>(&value)) == 1);
    CHECK(cuMemFree_v2(device) == 0);
}
