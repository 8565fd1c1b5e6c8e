// SPDX-License-Identifier: Apache-2.0
// Declarations of variables, registers, parameters and functions.
#pragma once

#include "frontend/parse/cursor.h"

namespace ptarmigan::ptx {

/// `.global .align 4 .f32 a[2] = {1, 2}, b;` from its first word to behind the `;`. Words that are
/// no part of a variable declaration are errors.
void parse_variables(TokenCursor& cursor, VariableSyntax& out);

/// From behind `.entry` or `.func` to behind the `{...}` (skipped) or the `;`.
void parse_function(TokenCursor& cursor, bool is_entry, FunctionSyntax& out);

/// From behind `.callprototype` to behind the `;`.
void parse_prototype(TokenCursor& cursor, FunctionSyntax& out);

} // namespace ptarmigan::ptx
