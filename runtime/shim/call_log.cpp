// SPDX-License-Identifier: Apache-2.0
#include "runtime/shim/call_log.h"

#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/shim/driver_log.h"

#include <fmt/format.h>

extern "C" CUresult cuGetErrorName(CUresult error, const char** text);

namespace ptarmigan::shim {

using runtime::LogLevel;
using runtime::Status;

void log_call(std::string_view name, CUresult result) {
    const bool failed =
        result != static_cast<CUresult>(Status::success) && result != static_cast<CUresult>(Status::not_ready);
    const LogLevel level = failed ? LogLevel::info : LogLevel::trace;
    if (!failed && !runtime::log_enabled(level)) return;
    const char* text = nullptr;
    if (cuGetErrorName(result, &text) != static_cast<CUresult>(Status::success))
        text = "no error that the driver names";
    if (failed) DriverLog::get().add(fmt::format("Returning {} ({}) from {}", result, text, name));
    if (runtime::log_enabled(level)) runtime::log(level, fmt::format("{} returns {} ({})", name, result, text));
}

} // namespace ptarmigan::shim
