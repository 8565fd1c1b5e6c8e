// SPDX-License-Identifier: Apache-2.0
// Checks of an instruction's words that no row can say: see word_rules.def.
#pragma once

#include "frontend/ptx/module.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ptarmigan::ptx {

/// Why the words, spelled without dots, can't stand together at this version and target; empty if
/// they can. They are ones that some row of the opcode takes.
std::string broken_word_rule(std::string_view opcode, std::span<const std::string_view> words, Version version,
                             const Target& target);

/// Why a word of the instruction's name (`mul.lo`) does not stand where the name's words do; empty if all do.
std::string misplaced_word(std::string_view opcode, std::span<const std::string_view> words);

/// The word that is understood where no row takes the words as they are written, before some version; or empty.
std::string_view implied_word(std::string_view opcode, std::span<const std::string_view> words, Version version);

/// Those of the words that ptxas overlooks where an instruction has no use for them, bit i for words[i] (the first 32).
std::uint32_t overlooked_words(std::string_view opcode, std::span<const std::string_view> words);

/// True if `_` must stand for the result of an instruction with these words.
bool result_must_sink(std::string_view opcode, std::span<const std::string_view> words);

} // namespace ptarmigan::ptx
