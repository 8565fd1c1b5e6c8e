// SPDX-License-Identifier: Apache-2.0
// Operands of instructions and initialisers of variables: trees written as preorder lists.
#pragma once

#include "frontend/parse/cursor.h"

namespace ptarmigan::ptx {

/// Appends one operand (with its `|` partner as the next sibling) to `out`; returns how many
/// siblings it made. `parentheses_are_lists`: `(a, b)` is a list, as in `call`, and not part of a
/// constant expression.
std::uint32_t parse_operand(TokenCursor& cursor, bool parentheses_are_lists, std::vector<OperandSyntax>& out);

/// Appends what stands behind the `=` of a declaration.
void parse_initializer(TokenCursor& cursor, std::vector<InitializerSyntax>& out);

} // namespace ptarmigan::ptx
