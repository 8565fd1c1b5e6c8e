// SPDX-License-Identifier: Apache-2.0
// Advice about managed memory, prefetches, and questions about both.
#include "runtime/memory/managed_advice.h"
#include "runtime/shim/convert.h"

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Context;
using runtime::MemoryPlace;

namespace {

MemoryPlace place_of(CUmemLocation location) {
    return {location.type, location.id};
}
/// -1: the CPU.
MemoryPlace place_of(CUdevice device) {
    return device == -1 ? MemoryPlace{MemoryPlace::host, -1} : MemoryPlace{MemoryPlace::device, device};
}

} // namespace

PTM_STREAM_API(cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz,
               (CUdeviceptr pointer, std::size_t size, CUdevice device, CUstream stream),
               (pointer, size, device, stream)) {
    return stream_entry(stream, default_stream,
                        [&](runtime::Stream&) { return runtime::managed_prefetch(pointer, size, place_of(device)); });
}
PTM_STREAM_API(cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz,
               (CUdeviceptr pointer, std::size_t size, CUmemLocation location, unsigned flags, CUstream stream),
               (pointer, size, location, flags, stream)) {
    PTM_REQUIRE(pointer);
    return stream_entry(stream, default_stream, [&](runtime::Stream&) {
        return flags ? Status::invalid_value : runtime::managed_prefetch(pointer, size, place_of(location));
    });
}
PTM_API(cuMemAdvise, CUdeviceptr pointer, std::size_t size, unsigned advice, CUdevice device) {
    return context_entry(
        [&](Context&) { return runtime::managed_advise(pointer, size, static_cast<int>(advice), place_of(device)); });
}
PTM_API(cuMemAdvise_v2, CUdeviceptr pointer, std::size_t size, unsigned advice, CUmemLocation location) {
    PTM_REQUIRE(pointer);
    return context_entry([&](Context&) {
        const Status status = runtime::managed_advise(pointer, size, static_cast<int>(advice), place_of(location));
        return status == Status::invalid_device ? Status::invalid_value : status; // unlike the first version
    });
}

PTM_API(cuMemRangeGetAttribute, void* data, std::size_t data_size, unsigned attribute, CUdeviceptr pointer,
        std::size_t size) {
    return context_entry([&](Context&) {
        return runtime::managed_attribute(pointer, size, static_cast<int>(attribute), data, data_size);
    });
}
PTM_API(cuMemRangeGetAttributes, void** data, std::size_t* data_sizes, unsigned* attributes, std::size_t count,
        CUdeviceptr pointer, std::size_t size) {
    return context_entry([&](Context&) {
        if (!data || !data_sizes || !attributes || !count) return Status::invalid_value;
        for (std::size_t i = 0; i < count; ++i) {
            const Status status =
                runtime::managed_attribute(pointer, size, static_cast<int>(attributes[i]), data[i], data_sizes[i]);
            if (status != Status::success) return status;
        }
        return Status::success;
    });
}
