// SPDX-License-Identifier: Apache-2.0
// What a driver answers about memory and events that two processes share: handles of cuIpc*, pools and their pointers,
// physical memory by file descriptor.
// Answers: sharing_answers_h100.txt.
#include "processes.h"

#include <vector>

using namespace answers;

namespace {

constexpr std::size_t mega = std::size_t{1} << 20, page = 2 * mega;
using Handle = CUmemGenericAllocationHandle;

CUdeviceptr allocate(std::size_t size) {
    CUdeviceptr at = 0;
    must("cuMemAlloc_v2", &at, size);
    return at;
}
int get(CUipcMemHandle& handle, CUdeviceptr at) {
    return call("cuIpcGetMemHandle", &handle, at);
}
int open(CUdeviceptr& at, const CUipcMemHandle& handle, unsigned flags = 1) {
    return call("cuIpcOpenMemHandle_v2", &at, handle, flags);
}
int close_memory(CUdeviceptr at) {
    return call("cuIpcCloseMemHandle", at);
}
unsigned word(CUdeviceptr at) {
    unsigned value = 0;
    const int result = call("cuMemcpyDtoH_v2", static_cast<void*>(&value), at, std::size_t{4});
    return result ? 1000000u + static_cast<unsigned>(result) : value;
}
bool same(const CUipcMemHandle& a, const CUipcMemHandle& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}
std::string attributes(CUdeviceptr at) {
    std::string all;
    for (int attribute : {2, 6, 8, 9, 10, 11, 12, 13, 14, 16, 17, 18}) { // 15: RDMA, which CPUs don't need
        unsigned long long value = 0;
        const int result = call("cuPointerGetAttribute", static_cast<void*>(&value), attribute, at);
        if (attribute == 11) value -= at;
        if (attribute == 17) value = value != 0;
        all += (all.empty() ? "" : " ") + (result ? "!" + number(result) : number(static_cast<long long>(value)));
    }
    return all;
}

void ask_memory_handles(const Told& told) {
    start();
    CUipcMemHandle a{}, b{}, c{};
    const CUdeviceptr large = allocate(4 * mega), small = allocate(4096), second = allocate(4096);
    told.give("handle of memory", get(a, large));
    told.give("handle of its inside", get(b, large + 4096));
    told.give("both are equal", same(a, b));
    told.give("handle again", get(c, large));
    told.give("it is equal to the first", same(a, c));
    told.give("handle of 4096 bytes", get(b, small));
    told.give("handle of the next 4096 bytes", get(c, second));
    told.give("these are equal", same(b, c));
    told.give("handle to null", call("cuIpcGetMemHandle", nullptr, large));
    told.give("handle of null", get(b, 0));
    told.give("handle of unknown memory", get(b, 0x1234));
    told.give("handle of host memory", get(b, reinterpret_cast<CUdeviceptr>(&told)));
    void* pinned = nullptr;
    must("cuMemHostAlloc", &pinned, std::size_t{4096}, 0u);
    told.give("handle of pinned memory", get(b, reinterpret_cast<CUdeviceptr>(pinned)));
    CUdeviceptr managed = 0, pooled = 0;
    must("cuMemAllocManaged", &managed, std::size_t{4096}, 1u);
    told.give("handle of managed memory", get(b, managed));
    must("cuMemAllocAsync", &pooled, std::size_t{4096}, CUstream{});
    told.give("handle of pool memory", get(b, pooled));
    CUdeviceptr mapped = 0;
    Handle physical = 0;
    CUmemAllocationProp properties{};
    properties.type = 1, properties.location = {1, 0}, properties.requestedHandleTypes = 1;
    const CUmemAccessDesc access{{1, 0}, 3};
    must("cuMemAddressReserve", &mapped, page, std::size_t{0}, CUdeviceptr{0}, 0ull);
    must("cuMemCreate", &physical, page, &properties, 0ull);
    must("cuMemMap", mapped, page, std::size_t{0}, physical, 0ull);
    must("cuMemSetAccess", mapped, page, &access, std::size_t{1});
    told.give("handle of mapped memory", get(b, mapped));
    void* module = nullptr;
    CUdeviceptr variable = 0;
    std::size_t size = 0;
    must("cuModuleLoadData", &module, ".version 7.0\n.target sm_80\n.address_size 64\n.visible .global .u32 v[64];\n");
    must("cuModuleGetGlobal_v2", &variable, &size, module, "v");
    told.give("handle of a variable", get(b, variable));
    CUdeviceptr opened = 0;
    told.give("opened by its own process", open(opened, a));
    for (unsigned flags : {0u, 2u, 3u}) told.give("opened by its own process, flags " + number(flags), open(opened, a, flags));
    told.give("opened by its own process, old entry", call("cuIpcOpenMemHandle", &opened, a, 1u));
    std::memset(&b, 0, sizeof b);
    told.give("zeros opened", open(opened, b));
    std::memset(&b, 0x5a, sizeof b);
    told.give("junk opened", open(opened, b));
    told.give("opened to null", call("cuIpcOpenMemHandle_v2", nullptr, a, 1u));
    told.give("closed own memory", close_memory(large));
    told.give("closed null", close_memory(0));
    told.give("closed unknown", close_memory(0x1234));
    must("cuMemFree_v2", large);
    told.give("handle of freed memory", get(b, large));
    told.give("freed memory opened by its own process", open(opened, a));
    must("cuCtxSetCurrent", CUcontext{});
    told.give("handle without a context", get(b, small));
    told.give("opened without a context", open(opened, a));
    told.give("closed without a context", close_memory(small));
}

void ask_events(const Told& told) {
    start();
    for (unsigned flags = 0; flags <= 8; ++flags) {
        void* event = nullptr;
        const int result = call("cuEventCreate", &event, flags);
        told.give("event of flags " + number(flags), result);
        if (result) continue;
        CUipcEventHandle handle{};
        told.give("handle of an event of flags " + number(flags), call("cuIpcGetEventHandle", &handle, event));
    }
    void *event = nullptr, *opened = nullptr, *plain = nullptr;
    CUipcEventHandle a{}, b{};
    must("cuEventCreate", &event, 6u);
    must("cuEventCreate", &plain, 0u);
    must("cuIpcGetEventHandle", &a, event);
    told.give("handle of an event again", call("cuIpcGetEventHandle", &b, event));
    told.give("both are equal (events)", std::memcmp(&a, &b, sizeof a) == 0);
    told.give("handle of an event to null", call("cuIpcGetEventHandle", nullptr, event));
    told.give("event opened by its own process", call("cuIpcOpenEventHandle", &opened, a));
    std::memset(&b, 0, sizeof b);
    told.give("zeros opened as an event", call("cuIpcOpenEventHandle", &opened, b));
    std::memset(&b, 0x5a, sizeof b);
    told.give("junk opened as an event", call("cuIpcOpenEventHandle", &opened, b));
    told.give("event opened to null", call("cuIpcOpenEventHandle", nullptr, a));
    told.give("shared event, query before a record", call("cuEventQuery", event));
    must("cuEventRecord", event, CUstream{});
    must("cuEventRecord", plain, CUstream{});
    told.give("shared event, synchronize", call("cuEventSynchronize", event));
    float milliseconds = 0;
    told.give("shared event, elapsed", call("cuEventElapsedTime_v2", &milliseconds, plain, event));
    told.give("handle after the record", call("cuIpcGetEventHandle", &b, event));
    told.give("shared event destroyed", call("cuEventDestroy_v2", event));
}

struct Sent {
    CUipcMemHandle large, small;
    CUipcEventHandle recorded, fresh;
    std::size_t small_offset;
};

void own_memory(const Told& told, const Peer& peer) {
    start();
    const CUdeviceptr large = allocate(4 * mega), first = allocate(4096), small = allocate(4096);
    (void)first;
    must("cuMemsetD32_v2", large, 11u, std::size_t{mega});
    must("cuMemsetD32_v2", small, 22u, std::size_t{1024});
    Sent sent{};
    void *recorded = nullptr, *fresh = nullptr;
    must("cuEventCreate", &recorded, 6u);
    must("cuEventCreate", &fresh, 6u);
    must("cuEventRecord", recorded, CUstream{});
    must("cuCtxSynchronize");
    must("cuIpcGetMemHandle", &sent.large, large + 100);
    must("cuIpcGetMemHandle", &sent.small, small);
    must("cuIpcGetEventHandle", &sent.recorded, recorded);
    must("cuIpcGetEventHandle", &sent.fresh, fresh);
    peer.send(sent);
    peer.meet(); // it has opened and written
    told.give("its write is seen", word(large + 4096));
    told.give("its write to 4096 bytes is seen", word(small));
    told.give("the event that it recorded", call("cuEventQuery", fresh));
    told.give("waited for it", call("cuStreamWaitEvent", CUstream{}, fresh, 0u));
    told.give("synchronized with it", call("cuEventSynchronize", fresh));
    must("cuMemsetD32_v2", large, 33u, std::size_t{mega});
    must("cuCtxSynchronize");
    peer.meet(); // written again
    peer.meet(); // it has looked
    told.give("attributes of exported memory", attributes(large));
    told.give("exported memory freed", call("cuMemFree_v2", large));
    peer.meet();
    peer.meet(); // it has closed everything
    told.give("events destroyed", number(call("cuEventDestroy_v2", fresh)) + " " + number(call("cuEventDestroy_v2", recorded)));
}

void other_memory(const Told& told, const Peer& peer) {
    CUcontext context = start();
    const Sent sent = peer.receive<Sent>();
    CUdeviceptr large = 0, again = 0, small = 0;
    for (unsigned flags : {0u, 2u}) told.give("opened, flags " + number(flags), open(large, sent.large, flags));
    told.give("opened", open(large, sent.large));
    told.give("opened again", open(again, sent.large));
    told.give("opened again: the same address", large == again);
    told.give("opened 4096 bytes", open(small, sent.small));
    told.give("attributes of opened memory", attributes(large));
    told.give("attributes of opened 4096 bytes", attributes(small));
    told.give("read", word(large + mega));
    told.give("read 4096 bytes", word(small));
    CUipcMemHandle handle{};
    told.give("handle of opened memory", get(handle, large));
    told.give("opened memory freed", call("cuMemFree_v2", large));
    told.give("opened memory freed in order", call("cuMemFreeAsync", large, CUstream{}));
    told.give("fill beyond the 4096 bytes", call("cuMemsetD8_v2", small, static_cast<unsigned char>(1), std::size_t{4097}));
    must("cuMemsetD32_v2", large + 4096, 44u, std::size_t{16});
    must("cuMemsetD32_v2", small, 55u, std::size_t{16});
    void *recorded = nullptr, *fresh = nullptr, *twice = nullptr, *plain = nullptr;
    told.give("opened the recorded event", call("cuIpcOpenEventHandle", &recorded, sent.recorded));
    told.give("opened it twice", call("cuIpcOpenEventHandle", &twice, sent.recorded));
    told.give("opened it twice: the same", twice == recorded);
    told.give("opened the fresh event", call("cuIpcOpenEventHandle", &fresh, sent.fresh));
    told.give("query of the recorded event", call("cuEventQuery", recorded));
    told.give("synchronize of the recorded event", call("cuEventSynchronize", recorded));
    told.give("query of the fresh event", call("cuEventQuery", fresh));
    CUipcEventHandle event_handle{};
    told.give("handle of an opened event", call("cuIpcGetEventHandle", &event_handle, fresh));
    must("cuEventCreate", &plain, 0u);
    must("cuEventRecord", plain, CUstream{});
    float milliseconds = 0;
    told.give("elapsed of an opened event", call("cuEventElapsedTime_v2", &milliseconds, plain, recorded));
    told.give("recorded the opened event", call("cuEventRecord", fresh, CUstream{}));
    must("cuCtxSynchronize");
    peer.meet();
    peer.meet();
    told.give("its next write", word(large));
    told.give("fresh event, waited for in a stream", number(call("cuStreamWaitEvent", CUstream{}, fresh, 0u)) + " " + number(call("cuEventSynchronize", fresh)));
    CUcontext own{};
    must("cuCtxCreate_v2", &own, 0u, 0);
    CUdeviceptr elsewhere = 0;
    told.give("opened in another context", open(elsewhere, sent.large));
    must("cuCtxSetCurrent", context);
    peer.meet();
    peer.meet(); // freed there
    told.give("read after the owner freed it", word(large));
    told.give("closed inside", close_memory(large + 4096));
    told.give("closed", close_memory(large));
    told.give("read after one close", word(large));
    told.give("closed the second time", close_memory(large));
    told.give("closed the third time", close_memory(large));
    told.give("read after all closes", word(large));
    told.give("closed 4096 bytes", close_memory(small));
    told.give("opened what the owner freed", open(large, sent.large));
    told.give("opened events destroyed", number(call("cuEventDestroy_v2", fresh)) + " " + number(call("cuEventDestroy_v2", recorded)) + " " +
                                             number(call("cuEventDestroy_v2", twice)));
    peer.meet();
}

/// The owner goes first.
void own_and_leave(const Told&, const Peer& peer) {
    start();
    const CUdeviceptr large = allocate(4 * mega);
    must("cuMemsetD32_v2", large, 66u, std::size_t{mega});
    must("cuCtxSynchronize");
    CUipcMemHandle handle{};
    must("cuIpcGetMemHandle", &handle, large);
    peer.send(handle);
    peer.meet();
    (void)call("cuDevicePrimaryCtxReset_v2", 0);
    peer.meet();
}
void other_stays(const Told& told, const Peer& peer) {
    start();
    const auto handle = peer.receive<CUipcMemHandle>();
    CUdeviceptr at = 0;
    must("cuIpcOpenMemHandle_v2", &at, handle, 1u);
    peer.meet();
    peer.meet();
    told.give("memory of a context that is gone", word(at));
    told.give("closed memory of a context that is gone", close_memory(at));
    told.give("opened memory of a context that is gone", open(at, handle));
}

void own_physical(const Told& told, const Peer& peer) {
    start();
    CUmemAllocationProp properties{};
    properties.type = 1, properties.location = {1, 0}, properties.requestedHandleTypes = 1;
    const CUmemAccessDesc access{{1, 0}, 3};
    CUdeviceptr at = 0;
    Handle handle = 0;
    int descriptor = -1;
    must("cuMemAddressReserve", &at, 2 * page, std::size_t{0}, CUdeviceptr{0}, 0ull);
    must("cuMemCreate", &handle, 2 * page, &properties, 0ull);
    must("cuMemMap", at, 2 * page, std::size_t{0}, handle, 0ull);
    must("cuMemSetAccess", at, 2 * page, &access, std::size_t{1});
    must("cuMemsetD32_v2", at, 77u, std::size_t{mega});
    must("cuCtxSynchronize");
    must("cuMemExportToShareableHandle", static_cast<void*>(&descriptor), handle, 1, 0ull);
    peer.send('d', descriptor);
    close(descriptor);
    peer.meet();
    told.give("physical memory: its write is seen", word(at + page));
    told.give("physical memory: released and unmapped", number(call("cuMemRelease", handle)) + " " + number(call("cuMemUnmap", at, 2 * page)));
    peer.meet();
}
void other_physical(const Told& told, const Peer& peer) {
    start();
    int descriptor = -1;
    static_cast<void>(peer.receive<char>(&descriptor));
    Handle handle = 0;
    told.give("physical memory imported", call("cuMemImportFromShareableHandle", &handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)), 1));
    close(descriptor);
    CUmemAllocationProp said{};
    const int known = call("cuMemGetAllocationPropertiesFromHandle", &said, handle);
    told.give("physical memory: properties", number(known) + " " + number(said.type) + " " +
                                                 number(said.requestedHandleTypes) + " " + number(said.location.type) + " " + number(said.location.id));
    CUdeviceptr at = 0;
    must("cuMemAddressReserve", &at, 4 * page, std::size_t{0}, CUdeviceptr{0}, 0ull);
    told.give("physical memory: more mapped", call("cuMemMap", at, 4 * page, std::size_t{0}, handle, 0ull));
    told.give("physical memory: half mapped", call("cuMemMap", at + 2 * page, page, std::size_t{0}, handle, 0ull));
    told.give("physical memory: mapped", call("cuMemMap", at, 2 * page, std::size_t{0}, handle, 0ull));
    const CUmemAccessDesc access{{1, 0}, 3};
    told.give("physical memory: access", call("cuMemSetAccess", at, 2 * page, &access, std::size_t{1}));
    told.give("physical memory: read", word(at + 8));
    told.give("physical memory: attributes", attributes(at));
    must("cuMemsetD32_v2", at + page, 88u, std::size_t{16});
    must("cuCtxSynchronize");
    peer.meet();
    peer.meet();
    told.give("physical memory: read after its owner let go", word(at + page));
    int again = -1;
    told.give("physical memory: exported again", call("cuMemExportToShareableHandle", static_cast<void*>(&again), handle, 1, 0ull));
    told.give("physical memory: let go", number(call("cuMemUnmap", at, 2 * page)) + " " + number(call("cuMemRelease", handle)));
}

