// SPDX-License-Identifier: Apache-2.0
// Memory and semaphores that others export. What is refused, and with what, is an H100's
// (tests/driver_api/answers/external_answers_h100.txt), but that files and eventfds are taken, which no GPU's driver
// does.
#include "runtime/memory/external_objects.h"

#include "runtime/shim/convert.h"
#include "runtime/shim/stream_types.h"

#include <vector>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Context;
using runtime::ExternalMemory;
using runtime::ExternalSemaphore;
using runtime::Stream;

namespace {

/// CUexternalMemoryHandleType and CUexternalSemaphoreHandleType: those of other systems are not supported, a few not
/// known.
constexpr int memory_opaque_fd = 1, memory_opaque_win32 = 2, memory_opaque_kmt = 3, memory_heap = 4,
              memory_nvscibuf = 8, memory_dmabuf_fd = 9;
constexpr int semaphore_opaque_fd = 1, semaphore_timeline_fd = 9, semaphore_types = 10;
constexpr unsigned dedicated = 1;

/// What the driver says to a descriptor that is none of its own.
Status foreign(Status status) {
    return status == Status::invalid_value ? Status::unknown : status;
}

Status import_memory(Context& context, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC& description, CUexternalMemory& handle) {
    if (description.size == 0 || (description.flags & ~dedicated)) return Status::invalid_value;
    switch (description.type) {
    case memory_opaque_fd: {
        std::shared_ptr<ExternalMemory> memory;
        const auto size = static_cast<std::size_t>(description.size);
        const bool whole = (description.flags & dedicated) != 0;
        const Status status = foreign(ExternalMemory::import(context, description.handle.fd, size, whole, memory));
        if (status == Status::success) handle = to_handle<CUexternalMemory>(memory);
        return status;
    }
    case memory_opaque_win32:
    case memory_opaque_kmt:
    case memory_heap:
    case memory_nvscibuf: return Status::not_supported;
    case memory_dmabuf_fd:
        return description.handle.fd < 0 || description.flags != 0 ? Status::invalid_value : Status::not_supported;
    default: return Status::invalid_value;
    }
}

Status import_semaphore(Context& context, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC& description,
                        CUexternalSemaphore& handle) {
    if (description.flags != 0 || description.type < semaphore_opaque_fd || description.type > semaphore_types)
        return Status::invalid_value;
    const bool timeline = description.type == semaphore_timeline_fd;
    if (description.type != semaphore_opaque_fd && !timeline) return Status::not_supported;
    if (timeline && description.handle.fd < 0) return Status::invalid_value;
    std::shared_ptr<ExternalSemaphore> semaphore;
    const Status status = foreign(ExternalSemaphore::import(context, description.handle.fd, timeline, semaphore));
    if (status == Status::success) handle = to_handle<CUexternalSemaphore>(semaphore);
    return status;
}

/// A call that ends an object of T: null is a bad value, what is no object a bad handle.
template <class T> CUresult destroy(const void* handle) {
    return entry([&] {
        if (!handle) return Status::invalid_value;
        return runtime::HandleTable<T>::get().remove(handle) ? Status::success : Status::invalid_handle;
    });
}

CUresult submit_semaphores(CUstream stream, DefaultStream default_stream, const CUexternalSemaphore* handles,
                           const CUDA_EXTERNAL_SEMAPHORE_PARAMS* parameters, unsigned count,
                           void (ExternalSemaphore::*submit)(Stream&, std::uint64_t)) {
    const bool waits = submit == &ExternalSemaphore::wait;
    return stream_entry(stream, default_stream, [&](Stream& queue) {
        if (count == 0 || !handles || !parameters) return Status::invalid_value;
        std::vector<std::shared_ptr<ExternalSemaphore>> semaphores;
        for (unsigned i = 0; i < count; ++i) {
            semaphores.push_back(find_handle<ExternalSemaphore>(handles[i]));
            if (!semaphores.back()) return Status::invalid_handle;
            if (parameters[i].flags != 0) return Status::invalid_value; // of NvSciSync objects
        }
        std::shared_ptr<runtime::StreamRecorder> recorder;
        if (const Status status = queue.begin_work(recorder); status != Status::success) return status;
        if (recorder) {
            std::vector<std::pair<std::shared_ptr<ExternalSemaphore>, std::uint64_t>> values;
            for (unsigned i = 0; i < count; ++i) values.emplace_back(semaphores[i], parameters[i].params.fence.value);
            return recorder->semaphores(std::move(values), waits);
        }
        for (unsigned i = 0; i < count; ++i) ((*semaphores[i]).*submit)(queue, parameters[i].params.fence.value);
        return Status::success;
    });
}

} // namespace

PTM_API(cuImportExternalMemory, CUexternalMemory* memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description) {
    return context_entry([&](Context& context) {
        return memory && description ? import_memory(context, *description, *memory) : Status::invalid_value;
    });
}
PTM_API(cuExternalMemoryGetMappedBuffer, CUdeviceptr* pointer, CUexternalMemory handle,
        const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* description) {
    PTM_REQUIRE(pointer && handle && description);
    return object_entry<ExternalMemory>(handle, [&](ExternalMemory& memory) {
        if (description->flags != 0) return Status::invalid_value;
        runtime::DevicePointer mapped = 0;
        const Status status = memory.map(static_cast<std::size_t>(description->offset),
                                         static_cast<std::size_t>(description->size), mapped);
        if (status == Status::success) *pointer = mapped;
        return status;
    });
}
PTM_API(cuDestroyExternalMemory, CUexternalMemory handle) {
    return destroy<ExternalMemory>(handle);
}
PTM_API(cuImportExternalSemaphore, CUexternalSemaphore* semaphore,
        const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* description) {
    return context_entry([&](Context& context) {
        return semaphore && description ? import_semaphore(context, *description, *semaphore) : Status::invalid_value;
    });
}
PTM_API(cuDestroyExternalSemaphore, CUexternalSemaphore handle) {
    return destroy<ExternalSemaphore>(handle);
}

PTM_STREAM_API(cuSignalExternalSemaphoresAsync, cuSignalExternalSemaphoresAsync_ptsz,
               (const CUexternalSemaphore* handles, const CUDA_EXTERNAL_SEMAPHORE_PARAMS* parameters, unsigned count,
                CUstream stream),
               (handles, parameters, count, stream)) {
    return submit_semaphores(stream, default_stream, handles, parameters, count, &ExternalSemaphore::signal);
}
PTM_STREAM_API(cuWaitExternalSemaphoresAsync, cuWaitExternalSemaphoresAsync_ptsz,
               (const CUexternalSemaphore* handles, const CUDA_EXTERNAL_SEMAPHORE_PARAMS* parameters, unsigned count,
                CUstream stream),
               (handles, parameters, count, stream)) {
    return submit_semaphores(stream, default_stream, handles, parameters, count, &ExternalSemaphore::wait);
}
