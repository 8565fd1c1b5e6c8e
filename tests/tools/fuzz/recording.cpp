// SPDX-License-Identifier: Apache-2.0
// The file: comments, `seed N`, then programs of that and the next seeds, twelve digits each, eight in a line; `~`: known to differ, with a
// reason in a comment.
#include "tests/tools/fuzz/recording.h"

#include "tests/recordings/driver.h"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace fuzz {

Recorded recorded(const std::string& result, const std::string& program_text) {
    char digits[5];
    std::snprintf(digits, sizeof digits, "%04x", static_cast<unsigned>(recordings::hash_bytes(program_text.data(), program_text.size()) >> 48));
    return {result.starts_with("error") ? "--------" : result.substr(0, 8), digits, false};
}

Recording read_recording(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    Recording recording;
    std::uint32_t seed = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#') continue;
        std::istringstream words(line);
        for (std::string word; words >> word;) {
            if (word == "seed") {
                words >> seed;
                continue;
            }
            const bool known = word[0] == '~';
            if (known) word.erase(0, 1);
            if (word.size() != 12) throw std::runtime_error(path + ": " + word);
            recording[seed++] = {word.substr(0, 8), word.substr(8), known};
        }
    }
    return recording;
}

void write_recording(const std::string& path, const Recording& recording, const std::string& comment) {
    std::ofstream file(path);
    file << comment;
    std::uint32_t next = 0;
    unsigned column = 0;
    for (const auto& [seed, program] : recording) {
        if (column == 0 || seed != next) file << (column ? "\n" : "") << "seed " << seed << "\n", column = 1;
        else file << ((column - 1) % 8 == 0 ? "\n" : " ");
        file << (program.known_difference ? "~" : "") << program.result << program.text;
        ++column;
        next = seed + 1;
    }
    file << "\n";
    if (!file) throw std::runtime_error("cannot write " + path);
}

} // namespace fuzz
