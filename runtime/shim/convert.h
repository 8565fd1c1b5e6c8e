// SPDX-License-Identifier: Apache-2.0
// From handles to runtime objects, and the entry forms for calls that need a context, a stream or a
// function.
#pragma once

#include "runtime/base/handle_table.h"
#include "runtime/context/context.h"
#include "runtime/context/current_context.h"
#include "runtime/module/module.h"
#include "runtime/shim/entry.h"
#include "runtime/shim/library.h"
#include "runtime/stream/stream.h"

#include <memory>

namespace ptarmigan::shim {

/// The live object behind a handle, or null: stale and invented handles are no crash.
template <class T> std::shared_ptr<T> find_handle(const void* handle) {
    return handle ? runtime::HandleTable<T>::get().find(handle) : nullptr;
}

/// entry() for calls that need a current, usable context: body(Context&).
template <class Body> CUresult context_entry(Body&& body) noexcept {
    return entry([&] {
        runtime::Context* context = nullptr;
        Status status = runtime::usable_context(context);
        return status == Status::success ? body(*context) : status;
    });
}

/// Arguments that the driver looks at when there is a current context, and before all else.
#define PTM_REQUIRE_IN_CONTEXT(condition)                                                                              \
    if (!(condition))                                                                                                  \
    return ::ptarmigan::shim::context_entry(                                                                           \
        [](::ptarmigan::runtime::Context&) { return ::ptarmigan::shim::Status::invalid_value; })

/// Whether the context of `object` can be used. A call that names an object works in the object's context, whichever is
/// current, and without one, too (tests/driver_api/answers/current_context_h100.txt).
template <class T> Status context_status(const T& object) {
    return object.context().status();
}
inline Status context_status(const runtime::Function& function) {
    return function.module().context().status();
}

/// What a call says to a handle that is none: that of the current context first, if it can't be used.
inline Status bad_handle() {
    runtime::Context* context = nullptr;
    const Status status = runtime::usable_context(context);
    return status == Status::success ? Status::invalid_handle : status;
}

/// entry() for calls on an object that has a context: body(T&).
template <class T, class Body> CUresult object_entry(const void* handle, Body&& body) noexcept {
    return entry([&] {
        if (!handle) return Status::invalid_handle;
        const std::shared_ptr<T> object = find_handle<T>(handle);
        if (!object) return bad_handle();
        const Status status = context_status(*object);
        return status == Status::success ? body(*object) : status;
    });
}

/// entry() for calls on a stream: body(Stream&). The handles 0 to 2 mean streams of the current context.
/// While the stream captures only calls that know of it get there.
template <class Body> CUresult stream_entry(CUstream handle, DefaultStream default_stream, Body&& given) noexcept {
    constexpr bool fits = fits_capturing_stream(called_entry(__PRETTY_FUNCTION__));
    const auto body = [&](runtime::Stream& stream) -> Status {
        if constexpr (!fits)
            if (const auto recorder = stream.recorder()) return recorder->forbid();
        return given(stream);
    };
    return entry([&] {
        if (reinterpret_cast<std::uintptr_t>(handle) > stream_per_thread) {
            const std::shared_ptr<runtime::Stream> stream = find_handle<runtime::Stream>(handle);
            if (!stream) return bad_handle();
            const Status status = context_status(*stream);
            return status == Status::success ? body(*stream) : status;
        }
        runtime::Context* context = nullptr;
        Status status = runtime::usable_context(context);
        if (status != Status::success) return status;
        std::shared_ptr<runtime::Stream> stream;
        status = runtime::resolve_stream(*context, handle, default_stream == DefaultStream::per_thread, stream);
        return status == Status::success ? body(*stream) : status;
    });
}

/// A function in `context`, from a CUfunction or a CUkernel handle. invalid_handle if it
/// is neither.
inline Status find_function(const void* handle, runtime::Context& context,
                            std::shared_ptr<runtime::Function>& function) {
    function = find_handle<runtime::Function>(handle);
    if (function) return Status::success;
    if (auto kernel = find_handle<LibraryKernel>(handle)) return kernel->function(context, function);
    return Status::invalid_handle;
}

/// The kernel behind a CUfunction or CUkernel handle, for queries that need no context; `owner`
/// keeps it alive.
inline runtime::Kernel* find_kernel(const void* handle, std::shared_ptr<void>& owner) {
    if (auto function = find_handle<runtime::Function>(handle)) {
        owner = function;
        return &function->kernel();
    }
    if (auto kernel = find_handle<LibraryKernel>(handle)) {
        owner = kernel;
        return &kernel->kernel();
    }
    return nullptr;
}

/// entry() for queries of a function or kernel: body(Kernel&). 400 for a bad handle.
template <class Body> CUresult kernel_entry(const void* handle, Body&& body) noexcept {
    return entry([&] {
        std::shared_ptr<void> owner;
        runtime::Kernel* kernel = find_kernel(handle, owner);
        return kernel ? body(*kernel) : Status::invalid_handle;
    });
}

/// A handle for a runtime object.
template <class Handle, class T> Handle to_handle(const std::shared_ptr<T>& object) {
    return reinterpret_cast<Handle>(object.get());
}

} // namespace ptarmigan::shim
