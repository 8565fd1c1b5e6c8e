// SPDX-License-Identifier: Apache-2.0
// golden.tsv, line by line; README.md has the columns.
#pragma once

#include "tests/recordings/tensor_core/inputs.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tensor_inputs {

/// A recorded form, and a hash of the GPU's results for each block.
struct Golden {
    std::string name, family; ///< family: by which sequence of steps it is computed
    Form form;
    int saturate, rounding, is_and, negate, zero_c;
    int tiles; ///< of a block
    std::array<std::uint64_t, 64> hash;

    bool has(const char* word) const { return name.find(word) != std::string::npos; }
};

/// Bits of an element as the recording counts them: words of b1.
unsigned bits_of(Format format);

/// The lanes' words of metadata of a warp, from the nibbles of its 8 or 16 rows; what no lane is asked for is junk.
void metadata_words(const Golden& recording, const std::uint32_t* nibbles, std::uint32_t* words);

/// All lines, in the file's order. A line that can't be read ends the program with status 2.
std::vector<Golden> read_golden(const std::string& path);

} // namespace tensor_inputs
