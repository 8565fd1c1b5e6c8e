// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/shared_pages.h"

#include "runtime/base/log.h"

#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ptarmigan::runtime {
namespace {

constexpr std::size_t page = 4096, huge_page = std::size_t{2} << 20;
constexpr int inaccessible = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE; ///< flags for addresses alone

std::mutex move_mutex; ///< one move at a time
/// What is being moved, for signal handlers; the end is 0 while nothing is.
std::atomic<std::uintptr_t> moving_begin{0}, moving_end{0};
std::atomic<std::uint64_t> moves{0}; ///< ended ones
/// Read by signal handlers: no lazy allocation of thread-local storage there.
__attribute__((tls_model("initial-exec"))) thread_local std::uint64_t moves_seen = 0;

void* pointer(std::uintptr_t address) {
    return reinterpret_cast<void*>(address);
}

} // namespace

FileDescriptor::~FileDescriptor() {
    if (number_ >= 0) close(number_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
        if (number_ >= 0) close(number_);
        number_ = other.number_;
        other.number_ = -1;
    }
    return *this;
}

int FileDescriptor::give_away() {
    const int number = number_;
    number_ = -1;
    return number;
}

FileDescriptor make_shared_file(std::size_t size, const FileNote& note) {
    FileDescriptor file(memfd_create("ptarmigan", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    // A page behind the memory holds the note; what is before takes no room until it is touched.
    const bool made = file && size <= SIZE_MAX / 2 && ftruncate(file.get(), static_cast<off_t>(size + page)) == 0 &&
                      pwrite(file.get(), &note, sizeof note, static_cast<off_t>(size)) == sizeof note &&
                      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    if (made) return file;
    log_once("shared file", "memory can't be shared: this process gets no file in memory (memfd_create); are its "
                            "descriptors used up (ulimit -n)?");
    return FileDescriptor();
}

bool read_shared_file(int file, std::size_t& size, FileNote& note) {
    struct stat status {};
    // Of a file that another process could make shorter, accesses might end in SIGBUS.
    const int seals = fcntl(file, F_GET_SEALS);
    if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW)) return false;
    if (fstat(file, &status) != 0 || status.st_size < static_cast<off_t>(page)) return false;
    size = static_cast<std::size_t>(status.st_size) - page;
    return pread(file, &note, sizeof note, static_cast<off_t>(size)) == sizeof note;
}

bool take_addresses_at(std::uintptr_t address, std::size_t size) {
    void* there = mmap(pointer(address), size, PROT_NONE, inaccessible | MAP_FIXED_NOREPLACE, -1, 0);
    if (there == pointer(address)) return true;
    if (there != MAP_FAILED) munmap(there, size); // an old kernel takes it for a hint
    return false;
}

std::uintptr_t take_addresses(std::size_t size, std::size_t alignment) {
    if (size > SIZE_MAX - alignment) return 0;
    void* base = mmap(nullptr, size + alignment, PROT_NONE, inaccessible, -1, 0);
    if (base == MAP_FAILED) return 0;
    const auto begin = reinterpret_cast<std::uintptr_t>(base), end = begin + size + alignment;
    const std::uintptr_t aligned = (begin + alignment - 1) / alignment * alignment;
    if (aligned > begin) munmap(base, aligned - begin);
    if (end > aligned + size) munmap(pointer(aligned + size), end - aligned - size);
    return aligned;
}

std::uintptr_t map_shared(std::uintptr_t at, std::size_t size, int file, std::size_t offset, int protection) {
    const std::uintptr_t place = at ? at : take_addresses(size, huge_page);
    if (place == 0) return 0;
    void* mapped = mmap(pointer(place), size, protection, MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(offset));
    if (mapped == MAP_FAILED) {
        if (!at) munmap(pointer(place), size);
        return 0;
    }
    madvise(mapped, size, MADV_HUGEPAGE); // where the system has huge pages in files at all
    return place;
}

void unmap_to_nothing(std::uintptr_t at, std::size_t size) {
    mmap(pointer(at), size, PROT_NONE, inaccessible | MAP_FIXED, -1, 0);
}

bool move_to_file(std::uintptr_t at, std::size_t size, int file, int protection) {
    std::lock_guard lock(move_mutex);
    void* copy = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (copy == MAP_FAILED) return false;
    madvise(copy, size, MADV_HUGEPAGE);
    moving_begin.store(at);
    moving_end.store(at + size);
    bool moved = mprotect(pointer(at), size, PROT_READ) == 0;
    if (moved) {
        // Pages that nobody has touched stay holes: mincore() would not tell them from those that are swapped out, so
        // zeros do.
        static constexpr char zeros[page] = {};
        for (std::size_t offset = 0; offset < size; offset += page) {
            const void* from = pointer(at + offset);
            if (std::memcmp(from, zeros, page) != 0) std::memcpy(static_cast<char*>(copy) + offset, from, page);
        }
        // In one step for other threads: they find the old pages, protected, or the file's.
        moved = mmap(pointer(at), size, protection, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
        if (moved)
            madvise(pointer(at), size, MADV_HUGEPAGE);
        else
            mprotect(pointer(at), size, protection);
    }
    // Counted first: who finds nothing being moved any more has to find that something was.
    moves.fetch_add(1);
    moving_end.store(0);
    munmap(copy, size);
    return moved;
}

bool wait_while_moved(std::uintptr_t address) {
    bool waited = false;
    while (true) {
        const std::uintptr_t begin = moving_begin.load(), end = moving_end.load();
        if (end == 0 || address < begin || address >= end) break;
        waited = true;
        sched_yield();
    }
    const std::uint64_t ended = moves.load();
    if (!waited && ended == moves_seen) return false;
    moves_seen = ended;
    return true;
}

} // namespace ptarmigan::runtime
