// SPDX-License-Identifier: Apache-2.0
// Kernel arguments as text: `u32:7`, `f32:1.5`, `buf:f32[1024]=iota`. See `ptarmigan run --help`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptarmigan::tool {

/// An element type: kind 'u', 's', 'f' (IEEE), 'h' (bf16) or 'b' (bits), and its bytes.
struct ElementType {
    char kind = 'u';
    unsigned size = 4;
};

/// One parsed argument. A buffer's bytes are copied to device memory, and the parameter is its
/// address.
struct Argument {
    ElementType type;
    bool is_buffer = false;
    std::vector<std::uint8_t> bytes; ///< the value, or the buffer's first contents
    std::uint64_t count = 1;         ///< elements
};

/// Throws std::invalid_argument, saying what is wrong with `spec`.
Argument parse_argument(const std::string& spec);

/// One element as text, `bytes` pointing at type.size bytes: numbers in decimal, bits in
/// hexadecimal; floats with enough digits to come back equal.
std::string format_element(const ElementType& type, const std::uint8_t* bytes);

} // namespace ptarmigan::tool
