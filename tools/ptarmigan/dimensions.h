// SPDX-License-Identifier: Apache-2.0
// X[,Y[,Z]] as given to --grid, --block and --cluster.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace ptarmigan::tool {

/// Missing components are 1. Throws CLI::ValidationError naming `option` for anything but one to
/// three numbers.
std::array<std::uint32_t, 3> parse_dimensions(const std::string& text, const std::string& option);
/// The same for --block, and what no device launches is an error too: see the message.
std::array<std::uint32_t, 3> parse_block(const std::string& text);

} // namespace ptarmigan::tool
