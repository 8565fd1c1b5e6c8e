// SPDX-License-Identifier: Apache-2.0
#include "tests/recordings/tensor_core/golden.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace tensor_inputs {

std::vector<Golden> read_golden(const std::string& path) {
    std::vector<Golden> recordings;
    std::ifstream file(path);
    for (std::string text; std::getline(file, text);) {
        if (text.empty() || text[0] == '#') continue;
        std::istringstream line(text);
        Golden r{};
        int format[4];
        Form& form = r.form;
        line >> form.id >> r.name >> r.family >> form.m >> form.n >> form.k >> form.stored;
        for (int& f : format) line >> f;
        line >> form.sparse >> form.ordered >> r.saturate >> r.rounding >> r.is_and >> r.negate >> r.zero_c >> r.tiles >> std::hex;
        for (auto& hash : r.hash) line >> hash;
        if (!line) {
            std::fprintf(stderr, "%s: bad line: %s\n", path.c_str(), text.c_str());
            std::exit(2);
        }
        form.a = static_cast<Format>(format[0]);
        form.b = static_cast<Format>(format[1]);
        form.c = static_cast<Format>(format[2]);
        form.d = static_cast<Format>(format[3]);
        recordings.push_back(std::move(r));
    }
    return recordings;
}

} // namespace tensor_inputs
