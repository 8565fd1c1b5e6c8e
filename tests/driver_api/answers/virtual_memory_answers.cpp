// SPDX-License-Identifier: Apache-2.0
// What a driver answers about virtual memory management: reservations, physical memory, maps, access.
// Answers: virtual_memory_answers_h100.txt.
#include "processes.h"

#include <fcntl.h>
#include <functional>
#include <vector>

using namespace answers;

namespace {

constexpr std::size_t mega = std::size_t{1} << 20, page = 2 * mega;
using Handle = CUmemGenericAllocationHandle;

CUmemAllocationProp device_memory(int handle_types = 0) {
    CUmemAllocationProp properties{};
    properties.type = 1, properties.location = {1, 0}, properties.requestedHandleTypes = handle_types;
    return properties;
}
CUdeviceptr reserve(std::size_t size) {
    CUdeviceptr address = 0;
    must("cuMemAddressReserve", &address, size, std::size_t{0}, CUdeviceptr{0}, 0ull);
    return address;
}
Handle create(std::size_t size, int handle_types = 0) {
    Handle handle = 0;
    const CUmemAllocationProp properties = device_memory(handle_types);
    must("cuMemCreate", &handle, size, &properties, 0ull);
    return handle;
}
int map(CUdeviceptr at, std::size_t size, Handle handle, std::size_t offset = 0, unsigned long long flags = 0) {
    return call("cuMemMap", at, size, offset, handle, flags);
}
int unmap(CUdeviceptr at, std::size_t size) {
    return call("cuMemUnmap", at, size);
}
int release(Handle handle) {
    return call("cuMemRelease", handle);
}
int set_access(CUdeviceptr at, std::size_t size, int flags, CUmemLocation location = {1, 0}, std::size_t count = 1) {
    const CUmemAccessDesc access{location, flags};
    return call("cuMemSetAccess", at, size, &access, count);
}
std::string access_of(CUdeviceptr at, CUmemLocation location = {1, 0}) {
    unsigned long long flags = 77;
    const int result = call("cuMemGetAccess", &flags, &location, at);
    return number(result) + " " + number(static_cast<long long>(flags));
}
/// Fresh memory at a fresh place, accessible.
CUdeviceptr memory(std::size_t size, int flags = 3) {
    const CUdeviceptr at = reserve(size);
    const Handle handle = create(size);
    if (map(at, size, handle) || release(handle) || (flags >= 0 && set_access(at, size, flags))) std::_Exit(2);
    return at;
}

void ask_granularity(const Told& told) {
    start();
    const auto ask = [&](const std::string& of, const CUmemAllocationProp& properties, int option) {
        std::size_t size = 77;
        const int result = call("cuMemGetAllocationGranularity", &size, &properties, option);
        told.give("granularity " + of, number(result) + " " + number(static_cast<long long>(size)));
    };
    for (int option = 0; option <= 2; ++option) ask("option " + number(option), device_memory(), option);
    const auto with = [&](const std::string& of, const std::function<void(CUmemAllocationProp&)>& change) {
        CUmemAllocationProp properties = device_memory();
        change(properties);
        ask(of, properties, 0);
        Handle handle = 0;
        const int result = call("cuMemCreate", &handle, page, &properties, 0ull);
        std::string answer = number(result);
        if (!result) {
            CUmemAllocationProp said{};
            std::memset(&said, 0x77, sizeof said);
            answer += " " + number(call("cuMemGetAllocationPropertiesFromHandle", &said, handle));
            answer += " type " + number(said.type) + " handles " +
                      number(said.requestedHandleTypes) + " place " + number(said.location.type) + " " + number(said.location.id) + " flags " +
                      number(said.allocFlags.compressionType) + " " + number(said.allocFlags.gpuDirectRDMACapable) + " " + number(said.allocFlags.usage);
            const CUdeviceptr at = reserve(page);
            answer += " map " + number(map(at, page, handle));
            answer += " access " + number(set_access(at, page, 3));
            answer += " release " + number(release(handle));
            (void)unmap(at, page);
            (void)call("cuMemAddressFree", at, page);
        }
        told.give("cuMemCreate " + of, answer);
    };
    for (int type : {0, 2, 3}) with("type " + number(type), [=](auto& p) { p.type = type; });
    for (int place = 0; place <= 5; ++place)
        for (int id : {0, 1, -1}) with("place " + number(place) + " id " + number(id), [=](auto& p) { p.location = {place, id}; });
    for (int place : {0, 2, 3}) with("managed, place " + number(place), [=](auto& p) { p.type = 2, p.location = {place, 0}; });
    for (int handles : {1, 2, 3, 4, 16, 32}) with("handle types " + number(handles), [=](auto& p) { p.requestedHandleTypes = handles; });
    for (int place : {2, 3}) with("place " + number(place) + ", handle types 1", [=](auto& p) { p.location = {place, 0}, p.requestedHandleTypes = 1; });
    for (int kind : {2}) with("compression " + number(kind), [=](auto& p) { p.allocFlags.compressionType = static_cast<unsigned char>(kind); });
    for (int usage : {1, 2, 4}) with("usage " + number(usage), [=](auto& p) { p.allocFlags.usage = static_cast<unsigned short>(usage); });
    with("reserved bytes", [](auto& p) { p.allocFlags.reserved[0] = 1; });
    with("Windows data", [](auto& p) { p.win32HandleMetaData = reinterpret_cast<void*>(16); });
    const CUmemAllocationProp properties = device_memory();
    std::size_t size = 0;
    told.give("granularity of null", call("cuMemGetAllocationGranularity", &size, nullptr, 0));
    told.give("granularity to null", call("cuMemGetAllocationGranularity", nullptr, &properties, 0));
    Handle handle = 0;
    for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, page - 1, page + 4096, 3 * mega, 6 * mega, std::size_t{1} << 50, std::size_t{1} << 62, ~std::size_t{0}}) {
        const int result = call("cuMemCreate", &handle, bytes, &properties, 0ull);
        told.give("cuMemCreate of " + number(static_cast<long long>(bytes)), result);
        if (!result) (void)release(handle);
    }
    told.give("cuMemCreate flags 1", call("cuMemCreate", &handle, page, &properties, 1ull));
    told.give("cuMemCreate null properties", call("cuMemCreate", &handle, page, nullptr, 0ull));
    told.give("cuMemCreate to null", call("cuMemCreate", nullptr, page, &properties, 0ull));
    std::size_t before = 0, with_it = 0, mapped = 0, unmapped = 0, released = 0, total = 0;
    must("cuMemGetInfo_v2", &before, &total);
    handle = create(64 * mega);
    must("cuMemGetInfo_v2", &with_it, &total);
    const CUdeviceptr at = reserve(64 * mega);
    (void)map(at, 64 * mega, handle);
    (void)set_access(at, 64 * mega, 3);
    (void)release(handle);
    must("cuMemGetInfo_v2", &mapped, &total);
    told.give("free memory less by 64M when created", before - with_it == 64 * mega);
    told.give("free memory less by 64M while mapped and released", before - mapped == 64 * mega);
    (void)unmap(at, 64 * mega);
    must("cuMemGetInfo_v2", &unmapped, &total);
    told.give("free memory back when unmapped", unmapped == before);
    handle = create(64 * mega);
    (void)release(handle);
    must("cuMemGetInfo_v2", &released, &total);
    told.give("free memory back when released", released == before);
}

