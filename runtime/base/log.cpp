// SPDX-License-Identifier: Apache-2.0
// Messages on stderr and the calling thread's error detail.
#include "runtime/base/log.h"

#include "runtime/base/env.h"
#include "runtime/base/per_thread.h"
#include "runtime/base/progress_line.h"
#include "runtime/base/repeated_error.h"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <unistd.h>

namespace ptarmigan::runtime {
namespace {

LogLevel wanted_level() {
    const std::string text = env_text(Env::log);
    if (text == "off") return LogLevel::off;
    if (text == "warnings") return LogLevel::warning;
    if (text == "info") return LogLevel::info;
    if (text == "trace") return LogLevel::trace;
    return LogLevel::error;
}

std::string& detail() {
    static thread_local std::string* mine = nullptr;
    return per_thread(mine);
}

void write_all(const std::string& line) {
    const char* next = line.data();
    std::size_t left = line.size();
    while (left > 0) {
        const ssize_t written = ::write(STDERR_FILENO, next, left);
        if (written <= 0) return; // nowhere to report it
        next += written;
        left -= static_cast<std::size_t>(written);
    }
}

} // namespace

bool log_enabled(LogLevel level) {
    static const LogLevel wanted = wanted_level();
    return level <= wanted && level != LogLevel::off;
}

void log(LogLevel level, std::string_view message) {
    if (!log_enabled(level)) return;
    std::string line = "ptarmigan: ";
    line += message;
    if (line.back() != '\n') line += '\n';
    erase_progress_line();
    write_all(line);
}

void log_once(std::string_view key, std::string_view message) {
    static std::mutex mutex;
    static auto* seen = new std::set<std::string, std::less<>>;
    {
        std::lock_guard lock(mutex);
        if (seen->contains(key)) return;
        seen->emplace(key);
    }
    log(LogLevel::error, message);
}

const std::string& error_detail() {
    return detail();
}

void set_error_detail(std::string text) {
    log(LogLevel::error, text);
    detail() = std::move(text);
}

void set_repeated_error_detail(std::string text) {
    log_once(text, text);
    detail() = std::move(text);
}

std::string elapsed(std::chrono::steady_clock::time_point start) {
    const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;
    return fmt::format("{:.3f} ms", passed.count());
}

} // namespace ptarmigan::runtime
