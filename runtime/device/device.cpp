// SPDX-License-Identifier: Apache-2.0
// What the host is, told as a CUDA device.
#include "runtime/device/device.h"

#include "runtime/base/env.h"
#include "runtime/base/forked_child.h"
#include "runtime/base/log.h"
#include "runtime/base/process_exit.h"
#include "runtime/device/device_profile.h"
#include "runtime/device/process_lock.h"
#include "runtime/device/visible_devices.h"

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <numeric>
#include <sched.h>
#include <sstream>
#include <unistd.h>
#include <utility>

namespace ptarmigan::runtime {
namespace {

constexpr int first_pci_slot = 6;

std::atomic<bool> is_initialized{false};
/// Numbers of the devices that the process sees, in its order. Written once, before is_initialized.
std::vector<int>& seen_numbers() {
    static auto* numbers = new std::vector<int>;
    return *numbers;
}

unsigned usable_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        const int count = CPU_COUNT(&set);
        if (count > 0) return static_cast<unsigned>(count);
    }
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? static_cast<unsigned>(online) : 1;
}

std::uint64_t host_memory() {
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? static_cast<std::uint64_t>(pages) * size : std::uint64_t{4} << 30;
}

/// First line of /proc/cpuinfo that starts with `key`, after its colon.
std::string cpuinfo(const char* key) {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.rfind(key, 0) != 0) continue;
        const std::size_t colon = line.find(": ");
        if (colon != std::string::npos) return line.substr(colon + 2);
    }
    return {};
}

int host_clock_khz() {
    std::ifstream maximum("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    int khz = 0;
    if (maximum >> khz && khz > 0) return khz;
    const double mhz = std::atof(cpuinfo("cpu MHz").c_str());
    return mhz > 0 ? static_cast<int>(mhz * 1000) : 1'000'000;
}

int host_l2_bytes() {
    const long size = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return size > 0 ? static_cast<int>(size) : 1 << 20;
}

/// "9.0" -> 90. The text is one that PTARMIGAN_CC takes.
unsigned parse_compute_capability(const std::string& text) {
    unsigned major = 0, minor = 0;
    std::sscanf(text.c_str(), "%u.%u", &major, &minor);
    return major * 10 + minor;
}

/// A fixed id of RFC 4122's form for each device, the same in every process. They differ in the first bytes, by which
/// programs and people shorten them.
std::array<std::uint8_t, 16> make_uuid(int number) {
    std::array<std::uint8_t, 16> uuid{};
    const char letters[17] = "PtarmiganDevice0";
    std::memcpy(uuid.data(), letters, uuid.size());
    uuid[0] = static_cast<std::uint8_t>(uuid[0] + number);
    uuid[15] = static_cast<std::uint8_t>(uuid[15] + number);
    uuid[6] = static_cast<std::uint8_t>((uuid[6] & 0x0f) | 0x40);
    uuid[8] = static_cast<std::uint8_t>((uuid[8] & 0x3f) | 0x80);
    return uuid;
}

/// What is wrong with PTARMIGAN_DEVICE: a program must not run on another device than it was meant for.
std::string profile_problem() {
    const char* name = std::getenv("PTARMIGAN_DEVICE");
    const std::string problem = env_problem(Env::device, name ? name : "");
    return problem.empty() ? problem
                           : std::string("there is no device \"") + name + "\": PTARMIGAN_DEVICE takes " + problem;
}

Status visible_by_environment(std::vector<int>& numbers) {
    const int all = Device::number_of_devices();
    if (env_is_set(Env::device_order)) {
        const std::string order = env_text(Env::device_order);
        if (order != "FASTEST_FIRST" && order != "PCI_BUS_ID") return Status::invalid_device; // all are equally fast
    }
    if (!env_is_set(Env::visible_devices)) {
        numbers.resize(static_cast<std::size_t>(all));
        std::iota(numbers.begin(), numbers.end(), 0);
        return Status::success;
    }
    std::vector<std::array<std::uint8_t, 16>> uuids;
    for (int number = 0; number < all; ++number) uuids.push_back(make_uuid(number));
    return find_visible_devices(env_text(Env::visible_devices), uuids, numbers);
}

/// Devices lie in slots side by side, as a virtual machine's do.
std::string make_bus_id(int number) {
    char text[16];
    std::snprintf(text, sizeof text, "0000:00:%02x.0", static_cast<unsigned>(first_pci_slot + number));
    return text;
}

} // namespace

