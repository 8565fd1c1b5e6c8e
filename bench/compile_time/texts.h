// SPDX-License-Identifier: Apache-2.0
// Texts to measure with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptarmigan::bench {

/// Appends the PTX in a file: a *.ptx text, or what a library embeds, about `sample` bytes of it evenly spread. A file
/// that can't be read adds nothing.
void add_texts(const std::string& path, std::uint64_t sample, std::vector<std::string>& texts);

/// A module of about `size` bytes: the text at `path` over and over, its functions and variables renamed each time.
/// Throws std::runtime_error.
std::string large_module(const std::string& path, std::size_t size);

} // namespace ptarmigan::bench
