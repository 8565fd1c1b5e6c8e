// SPDX-License-Identifier: Apache-2.0
// Hashes of what a GPU gave, seed by seed: eight digits of the result and four of the program's text, which tell whether it is still the
// program that was recorded.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace fuzz {

struct Recorded {
    std::string result; ///< eight digits; "--------": the GPU's driver could not compile or run it
    std::string text;   ///< four
    bool known_difference = false;
};
using Recording = std::map<std::uint32_t, Recorded>;

Recorded recorded(const std::string& result, const std::string& program_text);
/// Throws std::runtime_error.
Recording read_recording(const std::string& path);
/// `comment`: lines for the head of the file.
void write_recording(const std::string& path, const Recording& recording, const std::string& comment);

} // namespace fuzz
