// SPDX-License-Identifier: Apache-2.0
// An oracle for the random programs: each thread on its own, one statement after the other, until it waits for others. It shares the
// parser and the instruction table with the translator, and nothing else.
#pragma once

#include "tests/tools/fuzz/generator.h"

#include <string>
#include <vector>

namespace fuzz::reference {

/// Is the form one that the interpreter knows?
bool knows(ptarmigan::ptx::FormId form);

/// `--forms` for programs of known forms only.
std::string known_forms();

/// What the program leaves in memory, laid out as by Runner. Throws UnknownForm where it can't say, std::runtime_error where the
/// program does what none may.
std::vector<unsigned char> interpret(const Program& program, const std::vector<std::uint64_t>& input, std::size_t memory_bytes);

struct UnknownForm {
    std::string name;
};

} // namespace fuzz::reference
