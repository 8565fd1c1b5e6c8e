// SPDX-License-Identifier: Apache-2.0
// The dot-words of PTX: types, state spaces, vector sizes and modifiers, by spelling.
#pragma once

#include "frontend/isa/instruction_form.h"
#include "frontend/ptx/types.h"

#include <cstdint>
#include <string_view>

namespace ptarmigan::ptx {

/// What a dot-word is. `value` is a ScalarType, the vector size, a Modifier, or a StateSpace.
struct Word {
    enum class Kind : std::uint8_t { unknown, type, space, vector, modifier };
    Kind kind = Kind::unknown;
    std::uint16_t value = 0;
    bool operator==(const Word&) const = default;
};

/// The meaning of a word spelled without its dot; Kind::unknown if there is none.
Word find_word(std::string_view spelling);
std::string_view spelling(Word word);
std::string_view spelling(StateSpace space); ///< "const", "global", ...; empty for none and generic
std::string_view spelling(Modifier modifier);
std::string_view spelling(Role role);

/// Role::none if no row's operand has that name.
Role find_role(std::string_view spelling);

/// The space that a word names; .shared::cta, .param::entry and the like are modifiers that name
/// one too. Else none.
StateSpace space_of(Word word);

/// Finds the candidate nearest to a misspelt name, for "did you mean".
class NearestSpelling {
public:
    explicit NearestSpelling(std::string_view wanted);
    void offer(std::string_view candidate);
    /// The nearest one so far; empty if none is near enough to be meant.
    std::string_view best() const { return best_; }

private:
    std::string_view wanted_, best_;
    unsigned best_distance_;
};
/// The nearest known dot-word, or empty.
std::string_view nearest_word(std::string_view spelling);

} // namespace ptarmigan::ptx
