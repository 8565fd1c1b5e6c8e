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

unsigned bits_of(Format format) {
    return format == Format::b1 ? 32 : bit_size(format);
}

void metadata_words(const Golden& recording, const std::uint32_t* nibbles, std::uint32_t* words) {
    const int chunks = recording.form.chunks(), selector = recording.name.back() - '0';
    const bool is_wide = bits_of(recording.form.a) >= 16;
    for (int lane = 0; lane < 32; ++lane) {
        words[lane] = static_cast<std::uint32_t>(mix(std::uint64_t(lane)));
        const int g = lane / 4, t = lane % 4;
        for (int q = 0; q < 8; ++q) {
            int row = g + 8 * (q >> 2), chunk = q & 3;
            bool counts = t == selector;
            if (is_wide && chunks == 8) {
                counts = t >> 1 == selector;
                chunk += 4 * (t & 1);
            } else if (!is_wide) {
                row = g + 8 * (t & 1);
                counts = chunks == 16 || t >> 1 == selector;
                chunk = chunks == 16 ? 8 * (t >> 1) + q : q;
            }
            if (!counts) continue;
            const std::uint32_t nibble = nibbles[row * chunks + chunk];
            words[lane] = (words[lane] & ~(15u << 4 * q)) | nibble << 4 * q;
        }
    }
}

} // namespace tensor_inputs
