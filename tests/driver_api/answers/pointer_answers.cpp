// SPDX-License-Identifier: Apache-2.0
// What a driver says about pointers to every kind of memory, and about host memory that is registered.
// Answers: pointer_answers_h100.txt.
#include "processes.h"

#include <fcntl.h>
#include <functional>
#include <sys/mman.h>

using namespace answers;

namespace {

constexpr std::size_t mega = std::size_t{1} << 20, page = 2 * mega;

CUcontext context;

/// All attributes: addresses as differences, what is unique as whether it is there.
std::string attributes(CUdeviceptr at, CUdeviceptr base, bool plural) {
    std::string all;
    for (int attribute = 0; attribute <= 22; ++attribute) {
        alignas(16) unsigned long long value[2] = {0x7777777777777777, 0x7777777777777777};
        void* place = value;
        int result;
        if (attribute == 15 || attribute == 21) continue; // RDMA and decompression by hardware, which CPUs have not
        if (plural) {
            if (attribute == 0 || attribute == 22) continue;
            value[0] = value[1] = 0; // which attributes of unknown memory leave as it is
            result = call("cuPointerGetAttributes", 1u, &attribute, &place, at);
        } else {
            result = call("cuPointerGetAttribute", place, attribute, at);
        }
        std::string said = "!" + number(result);
        if (!result) switch (attribute) {
            case 1: said = value[0] == reinterpret_cast<std::uintptr_t>(context) ? "current" : value[0] ? "another" : "none"; break;
            case 3:
            case 4: said = value[0] ? number(static_cast<long long>(value[0] - at)) : "none"; break;
            case 11: said = value[0] ? number(static_cast<long long>(value[0] - base)) : "none"; break;
            case 19: said = value[0] ? value[0] % page ? "unaligned" : value[0] <= at ? "below" : "above" : "none"; break;
            case 7:
            case 17:
            case 20: said = value[0] ? "some" : "none"; break;
            case 12:
            case 14:
            case 18: said = number(static_cast<long long>(value[0])); break;
            case 5: said = number(static_cast<long long>(value[0])); break;
            default: said = number(static_cast<int>(value[0])); break;
            }
        all += (all.empty() ? "" : " ") + number(attribute) + ":" + said;
    }
    return all;
}

std::string sync_memops(CUdeviceptr at) {
    unsigned value = 0;
    const int result = call("cuPointerGetAttribute", static_cast<void*>(&value), 6, at);
    return number(result) + " " + number(value);
}

void describe(const Told& told, const std::string& of, CUdeviceptr base, std::size_t inside = 100, bool ask_range = true) {
    told.give(of + ", 6 at first", sync_memops(base + inside)); // asking for 5 sets it
    told.give(of, attributes(base + inside, base, false));
    told.give(of + ", plural", attributes(base + inside, base, true));
    CUdeviceptr start = 0;
    std::size_t size = 0;
    const int result = call("cuMemGetAddressRange_v2", &start, &size, base + inside);
    if (ask_range) told.give(of + ", range", number(result) + (result ? "" : " " + number(static_cast<long long>(start - base)) + " " + number(static_cast<long long>(size))));
    for (int attribute : {1, 6, 7, 14, 15, 16}) {
        unsigned on = 1;
        told.give(of + ", set " + number(attribute), call("cuPointerSetAttribute", static_cast<const void*>(&on), attribute, base + inside));
    }
    told.give(of + ", 6 then", sync_memops(base + inside));
    unsigned off = 0;
    told.give(of + ", set 6 to 0", call("cuPointerSetAttribute", static_cast<const void*>(&off), 6, base + inside));
    told.give(of + ", 6 at last", sync_memops(base + inside));
}

void ask_pointers(const Told& told) {
    context = start();
    CUdeviceptr device = 0, large = 0, pitched = 0, managed = 0, attached = 0, pooled = 0;
    std::size_t pitch = 0;
    must("cuMemAlloc_v2", &device, std::size_t{4096});
    must("cuMemAlloc_v2", &large, 5 * mega);
    must("cuMemAllocPitch_v2", &pitched, &pitch, std::size_t{1000}, std::size_t{10}, 4u);
    must("cuMemAllocManaged", &managed, std::size_t{4096}, 1u);
    must("cuMemAllocManaged", &attached, std::size_t{4096}, 2u);
    must("cuMemAllocAsync", &pooled, std::size_t{4096}, CUstream{});
    describe(told, "device memory", device);
    describe(told, "large device memory", large);
    describe(told, "pitched memory", pitched);
    describe(told, "managed memory", managed);
    describe(told, "managed memory, attached to the host", attached);
    describe(told, "pool memory", pooled);
    for (unsigned flags : {0u, 1u, 2u, 4u}) {
        void* pinned = nullptr;
        must("cuMemHostAlloc", &pinned, std::size_t{2} * mega, flags);
        describe(told, "pinned memory, flags " + number(flags), reinterpret_cast<CUdeviceptr>(pinned));
    }
    char* own = static_cast<char*>(std::aligned_alloc(page, 4 * page));
    std::memset(own, 0, 4 * page);
    must("cuMemHostRegister_v2", static_cast<void*>(own), std::size_t{8192}, 0u);
    describe(told, "registered memory", reinterpret_cast<CUdeviceptr>(own));
    must("cuMemHostRegister_v2", static_cast<void*>(own + page), std::size_t{8192}, 8u);
    describe(told, "registered memory, read only", reinterpret_cast<CUdeviceptr>(own + page));
    describe(told, "unknown memory", reinterpret_cast<CUdeviceptr>(own + 2 * page));
    describe(told, "null", 0, 0);
    for (int place : {2, 3}) {
        CUmemPoolProps properties{};
        properties.allocType = 1, properties.location = {place, 0};
        CUmemoryPool pool{};
        CUdeviceptr at = 0;
        if (call("cuMemPoolCreate", &pool, &properties) || call("cuMemAllocFromPoolAsync", &at, std::size_t{4096}, pool, CUstream{})) continue;
        must("cuCtxSynchronize");
        describe(told, "memory of a pool of place " + number(place), at);
    }
    CUmemPoolProps managed_pool{};
    managed_pool.allocType = 2, managed_pool.location = {1, 0};
    CUmemoryPool pool{};
    CUdeviceptr at = 0;
    if (!call("cuMemPoolCreate", &pool, &managed_pool) && !call("cuMemAllocFromPoolAsync", &at, std::size_t{4096}, pool, CUstream{})) {
        must("cuCtxSynchronize");
        describe(told, "memory of a managed pool", at);
    }
    void* module = nullptr;
    std::size_t size = 0;
    must("cuModuleLoadData", &module, ".version 7.0\n.target sm_80\n.address_size 64\n.visible .global .u32 v[64];\n.visible .const .u32 c[64];\n.visible .global .attribute(.managed) .u32 m[64];\n");
    for (const char* name : {"v", "c", "m"}) {
        must("cuModuleGetGlobal_v2", &at, &size, module, name);
        describe(told, std::string("variable ") + name, at, 4);
    }
    const auto mapped = [&](const std::string& of, int flags, CUmemLocation location, int handle_types = 0) {
        CUmemAllocationProp properties{};
        properties.type = 1, properties.location = location, properties.requestedHandleTypes = handle_types;
        CUmemGenericAllocationHandle handle = 0;
        must("cuMemAddressReserve", &at, 4 * page, std::size_t{0}, CUdeviceptr{0}, 0ull);
        if (call("cuMemCreate", &handle, 2 * page, &properties, 0ull)) return;
        must("cuMemMap", at + page, 2 * page, std::size_t{0}, handle, 0ull);
        const CUmemAccessDesc access{{1, 0}, flags};
        if (flags >= 0) must("cuMemSetAccess", at + page, 2 * page, &access, std::size_t{1});
        // Of mapped memory of the host a GPU's driver tells the range at which it has it itself.
        describe(told, of, at + page, 100, location.type == 1);
    };
    mapped("mapped memory", 3, {1, 0});
    describe(told, "reserved memory before it", at);
    describe(told, "the second page of mapped memory", at + page, page + 100);
    mapped("mapped memory without access", -1, {1, 0});
    mapped("mapped memory, read only", 1, {1, 0});
    mapped("mapped memory to be shared", 3, {1, 0}, 1);
    mapped("mapped memory of the host", 3, {2, 0});
    mapped("mapped memory of a node", 3, {3, 0});
    unsigned value = 0;
    void* places[2] = {&value, nullptr};
    int kinds[2] = {2, 99};
    told.give("plural: unknown attribute", call("cuPointerGetAttributes", 2u, &kinds[0], &places[0], device));
    kinds[1] = 8;
    told.give("plural: null place", call("cuPointerGetAttributes", 2u, &kinds[0], &places[0], device));
    told.give("plural: none", call("cuPointerGetAttributes", 0u, &kinds[0], &places[0], device));
    told.give("attribute to null", call("cuPointerGetAttribute", nullptr, 2, device));
    told.give("set null", call("cuPointerSetAttribute", nullptr, 6, device));
    const auto two = [&](const char* of, CUdeviceptr a, CUdeviceptr b) {
        unsigned long long ids[2] = {}, blocks[2] = {};
        must("cuPointerGetAttribute", static_cast<void*>(&ids[0]), 7, a);
        must("cuPointerGetAttribute", static_cast<void*>(&ids[1]), 7, b);
        must("cuPointerGetAttribute", static_cast<void*>(&blocks[0]), 20, a);
        must("cuPointerGetAttribute", static_cast<void*>(&blocks[1]), 20, b);
        told.give(std::string("same buffer, same block: ") + of, number(ids[0] == ids[1]) + " " + number(blocks[0] == blocks[1]));
    };
    CUdeviceptr near = 0;
    must("cuMemAlloc_v2", &near, std::size_t{4096});
    two("one allocation", device, device + 100);
    two("two small allocations", near, device);
    two("two large allocations", large, managed);
    CUcontext other{};
    must("cuCtxCreate_v2", &other, 0u, 0);
    told.give("device memory, another context", attributes(device + 100, device, false));
    told.give("pool memory, another context", attributes(pooled + 100, pooled, false));
}

void ask_registration(const Told& told) {
    start();
    const auto add = [&](const std::string& of, void* at, std::size_t size, unsigned flags) {
        const int result = call("cuMemHostRegister_v2", at, size, flags);
        told.give("register " + of + ", flags " + number(flags), result);
        if (!result) told.give("unregister " + of + ", flags " + number(flags), call("cuMemHostUnregister", at));
    };
    const auto make = [](int protection, int flags, int file = -1) {
        return mmap(nullptr, 4 * 4096, protection, flags | (file < 0 ? MAP_ANONYMOUS : 0), file, 0);
    };
    const int file = memfd_create("registered", 0);
    if (ftruncate(file, 4 * 4096)) std::_Exit(2);
    static char in_data[16384];
    char on_stack[16384] = {};
    static const char constant[16384] = {1};
    for (unsigned flags : {0u, 1u, 2u, 3u, 4u, 5u, 8u, 9u, 11u, 12u, 15u}) {
        add("plain pages", make(3, MAP_PRIVATE), 4 * 4096, flags);
        add("read-only pages", make(1, MAP_PRIVATE), 4 * 4096, flags);
        add("inaccessible pages", make(0, MAP_PRIVATE), 4 * 4096, flags);
        add("shared pages", make(3, MAP_SHARED), 4 * 4096, flags);
        add("pages of a file", make(3, MAP_SHARED, file), 4 * 4096, flags);
        add("a private copy of a file", make(3, MAP_PRIVATE, file), 4 * 4096, flags);
    }
    add("data", in_data, sizeof in_data, 0);
    add("the stack", on_stack, sizeof on_stack, 0);
    add("constants", const_cast<char*>(constant), sizeof constant, 0);
    add("constants", const_cast<char*>(constant), sizeof constant, 8);
    add("code", reinterpret_cast<void*>(&ask_pointers), 64, 0);
    char* two = static_cast<char*>(make(3, MAP_PRIVATE));
    if (mprotect(two + 2 * 4096, 4096, PROT_READ)) std::_Exit(2);
    add("pages with a read-only one", two, 4 * 4096, 0);
    add("pages with a read-only one", two, 4 * 4096, 8);
    if (munmap(two + 2 * 4096, 4096)) std::_Exit(2);
    add("pages with a hole", two, 4 * 4096, 0);
    add("what is not there", reinterpret_cast<void*>(std::uintptr_t{1} << 40), 4096, 0);
    add("far above", reinterpret_cast<void*>(std::uintptr_t{1} << 60), 4096, 0);
    add("to beyond the end of addresses", two, ~std::size_t{0}, 0);
    char* gone = static_cast<char*>(make(3, MAP_PRIVATE));
    must("cuMemHostRegister_v2", static_cast<void*>(gone), std::size_t{4 * 4096}, 0u);
    if (munmap(gone, 4 * 4096)) std::_Exit(2);
    told.give("unregister what is unmapped", call("cuMemHostUnregister", static_cast<void*>(gone)));
    char* pinned = static_cast<char*>(make(3, MAP_PRIVATE));
    must("cuMemHostRegister_v2", static_cast<void*>(pinned), std::size_t{4096}, 8u);
    told.give("fill read-only registered memory", call("cuMemsetD8_v2", reinterpret_cast<CUdeviceptr>(pinned), static_cast<unsigned char>(1), std::size_t{4096}));
    told.give("copy to read-only registered memory", call("cuMemcpyDtoH_v2", static_cast<void*>(pinned), reinterpret_cast<CUdeviceptr>(pinned), std::size_t{64}));
    told.give("after both", call("cuCtxSynchronize"));
    unsigned flags = 77;
    const int known = call("cuMemHostGetFlags", &flags, static_cast<void*>(pinned));
    told.give("flags of read-only registered memory", number(known) + " " + number(flags));
    CUdeviceptr device = 0;
    told.give("device pointer with flags 1", call("cuMemHostGetDevicePointer_v2", &device, static_cast<void*>(pinned), 1u));
    told.give("unregister null", call("cuMemHostUnregister", nullptr));
}

} // namespace

int main(int count, char** words) {
    Answers answers(count, words);
    in_process(answers, "pointers", ask_pointers);
    in_process(answers, "registration", ask_registration);
    return answers.finish();
}
