// SPDX-License-Identifier: Apache-2.0
// Why an instruction fits no row: messages that name the nearest row and what is missing, too much
// or misspelt.
#pragma once

#include "frontend/isa/form_matcher.h"

#include <string>

namespace ptarmigan::ptx {

/// A message, and the word of the instruction that it is about; empty if it is about the whole.
struct Explanation {
    std::string text;
    std::string_view word;
    bool unknown = false; ///< no instruction has such a word
};

/// Why no row took the words of the instruction: unknown opcode, unknown word, word that does not
/// go there, word that is missing.
Explanation explain_words(const InstructionSyntax& instruction);

/// ".s32 can stand in place of '.u32'": where the signed or unsigned type of the same size makes one of `rows` take the
/// words; empty elsewhere.
std::string explain_other_sign(const InstructionSyntax& instruction, std::span<const FormId> rows);

/// Why the operands look like those of none of the rows that take the words, of which there is one
/// at least: how many there must be, or what the first one that is wrong should be.
std::string explain_operands(const std::vector<HeadMatch>& matches, const InstructionSyntax& instruction);

} // namespace ptarmigan::ptx
