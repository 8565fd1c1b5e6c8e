// SPDX-License-Identifier: Apache-2.0
// What a program printed against what it printed on a GPU.
#pragma once

#include <cstdio>
#include <istream>
#include <string>

namespace texture_recording {

/// Prints lines that differ from the recorded ones; "~" marks those that are known to. The process's exit status.
inline int compare_lines(std::istream& ours, std::istream& recording) {
    unsigned equal = 0, known = 0, different = 0;
    std::string expected, got;
    while (std::getline(recording, expected)) {
        if (!std::getline(ours, got)) got = "(nothing)";
        const bool may_differ = expected.starts_with('~');
        if (may_differ) {
            ++known;
        } else if (expected == got) {
            ++equal;
        } else {
            std::printf("recorded  %s\nhere      %s\n", expected.c_str(), got.c_str());
            ++different;
        }
    }
    if (std::getline(ours, got)) ++different, std::printf("more than recorded: %s\n", got.c_str());
    std::printf("%u equal, %u known to differ, %u differ\n", equal, known, different);
    return different || !equal;
}

} // namespace texture_recording