void ask_reservations(const Told& told) {
    start();
    for (std::size_t size : {std::size_t{0}, std::size_t{1000}, std::size_t{4096}, std::size_t{65536}, mega, page, 3 * mega, std::size_t{1} << 30, std::size_t{1} << 40,
                             std::size_t{1} << 47, std::size_t{1} << 48, std::size_t{1} << 62, ~std::size_t{0}}) {
        CUdeviceptr at = 0;
        const int result = call("cuMemAddressReserve", &at, size, std::size_t{0}, CUdeviceptr{0}, 0ull);
        told.give("reserve " + number(static_cast<long long>(size)), number(result) + (result ? "" : at % page ? " unaligned" : " aligned"));
        if (!result) told.give("free reservation of " + number(static_cast<long long>(size)), call("cuMemAddressFree", at, size));
    }
    for (std::size_t align : {std::size_t{1}, std::size_t{3}, std::size_t{4096}, mega, page, 3 * mega, 4 * mega, std::size_t{1} << 30, std::size_t{1} << 40, std::size_t{1} << 46, std::size_t{1} << 62}) {
        CUdeviceptr at = 0;
        const int result = call("cuMemAddressReserve", &at, page, align, CUdeviceptr{0}, 0ull);
        told.give("reserve aligned to " + number(static_cast<long long>(align)), number(result) + (result ? "" : at % align ? " unaligned" : " aligned"));
        if (!result) (void)call("cuMemAddressFree", at, page);
    }
    CUdeviceptr at = 0;
    told.give("reserve flags 1", call("cuMemAddressReserve", &at, page, std::size_t{0}, CUdeviceptr{0}, 1ull));
    told.give("reserve to null", call("cuMemAddressReserve", nullptr, page, std::size_t{0}, CUdeviceptr{0}, 0ull));
    const CUdeviceptr big = reserve(16 * page);
    must("cuMemAddressFree", big, 16 * page);
    const auto wish = [&](const std::string& of, CUdeviceptr wanted, std::size_t size, std::size_t align = 0) {
        const int result = call("cuMemAddressReserve", &at, size, align, wanted, 0ull);
        told.give("reserve at " + of, number(result) + (result ? "" : at == wanted ? " there" : " elsewhere"));
        if (!result) (void)call("cuMemAddressFree", at, size);
    };
    wish("a free address, whole", big, 16 * page);
    wish("an unaligned address", big + 4096, page);
    wish("an address not aligned to what is asked", big + ((big + page) % (64 * page) ? 1 : 2) * page, page, 64 * page);
    const CUdeviceptr taken = reserve(4 * page);
    wish("a taken address", taken, page);
    wish("an address whose end is taken", taken - page, 2 * page);
    wish("an address of the host", reinterpret_cast<CUdeviceptr>(&told) / page * page, page);
    wish("address 2^60", CUdeviceptr{1} << 60, page);
    CUdeviceptr plain = 0;
    must("cuMemAlloc_v2", &plain, std::size_t{4 * mega});
    wish("device memory", plain / page * page, page);
    const auto end = [&](const std::string& of, CUdeviceptr where, std::size_t size) { told.give("free " + of, call("cuMemAddressFree", where, size)); };
    end("nothing", 0, 0);
    end("null", 0, page);
    end("unknown", page, page);
    end("device memory", plain, 4 * mega);
    end("a reservation's part", taken, page);
    end("a reservation's end", taken + page, 3 * page);
    end("more than a reservation", taken, 5 * page);
    end("a reservation, size 0", taken, 0);
    const Handle handle = create(page);
    (void)map(taken + page, page, handle);
    end("a reservation with a map", taken, 4 * page);
    told.give("unmap in it", unmap(taken + page, page));
    end("a reservation", taken, 4 * page);
    end("it again", taken, 4 * page);
    (void)release(handle);
}

