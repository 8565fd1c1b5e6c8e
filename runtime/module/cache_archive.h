// SPDX-License-Identifier: Apache-2.0
// The files of a cache folder as one file, to be carried to another machine or image: magic, version, then one zstd
// frame of files, each behind its size; a size of zero ends them. Names are not stored: a file's name follows from its
// key. What is read is checked like files of the cache, but nobody can check what machine code does: only archives of
// somebody trusted may be imported.
#pragma once

#include "runtime/module/disk_cache.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptarmigan::runtime {

class ArchiveError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct ExportCounts {
    std::size_t files = 0, skipped = 0; ///< skipped: damaged, or not of this version
    std::uint64_t bytes = 0;            ///< of the archive
};

/// Writes all files of `cache` that can be used into a file at `path`, which appears whole or not at all. Throws
/// ArchiveError if it can't be written.
ExportCounts export_cache(const DiskCache& cache, const std::string& path);

/// Which files this machine and build can use.
struct ImportFilter {
    std::string build_id;             ///< the translator's
    std::vector<std::string> targets; ///< TargetCpu::key() of what this CPU can run
};

struct ImportCounts {
    std::size_t added = 0, present = 0;
    std::size_t other_build = 0;  ///< skipped: of another build of the translator, or another ABI
    std::size_t other_target = 0; ///< skipped: for another CPU
    std::size_t damaged = 0;      ///< skipped: not whole, or not consistent
    std::size_t not_kept = 0;     ///< could not be written
};

/// Adds the files of the archive at `path` to `cache`. Throws ArchiveError if it can't be read, is no archive, or ends
/// early; what came before that has been added.
ImportCounts import_cache(DiskCache& cache, const std::string& path, const ImportFilter& filter);

} // namespace ptarmigan::runtime
