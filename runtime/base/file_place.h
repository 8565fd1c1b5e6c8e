// SPDX-License-Identifier: Apache-2.0
// Names of shared files that processes hand on in 64 bytes, as a program likes (CUipcMemHandle, CUipcEventHandle,
// CUmemPoolPtrExportData). The bytes name a descriptor of the owner's, which is opened through /proc: the processes
// have to be of one user and see each other there.
#pragma once

#include "runtime/base/shared_pages.h"
#include "runtime/base/status.h"

#include <cstdint>

namespace ptarmigan::runtime {

/// Names a file in memory of a process, and something in it. 64 bytes.
struct FilePlace {
    std::uint64_t kind = 0; ///< which call makes and takes it
    std::int32_t process = 0, file = -1;
    std::uint64_t started = 0; ///< when the process did: its number may have been given anew
    std::uint64_t inode = 0;   ///< of the file: its number may have been given anew, too
    std::uint64_t offset = 0, size = 0;
    std::uint64_t id = 0;
    std::uint64_t check = 0; ///< of the words before: so that junk is not opened
};
static_assert(sizeof(FilePlace) == 64);

/// Fills in process, inode and check of what else is given.
Status name_place(FilePlace& place);
/// invalid_value if these are not the bytes of a name_place() of `kind`.
Status check_place(const FilePlace& place, std::uint64_t kind);
bool is_own_place(const FilePlace& place);
/// The file itself; none if the process or the file is gone, or may not be opened.
FileDescriptor open_place(const FilePlace& place);

} // namespace ptarmigan::runtime
