// SPDX-License-Identifier: Apache-2.0
// Which bytes of a block of 64 are a given character: what the lexer skips bodies with.
#pragma once

#include "frontend/parse/bytes.h"

#include <cstddef>
#include <cstdint>

namespace ptarmigan::ptx {

inline constexpr std::size_t block_size = 64;

/// Bit i is set if byte i of the 64 at `block` is `c`.
inline std::uint64_t bytes_equal(const char* block, char c) {
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < block_size; i += 16) bits |= std::uint64_t{equal_bytes(block + i, c)} << i;
    return bits;
}

} // namespace ptarmigan::ptx
