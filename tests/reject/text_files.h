// SPDX-License-Identifier: Apache-2.0
// Reads the files of a folder for the tests of bad input.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace ptarmigan::test {

struct TextFile {
    std::string name, text;
};

/// Every .ptx file of `folder`, by name; empty if the folder is missing.
inline std::vector<TextFile> ptx_files(const std::string& folder) {
    std::vector<TextFile> files;
    std::error_code missing;
    for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
        if (entry.path().extension() != ".ptx") continue;
        std::ifstream in(entry.path(), std::ios::binary);
        std::stringstream text;
        text << in.rdbuf();
        files.push_back({entry.path().filename().string(), text.str()});
    }
    std::sort(files.begin(), files.end(),
              [](const TextFile& a, const TextFile& b) { return a.name < b.name; });
    return files;
}

} // namespace ptarmigan::test
