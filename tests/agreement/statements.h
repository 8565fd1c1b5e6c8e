// SPDX-License-Identifier: Apache-2.0
// Makes PTX statements: heads from patterns of words, operands from the rows of the instruction
// table. Names of operands say what they are, so that a statement needs no declarations of its own:
// %b32_0 is a .b32 register, {%b32_0:4} a list of four that starts with it, svar a variable in .shared memory, L0 a label; see wrap().
#pragma once

#include "frontend/isa/form_matcher.h"

#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::test {

/// "add.(rn|rz)[.ftz].f32": `(x|y)` is one of the texts, `[x|y]` one or none. All heads it stands for.
std::vector<std::string> expand(std::string_view pattern);

/// The rows whose words the head takes.
std::vector<ptx::HeadMatch> rows_for(ptx::FormMatcher& matcher, std::string_view head);

/// Statements that use the row with the head's words: the plainest one first. With `variants` also
/// ones with other operands, one of which differs from the plainest: constants, registers of other
/// types, optional operands. Not all of them are legal.
std::vector<std::string> with_operands(std::string_view head, const ptx::HeadMatch& match,
                                       bool variants);

/// An entry function, on one line, that declares what the statement names and has it as its body. `module TEXT`
/// stands outside of functions; `#` in it is `number`.
std::string wrap(std::string_view statement, std::size_t number, std::string_view version = "9.0");
/// What the entry functions share. Ends with a newline.
std::string module_header(std::string_view version, std::string_view target);

/// wrap() with a new line behind each comma, semicolon and bracket, so that what an error is reported at tells its place.
std::string spread(std::string_view statement, std::string_view version);

/// Whether the front end takes the statement.
bool accepted_here(std::string_view version, std::string_view target, std::string_view statement);

} // namespace ptarmigan::test
