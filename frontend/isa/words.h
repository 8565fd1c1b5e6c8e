// SPDX-License-Identifier: Apache-2.0
// The dot-words of PTX: types, state spaces, vector sizes and modifiers, by spelling.
#pragma once

#include "frontend/isa/instruction_form.h"
#include "frontend/ptx/types.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

/// Finds the candidates nearest to a misspelt name, for "did you mean". Case makes no difference. Candidates are
/// views that must outlive it.
class NearestSpelling {
public:
    explicit NearestSpelling(std::string_view wanted);
    void offer(std::string_view candidate);
    /// The first of the nearest ones so far; empty if none is near enough to be meant.
    std::string_view best() const { return best_.empty() ? std::string_view{} : best_.front(); }
    /// " (did you mean '.le' or '.lt'?)", of up to three that are equally near, `before` standing before each; empty if
    /// there is none.
    std::string question(std::string_view before = {}) const;

private:
    std::string wanted_;
    std::vector<std::string_view> best_;
    unsigned best_distance_;
    bool best_is_prefix_ = false; ///< what was written begins with it
};

} // namespace ptarmigan::ptx
