// SPDX-License-Identifier: Apache-2.0
// The operands of golden.tsv: pseudo-random matrices of 16 distributions. Changing anything here breaks the recording.
#pragma once

#include "runtime/tensor_core/matrix_product.h"

#include <cstdint>

namespace tensor_inputs {

using ptarmigan::runtime::tensor_core::Format;

/// What the inputs of a form depend on.
struct Form {
    int id;
    Format a, b, c, d;
    int m, n, k, stored; ///< k and stored: elements of a column of B and of a row of A (b1: words)
    bool sparse, ordered;

    int chunks() const; ///< metadata nibbles of a row
};

enum class Matrix : std::uint8_t { a, b, c };

/// The matrices of one instruction: where its random numbers begin, and its distribution.
struct Tile {
    std::uint64_t base, random;
    int distribution, round;
    int exponent[3]; ///< unbiased, about which those of A, B and C lie
};
inline constexpr int distributions = 16;

std::uint64_t mix(std::uint64_t value); ///< splitmix64

Tile tile_of(const Form& form, int block, int tile);

/// Bits of element `index` of a matrix: A's is row * stored + k, B's column * k + k, C's row * n + column. `k`: its place
/// along k; `line`: its row of A or column of B.
std::uint64_t element(const Form& form, const Tile& tile, Matrix matrix, int index, int k, int line);

/// Metadata of chunk `index` (row * chunks + chunk). Some blocks have nibbles that PTX doesn't define.
std::uint32_t metadata(const Form& form, const Tile& tile, int index);

/// How often the instruction is done with the same A and B, ...
int passes(const Form& form, int distribution);
/// ... and the C of the next time.
std::uint64_t next_c(const Form& form, int distribution, std::uint64_t d);

/// The hash of a block is the sum of this over its elements, index = tile * m * n + row * n + column.
inline std::uint64_t hash_of(std::uint64_t index, std::uint64_t d) {
    return mix(index * 0x9e3779b97f4a7c15 + d);
}

} // namespace tensor_inputs