Device::Device(int number) : number_(number) {
    report_env_problems();
    const DeviceProfile* const profile = chosen_profile();
    compute_capability_ = parse_compute_capability(env_text(Env::cc));
    if (profile && !env_is_given(Env::cc)) compute_capability_ = profile->compute_capability;
    workers_ = usable_cpus();
    if (const auto wanted = env_number(Env::workers); wanted)
        workers_ = static_cast<unsigned>(*wanted < 1024 ? *wanted : 1024);
    multiprocessors_ = static_cast<unsigned>(env_number(Env::sms).value_or(workers_));
    if (profile && !env_is_given(Env::sms)) multiprocessors_ = profile->multiprocessors;
    const std::uint64_t host = host_memory();
    const auto devices = static_cast<std::uint64_t>(number_of_devices());
    total_memory_ = host / 2 / devices;
    if (profile && profile->memory < total_memory_)
        total_memory_ = profile->memory; // more would end in the host's lack of it
    if (const auto wanted = env_number(Env::memory); wanted) total_memory_ = *wanted;
    total_memory_ &= ~((std::size_t{2} << 20) - 1);
    clock_khz_ = host_clock_khz();
    l2_bytes_ = host_l2_bytes();
    name_ = env_text(Env::device_name);
    if (name_.empty() && profile) name_ = profile->name;
    if (name_.empty()) {
        std::string cpu = cpuinfo("model name");
        if (cpu.empty()) cpu = "host CPU";
        name_ = "Ptarmigan (" + cpu + ") [sm_" + std::to_string(compute_capability_) + "]";
    }
    if (name_.size() > 255) name_.resize(255);
    pci_bus_id_ = make_bus_id(number);
    uuid_ = make_uuid(number);
}

int Device::number_of_devices() {
    static const int number = static_cast<int>(env_number(Env::devices).value_or(1));
    return number;
}

Device& Device::numbered(int number) {
    static const auto& all = *[] { // never destroyed: programs call in from their exit handlers
        auto* devices = new std::vector<Device*>;
        for (int i = 0; i < number_of_devices(); ++i) devices->push_back(new Device(i));
        return devices;
    }();
    return *all[static_cast<std::size_t>(number)];
}

Device& Device::get(int ordinal) {
    const std::vector<int>& seen = seen_numbers();
    const auto index = static_cast<std::size_t>(ordinal);
    const bool is_seen = is_initialized.load(std::memory_order_acquire) && index < seen.size();
    return numbered(is_seen ? seen[index] : ordinal < number_of_devices() ? ordinal : 0);
}

Status Device::initialize() {
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    if (is_initialized.load(std::memory_order_relaxed)) return Status::success;
    if (const std::string problem = profile_problem(); !problem.empty()) {
        log_once("PTARMIGAN_DEVICE", problem);
        return Status::invalid_device;
    }
    std::vector<int> numbers;
    if (const Status status = visible_by_environment(numbers); status != Status::success) return status;
    numbered(0);
    seen_numbers() = std::move(numbers);
    watch_process_exit();
    watch_forks();
    OwnProcess::begin();
    is_initialized.store(true, std::memory_order_release);
    return Status::success;
}

bool Device::initialized() {
    return is_initialized.load(std::memory_order_acquire) && !is_forked_child();
}

int Device::count() {
    if (is_initialized.load(std::memory_order_acquire)) return static_cast<int>(seen_numbers().size());
    std::vector<int> numbers;
    return visible_by_environment(numbers) == Status::success ? static_cast<int>(numbers.size()) : 0;
}

std::optional<int> Device::attribute(int id) const {
    if (const DeviceProfile* profile = chosen_profile())
        if (const auto value = profile_attribute(*profile, id); value) return value;
    const int multiprocessors = static_cast<int>(multiprocessors_);
    const int clock_khz = clock_khz_, l2_bytes = l2_bytes_, pci_slot = first_pci_slot + number_, number = number_;
    const int cc_major = static_cast<int>(compute_capability_ / 10);
    const int cc_minor = static_cast<int>(compute_capability_ % 10);
    switch (id) {
// clang-format off
#define VALUE(number, name, value) case number: return value;
#define HOST(number, name, member) case number: return member;
#define FEATURE(number, name, value, entry) case number: return value;
#define ABSENT(number, name, value, entry) case number: return 0;
// clang-format on
#include "runtime/device/device_attributes.def"
#undef VALUE
#undef HOST
#undef FEATURE
#undef ABSENT
    default: return std::nullopt;
    }
}

std::vector<unsigned> multiprocessor_groups(unsigned multiprocessors) {
    constexpr unsigned recorded = 132, group = 16;
    if (multiprocessors == recorded) return {18, 18, 16, 16, 16, 16, 16, 8, 2, 2, 2, 2};
    std::vector<unsigned> groups(multiprocessors / group, group);
    if (multiprocessors % group != 0) groups.push_back(multiprocessors % group);
    return groups;
}

bool device_attribute_row(std::size_t index, int& id, const char*& name) {
    static constexpr struct {
        int id;
        const char* name;
    } rows[] = {
#define VALUE(number, name, value) {number, #name},
#define HOST(number, name, member) {number, #name},
#define FEATURE(number, name, value, entry) {number, #name},
#define ABSENT(number, name, value, entry) {number, #name},
#include "runtime/device/device_attributes.def"
#undef VALUE
#undef HOST
#undef FEATURE
#undef ABSENT
    };
    if (index >= std::size(rows)) return false;
    id = rows[index].id;
    name = rows[index].name;
    return true;
}

} // namespace ptarmigan::runtime
