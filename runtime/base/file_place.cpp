// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/file_place.h"

#include "runtime/base/log.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace ptarmigan::runtime {
namespace {

/// When a process started, in the kernel's ticks since it did; 0 if there is no such process.
std::uint64_t start_of(int process) {
    const std::string path = "/proc/" + std::to_string(process) + "/stat";
    FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char text[1024];
    const ssize_t length = file ? read(file.get(), text, sizeof text - 1) : 0;
    if (length <= 0) return 0;
    text[length] = 0;
    // The name, the second word, may hold anything; field 22 is the twentieth behind it.
    const char* at = std::strrchr(text, ')');
    for (int field = 2; at && field < 22; ++field) at = std::strchr(at + 1, ' ');
    return at ? std::strtoull(at + 1, nullptr, 10) : 0;
}

std::uint64_t inode_of(int file) {
    struct stat status {};
    return fstat(file, &status) == 0 ? status.st_ino : 0;
}

std::uint64_t check_of(const FilePlace& place) {
    std::uint64_t words[8], sum = 0x7074612d70747821;
    std::memcpy(words, &place, sizeof words);
    for (int i = 0; i < 7; ++i) sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15 + (sum >> 29);
    return sum;
}

} // namespace

Status name_place(FilePlace& place) {
    place.process = getpid();
    place.started = start_of(place.process);
    place.inode = inode_of(place.file);
    if (place.started == 0 || place.inode == 0) return Status::operating_system;
    place.check = check_of(place);
    return Status::success;
}

Status check_place(const FilePlace& place, std::uint64_t kind) {
    return place.kind == kind && place.check == check_of(place) ? Status::success : Status::invalid_value;
}

bool is_own_place(const FilePlace& place) {
    return place.process == getpid() && place.started == start_of(place.process);
}

FileDescriptor open_place(const FilePlace& place) {
    if (start_of(place.process) != place.started) return FileDescriptor();
    const std::string path = "/proc/" + std::to_string(place.process) + "/fd/" + std::to_string(place.file);
    struct stat status {};
    // Only a file in memory is opened at all: others may do something when they are.
    if (stat(path.c_str(), &status) != 0 || status.st_ino != place.inode || !S_ISREG(status.st_mode))
        return FileDescriptor();
    FileDescriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file) {
        log_once("other process", "memory of process " + std::to_string(place.process) +
                                      " can't be opened: " + std::strerror(errno) +
                                      "; both have to be of one user and see each other in /proc");
        return FileDescriptor();
    }
    return inode_of(file.get()) == place.inode ? std::move(file) : FileDescriptor();
}

} // namespace ptarmigan::runtime
