// SPDX-License-Identifier: Apache-2.0
// Operands and lists of numbers as compilers write them, read from the bytes without tokens: nearly
// all of a text of millions of instructions. What is written in any other way is the operand
// parser's; what is read here becomes the very nodes that it makes.
#pragma once

#include "frontend/parse/syntax.h"

#include <string_view>
#include <vector>

namespace ptarmigan::ptx {

/// Reads `%r1, [%rd2+-8], {%f1, %f2}, 0f3F800000, -5;`: names, decimal and 0f/0d constants, addresses and
/// braces of them, in one line without comments, up to and with the `;`. Returns where the text goes on,
/// `nodes` and `count` (of operands) set; or null if anything else is met, both then unspecified.
/// `at` is in line `line`, which begins at `line_start`.
const char* read_plain_operands(const char* at, const char* end, std::uint32_t line, const char* line_start,
                                std::vector<OperandSyntax>& nodes, std::uint32_t& count);

/// Reads an element of a list of integers, a decimal number of up to 18 digits without a 0 in front.
/// Returns the place behind it if a `,` or `}` stands there, else null.
const char* read_plain_number(const char* at, const char* end, std::uint64_t& value);

} // namespace ptarmigan::ptx
