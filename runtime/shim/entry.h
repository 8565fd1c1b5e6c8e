// SPDX-License-Identifier: Apache-2.0
// What every entry of the driver API starts with: how it is declared, the checks that all make, and
// the fence that keeps C++ exceptions inside the library.
#pragma once

#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/device/device.h"
#include "runtime/device/process_lock.h"
#include "runtime/shim/call_log.h"
#include "runtime/shim/capture_rules.h"
#include "runtime/shim/cuda_types.h"
#include "runtime/stream/host_function.h"
#include "runtime/stream/recorder.h"

#include <exception>
#include <new>

/// Declares one exported entry. `driver_api.def` must have an IMPLEMENTED row of this name.
#define PTM_API(name, ...) extern "C" __attribute__((visibility("default"))) CUresult name(__VA_ARGS__)

#define PTM_UNWRAP(...) __VA_ARGS__
/// Declares the legacy and the per-thread form of an entry with one body, which sees
/// `default_stream`: which stream a null handle means. `params` and `args` are in parentheses.
#define PTM_STREAM_API(name, per_thread_name, params, args)                                                            \
    static CUresult name##_body(::ptarmigan::shim::DefaultStream default_stream, PTM_UNWRAP params);                   \
    PTM_API(name, PTM_UNWRAP params) {                                                                                 \
        return name##_body(::ptarmigan::shim::DefaultStream::legacy, PTM_UNWRAP args);                                 \
    }                                                                                                                  \
    PTM_API(per_thread_name, PTM_UNWRAP params) {                                                                      \
        return name##_body(::ptarmigan::shim::DefaultStream::per_thread, PTM_UNWRAP args);                             \
    }                                                                                                                  \
    static CUresult name##_body([[maybe_unused]] ::ptarmigan::shim::DefaultStream default_stream, PTM_UNWRAP params)

/// Arguments that the driver looks at before all else: invalid_value unless `condition` holds.
#define PTM_REQUIRE(condition)                                                                                         \
    if (!(condition)) return ::ptarmigan::shim::fenced([] { return ::ptarmigan::shim::Status::invalid_value; })

namespace ptarmigan::shim {

using runtime::Status;

/// Which stream a null stream handle means.
enum class DefaultStream : bool { legacy, per_thread };

/// Runs `body` (returning Status) behind the fence: no exception leaves the library.
template <class Body> CUresult fenced(Body&& body) noexcept {
    constexpr std::string_view name = called_entry(__PRETTY_FUNCTION__);
    Status status = Status::unknown;
    try {
        status = body();
    } catch (const std::bad_alloc&) {
        status = Status::out_of_memory;
    } catch (const std::exception& error) {
        runtime::log(runtime::LogLevel::error, error.what());
    } catch (...) {
        runtime::log(runtime::LogLevel::error, "unknown exception in a driver entry");
    }
    log_call(name, static_cast<CUresult>(status));
    return static_cast<CUresult>(status);
}

/// fenced(), after the checks that cuInit has been called and that no host function of a stream calls: the driver
/// refuses those all that needs a current context or a device.
/// Calls that are potentially unsafe while streams capture ask whether a capture forbids them.
template <class Body> CUresult entry(Body&& body) noexcept {
    constexpr bool unsafe = is_unsafe_while_capturing(called_entry(__PRETTY_FUNCTION__));
    return fenced([&]() -> Status {
        if (runtime::in_host_function()) return Status::not_permitted;
        if (!runtime::Device::initialized()) return Status::not_initialized;
        if (runtime::OwnProcess::is_locked()) runtime::OwnProcess::wait();
        if constexpr (unsafe)
            if (const Status status = runtime::Captures::check_unsafe_call(); status != Status::success) return status;
        return body();
    });
}

/// Stores `value` unless the caller gave no place for it.
template <class T, class V> void store(T* place, const V& value) {
    if (place) *place = static_cast<T>(value);
}

} // namespace ptarmigan::shim
