// SPDX-License-Identifier: Apache-2.0
// Streams, events and host callbacks.
#include "runtime/context/green_context.h"
#include "runtime/graph/capture.h"
#include "runtime/shim/convert.h"

#include <cstring>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Context;
using runtime::Event;
using runtime::Stream;

namespace {

/// body(T&) from a host function, which has no context: that of the handle is used. So does the driver
/// (tests/driver_api/host_function_calls_h100.txt).
template <class T, class Body> CUresult host_function_entry(const void* handle, Body&& body) {
    return fenced([&] {
        const std::shared_ptr<T> object = find_handle<T>(handle);
        if (!object) return Status::not_permitted;
        const Status status = object->context().status();
        return status == Status::success ? body(*object) : status;
    });
}

/// stream_entry(), also for host functions that name the stream.
template <class Body> CUresult named_stream_entry(CUstream handle, DefaultStream default_stream, Body&& body) {
    if (runtime::in_host_function()) return host_function_entry<Stream>(handle, body);
    return stream_entry(handle, default_stream, body);
}

/// object_entry() for streams and events, also for host functions: body(T&). 400 for a bad handle.
template <class T, class Body> CUresult named_entry(const void* handle, Body&& body) {
    if (runtime::in_host_function()) return host_function_entry<T>(handle, body);
    return object_entry<T>(handle, body);
}

CUresult create_stream(CUstream* handle, unsigned flags, int priority) {
    return context_entry([&](Context& context) {
        if (!handle) return Status::invalid_value;
        std::shared_ptr<Stream> stream;
        Status status = Stream::create(context, flags, priority, stream, runtime::current_green_context());
        if (status == Status::success) *handle = to_handle<CUstream>(stream);
        return status;
    });
}

CUresult destroy_stream(CUstream handle) {
    return named_entry<Stream>(handle, [&](Stream& stream) {
        runtime::abandon_capture(stream);
        return Stream::destroy(handle);
    });
}

CUresult destroy_event(CUevent handle) {
    return named_entry<Event>(handle, [&](Event&) { return Event::destroy(handle); });
}

CUresult elapsed_time(float* milliseconds, CUevent start, CUevent end) {
    return object_entry<Event>(start, [&](Event& first) {
        auto second = find_handle<Event>(end);
        if (!second) return Status::invalid_handle;
        if (!milliseconds) return Status::invalid_handle; // as the driver says
        float time = 0;
        Status status = Event::elapsed(first, *second, time);
        if (status == Status::success) *milliseconds = time;
        return status;
    });
}

CUresult launch_host_function(CUstream stream, DefaultStream default_stream, CUhostFn function, void* data) {
    return named_stream_entry(stream, default_stream, [&](Stream& queue) {
        if (!function) return Status::invalid_value;
        return queue.add_host_function(function, data);
    });
}

/// The name of a stream's context: that of its green one, if it has one.
CUcontext context_of(const Stream& queue) {
    return queue.green() ? to_handle<CUcontext>(queue.green()->context())
                         : reinterpret_cast<CUcontext>(&queue.context());
}

CUresult record(CUevent handle, CUstream stream, DefaultStream default_stream, bool external = false) {
    return named_stream_entry(stream, default_stream, [&](Stream& queue) {
        auto event = find_handle<Event>(handle);
        if (!event || &event->context() != &queue.context()) return Status::invalid_handle;
        return event->record(queue, external);
    });
}

Status read_attribute(const runtime::StreamAttributes& attributes, unsigned id, CUlaunchAttributeValue& value) {
    switch (id) {
    case launch_access_policy_window: {
        const runtime::AccessPolicyWindow& window = attributes.window;
        std::memset(&value, 0, sizeof value.accessPolicyWindow); // what pads it, too
        value.accessPolicyWindow = {reinterpret_cast<void*>(window.base), window.size, window.hit_ratio,
                                    window.hit_property, window.miss_property};
        return Status::success;
    }
    case launch_synchronization_policy: value.syncPolicy = attributes.synchronization_policy; return Status::success;
    case launch_priority: value.priority = attributes.priority; return Status::success;
    case launch_mem_sync_domain_map:
        value.memSyncDomainMap = {attributes.domain_map[0], attributes.domain_map[1]};
        return Status::success;
    case launch_mem_sync_domain: value.memSyncDomain = attributes.domain; return Status::success;
    default: return Status::invalid_value; // of launches and graph nodes, or none
    }
}

Status write_attribute(runtime::StreamAttributes& attributes, unsigned id, const CUlaunchAttributeValue& value) {
    switch (id) {
    case launch_access_policy_window: {
        const CUaccessPolicyWindow& window = value.accessPolicyWindow;
        return attributes.set_window({reinterpret_cast<std::uintptr_t>(window.base_ptr), window.num_bytes,
                                      window.hitRatio, window.hitProp, window.missProp});
    }
    case launch_synchronization_policy: return attributes.set_synchronization_policy(value.syncPolicy);
    case launch_priority: return attributes.set_priority(value.priority);
    case launch_mem_sync_domain_map:
        return attributes.set_domain_map({value.memSyncDomainMap.default_, value.memSyncDomainMap.remote});
    case launch_mem_sync_domain: return attributes.set_domain(value.memSyncDomain);
    default: return Status::invalid_value;
    }
}

} // namespace

