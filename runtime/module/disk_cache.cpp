// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/disk_cache.h"

#include "runtime/base/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>

namespace ptarmigan::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".ptmk";
constexpr std::string_view unfinished_prefix = ".new-";
constexpr const char* stored_name = "/.stored"; // its length: pages stored since somebody looked at the folder's size
constexpr std::uint64_t page = 4096;
constexpr std::uint64_t largest_file = 1ull << 30;
constexpr std::time_t touch_interval = 60;        // seconds: the order of use need not be finer
constexpr std::time_t unfinished_lifetime = 3600; // seconds after which a writer counts as dead

class FileDescriptor {
public:
    explicit FileDescriptor(int fd) : fd_(fd) {}
    ~FileDescriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;
    int get() const { return fd_; }

private:
    int fd_;
};

/// Machine code is run as this user, so only this user (or root) may have written it.
bool only_we_write(const struct stat& status) {
    return (status.st_uid == ::geteuid() || status.st_uid == 0) && !(status.st_mode & (S_IWGRP | S_IWOTH));
}

bool read_all(int fd, std::vector<std::uint8_t>& bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t got = ::read(fd, bytes.data() + done, bytes.size() - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += static_cast<std::size_t>(got);
    }
    return true;
}

bool write_all(int fd, std::span<const std::uint8_t> bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(fd, bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
    return true;
}

} // namespace

DiskCache::DiskCache(std::string directory, std::uint64_t size_limit)
    : directory_(std::move(directory)), size_limit_(size_limit) {}

DiskCache::DiskCache(std::string directory, ReadOnly)
    : directory_(std::move(directory)), size_limit_(0), read_only_(true) {}

std::string DiskCache::path(const std::string& name) const {
    return directory_ + "/" + name + std::string(suffix);
}

std::optional<std::vector<std::uint8_t>> DiskCache::load(const std::string& name) const {
    struct stat status;
    // Who may write to the folder may replace any file in it.
    if (::stat(directory_.c_str(), &status) != 0 || !only_we_write(status)) return std::nullopt;
    const FileDescriptor file(::open(path(name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return std::nullopt;
    if (!S_ISREG(status.st_mode) || !only_we_write(status) || status.st_size < 0 ||
        static_cast<std::uint64_t>(status.st_size) > largest_file)
        return std::nullopt;
    // Read, not mapped: another process may cut the file while we look at it.
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(status.st_size));
    if (!read_all(file.get(), bytes)) return std::nullopt;
    if (!read_only_ && std::time(nullptr) - status.st_mtime > touch_interval) ::futimens(file.get(), nullptr);
    return bytes;
}

bool DiskCache::prepare_directory() {
    std::error_code error;
    const fs::path parent = fs::path(directory_).parent_path();
    if (!parent.empty()) fs::create_directories(parent, error);
    ::mkdir(directory_.c_str(), 0700); // fails if it is there; the check below decides
    struct stat status;
    return ::stat(directory_.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && only_we_write(status);
}

std::string DiskCache::problem() const {
    struct stat status;
    fs::path place = directory_;
    const bool exists = ::stat(place.c_str(), &status) == 0;
    if (exists && S_ISDIR(status.st_mode) && !only_we_write(status)) return "not used: others may write to it";
    if (read_only_) return exists && S_ISDIR(status.st_mode) ? "" : "not there";
    // Folders that are missing are made where the nearest one is.
    while (::stat(place.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        const fs::path parent = place.has_parent_path() ? place.parent_path() : fs::path(".");
        if (parent == place) break;
        place = parent;
    }
    // Tried, not asked for: permissions say little about read-only file systems and nothing to root.
    std::string probe = (place / (std::string(unfinished_prefix) + "XXXXXX")).string();
    if (::mkdtemp(probe.data()) == nullptr) return std::string("not writable: ") + std::strerror(errno);
    ::rmdir(probe.c_str());
    return {};
}

void DiskCache::write_file(const std::string& name, std::span<const std::uint8_t> contents) {
    std::string temporary = directory_ + "/" + std::string(unfinished_prefix) + "XXXXXX";
    const FileDescriptor file(::mkostemp(temporary.data(), O_CLOEXEC)); // mode 0600
    if (file.get() < 0) return;
    // No fsync: a file that a crash leaves half-written fails its checksum and is made again.
    if (!write_all(file.get(), contents) || ::rename(temporary.c_str(), path(name).c_str()) != 0)
        ::unlink(temporary.c_str());
}

void DiskCache::store(const std::string& name, std::span<const std::uint8_t> contents) {
    if (read_only_ || contents.size() > size_limit_ || contents.size() > largest_file) return;
    const std::lock_guard lock(mutex_);
    if (!directory_ready_) directory_ready_ = prepare_directory();
    if (!directory_ready_) {
        const std::string line =
            "cache: " + directory_ + " can't be made, or others may write to it: kernels are not kept";
        log_once(line, line);
        return;
    }
    write_file(name, contents);
    if (is_to_look(contents.size())) prune();
}

/// Counts what is stored. Of all processes the one that has it reach a sixteenth of the limit looks at all files, or
/// the first: short ones would take longer for that than for anything else. Races count a little wrong.
bool DiskCache::is_to_look(std::size_t bytes) const {
    const std::string path = directory_ + stored_name;
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    struct stat status;
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
    const std::vector<std::uint8_t> pages(bytes / page + 1);
    const std::uint64_t all = static_cast<std::uint64_t>(status.st_size) + pages.size();
    if (status.st_size != 0 && all * page <= size_limit_ / 16) {
        write_all(file.get(), pages);
        return false;
    }
    return ::ftruncate(file.get(), 1) == 0; // one: somebody has looked
}

std::vector<DiskCache::File> DiskCache::list() const {
    std::vector<File> files;
    std::error_code error;
    for (fs::directory_iterator entry(directory_, error), end; !error && entry != end; entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        struct stat status;
        if (!name.ends_with(suffix) || ::lstat(entry->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode))
            continue;
        files.push_back(
            {name.substr(0, name.size() - suffix.size()), static_cast<std::uint64_t>(status.st_size), status.st_mtime});
    }
    return files;
}

bool DiskCache::remove(const std::string& name) const {
    return !read_only_ && ::unlink(path(name).c_str()) == 0;
}

void DiskCache::remove_unfinished() const {
    const std::time_t now = std::time(nullptr);
    std::error_code error;
    for (fs::directory_iterator entry(directory_, error), end; !error && entry != end; entry.increment(error)) {
        struct stat status;
        if (entry->path().filename().string().starts_with(unfinished_prefix) &&
            ::lstat(entry->path().c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
            now - status.st_mtime > unfinished_lifetime)
            ::unlink(entry->path().c_str());
    }
}

void DiskCache::prune() const {
    remove_unfinished();
    std::vector<File> files = list();
    std::uint64_t total = 0;
    for (const File& file : files) total += file.size;
    if (total <= size_limit_) return;
    std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used < b.used; });
    const std::uint64_t goal = size_limit_ - size_limit_ / 10; // some room, so as not to prune at each store
    for (const File& file : files) {
        if (total <= goal) break;
        if (remove(file.name)) total -= file.size;
    }
}

} // namespace ptarmigan::runtime
