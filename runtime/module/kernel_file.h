// SPDX-License-Identifier: Apache-2.0
// The bytes of a compiled kernel, or of a note about a PTX text, on disk. Everything read is checked: a file may be cut
// short, damaged, written by another version, or made to do harm.
#pragma once

#include "translator/compile.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::runtime {

/// File contents for `kernel` compiled under `key`.
std::vector<std::uint8_t> write_kernel_file(std::string_view key, const translator::CompiledKernel& kernel);

/// The kernel in `bytes`, or nothing unless the file is whole, of this version, for exactly this key, and consistent
/// in itself. Never throws for bad bytes.
std::optional<translator::CompiledKernel> read_kernel_file(std::span<const std::uint8_t> bytes, std::string_view key);

/// The key that a whole file of this version, of either kind, was written for; nothing for other bytes.
std::optional<std::string> stored_key(std::span<const std::uint8_t> bytes);

/// The same for a note: any bytes that were found out under `key`.
std::vector<std::uint8_t> write_note_file(std::string_view key, std::span<const std::uint8_t> note);
std::optional<std::vector<std::uint8_t>> read_note_file(std::span<const std::uint8_t> bytes, std::string_view key);

} // namespace ptarmigan::runtime
