// SPDX-License-Identifier: Apache-2.0
// The log of calls that failed. Codes are an H100's (tests/driver_api/answers/other_answers_h100.txt).
#include "runtime/shim/driver_log.h"
#include "runtime/shim/entry.h"

#include <cstdio>
#include <cstring>

using namespace ptarmigan;
using namespace ptarmigan::shim;

namespace {

/// fenced() without a line of the log about what the log is asked.
template <class Body> CUresult log_entry(Body&& body) {
    return fenced([&] { return body(DriverLog::get()); });
}

/// From where a dump begins: its iterator's place, or with all that there is.
unsigned begin_of(const unsigned* iterator) {
    return iterator ? *iterator : 0;
}

} // namespace

PTM_API(cuLogsRegisterCallback, DriverLog::Function function, void* data, const void** handle) {
    return log_entry([&](DriverLog& log) {
        if (!function) return Status::invalid_value;
        const DriverLog::Callback* callback = log.listen(function, data);
        store(handle, static_cast<const void*>(callback));
        return Status::success;
    });
}
PTM_API(cuLogsUnregisterCallback, const void* callback) {
    return log_entry([&](DriverLog& log) { return log.forget(callback) ? Status::success : Status::invalid_value; });
}
PTM_API(cuLogsCurrent, unsigned* iterator, unsigned) { // the driver takes any flags
    return log_entry([&](DriverLog& log) {
        if (!iterator) return Status::invalid_value;
        *iterator = log.end();
        return Status::success;
    });
}
PTM_API(cuLogsDumpToMemory, unsigned* iterator, char* buffer, std::size_t* size, unsigned) {
    return log_entry([&](DriverLog& log) {
        if (!buffer || !size) return Status::invalid_value;
        unsigned at = begin_of(iterator);
        const bool any = log.has_lines(at);
        const std::string text = *size ? log.lines(at, *size - 1) : std::string();
        if (any && text.empty()) {
            *size = 0;
            return Status::invalid_value;
        }
        if (*size) std::memcpy(buffer, text.c_str(), text.size() + 1);
        *size = text.size();
        store(iterator, at);
        return Status::success;
    });
}
PTM_API(cuLogsDumpToFile, unsigned* iterator, const char* path, unsigned) {
    return log_entry([&](DriverLog& log) {
        if (!path) return Status::invalid_value;
        std::FILE* file = std::fopen(path, "w");
        if (!file) return Status::invalid_value;
        unsigned at = begin_of(iterator);
        const std::string text = log.lines(at, SIZE_MAX);
        const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
        if (std::fclose(file) != 0 || !written) return Status::invalid_value;
        store(iterator, at);
        return Status::success;
    });
}
