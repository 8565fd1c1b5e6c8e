// SPDX-License-Identifier: Apache-2.0
// Pages of use: a file in memory that its process keeps open, found by its name among the descriptors in /proc.
#include "runtime/device/device_use.h"

#include "runtime/base/shared_pages.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ptarmigan::runtime {
namespace {

constexpr char page_name[] = "ptarmigan-device-use";
constexpr std::uint64_t page_kind = 0x31657375'6d727470; // "ptrmuse1"

DeviceUsePage own_page; ///< where there are no files in memory, and of forked children
std::atomic<DeviceUsePage*> page{nullptr};

DeviceUsePage* make_page() {
    const int file = memfd_create(page_name, MFD_CLOEXEC);
    if (file < 0) return &own_page;
    void* memory = MAP_FAILED;
    if (ftruncate(file, sizeof(DeviceUsePage)) == 0)
        memory = mmap(nullptr, sizeof(DeviceUsePage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        close(file);
        return &own_page;
    }
    auto* made = static_cast<DeviceUsePage*>(memory); // zeros; the descriptor stays open for others to find
    made->process = static_cast<std::uint32_t>(getpid());
    made->kind = page_kind;
    pthread_atfork(nullptr, nullptr, [] { page.store(&own_page, std::memory_order_release); });
    return made;
}

std::int64_t monotonic_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

struct Folder {
    explicit Folder(const std::string& path) : entries(opendir(path.c_str())) {}
    ~Folder() {
        if (entries) closedir(entries);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    /// The next entry that is a number.
    bool next(std::uint32_t& number) {
        while (const dirent* entry = entries ? readdir(entries) : nullptr) {
            const char* end = entry->d_name + std::strlen(entry->d_name);
            const auto [stop, error] = std::from_chars(entry->d_name, end, number);
            if (error == std::errc() && stop == end) return true;
        }
        return false;
    }
    DIR* entries;
};

struct FoundPage {
    ino_t inode = 0;
    std::uint32_t owner = 0; ///< as it says itself
    ProcessUse use{};
};

/// The page behind a descriptor of another process's; false if it is none.
bool read_page(const std::string& descriptor, FoundPage& found) {
    const FileDescriptor file(open(descriptor.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!file || fstat(file.get(), &status) != 0) return false;
    const auto copy = std::make_unique<DeviceUsePage>();
    if (pread(file.get(), static_cast<void*>(copy.get()), sizeof *copy, 0) != static_cast<ssize_t>(sizeof *copy))
        return false;
    if (copy->kind != page_kind) return false;
    found.inode = status.st_ino;
    found.owner = copy->process;
    const std::int64_t now = monotonic_ns();
    for (std::size_t i = 0; i < max_used_devices; ++i) {
        const DeviceUse& device = copy->devices[i];
        std::uint64_t busy = device.busy;
        if (device.grids != 0 && now > device.busy_since) busy += static_cast<std::uint64_t>(now - device.busy_since);
        found.use.devices[i] = {device.memory, device.contexts, busy};
    }
    return true;
}

/// The first descriptor of the process's with the name of a page for which is_it(path) holds.
template <class IsIt> bool find_descriptor(std::uint32_t process, IsIt&& is_it) {
    const std::string folder = "/proc/" + std::to_string(process) + "/fd/";
    Folder descriptors(folder);
    constexpr std::string_view prefix = "/memfd:";
    char target[64];
    for (std::uint32_t number = 0; descriptors.next(number);) {
        const std::string descriptor = folder + std::to_string(number);
        const ssize_t length = readlink(descriptor.c_str(), target, sizeof target);
        if (length <= 0) continue;
        const std::string_view text(target, static_cast<std::size_t>(length));
        if (!text.starts_with(prefix) || !text.substr(prefix.size()).starts_with(page_name)) continue;
        if (is_it(descriptor)) return true;
    }
    return false;
}

bool find_page(std::uint32_t process, FoundPage& found) {
    found.use.process = process;
    return find_descriptor(process, [&](const std::string& descriptor) { return read_page(descriptor, found); });
}

} // namespace

void DeviceUse::grid_begins(std::int64_t now) {
    if (grids.fetch_add(1, std::memory_order_relaxed) == 0) busy_since.store(now, std::memory_order_relaxed);
}

void DeviceUse::grid_ends(std::int64_t now) {
    if (grids.fetch_sub(1, std::memory_order_relaxed) != 1) return;
    const std::int64_t time = now - busy_since.load(std::memory_order_relaxed);
    if (time > 0) busy.fetch_add(static_cast<std::uint64_t>(time), std::memory_order_relaxed);
}

DeviceUsePage& own_device_use_page() {
    DeviceUsePage* now = page.load(std::memory_order_acquire);
    if (!now) {
        static DeviceUsePage* const made = make_page();
        DeviceUsePage* none = nullptr;
        now = page.compare_exchange_strong(none, made) ? made : none;
    }
    return *now;
}

DeviceUse& device_use(unsigned ordinal) {
    return own_device_use_page().devices[std::min<std::size_t>(ordinal, max_used_devices - 1)];
}

FileDescriptor open_device_use(std::uint32_t process) {
    FileDescriptor opened;
    find_descriptor(process, [&](const std::string& descriptor) {
        FoundPage found;
        if (!read_page(descriptor, found) || found.owner != process) return false;
        opened = FileDescriptor(open(descriptor.c_str(), O_RDWR | O_CLOEXEC));
        return true;
    });
    return opened;
}

std::vector<ProcessUse> read_device_uses() {
    std::map<ino_t, FoundPage> pages; // a forked child has its parent's descriptor
    Folder processes("/proc");
    for (std::uint32_t process = 0; processes.next(process);) {
        FoundPage found;
        if (!find_page(process, found)) continue;
        const auto [known, is_new] = pages.emplace(found.inode, found);
        if (is_new || known->second.use.process == known->second.owner) continue;
        if (process == found.owner || process < known->second.use.process) known->second = found;
    }
    std::vector<ProcessUse> uses;
    for (const auto& [inode, found] : pages) uses.push_back(found.use);
    std::sort(uses.begin(), uses.end(), [](const ProcessUse& a, const ProcessUse& b) { return a.process < b.process; });
    return uses;
}

} // namespace ptarmigan::runtime
