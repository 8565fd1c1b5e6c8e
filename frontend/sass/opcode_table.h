// SPDX-License-Identifier: Apache-2.0
// Rows of opcode_table.def, decoded at first use.
#pragma once

#include "frontend/sass/instruction.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::sass {

enum class FormId : std::uint16_t {
#define SASS_FORM(id, ...) id,
#include "frontend/sass/opcode_table.def"
#undef SASS_FORM
};

/// Where operands are, see opcode_table.def.
enum class Layout : std::uint8_t { exact, abc, ab, ac, ad, uabc, uab };

/// A part of an instruction's bits, lowest first.
struct BitField {
    struct Part {
        std::uint8_t first, count;
    };
    std::vector<Part> parts;
    std::uint64_t of(const Code& code) const;
};

struct ModifierSpec {
    BitField field;
    std::vector<std::string> names; ///< by value; "" prints nothing, "?" does not exist
};

struct OperandSpec {
    char kind = 0; ///< the letter of the row's text
    bool may_negate = false, may_be_absolute = false, may_invert = false, invert_with_x = false;
    char type = 0; ///< the letter behind the colon
    bool optional = false;
    char only_with = 0; ///< printed with .X (x), .EX (e), .SP (m), .RED (r), .COLLECTIVE (c), .DEPBAR (w) only
    bool is_signed = false;
    BitField field;           ///< registers and predicates: the first bit is all that counts
    std::int64_t silent = -1; ///< a value that is not printed
    int suffix = -1;          ///< index of a modifier that is printed behind the operand
};

struct Form {
    FormId id;
    std::string_view name; ///< the row's id
    std::uint16_t code;
    bool in_ampere, in_hopper; ///< sm_80 to sm_89, sm_90
    Layout layout;
    std::string_view syntax;
    std::string_view rule;    ///< name of the lifting rule; empty: refused
    std::string_view refusal; ///< why
    std::string mnemonic;
    std::vector<ModifierSpec> modifiers;
    std::vector<OperandSpec> operands;
};

/// All rows, in the table's order. Decoded once; the references stay.
std::span<const Form> all_forms();
/// The row for bits 0 to 11 in code of `architecture`, or null.
const Form* find_form(unsigned opcode, unsigned architecture);
/// What the disassembler calls an opcode that has no row; empty if that is not known.
std::string_view name_of_opcode(unsigned opcode);
/// Rows that could not be decoded, for the test.
std::span<const std::string> table_faults();

} // namespace ptarmigan::sass
