// SPDX-License-Identifier: Apache-2.0
// What a file of the kernel cache stands for: the bytes that name everything its contents depend on.
#pragma once

#include "runtime/module/kernel_cache.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ptarmigan::runtime {

/// Everything that the machine code depends on, as bytes that are equal if and only if all of it is equal. `build_id`
/// is the translator's.
std::string kernel_key(const std::string& build_id, const KernelRequest& request);

/// Everything that a note depends on; empty if this code has no build id, since then nothing may be kept.
std::string note_key(const std::string& build_id, const TextHash& text, std::string_view subject);

/// The name of the key's file, without its ending: 32 hexadecimal digits.
std::string file_name(const std::string& key);

/// What a key says, as far as keys of all versions say it alike.
struct KeyContents {
    bool is_note = false;
    std::string build_id; ///< the translator's
    TextHash text_hash;
    // Of kernels:
    std::uint64_t abi_version = 0;
    std::string kernel;
    translator::BlockShape shape;
    std::string target; ///< TargetCpu::key()
};

/// Nothing if `key` is none.
std::optional<KeyContents> read_key(std::string_view key);

} // namespace ptarmigan::runtime