void ask_maps(const Told& told) {
    start();
    const CUdeviceptr at = reserve(16 * page);
    const Handle one = create(page), two = create(2 * page);
    const auto try_map = [&](const std::string& of, CUdeviceptr where, std::size_t size, Handle handle, std::size_t offset = 0, unsigned long long flags = 0) {
        const int result = map(where, size, handle, offset, flags);
        told.give("map " + of, result);
        return result == 0;
    };
    if (try_map("nothing", at, 0, one)) (void)unmap(at, page);
    if (try_map("half of a page", at, mega, one)) (void)unmap(at, mega);
    if (try_map("at an odd place", at + 4096, page, one)) (void)unmap(at + 4096, page);
    if (try_map("at half a page", at + mega, page, one)) (void)unmap(at + mega, page);
    if (try_map("more than there is", at, 2 * page, one)) (void)unmap(at, 2 * page);
    if (try_map("fewer than there are", at, page, two)) (void)unmap(at, page);
    if (try_map("with offset 2M", at, page, two, page)) (void)unmap(at, page);
    if (try_map("with offset 4096", at, page, two, 4096)) (void)unmap(at, page);
    if (try_map("with offset beyond", at, page, one, page)) (void)unmap(at, page);
    if (try_map("flags 1", at, page, one, 0, 1)) (void)unmap(at, page);
    if (try_map("handle 0", at, page, 0)) (void)unmap(at, page);
    if (try_map("outside of any reservation", at + 16 * page, page, one)) (void)unmap(at + 16 * page, page);
    try_map("one", at, page, one);
    try_map("one again", at, page, one);
    try_map("two over it", at, 2 * page, two);
    try_map("one elsewhere too", at + page, page, one);
    told.give("access in both", number(set_access(at, 2 * page, 3)));
    unsigned value = 0;
    must("cuMemsetD32_v2", at, 5u, std::size_t{page / 4});
    must("cuMemcpyDtoH_v2", static_cast<void*>(&value), at + page + 100 * 4, std::size_t{4});
    told.give("one memory in both places", value);
    told.give("unmap both at once", unmap(at, 2 * page));
    try_map("two", at, 2 * page, two);
    told.give("unmap its first half", unmap(at, page));
    told.give("unmap its second half", unmap(at + page, page));
    told.give("unmap nothing", unmap(at, 0));
    told.give("unmap at half a page, across its end", unmap(at + page + mega, page));
    told.give("unmap at an odd place in it", unmap(at + 4096, page));
    told.give("unmap more", unmap(at, 3 * page));
    try_map("two again", at, 2 * page, two);
    told.give("unmap it", unmap(at, 2 * page));
    told.give("unmap it again", unmap(at, 2 * page));
    told.give("unmap what never was mapped", unmap(at + 8 * page, page));
    told.give("unmap at an odd place there", unmap(at + 8 * page + 4096, page));
    told.give("unmap half a page there", unmap(at + 8 * page, mega));
    told.give("unmap outside", unmap(at + 16 * page, page));
    told.give("unmap null", unmap(0, page));
    try_map("one before a hole", at, page, one);
    try_map("two behind a hole", at + 2 * page, 2 * page, two);
    told.give("access over a hole", set_access(at, 4 * page, 3));
    told.give("access over a hole: before it", access_of(at));
    told.give("unmap over a hole", unmap(at, 4 * page));
    told.give("access after unmapping over a hole", access_of(at));
    try_map("one before a hole again", at, page, one);
    try_map("two behind a hole again", at + 2 * page, 2 * page, two);
    const Handle three = create(page);
    try_map("into the hole", at + page, page, three);
    told.give("access to two and a half of three maps", set_access(at, 3 * page, 3));
    told.give("access from the middle of three maps", set_access(at + 3 * page, page, 3));
    told.give("access to three maps", set_access(at, 4 * page, 3));
    told.give("access to the middle one", set_access(at + page, page, 1));
    told.give("fill over a read-only one", call("cuMemsetD8_v2", at, static_cast<unsigned char>(1), 4 * page));
    told.give("access to the middle one again", set_access(at + page, page, 3));
    told.give("fill over three maps", call("cuMemsetD8_v2", at, static_cast<unsigned char>(1), 4 * page));
    told.give("fill to beyond them", call("cuMemsetD8_v2", at, static_cast<unsigned char>(1), 4 * page + 1));
    told.give("copy from over three maps", [&] {
        std::vector<char> bytes(4 * page);
        return call("cuMemcpyDtoH_v2", static_cast<void*>(bytes.data()), at, 4 * page);
    }());
    CUdeviceptr base = 0;
    std::size_t size = 0;
    const auto range = [&](const std::string& of, CUdeviceptr where) {
        base = 0, size = 77;
        const int result = call("cuMemGetAddressRange_v2", &base, &size, where);
        told.give("address range " + of, number(result) + (result ? "" : " from " + number(static_cast<long long>(base - at)) + ", " + number(static_cast<long long>(size))));
    };
    range("of the first map", at + 100);
    range("of the second map", at + page + 100);
    range("of the third map", at + 3 * page);
    range("reserved only", at + 8 * page);
    told.give("unmap one of three", unmap(at + page, page));
    range("of the first map then", at + 100);
    told.give("fill over the hole", call("cuMemsetD8_v2", at, static_cast<unsigned char>(1), 4 * page));
    told.give("fill before the hole", call("cuMemsetD8_v2", at, static_cast<unsigned char>(1), page));
    told.give("release one of a map", release(one));
    told.give("fill released memory", call("cuMemsetD8_v2", at, static_cast<unsigned char>(1), page));
    Handle again = 0;
    told.give("access to what is released", access_of(at));
    told.give("retain by its address", call("cuMemRetainAllocationHandle", &again, reinterpret_cast<void*>(at + 4096)));
    told.give("it is the handle of before", again == one);
    told.give("properties of it", [&] {
        CUmemAllocationProp said{};
        return call("cuMemGetAllocationPropertiesFromHandle", &said, again);
    }());
    told.give("release it", release(again));
    Handle twice[2] = {};
    told.give("retain by the address of two", call("cuMemRetainAllocationHandle", &twice[0], reinterpret_cast<void*>(at + 2 * page)));
    told.give("retain by the address of two again", call("cuMemRetainAllocationHandle", &twice[1], reinterpret_cast<void*>(at + 3 * page + 5)));
    told.give("both are one", twice[0] == twice[1] && twice[0] == two);
    told.give("retain reserved only", call("cuMemRetainAllocationHandle", &again, reinterpret_cast<void*>(at + 8 * page)));
    CUdeviceptr plain = 0;
    must("cuMemAlloc_v2", &plain, std::size_t{4 * mega});
    told.give("retain device memory", call("cuMemRetainAllocationHandle", &again, reinterpret_cast<void*>(plain)));
    told.give("retain host memory", call("cuMemRetainAllocationHandle", &again, static_cast<void*>(&again)));
    told.give("retain null", call("cuMemRetainAllocationHandle", &again, nullptr));
    told.give("retain to null", call("cuMemRetainAllocationHandle", nullptr, reinterpret_cast<void*>(at)));
    told.give("unmap device memory", unmap(plain, 4 * mega));
    told.give("cuMemFree of mapped memory", call("cuMemFree_v2", at));
    told.give("cuMemFreeAsync of mapped memory", call("cuMemFreeAsync", at, CUstream{}));
    told.give("cuMemFree of reserved memory", call("cuMemFree_v2", at + 8 * page));
    told.give("register mapped memory", call("cuMemHostRegister_v2", reinterpret_cast<void*>(at), page, 0u));
    told.give("fill reserved memory", call("cuMemsetD8_v2", at + 8 * page, static_cast<unsigned char>(1), page));
    told.give("release 0", release(0));
}

