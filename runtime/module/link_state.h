// SPDX-License-Identifier: Apache-2.0
// What stands behind CUlinkState: inputs of several kinds, checked when they are added as the
// driver compiles them then, and linked when all are there.
#pragma once

#include "frontend/link/linker.h"
#include "runtime/base/status.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::runtime {

struct DeviceCode;

/// CUjitInputType.
enum class LinkInput : int { cubin = 0, ptx = 1, fatbinary = 2, object = 3, library = 4, nvvm = 5 };

/// Thread-safe.
class LinkState {
public:
    LinkState();

    /// Adds `size` bytes, which are copied. Invalid PTX is invalid_ptx, what holds no PTX for the
    /// device no_binary_for_gpu, damaged bytes invalid_image or unknown, what contradicts earlier
    /// inputs invalid_source. Machine code and LTO code are refused by name in the log. Members of
    /// libraries join only if they define what is missed; those without PTX are passed over
    /// (libcudadevrt has none for older devices than sm_121).
    Status add(LinkInput kind, const void* data, std::size_t size, std::string name);
    Status add_file(LinkInput kind, const std::string& path);
    /// The image (see fatbin_writer.h), owned by this object; without kernels if nothing was added.
    /// What was refused does not count, but for cubins, LTO code and contradictions: for them the
    /// result is that of add(). Symbols that don't resolve are invalid_source. May be asked again.
    Status complete(const void*& image, std::size_t& size);

    /// All that was said so far, in the driver's words.
    std::string error_log() const;
    std::string info_log() const;

private:
    Status fail(Status status, std::string_view text);
    /// A failure that complete() repeats.
    Status spoil(Status status);
    Status add_bytes(LinkInput kind, const void* data, std::size_t size, const std::string& name);
    Status add_cubin(const void* data, std::size_t size, const std::string& name);
    Status add_lto(const void* data, std::size_t size, const std::string& name);
    Status add_ptx(std::string text, std::string name, bool check_bodies, bool on_demand);
    Status add_fatbinary(const void* data, std::size_t size, const std::string& name, bool on_demand);
    Status add_object(const void* data, std::size_t size, const std::string& name);
    Status link();
    Status add_library(const void* data, std::size_t size, const std::string& name);

    mutable std::mutex mutex_;
    ptx::Linker linker_;
    std::string error_log_, info_log_;
    std::vector<std::uint8_t> image_;
    unsigned members_without_ptx_ = 0;
    bool complete_ = false;
    Status result_ = Status::success; ///< of complete(), as far as it is known
};

} // namespace ptarmigan::runtime