CUmemPoolProps pool_properties(int handle_types) {
    CUmemPoolProps properties{};
    properties.allocType = 1, properties.location = {1, 0}, properties.handleTypes = handle_types;
    return properties;
}

void ask_pools(const Told& told) {
    start();
    CUmemoryPool pool{}, plain{}, fallback{}, imported{};
    for (int handles : {0, 1, 2, 4, 3, 16}) {
        CUmemoryPool made{};
        const CUmemPoolProps properties = pool_properties(handles);
        told.give("pool of handle types " + number(handles), call("cuMemPoolCreate", &made, &properties));
    }
    for (int place : {2, 3}) {
        CUmemoryPool made{};
        CUmemPoolProps properties = pool_properties(1);
        properties.location.type = place;
        told.give("pool of place " + number(place) + " of handle types 1", call("cuMemPoolCreate", &made, &properties));
    }
    CUmemPoolProps properties = pool_properties(1);
    must("cuMemPoolCreate", &pool, &properties);
    properties.handleTypes = 0;
    must("cuMemPoolCreate", &plain, &properties);
    must("cuDeviceGetDefaultMemPool", &fallback, 0);
    int descriptor = -1, second = -1;
    const auto share = [&](const std::string& of, CUmemoryPool which, int type, unsigned long long flags = 0) {
        told.give("pool exported: " + of, call("cuMemPoolExportToShareableHandle", static_cast<void*>(&second), which, type, flags));
    };
    share("of no handle types", plain, 1);
    share("the default", fallback, 1);
    share("type 0", pool, 0);
    share("type 2", pool, 2);
    share("flags 1", pool, 1, 1);
    share("to a descriptor", pool, 1);
    descriptor = second;
    share("again", pool, 1);
    told.give("pool exported to null", call("cuMemPoolExportToShareableHandle", nullptr, pool, 1, 0ull));
    const auto place = [](int file) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(file)); };
    told.give("pool imported by its own process", call("cuMemPoolImportFromShareableHandle", &imported, place(descriptor), 1, 0ull));
    told.give("pool imported: -1", call("cuMemPoolImportFromShareableHandle", &imported, place(-1), 1, 0ull));
    told.give("pool imported: type 0", call("cuMemPoolImportFromShareableHandle", &imported, place(descriptor), 0, 0ull));
    told.give("pool imported: flags 1", call("cuMemPoolImportFromShareableHandle", &imported, place(descriptor), 1, 1ull));
    told.give("pool imported to null", call("cuMemPoolImportFromShareableHandle", nullptr, place(descriptor), 1, 0ull));
    int ends[2];
    if (pipe(ends)) std::_Exit(2);
    told.give("pool imported: a pipe", call("cuMemPoolImportFromShareableHandle", &imported, place(ends[0]), 1, 0ull));
    CUdeviceptr of_pool = 0, of_plain = 0, device = allocate(4096);
    must("cuMemAllocFromPoolAsync", &of_pool, std::size_t{4096}, pool, CUstream{});
    must("cuMemAllocFromPoolAsync", &of_plain, std::size_t{4096}, plain, CUstream{});
    CUmemPoolPtrExportData data{}, again{};
    told.give("pointer exported", call("cuMemPoolExportPointer", &data, of_pool));
    told.give("pointer exported again", call("cuMemPoolExportPointer", &again, of_pool));
    told.give("pointer exported: inside", call("cuMemPoolExportPointer", &again, of_pool + 16));
    told.give("pointer exported: of a pool of no handle types", call("cuMemPoolExportPointer", &again, of_plain));
    told.give("pointer exported: device memory", call("cuMemPoolExportPointer", &again, device));
    told.give("pointer exported: unknown", call("cuMemPoolExportPointer", &again, CUdeviceptr{0x1234}));
    told.give("pointer exported to null", call("cuMemPoolExportPointer", nullptr, of_pool));
    CUdeviceptr back = 0;
    told.give("pointer imported by its own pool", call("cuMemPoolImportPointer", &back, pool, &data));
    told.give("pointer imported by another pool", call("cuMemPoolImportPointer", &back, plain, &data));
    told.give("attributes of memory of a shared pool", attributes(of_pool));
    told.give("freed", call("cuMemFreeAsync", of_pool, CUstream{}));
    told.give("pool to share destroyed", call("cuMemPoolDestroy", pool));
}

