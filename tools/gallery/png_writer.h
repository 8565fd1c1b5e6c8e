// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Writes RGBA pixels (4 bytes each, rows from the top) as a PNG file. False if that fails.
bool write_png(const std::string& path, const std::vector<std::uint8_t>& rgba, unsigned width, unsigned height);