void ask_access(const Told& told) {
    start();
    const CUdeviceptr at = reserve(16 * page);
    const Handle four = create(4 * page);
    const auto fill = [&](const std::string& of, CUdeviceptr where, std::size_t size) {
        told.give("fill " + of, call("cuMemsetD8_v2", where, static_cast<unsigned char>(1), size));
        char byte = 0;
        told.give("read " + of, call("cuMemcpyDtoH_v2", static_cast<void*>(&byte), where, std::size_t{1}));
        told.give("after " + of, call("cuCtxSynchronize"));
    };
    told.give("access to reserved memory", set_access(at, page, 3));
    told.give("access of reserved memory", access_of(at));
    if (map(at, 4 * page, four)) std::_Exit(2);
    told.give("access of mapped memory", access_of(at));
    fill("mapped memory", at, page);
    for (int flags = 0; flags <= 5; ++flags) {
        told.give("set access " + number(flags), set_access(at, 4 * page, flags));
        told.give("access then " + number(flags), access_of(at));
    }
    told.give("read only", set_access(at, 4 * page, 1));
    fill("read only", at, page);
    told.give("none again", set_access(at, 4 * page, 0));
    fill("none again", at, page);
    told.give("access to a part", set_access(at + page, page, 3));
    told.give("access of the part", access_of(at + page));
    told.give("access before the part", access_of(at));
    told.give("access behind the part", access_of(at + 2 * page));
    fill("the part", at + page, page);
    fill("across its end", at + page, 2 * page);
    told.give("access to half a page", set_access(at, mega, 3));
    told.give("access at an odd place", set_access(at + 4096, page, 3));
    told.give("access to nothing", set_access(at, 0, 3));
    told.give("access beyond", set_access(at, 5 * page, 3));
    told.give("access for nobody", set_access(at, 4 * page, 3, {1, 0}, 0));
    told.give("access without names", call("cuMemSetAccess", at, 4 * page, nullptr, std::size_t{1}));
    for (int place = 0; place <= 5; ++place)
        for (int id : {0, 1}) {
            told.give("access for place " + number(place) + " id " + number(id), set_access(at, 4 * page, 3, {place, id}));
            told.give("access of place " + number(place) + " id " + number(id), access_of(at, {place, id}));
        }
    const CUmemAccessDesc two[2] = {{{1, 0}, 3}, {{1, 0}, 1}};
    told.give("access twice", call("cuMemSetAccess", at, 4 * page, &two[0], std::size_t{2}));
    told.give("access then", access_of(at));
    const CUmemAccessDesc second_wrong[2] = {{{1, 0}, 3}, {{1, 7}, 1}};
    told.give("access, second wrong", call("cuMemSetAccess", at, 4 * page, &second_wrong[0], std::size_t{2}));
    told.give("access then, second wrong", access_of(at));
    CUdeviceptr plain = 0, managed = 0;
    void* pinned = nullptr;
    must("cuMemAlloc_v2", &plain, std::size_t{4 * mega});
    must("cuMemAllocManaged", &managed, std::size_t{4 * mega}, 1u);
    must("cuMemHostAlloc", &pinned, std::size_t{4 * mega}, 0u);
    for (int place = 1; place <= 3; ++place) {
        told.give("access of device memory, place " + number(place), access_of(plain, {place, 0}));
        told.give("access of managed memory, place " + number(place), access_of(managed, {place, 0}));
        told.give("access of pinned memory, place " + number(place), access_of(reinterpret_cast<CUdeviceptr>(pinned), {place, 0}));
        told.give("access of unknown memory, place " + number(place), access_of(reinterpret_cast<CUdeviceptr>(&told), {place, 0}));
    }
    told.give("access to device memory", set_access(plain / page * page, page, 3));
    unsigned long long flags = 0;
    CUmemLocation here{1, 0};
    told.give("access to null", call("cuMemGetAccess", nullptr, &here, at));
    told.give("access of null", call("cuMemGetAccess", &flags, nullptr, at));
    told.give("unmap", unmap(at, 4 * page));
    told.give("map anew", map(at, 4 * page, four));
    told.give("access of what is mapped anew", access_of(at));
    // Memory of the host.
    CUmemAllocationProp host{};
    host.type = 1, host.location = {2, 0};
    for (int place : {2, 3, 4}) {
        host.location.type = place;
        const std::string of = " of the host, place " + number(place);
        Handle handle = 0;
        const int result = call("cuMemCreate", &handle, page, &host, 0ull);
        told.give("create" + of, result);
        if (result) continue;
        const CUdeviceptr there = reserve(page);
        told.give("map" + of, map(there, page, handle));
        told.give("access for the device" + of, set_access(there, page, 3));
        told.give("access for the host" + of, set_access(there, page, 3, {2, 0}));
        told.give("access for the node" + of, set_access(there, page, 3, {3, 0}));
        told.give("access of the device" + of, access_of(there));
        told.give("access of the host" + of, access_of(there, {2, 0}));
        told.give("access of the node" + of, access_of(there, {3, 0}));
        told.give("fill" + of, call("cuMemsetD8_v2", there, static_cast<unsigned char>(7), page));
        must("cuCtxSynchronize");
        told.give("read by the host" + of, *reinterpret_cast<volatile char*>(there));
    }
}

