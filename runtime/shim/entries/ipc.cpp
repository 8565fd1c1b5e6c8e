// SPDX-License-Identifier: Apache-2.0
// Memory and events that processes hand each other by 64 bytes.
#include "runtime/code/fault.h"
#include "runtime/memory/process_memory.h"
#include "runtime/shim/convert.h"
#include "runtime/stream/dispatcher.h"

#include <cstring>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Context;
using runtime::Event;
using runtime::FilePlace;
using runtime::ProcessMemory;

namespace {

constexpr std::uint64_t memory_place = 0x6d656d6f7279; ///< of a CUipcMemHandle

template <class Handle> FilePlace place_in(const Handle& handle) {
    FilePlace place;
    static_assert(sizeof handle == sizeof place);
    std::memcpy(static_cast<void*>(&place), &handle, sizeof place);
    return place;
}

CUresult open_memory(CUdeviceptr* pointer, const CUipcMemHandle& handle, unsigned flags) {
    PTM_REQUIRE(pointer);
    return context_entry([&](Context& context) {
        constexpr unsigned lazy_peer_access = 1;
        const FilePlace place = place_in(handle);
        if (!(flags & lazy_peer_access)) return Status::invalid_value;
        if (const Status status = runtime::check_place(place, memory_place); status != Status::success) return status;
        if (runtime::is_own_place(place)) return Status::invalid_context;
        runtime::DevicePointer opened = 0;
        const Status status = ProcessMemory::get().open(place, context, nullptr, opened);
        if (status == Status::success) *pointer = opened;
        return status;
    });
}

} // namespace

PTM_API(cuIpcGetMemHandle, CUipcMemHandle* handle, CUdeviceptr pointer) {
    PTM_REQUIRE(handle);
    return context_entry([&](Context&) {
        const auto allocation = runtime::AddressSpace::get().find(pointer);
        if (!allocation || allocation->kind != runtime::MemoryKind::device || allocation->owned_by_module)
            return Status::invalid_value;
        runtime::install_fault_handlers(); // its pages are moved while kernels may use them
        FilePlace place;
        const Status status = ProcessMemory::place_of(pointer, memory_place, place);
        if (status == Status::success) std::memcpy(handle, &place, sizeof place);
        return status;
    });
}
PTM_API(cuIpcOpenMemHandle, CUdeviceptr* pointer, CUipcMemHandle handle, unsigned flags) {
    return open_memory(pointer, handle, flags);
}
PTM_API(cuIpcOpenMemHandle_v2, CUdeviceptr* pointer, CUipcMemHandle handle, unsigned flags) {
    return open_memory(pointer, handle, flags);
}
PTM_API(cuIpcCloseMemHandle, CUdeviceptr pointer) {
    return context_entry([&](Context& context) {
        runtime::Dispatcher::get().wait_for_all(context); // what is launched by now may use it
        return ProcessMemory::get().close(pointer);
    });
}

PTM_API(cuIpcGetEventHandle, CUipcEventHandle* handle, CUevent event) {
    PTM_REQUIRE(handle);
    return object_entry<Event>(event, [&](Event& shared) {
        FilePlace place;
        const Status status = shared.place(place);
        if (status == Status::success) std::memcpy(handle, &place, sizeof place);
        return status;
    });
}
PTM_API(cuIpcOpenEventHandle, CUevent* handle, CUipcEventHandle bytes) {
    PTM_REQUIRE(handle);
    return context_entry([&](Context& context) {
        const FilePlace place = place_in(bytes);
        if (runtime::is_own_place(place)) return Status::invalid_context;
        std::shared_ptr<Event> event;
        const Status status = Event::open(context, place, event);
        if (status == Status::success) *handle = to_handle<CUevent>(event);
        return status;
    });
}
