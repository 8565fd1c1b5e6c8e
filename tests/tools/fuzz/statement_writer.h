// SPDX-License-Identifier: Apache-2.0
// One random instruction from a row of the instruction table: its words, and its operands of every kind that the row allows.
#pragma once

#include "frontend/isa/form_matcher.h"
#include "tests/recordings/random.h"
#include "tests/tools/fuzz/registers.h"

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace fuzz {

using namespace ptarmigan::ptx;
using recordings::Random;

/// Opcode and words, and what they mean for the row.
struct Head {
    std::string text;
    HeadMatch match;
    /// The word stands in it.
    bool has(std::string_view word) const;
};

/// Texts for operands that the surroundings choose: addresses, member masks, numbers of barriers.
using Given = std::map<Role, std::string>;

class StatementWriter {
public:
    StatementWriter(Random& random, const Registers& registers, Version version, Target target)
        : random_(random), registers_(&registers), version_(version), target_(target) {}

    void use(const Registers& registers) { registers_ = &registers; }
    /// Words that the row takes at the version and target, and that `accept` takes; nothing if none was found.
    std::optional<Head> head(FormId form, const std::function<bool(const Head&)>& accept = {});
    /// The statement, without a guard. Nothing if an operand has no register or constant here.
    std::optional<std::string> statement(const Head& head, const Given& given = {});
    /// Its destinations, as the last statement() chose them.
    const std::vector<std::string>& destinations() const { return destinations_; }

    /// A register that holds a value of the type.
    std::string any_register(ScalarType type);
    /// A constant of the type, edge values among them; empty if there are none.
    std::string constant(ScalarType type, std::string_view allowed = {});

private:
    std::string operand(const OperandPattern& operand, const Head& head);
    std::string value(const OperandPattern& operand, ScalarType type, bool wider, const Head& head);
    std::string list(const OperandPattern& operand, ScalarType type, bool wider, unsigned count);
    std::string selector(SelectorRule rule);
    std::string pick(const std::vector<std::string>& names, bool is_destination);
    std::string special_register(ScalarType type);
    bool one_in(unsigned n) { return random_.below(n) == 0; }

    Random& random_;
    const Registers* registers_;
    Version version_;
    Target target_;
    FormMatcher matcher_;
    std::vector<std::string> destinations_;
    bool failed_ = false;      ///< an operand could not be made
    bool has_selector_ = false; ///< the destination names a part of its register
    bool has_register_ = false; ///< a source is no constant
};

/// What an operand's constraint says of its type.
ScalarType operand_type(const OperandPattern& operand, const HeadMatch& match);

} // namespace fuzz