void ask_exports(const Told& told) {
    start();
    const Handle kept = create(page), shared = create(page, 1);
    int descriptor = -1, second = -1;
    const auto export_of = [&](const std::string& of, Handle handle, int type, unsigned long long flags = 0) {
        told.give("export " + of, call("cuMemExportToShareableHandle", static_cast<void*>(&second), handle, type, flags));
    };
    export_of("memory that is not to be shared", kept, 1);
    export_of("type 0", shared, 0);
    export_of("type 2", shared, 2);
    export_of("type 4", shared, 4);
    export_of("type 16", shared, 16);
    export_of("flags 1", shared, 1, 1);
    told.give("export to null", call("cuMemExportToShareableHandle", nullptr, shared, 1, 0ull));
    told.give("export handle 0", call("cuMemExportToShareableHandle", static_cast<void*>(&second), Handle{0}, 1, 0ull));
    export_of("to a descriptor", shared, 1);
    descriptor = second;
    export_of("to a descriptor again", shared, 1);
    told.give("two descriptors", descriptor != second && descriptor > 2);
    const auto place = [](int file) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(file)); };
    Handle back = 0, back_again = 0;
    told.give("import", call("cuMemImportFromShareableHandle", &back, place(descriptor), 1));
    told.give("import again", call("cuMemImportFromShareableHandle", &back_again, place(second), 1));
    told.give("handles: the first import is the exported one", back == shared);
    told.give("handles: imports are one", back == back_again);
    told.give("import type 0", call("cuMemImportFromShareableHandle", &back_again, place(descriptor), 0));
    told.give("import type 2", call("cuMemImportFromShareableHandle", &back_again, place(descriptor), 2));
    told.give("import type 4", call("cuMemImportFromShareableHandle", &back_again, place(descriptor), 4));
    told.give("import type 16", call("cuMemImportFromShareableHandle", &back_again, place(descriptor), 16));
    told.give("import -1", call("cuMemImportFromShareableHandle", &back_again, place(-1), 1));
    told.give("import 9999", call("cuMemImportFromShareableHandle", &back_again, place(9999), 1));
    told.give("import /dev/null", call("cuMemImportFromShareableHandle", &back_again, place(open("/dev/null", O_RDWR)), 1));
    int ends[2];
    if (pipe(ends)) std::_Exit(2);
    told.give("import a pipe", call("cuMemImportFromShareableHandle", &back_again, place(ends[0]), 1));
    told.give("import to null", call("cuMemImportFromShareableHandle", nullptr, place(descriptor), 1));
    CUmemAllocationProp said{};
    std::memset(&said, 0x77, sizeof said);
    const int result = call("cuMemGetAllocationPropertiesFromHandle", &said, back);
    told.give("properties of the import", number(result) + " type " + number(said.type) + " handles " + number(said.requestedHandleTypes) + " place " + number(said.location.type) +
                                              " " + number(said.location.id));
    const CUdeviceptr at = reserve(4 * page);
    told.give("map the exported", map(at, page, shared));
    told.give("map the imported", map(at + page, page, back));
    told.give("access to both", set_access(at, 2 * page, 3));
    must("cuMemsetD32_v2", at, 6u, std::size_t{page / 4});
    unsigned value = 0;
    must("cuMemcpyDtoH_v2", static_cast<void*>(&value), at + page, std::size_t{4});
    told.give("one memory in both", value);
    close(descriptor);
    close(second);
    told.give("release the exported", release(shared));
    told.give("unmap the exported", unmap(at, page));
    must("cuMemcpyDtoH_v2", static_cast<void*>(&value), at + page, std::size_t{4});
    told.give("the imported then", value);
    told.give("export the imported", call("cuMemExportToShareableHandle", static_cast<void*>(&second), back, 1, 0ull));
    told.give("map more than was imported", map(at + 2 * page, 2 * page, back));
    told.give("release the imported", release(back));
    told.give("release the imported again", release(back));
    told.give("unmap the imported", unmap(at + page, page));
}

