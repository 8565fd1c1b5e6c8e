// SPDX-License-Identifier: Apache-2.0
// Memory that two mappings share: of two processes, or of two places in one. Memory is the process's own at first, in
// huge pages where there are some, and becomes a file in memory when it is to be shared, under running kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptarmigan::runtime {

/// A file descriptor that is closed at its end; -1: none.
class FileDescriptor {
public:
    explicit FileDescriptor(int number = -1) : number_(number) {}
    ~FileDescriptor();
    FileDescriptor(FileDescriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
    FileDescriptor& operator=(FileDescriptor&& other) noexcept;
    int get() const { return number_; }
    explicit operator bool() const { return number_ >= 0; }
    /// The caller closes it.
    int give_away();

private:
    int number_;
};

/// What stands behind the memory in its file, for whoever gets a descriptor of it.
struct FileNote {
    std::uint64_t kind = 0; ///< of the note: so that no other file is taken for one
    std::uint64_t words[7] = {};
};

/// A file in memory of `size` bytes and a note, which nobody can make shorter or longer. None without such files or
/// descriptors.
FileDescriptor make_shared_file(std::size_t size, const FileNote& note);
/// Size and note of a file of make_shared_file(), another process's perhaps; false for any other file.
bool read_shared_file(int file, std::size_t& size, FileNote& note);

/// Maps `size` bytes of the file at `at`, over what was there, with mmap's protection. At 0: anywhere, aligned to 2
/// MiB. 0 if the process has no more room.
std::uintptr_t map_shared(std::uintptr_t at, std::size_t size, int file, std::size_t offset, int protection);
/// Puts inaccessible addresses in place of a mapping.
void unmap_to_nothing(std::uintptr_t at, std::size_t size);
/// Inaccessible addresses, aligned to a power of two. 0 if there are none.
std::uintptr_t take_addresses(std::size_t size, std::size_t alignment);
/// Makes addresses inaccessible ones; false, and nothing has changed, if the process uses any of them.
bool take_addresses_at(std::uintptr_t address, std::size_t size);

/// Moves the process's own memory of [at, at + size) into the file and maps that there, with `protection` (the present
/// one). Other threads may use the memory meanwhile: their writes wait, which needs the fault handlers to be in place
/// (wait_while_moved). False if the host has no memory for it; nothing has changed then.
bool move_to_file(std::uintptr_t at, std::size_t size, int file, int protection);

/// For the handler of SIGSEGV; async-signal-safe. True if the access may succeed now and is to be made again: a move
/// was under way there, or one has ended since this thread asked last.
bool wait_while_moved(std::uintptr_t address);

} // namespace ptarmigan::runtime
