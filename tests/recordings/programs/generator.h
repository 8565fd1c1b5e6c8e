// SPDX-License-Identifier: Apache-2.0
// Random kernels whose results the hardware makes deterministic: arithmetic of every recorded form, divergent control flow,
// calls, local, shared and global memory, barriers and warp collectives where all threads meet.
#pragma once

#include "tests/recordings/programs/forms.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace random_programs {

struct Program {
    std::string text; ///< functions and `.entry k<seed>(.param .u64 in, out, scratch)`, without the module's head
    unsigned grid = 1, block_x = 32, block_y = 1;
    unsigned statements = 0; ///< numbered from 0, those inside of others too
};

inline constexpr unsigned inputs = 256;        ///< 64-bit words at `in`
inline constexpr unsigned max_threads = 256;   ///< of a grid; `out` has a 64-bit word for each
inline constexpr unsigned scratch_bytes = 64;  ///< per thread at `scratch`, and as many for all together at its end

/// What a thread leaves at `out`.
enum class Outcome {
    hash,      ///< one word: of all its registers and its local memory
    registers, ///< register_words words: the registers themselves
};
inline constexpr unsigned register_words = 32;
/// Names of the registers in their order, fewer than register_words.
std::vector<std::string> register_names();

/// The same seed gives the same program on every machine. Statements in `without` are left out, with all inside of them; what
/// remains stays as it was.
Program generate(std::uint32_t seed, const std::vector<Form>& forms, const std::set<unsigned>& without = {},
                 Outcome outcome = Outcome::hash);

inline constexpr const char* module_head = ".version 9.0\n.target sm_90\n.address_size 64\n";

} // namespace random_programs
