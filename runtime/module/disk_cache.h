// SPDX-License-Identifier: Apache-2.0
// A folder of files that any number of processes read and write at once: whole files appear by rename, and the
// least recently used go when the folder grows beyond its limit. What is in a file is kernel_file.h's business.
#pragma once

#include <cstdint>
#include <ctime>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ptarmigan::runtime {

/// Thread-safe. Trouble with the file system is never an error: nothing is found, or nothing is kept.
class DiskCache {
public:
    /// Files are `directory`/<name>.ptmk; others in the folder are left alone. Nothing is touched before the first use.
    DiskCache(std::string directory, std::uint64_t size_limit);
    /// A folder that somebody else fills: nothing is stored there, nor marked as used.
    struct ReadOnly {};
    DiskCache(std::string directory, ReadOnly);

    /// Contents of a file; nothing if there is none, or if someone else could have written it (another owner, or
    /// write permission for others). Marks the file as used.
    std::optional<std::vector<std::uint8_t>> load(const std::string& name) const;
    /// Adds or replaces a file, then prunes if processes have stored much since one last did. A folder that can't be
    /// made, or that others may write to, is named on stderr once; one that can only be read is not.
    void store(const std::string& name, std::span<const std::uint8_t> contents);
    const std::string& directory() const { return directory_; }
    struct File {
        std::string name; ///< as for load()
        std::uint64_t size = 0;
        std::time_t used = 0; ///< to a minute; a read-only folder's: made
    };
    /// All files, in no order.
    std::vector<File> list() const;
    bool remove(const std::string& name) const;
    /// Deletes the least recently used files until the folder is within its limit.
    void prune() const;
    /// Why nothing can be kept there ("not writable: Permission denied"), or found in one that is only read; empty if
    /// it can. Leaves nothing behind.
    std::string problem() const;

private:
    std::string path(const std::string& name) const;
    bool prepare_directory();
    void remove_unfinished() const;
    void write_file(const std::string& name, std::span<const std::uint8_t> contents);
    bool is_to_look(std::size_t bytes) const;

    const std::string directory_;
    const std::uint64_t size_limit_;
    const bool read_only_ = false;
    std::mutex mutex_; ///< guards what follows
    bool directory_ready_ = false;
};

} // namespace ptarmigan::runtime