void ask_without_context(const Told& told, bool initialized) {
    const std::string of = initialized ? " without a context" : " before cuInit";
    if (initialized) must("cuInit", 0u);
    const CUmemAllocationProp properties = device_memory(1);
    std::size_t size = 0;
    CUdeviceptr at = 0;
    Handle handle = 0, again = 0;
    CUmemAllocationProp said{};
    unsigned long long flags = 0;
    CUmemLocation here{1, 0};
    int descriptor = -1;
    told.give("cuMemGetAllocationGranularity" + of, call("cuMemGetAllocationGranularity", &size, &properties, 0));
    told.give("cuMemAddressReserve" + of, call("cuMemAddressReserve", &at, page, std::size_t{0}, CUdeviceptr{0}, 0ull));
    told.give("cuMemCreate" + of, call("cuMemCreate", &handle, page, &properties, 0ull));
    told.give("cuMemMap" + of, map(at, page, handle));
    told.give("cuMemSetAccess" + of, set_access(at, page, 3));
    told.give("cuMemGetAccess" + of, call("cuMemGetAccess", &flags, &here, at));
    told.give("cuMemGetAllocationPropertiesFromHandle" + of, call("cuMemGetAllocationPropertiesFromHandle", &said, handle));
    told.give("cuMemRetainAllocationHandle" + of, call("cuMemRetainAllocationHandle", &again, reinterpret_cast<void*>(at)));
    told.give("cuMemExportToShareableHandle" + of, call("cuMemExportToShareableHandle", static_cast<void*>(&descriptor), handle, 1, 0ull));
    told.give("cuMemImportFromShareableHandle" + of, call("cuMemImportFromShareableHandle", &again, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)), 1));
    CUdeviceptr base = 0;
    told.give("cuMemGetAddressRange" + of, call("cuMemGetAddressRange_v2", &base, &size, at));
    told.give("cuPointerGetAttribute" + of, call("cuPointerGetAttribute", static_cast<void*>(&descriptor), 2, at));
    told.give("fill" + of, call("cuMemsetD8_v2", at, static_cast<unsigned char>(1), page));
    told.give("cuMemUnmap" + of, unmap(at, page));
    told.give("cuMemRelease" + of, release(handle));
    told.give("cuMemAddressFree" + of, call("cuMemAddressFree", at, page));
}

