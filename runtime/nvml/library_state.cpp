// SPDX-License-Identifier: Apache-2.0
#include "runtime/nvml/library_state.h"

#include "runtime/base/log.h"

#include <array>
#include <atomic>
#include <cstring>

struct nvmlDevice_st {
    unsigned index;
};

namespace ptarmigan::nvml {
namespace {

constexpr unsigned most_devices = runtime::Device::most;

std::atomic<unsigned> initializations{0};

constexpr auto handles = [] {
    std::array<nvmlDevice_st, most_devices> all{};
    for (unsigned i = 0; i < most_devices; ++i) all[i].index = i;
    return all;
}();

} // namespace

void initialize() {
    device_count();
    initializations.fetch_add(1);
}

bool shut_down() {
    unsigned count = initializations.load();
    while (count != 0 && !initializations.compare_exchange_weak(count, count - 1)) {
    }
    return count != 0;
}

bool is_initialized() {
    return initializations.load(std::memory_order_relaxed) != 0;
}

unsigned device_count() {
    return static_cast<unsigned>(runtime::Device::number_of_devices());
}

runtime::Device& device_at(unsigned index) {
    return runtime::Device::numbered(static_cast<int>(index));
}

nvmlDevice_t handle_of(unsigned index) {
    return const_cast<nvmlDevice_t>(&handles[index]);
}

bool index_of(nvmlDevice_t handle, unsigned& index) {
    const std::uintptr_t offset =
        reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(handles.data());
    index = static_cast<unsigned>(offset / sizeof(nvmlDevice_st));
    return offset % sizeof(nvmlDevice_st) == 0 && offset / sizeof(nvmlDevice_st) < device_count();
}

std::string uuid_text(const runtime::Device& device) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text = "GPU-";
    for (std::size_t i = 0; i < device.uuid().size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += digits[device.uuid()[i] >> 4];
        text += digits[device.uuid()[i] & 15];
    }
    return text;
}

nvmlReturn_t give_text(const std::string& text, char* place, unsigned size) {
    if (!place) return invalid_argument;
    if (text.size() + 1 > size) return insufficient_size;
    std::memcpy(place, text.c_str(), text.size() + 1);
    return success;
}

nvmlReturn_t report(const char* entry, nvmlReturn_t result) {
    if (result != success && runtime::log_enabled(runtime::LogLevel::info))
        runtime::log(runtime::LogLevel::info, std::string(entry) + " returns " + std::to_string(result));
    return result;
}

} // namespace ptarmigan::nvml
