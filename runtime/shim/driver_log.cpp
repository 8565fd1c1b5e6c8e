// SPDX-License-Identifier: Apache-2.0
#include "runtime/shim/driver_log.h"

#include <fmt/format.h>

#include <ctime>
#include <pthread.h>

namespace ptarmigan::shim {
namespace {

constexpr std::size_t most_bytes = 25600;

/// "[08:24:03.839][139660247455296][CUDA][E] ", as the driver begins its lines.
std::string line_start() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    tm parts{};
    gmtime_r(&now.tv_sec, &parts);
    return fmt::format("[{:02}:{:02}:{:02}.{:03}][{}][CUDA][E] ", parts.tm_hour, parts.tm_min, parts.tm_sec,
                       now.tv_nsec / 1'000'000, static_cast<std::uintptr_t>(pthread_self()));
}

} // namespace

DriverLog& DriverLog::get() {
    static auto* log = new DriverLog; // never destroyed: used from exit handlers
    return *log;
}

void DriverLog::add(std::string_view message) {
    std::string text(message);
    std::vector<std::shared_ptr<const Callback>> callbacks;
    {
        std::lock_guard lock(mutex_);
        lines_.push_back(line_start() + text + "\n");
        bytes_ += lines_.back().size();
        ++end_;
        for (; bytes_ > most_bytes && lines_.size() > 1; lines_.pop_front()) bytes_ -= lines_.front().size();
        callbacks = callbacks_;
    }
    // What a callback itself calls in vain is logged, and told to nobody.
    static thread_local bool is_telling = false;
    if (is_telling) return;
    is_telling = true;
    for (const auto& callback : callbacks) callback->function(callback->data, 0, text.data(), text.size());
    is_telling = false;
}

const DriverLog::Callback* DriverLog::listen(Function function, void* data) {
    std::lock_guard lock(mutex_);
    callbacks_.push_back(std::make_shared<const Callback>(Callback{function, data}));
    return callbacks_.back().get();
}

bool DriverLog::forget(const void* callback) {
    std::lock_guard lock(mutex_);
    return std::erase_if(callbacks_, [&](const auto& known) { return known.get() == callback; }) != 0;
}

unsigned DriverLog::end() const {
    std::lock_guard lock(mutex_);
    return end_;
}

bool DriverLog::has_lines(unsigned begin) const {
    std::lock_guard lock(mutex_);
    return begin != end_ && !lines_.empty();
}

std::string DriverLog::lines(unsigned& begin, std::size_t size) const {
    static constexpr std::string_view truncated = "Logs have been truncated\n";
    std::lock_guard lock(mutex_);
    const auto held = static_cast<unsigned>(lines_.size());
    const unsigned wanted = end_ - begin;
    std::size_t first = wanted > held ? 0 : held - wanted, bytes = 0;
    const bool gone = wanted > held;
    for (std::size_t i = first; i < lines_.size(); ++i) bytes += lines_[i].size();
    const bool fits = bytes + (gone ? truncated.size() : 0) <= size;
    if (!fits)
        for (; first < lines_.size() && bytes + truncated.size() > size; ++first) bytes -= lines_[first].size();
    std::string text;
    if (first < lines_.size() && (gone || !fits)) text = truncated;
    for (std::size_t i = first; i < lines_.size(); ++i) text += lines_[i];
    begin = end_;
    return text;
}

} // namespace ptarmigan::shim
