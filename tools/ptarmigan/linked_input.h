// SPDX-License-Identifier: Apache-2.0
// The PTX that a command works on: one file as it is, several linked.
#pragma once

#include <string>
#include <vector>

namespace ptarmigan::tool {

/// The text of `paths` and what messages call it. Returns an exit code; what went wrong is on
/// stderr.
int read_input(const std::vector<std::string>& paths, std::string& text, std::string& name);
/// The same, linked also if it is one: what it misses is an error then.
int link_input(const std::vector<std::string>& paths, std::string& text, std::string& name);

} // namespace ptarmigan::tool
