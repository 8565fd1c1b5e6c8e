// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/compile_waits.h"

#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/progress_line.h"
#include "runtime/base/readable_name.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>

namespace ptarmigan::runtime {
namespace {

using namespace std::chrono_literals;

/// How often the line is written: in place, and one below the other.
constexpr auto in_place_interval = 100ms, line_interval = 2000ms;

enum class Manner { none, in_place, lines };

Manner wanted_manner() {
    const std::string text = env_text(Env::progress);
    const bool silent = !log_enabled(LogLevel::error);
    if (text == "off" || (silent && text != "on")) return Manner::none;
    if (::isatty(STDERR_FILENO)) return Manner::in_place;
    return text == "on" ? Manner::lines : Manner::none;
}

Manner manner() {
    static const Manner wanted = wanted_manner();
    return wanted;
}

/// Names of kernels may be longer than a terminal is wide.
std::string cut(const std::string& text, std::size_t columns) {
    constexpr std::string_view sign = "...";
    if (text.size() <= columns || columns < sign.size()) return text.substr(0, columns);
    return text.substr(0, columns - sign.size()) + std::string(sign);
}

CompileWaits& process_waits() {
    static auto& waits = *new CompileWaits; // never destroyed: launches happen while the process exits
    return waits;
}

} // namespace

std::chrono::duration<double> CompileWaits::taken(Time now) const {
    return before_ + (kernels_.empty() ? std::chrono::duration<double>(0) : now - since_);
}

void CompileWaits::begin(const std::string& kernel, Time now) {
    constexpr auto between_bursts = 2s;
    const std::lock_guard lock(mutex_);
    if (kernels_.empty()) {
        if (now - last_end_ >= between_bursts) {
            finished_ = 0;
            before_ = before_.zero();
        }
        since_ = now;
    }
    kernels_.push_back(kernel);
}

bool CompileWaits::end(const std::string& kernel, Time now) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(kernels_.begin(), kernels_.end(), kernel);
    if (found == kernels_.end()) return kernels_.empty();
    if (kernels_.size() == 1) before_ = taken(now);
    kernels_.erase(found);
    ++finished_;
    last_end_ = now;
    return kernels_.empty();
}

void CompileWaits::forget_last_line() {
    const std::lock_guard lock(mutex_);
    last_line_ = {};
}

std::optional<std::string> CompileWaits::line(Time now, std::chrono::milliseconds interval) {
    constexpr std::chrono::duration<double> patience = 2s;
    const std::lock_guard lock(mutex_);
    if (kernels_.empty() || taken(now) < patience || now - last_line_ < interval) return std::nullopt;
    last_line_ = now;
    return fmt::format("compiling ({} kernels so far, {:.1f} s): {}", finished_, taken(now).count(),
                       readable_name(kernels_.front()));
}

CompileWait::CompileWait(const std::string& kernel, bool waited)
    : kernel_(waited && manner() != Manner::none ? &kernel : nullptr) {
    if (!kernel_) return;
    process_waits().begin(*kernel_, std::chrono::steady_clock::now());
    look(); // of a burst of short compilations none may take as long as a look
}

CompileWait::~CompileWait() {
    // What the program prints next belongs on a line of its own.
    if (!kernel_ || !process_waits().end(*kernel_, std::chrono::steady_clock::now())) return;
    erase_progress_line();
    if (manner() == Manner::in_place) process_waits().forget_last_line();
}

void CompileWait::look() const {
    if (!kernel_) return;
    const bool in_place = manner() == Manner::in_place;
    const auto text =
        process_waits().line(std::chrono::steady_clock::now(), in_place ? in_place_interval : line_interval);
    if (!text) return;
    if (in_place)
        show_progress_line(cut("ptarmigan: " + *text, terminal_columns() - 1));
    else
        log(LogLevel::error, *text);
}

} // namespace ptarmigan::runtime
