// SPDX-License-Identifier: Apache-2.0
#include "runtime/nvml/use_history.h"

#include "runtime/device/device_use.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

namespace ptarmigan::nvml {
namespace {

using Clock = std::chrono::steady_clock;
using runtime::ProcessUse;

/// What a busy time is measured over at least.
constexpr std::chrono::milliseconds least_period(20);

/// By process: the device's busy time at one moment.
struct Sample {
    Clock::time_point when;
    std::map<std::uint32_t, std::uint64_t> busy;
};

std::mutex mutex;

Sample take_sample(unsigned device) {
    Sample sample;
    const std::vector<ProcessUse> uses = runtime::read_device_uses();
    sample.when = Clock::now();
    for (const ProcessUse& use : uses) sample.busy[use.process] = use.devices[device].busy;
    return sample;
}

unsigned percent_between(const Sample& before, const Sample& after) {
    std::uint64_t busy = 0;
    for (const auto& [process, time] : after.busy) {
        const auto earlier = before.busy.find(process);
        const std::uint64_t then = earlier == before.busy.end() ? 0 : earlier->second;
        if (time > then) busy += time - then;
    }
    const auto period = static_cast<std::uint64_t>((after.when - before.when) / std::chrono::nanoseconds(1));
    return period == 0 ? 0 : static_cast<unsigned>(std::min<std::uint64_t>(100, busy * 100 / period));
}

} // namespace

std::vector<DeviceUser> users_of(unsigned device) {
    std::vector<DeviceUser> users;
    for (const ProcessUse& use : runtime::read_device_uses())
        if (use.devices[device].contexts != 0) users.push_back({use.process, use.devices[device].memory});
    return users;
}

std::uint64_t memory_used(unsigned device) {
    std::uint64_t used = 0;
    for (const DeviceUser& user : users_of(device)) used += user.memory;
    return used;
}

unsigned busy_percent(unsigned device) {
    struct History {
        bool known = false;
        Sample last;
        unsigned percent = 0;
    };
    static auto& histories = *new std::array<History, runtime::max_used_devices>;
    std::lock_guard lock(mutex);
    History& history = histories[device];
    if (!history.known) {
        history.last = take_sample(device);
        history.known = true;
        std::this_thread::sleep_for(least_period);
    }
    if (Clock::now() - history.last.when < least_period) return history.percent;
    const Sample now = take_sample(device);
    history.percent = percent_between(history.last, now);
    history.last = now;
    return history.percent;
}

} // namespace ptarmigan::nvml
