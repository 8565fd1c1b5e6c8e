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

/// All lines, in the file's order. A line that can't be read ends the program with status 2.
std::vector<Golden> read_golden(const std::string& path);

} // namespace tensor_inputs