void own_pool(const Told& told, const Peer& peer) {
    start();
    CUmemoryPool pool{};
    const CUmemPoolProps properties = pool_properties(1);
    must("cuMemPoolCreate", &pool, &properties);
    int descriptor = -1;
    must("cuMemPoolExportToShareableHandle", static_cast<void*>(&descriptor), pool, 1, 0ull);
    CUdeviceptr first = 0, second = 0;
    must("cuMemAllocFromPoolAsync", &first, std::size_t{4096}, pool, CUstream{});
    must("cuMemAllocFromPoolAsync", &second, std::size_t{40} * mega, pool, CUstream{});
    must("cuMemsetD32_v2", first, 12u, std::size_t{1024});
    must("cuMemsetD32_v2", second, 23u, std::size_t{10} * mega);
    must("cuCtxSynchronize");
    CUmemPoolPtrExportData data[2] = {};
    must("cuMemPoolExportPointer", &data[0], first);
    must("cuMemPoolExportPointer", &data[1], second);
    peer.send(data[0], descriptor);
    peer.send(data[1]);
    peer.meet();
    told.give("pool: its write is seen", word(second));
    told.give("pool: freed", number(call("cuMemFreeAsync", first, CUstream{})) + " " + number(call("cuMemFreeAsync", second, CUstream{})));
    must("cuCtxSynchronize");
    peer.meet();
    told.give("pool: destroyed", call("cuMemPoolDestroy", pool));
    peer.meet();
}
void other_pool(const Told& told, const Peer& peer) {
    start();
    int descriptor = -1;
    CUmemPoolPtrExportData first_data = peer.receive<CUmemPoolPtrExportData>(&descriptor);
    CUmemPoolPtrExportData second_data = peer.receive<CUmemPoolPtrExportData>();
    CUmemoryPool pool{}, twice{};
    const auto place = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));
    told.give("pool: imported", call("cuMemPoolImportFromShareableHandle", &pool, place, 1, 0ull));
    told.give("pool: imported twice", call("cuMemPoolImportFromShareableHandle", &twice, place, 1, 0ull));
    told.give("pool: imported twice is the same", pool == twice);
    std::string state;
    for (int attribute = 1; attribute <= 8; ++attribute) {
        unsigned long long value = 0;
        const int result = call("cuMemPoolGetAttribute", pool, attribute, static_cast<void*>(&value));
        state += (state.empty() ? "" : " ") + (result ? "!" + number(result) : number(static_cast<long long>(value)));
    }
    told.give("pool: attributes of an imported one", state);
    unsigned long long threshold = 5;
    int zero = 0;
    told.give("pool: threshold set of an imported one", call("cuMemPoolSetAttribute", pool, 4, static_cast<void*>(&threshold)));
    told.give("pool: flag set of an imported one", call("cuMemPoolSetAttribute", pool, 1, static_cast<void*>(&zero)));
    unsigned flags = 77;
    CUmemLocation here{1, 0};
    const int access = call("cuMemPoolGetAccess", &flags, pool, &here);
    told.give("pool: access of an imported one", number(access) + " " + number(flags));
    const CUmemAccessDesc wish{{1, 0}, 3};
    told.give("pool: access set of an imported one", call("cuMemPoolSetAccess", pool, &wish, std::size_t{1}));
    CUdeviceptr at = 0, first = 0, second = 0, again = 0;
    told.give("pool: allocation from an imported one", call("cuMemAllocFromPoolAsync", &at, std::size_t{4096}, pool, CUstream{}));
    told.give("pool: imported one made current", call("cuDeviceSetMemPool", 0, pool));
    told.give("pool: imported one trimmed", call("cuMemPoolTrimTo", pool, std::size_t{0}));
    int file = -1;
    told.give("pool: imported one exported", call("cuMemPoolExportToShareableHandle", static_cast<void*>(&file), pool, 1, 0ull));
    CUcontext current{};
    must("cuCtxGetCurrent", &current);
    must("cuCtxSetCurrent", CUcontext{});
    told.give("pool: pointer imported without a context", call("cuMemPoolImportPointer", &first, pool, &first_data));
    must("cuCtxSetCurrent", current);
    told.give("pool: pointer imported", call("cuMemPoolImportPointer", &first, pool, &first_data));
    told.give("pool: pointer read", word(first));
    told.give("pool: pointer imported again", call("cuMemPoolImportPointer", &again, pool, &first_data));
    told.give("pool: pointer imported again is the same", again == first);
    told.give("pool: second pointer imported", call("cuMemPoolImportPointer", &second, pool, &second_data));
    told.give("pool: second pointer read", word(second + 4 * mega));
    told.give("pool: attributes of an imported pointer", attributes(first));
    told.give("pool: attributes of the second imported pointer", attributes(second));
    told.give("pool: imported pointer exported", call("cuMemPoolExportPointer", &first_data, first));
    CUmemPoolPtrExportData junk{};
    std::memset(&junk, 0x5a, sizeof junk);
    told.give("pool: zeros imported", [&] {
        CUmemPoolPtrExportData zeros{};
        return call("cuMemPoolImportPointer", &again, pool, &zeros);
    }());
    told.give("pool: junk imported", call("cuMemPoolImportPointer", &again, pool, &junk));
    told.give("pool: pointer imported from null", call("cuMemPoolImportPointer", &again, pool, nullptr));
    must("cuMemsetD32_v2", second, 34u, std::size_t{16});
    must("cuCtxSynchronize");
    told.give("pool: imported pointer freed in order", call("cuMemFreeAsync", first, CUstream{}));
    told.give("pool: imported pointer freed twice", call("cuMemFreeAsync", first, CUstream{}));
    told.give("pool: second imported pointer freed", call("cuMemFree_v2", second));
    must("cuCtxSynchronize");
    told.give("pool: read of a freed import", word(second));
    peer.meet();
    peer.meet();
    told.give("pool: imported one destroyed", call("cuMemPoolDestroy", pool));
    peer.meet();
}

} // namespace

int main(int count, char** words) {
    Answers answers(count, words);
    in_process(answers, "handles of memory", ask_memory_handles);
    in_process(answers, "handles of events", ask_events);
    in_two_processes(answers, "memory and events", own_memory, other_memory);
    in_two_processes(answers, "the owner leaves", own_and_leave, other_stays);
    in_two_processes(answers, "physical memory", own_physical, other_physical);
    in_process(answers, "pools", ask_pools);
    in_two_processes(answers, "a pool", own_pool, other_pool);
    return answers.finish();
}
