// SPDX-License-Identifier: Apache-2.0
// Random kernels whose results the manual defines: every executable form of the instruction table, divergent and irreducible control
// flow, calls and recursion, all memories, barriers, collectives and atomics where they are legal.
#pragma once

#include "tests/tools/fuzz/registers.h"
#include "tests/tools/fuzz/rows.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>

namespace fuzz {

struct Program {
    std::string text; ///< a whole module with `.entry k(.param .u64 in, out, scratch, .param .align 16 .b8 block[64])`
    unsigned grid = 1, block_x = 32, block_y = 1;
    unsigned statements = 0; ///< numbered from 0, those inside of others too
    std::uint32_t seed = 0;  ///< of a generated one
    unsigned threads() const { return grid * block_x * block_y; }
};

inline constexpr unsigned input_bytes = 4096;     ///< at `in`, read only
inline constexpr unsigned max_threads = 256;      ///< of a grid; `out` has output_bytes for each
inline constexpr unsigned scratch_bytes = 128;    ///< per thread at `scratch`
inline constexpr unsigned common_bytes = 256;     ///< for all threads together, behind scratch
inline constexpr unsigned parameter_bytes = 64;   ///< of `block`

/// What a program may contain.
enum class Flavour {
    /// What our own forms of code must agree about.
    own,
    /// Likewise, and a GPU gives it: without what the driver's compiler decides (which NaN, what is contracted) and gets wrong.
    portable,
};

class Generator {
public:
    /// `forms`: a regular expression for the names of rows; the others are only used where a use has none that match.
    Generator(Flavour flavour, ptarmigan::ptx::Version version, ptarmigan::ptx::Target target, const std::string& forms);
    /// The same seed gives the same program on every machine. Statements in `without` are left out, with all inside of them; what
    /// remains stays as it was.
    Program generate(std::uint32_t seed, const std::set<unsigned>& without = {}) const;

private:
    Flavour flavour_;
    ptarmigan::ptx::Version version_;
    ptarmigan::ptx::Target target_;
    RowChooser rows_;
};

/// `count` bytes, half edge values of 64, 32 and 16 bits, half anything; always the same for a `seed`.
std::vector<std::uint64_t> input_words(std::size_t bytes, std::uint64_t seed);

} // namespace fuzz