PTM_API(cuStreamCreate, CUstream* stream, unsigned flags) {
    PTM_REQUIRE(stream);
    return create_stream(stream, flags, 0);
}
PTM_API(cuStreamCreateWithPriority, CUstream* stream, unsigned flags, int priority) {
    PTM_REQUIRE(stream);
    return create_stream(stream, flags, priority);
}
PTM_API(cuStreamDestroy, CUstream stream) {
    return destroy_stream(stream);
}
PTM_API(cuStreamDestroy_v2, CUstream stream) {
    return destroy_stream(stream);
}

PTM_STREAM_API(cuStreamSynchronize, cuStreamSynchronize_ptsz, (CUstream stream), (stream)) {
    return named_stream_entry(stream, default_stream, [](Stream& queue) { return queue.synchronize(); });
}
PTM_STREAM_API(cuStreamQuery, cuStreamQuery_ptsz, (CUstream stream), (stream)) {
    return named_stream_entry(stream, default_stream, [](Stream& queue) { return queue.query(); });
}
PTM_STREAM_API(cuStreamGetPriority, cuStreamGetPriority_ptsz, (CUstream stream, int* priority), (stream, priority)) {
    PTM_REQUIRE(priority);
    return named_stream_entry(stream, default_stream, [&](Stream& queue) {
        if (!priority) return Status::invalid_value;
        *priority = queue.priority();
        return Status::success;
    });
}
PTM_STREAM_API(cuStreamGetAttribute, cuStreamGetAttribute_ptsz,
               (CUstream stream, unsigned id, CUlaunchAttributeValue* value), (stream, id, value)) {
    return named_stream_entry(stream, default_stream, [&](Stream& queue) {
        return value ? read_attribute(queue.attributes(), id, *value) : Status::invalid_value;
    });
}
PTM_STREAM_API(cuStreamSetAttribute, cuStreamSetAttribute_ptsz,
               (CUstream stream, unsigned id, const CUlaunchAttributeValue* value), (stream, id, value)) {
    return named_stream_entry(stream, default_stream, [&](Stream& queue) {
        if (!value) return Status::invalid_value;
        return queue.set_attributes(
            [&](runtime::StreamAttributes& attributes) { return write_attribute(attributes, id, *value); });
    });
}
PTM_STREAM_API(cuStreamCopyAttributes, cuStreamCopyAttributes_ptsz, (CUstream stream, CUstream source),
               (stream, source)) {
    return named_stream_entry(stream, default_stream, [&](Stream& queue) {
        std::shared_ptr<Stream> from;
        const bool per_thread = default_stream == DefaultStream::per_thread;
        const Status status = runtime::resolve_stream(queue.context(), source, per_thread, from);
        if (status != Status::success) return status;
        if (&from->context() != &queue.context()) return Status::invalid_value;
        return queue.set_attributes([copy = from->attributes()](runtime::StreamAttributes& attributes) {
            attributes = copy;
            return Status::success;
        });
    });
}
PTM_STREAM_API(cuStreamGetFlags, cuStreamGetFlags_ptsz, (CUstream stream, unsigned* flags), (stream, flags)) {
    PTM_REQUIRE(flags);
    return named_stream_entry(stream, default_stream, [&](Stream& queue) {
        if (!flags) return Status::invalid_value;
        *flags = queue.flags();
        return Status::success;
    });
}
PTM_STREAM_API(cuStreamGetId, cuStreamGetId_ptsz, (CUstream stream, unsigned long long* id), (stream, id)) {
    PTM_REQUIRE(id);
    return named_stream_entry(stream, default_stream, [&](Stream& queue) {
        if (!id) return Status::invalid_value;
        *id = queue.id();
        return Status::success;
    });
}
PTM_STREAM_API(cuStreamGetCtx, cuStreamGetCtx_ptsz, (CUstream stream, CUcontext* context), (stream, context)) {
    PTM_REQUIRE(context);
    return named_stream_entry(stream, default_stream, [&](Stream& queue) {
        if (!context) return Status::invalid_value;
        *context = context_of(queue);
        return Status::success;
    });
}
PTM_STREAM_API(cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz, (CUstream stream, CUcontext* context, void** green),
               (stream, context, green)) {
    PTM_REQUIRE(context);
    return named_stream_entry(stream, default_stream, [&](Stream& queue) {
        if (!context || !green) return Status::invalid_value;
        *context = reinterpret_cast<CUcontext>(&queue.context()); // the primary one of green streams
        *green = queue.green().get();
        return Status::success;
    });
}
PTM_API(cuStreamGetGreenCtx, CUstream stream, void** green) { // which cuBLAS asks for from 13.1 on
    PTM_REQUIRE(green);
    return named_stream_entry(stream, DefaultStream::legacy, [&](Stream& queue) {
        if (!green) return Status::invalid_value;
        *green = queue.green().get();
        return Status::success;
    });
}
PTM_STREAM_API(cuStreamGetDevice, cuStreamGetDevice_ptsz, (CUstream stream, CUdevice* device), (stream, device)) {
    PTM_REQUIRE(device);
    return named_stream_entry(stream, default_stream, [&](Stream& queue) {
        if (!device) return Status::invalid_value;
        *device = queue.context().device();
        return Status::success;
    });
}

