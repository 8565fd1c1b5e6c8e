// SPDX-License-Identifier: Apache-2.0
// What to tell a user whose program brings machine code and no PTX. To rebuild it is no help where the code is
// NVIDIA's, or made while the program runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::shim {

/// `owner`: the file that the image lies in, or nothing for memory. `objects`: paths of what the process has loaded.
/// `usual`: for code that users compile themselves.
std::string machine_code_advice(std::string_view owner, const std::vector<std::string>& objects,
                                const std::string& usual);

/// Paths of the process's program and shared libraries.
std::vector<std::string> loaded_objects();

} // namespace ptarmigan::shim