/// Memory that outlives its context.
void ask_reset(const Told& told) {
    CUcontext context = start();
    const CUdeviceptr at = memory(page), hole = reserve(page);
    const Handle handle = create(page);
    must("cuMemsetD32_v2", at, 9u, std::size_t{page / 4});
    told.give("reset", call("cuDevicePrimaryCtxReset_v2", 0));
    told.give("retain", call("cuDevicePrimaryCtxRetain", &context, 0));
    told.give("set current", call("cuCtxSetCurrent", context));
    unsigned value = 0;
    told.give("read after the reset", call("cuMemcpyDtoH_v2", static_cast<void*>(&value), at, std::size_t{4}));
    told.give("read after the reset: value", value);
    told.give("access after the reset", access_of(at));
    told.give("map after the reset", map(hole, page, handle));
    told.give("unmap after the reset", unmap(at, page));
    told.give("release after the reset", release(handle));
    told.give("free after the reset", call("cuMemAddressFree", at, page));
}

const char* const text = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry touch(.param .u64 at, .param .u32 write) {
    .reg .b64 %a;
    .reg .b32 %w, %v;
    .reg .pred %p;
    ld.param.u64 %a, [at];
    ld.param.u32 %w, [write];
    setp.ne.u32 %p, %w, 0;
    @%p bra WRITE;
    ld.global.volatile.u32 %v, [%a];
    bra DONE;
WRITE:
    st.global.volatile.u32 [%a], 5;
DONE:
    ret;
}
)";

