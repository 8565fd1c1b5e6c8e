// SPDX-License-Identifier: Apache-2.0
// A list of instruction forms with their recorded results, and the PTX that runs one of them on operands in registers.
//
// A line: hash, type of the result, types of the sources (immN: an immediate), statement. A '~' before the hash marks a form that is known
// to differ. Types of video operands have signs and selectors: -u32.b1. A statement with %d in it is several: %d is the
// result, %a, %b, %c and %e the sources. Lines that begin with `module` declare what the statements of all lines may use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace recordings {

struct Form {
    bool known_difference = false;
    std::uint64_t hash = 0;
    std::string result;
    std::vector<std::string> sources;
    std::string statement;

    /// Sources that are no immediates.
    unsigned operand_count() const;
};

struct FormList {
    std::string declarations; ///< at module scope, for the statements: lines that begin with `module`
    std::vector<Form> forms;
};

/// Throws std::runtime_error if the file can't be read.
FormList read_forms(const char* path);

bool is_immediate(const std::string& type);
/// Bits of an operand's value: 1 for a predicate, 8 for a count (k8).
unsigned bits_of(const std::string& type);

/// Statements that take the low bits of the 64-bit register `from` into the source's own register: %q1I, %r1I, %h1I or %p1I.
std::string operand_load(const Form& form, unsigned source, const std::string& from);
/// The form's statement on those registers; its result is in %q1, zero-extended. Writes %q1, %r1, %h1, %p2.
std::string operation(const Form& form);
/// Declarations for what the two name.
extern const char* const form_registers;

} // namespace recordings
