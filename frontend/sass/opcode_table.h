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
enum class Layout : std::uint8_t { exact, abc, ab, ac, ad, uabc, uab, uad, aw };

/// A part of an instruction's bits, lowest first.
struct BitField {
    struct Part {
        std::uint8_t first, count;
    };
    std::vector<Part> parts;
    std::uint64_t of(const Code& code) const;
};

/// What analyses of the code ask about a row.
enum Trait : unsigned { NAMES_CLUSTER = 1, ASYNCHRONOUS = 2, COPIES = 4, SIGNALS = 8 };

struct ModifierSpec {
    BitField field;
    std::vector<std::string> names;     ///< by value; "" prints nothing, "?" does not exist
    std::uint8_t first = 0, last = 255; ///< architectures that have it
    bool is_in(unsigned architecture) const { return architecture >= first && architecture <= last; }
};

constexpr std::uint8_t float_size = 255;

struct OperandSpec {
    char kind = 0; ///< the letter of the row's text
    bool may_negate = false, may_be_absolute = false, may_invert = false, invert_with_x = false;
    char type = 0; ///< the letter behind the colon
    bool optional = false;
    bool always_from_blackwell = false; ///< printed from sm_100 on, though optional
    char only_with = 0; ///< printed with .X (x), .EX (e), .SP (m), .RED (r), .COLLECTIVE (c), .DEPBAR (w) only, or
                        ///< where the predicate in bits 81 to 83 is not the true one (o)
    bool is_signed = false;
    BitField field;             ///< registers and predicates: the first bit is all that counts
    std::uint8_t registers = 0; ///< how many it takes; 0: as modifiers say, float_size: as bits 75 to 77 say
    bool is_at_most = false;    ///< or less
    bool is_result = false;     ///< written: the destination in bits 16 to 23, and others that the row says
    std::int64_t silent = -1;   ///< a value that is not printed
    int suffix = -1;            ///< index of a modifier that is printed behind the operand
};

struct Form {
    FormId id;
    std::string_view name; ///< the row's id
    std::uint16_t code;
    std::uint8_t first, last; ///< architectures, 80 for sm_80
    Layout layout;
    std::string_view syntax;
    std::string_view rule;    ///< name of the lifting rule; empty: refused
    std::string_view refusal; ///< why
    unsigned traits;          ///< of Trait
    std::string mnemonic;
    std::vector<ModifierSpec> modifiers;
    std::vector<OperandSpec> operands;
};

/// Architectures whose machine code is alike have rows in common; named by the first.
struct Family {
    unsigned first, last;
};
inline constexpr Family families[] = {{75, 75}, {80, 88}, {89, 89}, {90, 90}, {100, 119}, {120, 129}};
/// Index in `families`, which ends behind the last.
unsigned family_of(unsigned architecture);

/// Registers that the operand in this place takes, at most; none if it is no register.
unsigned registers_of(const Instruction& inst, unsigned place);

/// All rows, in the table's order. Decoded once; the references stay.
std::span<const Form> all_forms();
/// The row for bits 0 to 11 in code of `architecture`, or null.
const Form* find_form(unsigned opcode, unsigned architecture);
/// What the disassembler calls an opcode that has no row; empty if that is not known.
std::string_view name_of_opcode(unsigned opcode);
/// Rows that could not be decoded, for the test.
std::span<const std::string> table_faults();

} // namespace ptarmigan::sass