void ask_kernel(const Told& told, const std::string& of, bool write, const std::function<CUdeviceptr()>& place) {
    start();
    void *module = nullptr, *function = nullptr;
    must("cuModuleLoadData", &module, text);
    must("cuModuleGetFunction", &function, module, "touch");
    CUdeviceptr at = place();
    unsigned writes = write;
    void* parameters[] = {&at, &writes};
    const int launched = call("cuLaunchKernel", function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, CUstream{}, &parameters[0], static_cast<void**>(nullptr));
    const int ended = call("cuCtxSynchronize");
    told.give(std::string("kernel ") + (write ? "writes " : "reads ") + of, number(launched) + " " + number(ended));
}

} // namespace

int main(int count, char** words) {
    Answers answers(count, words);
    in_process(answers, "granularity", ask_granularity);
    in_process(answers, "reservations", ask_reservations);
    in_process(answers, "maps", ask_maps);
    in_process(answers, "access", ask_access);
    in_process(answers, "exports", ask_exports);
    in_process(answers, "before cuInit", [](const Told& told) { ask_without_context(told, false); });
    in_process(answers, "without a context", [](const Told& told) { ask_without_context(told, true); });
    in_process(answers, "reset", ask_reset);
    for (const bool write : {false, true}) {
        const auto kernel = [&](const std::string& of, const std::function<CUdeviceptr()>& place) {
            in_process(answers, "kernel " + of, [&](const Told& told) { ask_kernel(told, of, write, place); });
        };
        kernel("mapped memory", [] { return memory(page); });
        kernel("reserved memory", [] { return reserve(page); });
        kernel("memory without access", [] { return memory(page, -1); });
        kernel("read-only memory", [] { return memory(page, 1); });
        kernel("unmapped memory", [] {
            const CUdeviceptr at = memory(page);
            (void)unmap(at, page);
            return at;
        });
        kernel("memory behind a map", [] {
            const CUdeviceptr at = reserve(2 * page);
            const Handle handle = create(page);
            if (map(at, page, handle) || set_access(at, page, 3)) std::_Exit(2);
            return at + page;
        });
    }
    return answers.finish();
}