PTM_STREAM_API(cuStreamWaitEvent, cuStreamWaitEvent_ptsz, (CUstream stream, CUevent handle, unsigned flags),
               (stream, handle, flags)) {
    return named_stream_entry(stream, default_stream, [&](Stream& queue) {
        auto event = find_handle<Event>(handle);
        return event ? event->make_wait(queue, flags) : Status::invalid_handle;
    });
}
PTM_STREAM_API(cuStreamAddCallback, cuStreamAddCallback_ptsz,
               (CUstream stream, CUstreamCallback callback, void* data, unsigned flags),
               (stream, callback, data, flags)) {
    PTM_REQUIRE(callback);
    return named_stream_entry(stream, default_stream, [&](Stream& queue) {
        if (!callback || flags) return Status::invalid_value;
        return queue.add_callback([=](Status status) { callback(stream, static_cast<CUresult>(status), data); });
    });
}
PTM_STREAM_API(cuLaunchHostFunc, cuLaunchHostFunc_ptsz, (CUstream stream, CUhostFn function, void* data),
               (stream, function, data)) {
    PTM_REQUIRE(function);
    return launch_host_function(stream, default_stream, function, data);
}
PTM_STREAM_API(cuLaunchHostFunc_v2, cuLaunchHostFunc_v2_ptsz,
               (CUstream stream, CUhostFn function, void* data, unsigned sync_mode),
               (stream, function, data, sync_mode)) {
    if (sync_mode > 1) return static_cast<CUresult>(Status::invalid_value); // how a thread waits for such tasks
    return launch_host_function(stream, default_stream, function, data);
}
PTM_STREAM_API(cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz,
               (CUstream stream, CUdeviceptr pointer, std::size_t size, unsigned flags),
               (stream, pointer, size, flags)) {
    return named_stream_entry(stream, default_stream, [&](Stream&) {
        // Visibility to one stream only is a hint to a driver that moves pages; here every stream
        // sees all memory.
        bool fine = runtime::AddressSpace::get().find(pointer) && (flags == 1 || flags == 2 || flags == 4);
        return fine ? Status::success : Status::invalid_value;
    });
}

PTM_API(cuEventCreate, CUevent* handle, unsigned flags) {
    return context_entry([&](Context& context) {
        if (!handle) return Status::invalid_value;
        std::shared_ptr<Event> event;
        Status status = Event::create(context, flags, event);
        if (status == Status::success) *handle = to_handle<CUevent>(event);
        return status;
    });
}
PTM_API(cuEventDestroy, CUevent event) {
    return destroy_event(event);
}
PTM_API(cuEventDestroy_v2, CUevent event) {
    return destroy_event(event);
}
PTM_STREAM_API(cuEventRecord, cuEventRecord_ptsz, (CUevent event, CUstream stream), (event, stream)) {
    return record(event, stream, default_stream);
}
PTM_STREAM_API(cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz, (CUevent event, CUstream stream, unsigned flags),
               (event, stream, flags)) {
    if (flags > 1) return static_cast<CUresult>(Status::invalid_value);
    return record(event, stream, default_stream, flags == 1);
}
PTM_API(cuEventQuery, CUevent handle) {
    return named_entry<Event>(handle, [](Event& event) { return event.query(); });
}
PTM_API(cuEventSynchronize, CUevent handle) {
    return named_entry<Event>(handle, [](Event& event) { return event.synchronize(); });
}
PTM_API(cuEventElapsedTime, float* milliseconds, CUevent start, CUevent end) {
    return elapsed_time(milliseconds, start, end);
}
PTM_API(cuEventElapsedTime_v2, float* milliseconds, CUevent start, CUevent end) {
    return elapsed_time(milliseconds, start, end);
}
