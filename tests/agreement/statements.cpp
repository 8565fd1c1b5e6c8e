// SPDX-License-Identifier: Apache-2.0
#include "tests/agreement/statements.h"

#include "frontend/isa/list_sizes.h"
#include "frontend/isa/word_rules.h"
#include "tests/support/instruction_head.h"

#include <algorithm>

namespace ptarmigan::test {

using namespace ptx;

std::vector<std::string> expand(std::string_view pattern) {
    std::vector<std::string> heads{""};
    while (!pattern.empty()) {
        const char first = pattern.front();
        std::vector<std::string_view> choices;
        if (first == '(' || first == '[') {
            const std::size_t close = pattern.find(first == '(' ? ')' : ']');
            std::string_view inside = pattern.substr(1, close - 1);
            if (first == '[') choices.push_back("");
            while (true) {
                const std::size_t bar = inside.find('|');
                choices.push_back(inside.substr(0, bar));
                if (bar == std::string_view::npos) break;
                inside.remove_prefix(bar + 1);
            }
            pattern.remove_prefix(close + 1);
        } else {
            const std::size_t end = std::min(pattern.find_first_of("(["), pattern.size());
            choices.push_back(pattern.substr(0, end));
            pattern.remove_prefix(end);
        }
        std::vector<std::string> longer;
        for (const std::string& head : heads)
            for (std::string_view choice : choices) longer.push_back(head + std::string(choice));
        heads = std::move(longer);
    }
    return heads;
}

std::vector<HeadMatch> rows_for(FormMatcher& matcher, std::string_view head) {
    return matcher.heads(test::syntax_of(head));
}

namespace {

/// Writes the operands of one statement.
class OperandWriter {
public:
    OperandWriter(std::string_view head, const HeadMatch& match)
        : head_(head), match_(match), pattern_(FormTable::get().pattern(match.form)) {}

    /// The statement, with operand `varied` in its variant `variant` (0: all plain). Empty if the
    /// operand has no such variant.
    std::string write(std::size_t varied, std::size_t variant) {
        next_register_ = 0;
        exists_ = variant == 0;
        std::string text(head_);
        bool first = true, in_bracket = false;
        const auto& operands = pattern_.operands;
        for (std::size_t i = 0; i < operands.size(); ++i) {
            const OperandPattern& operand = operands[i];
            using Form = OperandPattern::Form;
            if (operand.form == Form::hidden) continue;
            if (in_bracket && operand.form != Form::bracket_next) {
                text += ']';
                in_bracket = false;
            }
            const auto choices = choices_of(operand);
            const std::size_t want = i == varied ? variant : 0;
            if (want >= choices.size()) return {};
            if (i == varied) exists_ = true;
            const std::string& choice = choices[want];
            if (choice.empty()) continue; // optional and absent
            if (operand.form == Form::pair_second)
                text += "|";
            else
                text += first ? " " : ", ";
            if (operand.form == Form::bracket_first) {
                text += '[';
                in_bracket = true;
            }
            text += choice;
            first = false;
        }
        if (in_bracket) text += ']';
        return exists_ ? text + ';' : std::string();
    }
    std::size_t operand_count() const { return pattern_.operands.size(); }

private:
    std::string reg(std::string_view type) {
        return "%" + std::string(type) + "_" + std::to_string(next_register_++);
    }
    /// Registers that hold a value of the type: the usual one first.
    std::vector<std::string> register_types(ScalarType type, bool wider) const {
        const unsigned bits = bit_size(type);
        switch (type) {
        case ScalarType::none: return {"b32", "b64"};
        case ScalarType::pred: return {"pred", "b32"};
        case ScalarType::f32: return {"f32", "b32", "s32", "f64"};
        case ScalarType::f64: return {"f64", "b64", "u64", "f32"};
        default: break;
        }
        const std::string size = std::to_string(wider ? std::max(bits, 16u) : std::max(bits, 8u));
        std::vector<std::string> types{"b" + size};
        if (bits == 8) types.insert(types.end(), {"b8", "u8", "s8", "b16"});
        if (bits == 128) return types;
        if (type_class(type) == TypeClass::bits) types.insert(types.end(), {"u" + size, "s" + size});
        if (is_integer(type)) types.push_back((is_signed(type) ? "u" : "s") + size);
        if (bits == 32) types.insert(types.end(), {"f32", "b64", "b16"});
        if (bits == 64) types.insert(types.end(), {"f64", "b32"});
        if (bits == 16) types.insert(types.end(), {"b32"});
        return types;
    }
    /// The first constant that the row allows.
    static std::string legal_constant(std::string_view values) {
        if (values.empty()) return "1";
        if (values.starts_with('*')) values.remove_prefix(1);
        return std::string(values.substr(0, values.find_first_of(".|")));
    }
    std::string list(std::string_view type, unsigned count) {
        std::string text = "{" + reg(type) + ":" + std::to_string(count) + "}";
        next_register_ += count - 1;
        return text;
    }
    ScalarType type_of(const Constraint& c) const {
        if (c.kind == Constraint::Kind::any)
            return c.literal != ScalarType::none ? c.literal : match_.types[0];
        ScalarType type = c.slot >= 0 ? match_.types[static_cast<std::size_t>(c.slot)] : c.literal;
        if (c.kind != Constraint::Kind::wide && c.kind != Constraint::Kind::half) return type;
        const unsigned bits = c.kind == Constraint::Kind::wide ? bit_size(type) * 2 : bit_size(type) / 2;
        if (is_float(type)) return bits == 64 ? ScalarType::f64 : ScalarType::f32;
        return bits == 64 ? ScalarType::b64 : bits == 32 ? ScalarType::b32 : ScalarType::b16;
    }

    bool must_sink() const {
        std::vector<std::string_view> words;
        for (std::size_t dot = head_.find('.'); dot != std::string_view::npos;) {
            const std::size_t next = head_.find('.', dot + 1);
            words.push_back(head_.substr(dot + 1, next - dot - 1));
            dot = next;
        }
        return result_must_sink(pattern_.info->opcode, words);
    }

    std::vector<std::string> choices_of(const OperandPattern& operand) {
        std::vector<std::string> choices = written_choices(operand);
        if (operand.is_destination && must_sink()) choices.insert(choices.begin(), "_");
        if (!operand.optional || detail::tie_of(operand, match_) == detail::Tie::present)
            return choices;
        if (detail::tie_of(operand, match_) == detail::Tie::absent) return {""};
        choices.insert(choices.begin(), "");
        return choices;
    }

    std::vector<std::string> written_choices(const OperandPattern& operand) {
        using Kind = Constraint::Kind;
        const Constraint& c = operand.constraint;
        switch (c.kind) {
        case Kind::address: return addresses(operand);
        case Kind::tensor_address: return {reg("b32"), reg("b64"), reg("b32") + "+16", "gvar"};
        case Kind::imm: {
            std::vector<std::string> choices{legal_constant(c.values)};
            choices.insert(choices.end(), {"0", "1", "2", "4", "8", "16", "32", "128", reg("b32")});
            return choices;
        }
        case Kind::label: return {"L0"};
        case Kind::pred: {
            std::vector<std::string> choices{reg("pred")};
            if (operand.is_destination) return choices;
            choices.insert(choices.end(), {"!" + choices[0], "1", reg("b32")});
            return choices;
        }
        case Kind::list: return lists(operand);
        case Kind::pack: {
            const unsigned bits = bit_size(type_of(c));
            std::vector<std::string> choices{list("b" + std::to_string(bits / 2), 2)};
            if (bits > 16) choices.push_back(list("b" + std::to_string(bits / 4), 4));
            choices.push_back(list("b" + std::to_string(bits / 2), 3));
            return choices;
        }
        case Kind::vec:
            if (match_.vector_size > 1) {
                const auto types = register_types(type_of(c), true);
                std::vector<std::string> choices;
                for (const std::string& type : types) choices.push_back(list(type, match_.vector_size));
                choices.push_back(list(types[0], match_.vector_size / 2u));
                return choices;
            }
            return values(operand, true);
        case Kind::wider: return values(operand, true);
        default: return values(operand, false);
        }
    }

    std::vector<std::string> values(const OperandPattern& operand, bool wider) {
        if (pattern_.info->chapter == "texture" && operand.role == Role::b)
            return {"mvar", reg("b64"), "tvar", reg("b32"), "1"};
        const ScalarType type = type_of(operand.constraint);
        std::vector<std::string> choices;
        for (const std::string& name : register_types(type, wider)) choices.push_back(reg(name));
        if (operand.constraint.selector != SelectorRule::none)
            for (const char* selector : {"b0", "h1", "b4", "h10", "h32", "h01", "b20", "b3210", "b7777", "b02"})
                choices.push_back(choices[0] + "." + selector);
        if (operand.is_destination) {
            choices.push_back("_");
            return choices;
        }
        if (type == ScalarType::pred) choices.push_back("!" + choices[0]);
        if (operand.constraint.or_predicate) {
            choices.push_back(reg("pred"));
            choices.push_back("!" + reg("pred"));
        }
        if (operand.constraint.values != "none" && !operand.constraint.values.empty())
            choices.push_back(legal_constant(operand.constraint.values));
        choices.insert(choices.end(), {"1", "-1", "0f3F800000", "0d3FF0000000000000", "%laneid"});
        return choices;
    }

    std::vector<std::string> lists(const OperandPattern& operand) {
        ScalarType type = type_of(operand.constraint);
        if (operand.constraint.fragment && bit_size(type) < 32) type = ScalarType::b32;
        const auto types = register_types(type, false);
        const unsigned size = list_size(match_, operand.role);
        std::vector<std::string> choices;
        if (operand.role == Role::c && is_array()) {
            for (const char* index : {"b32", "u32", "s32", "f32"})
                choices.push_back(array_coordinates(index, types[0], size));
            return choices;
        }
        if (size != 0) {
            choices.push_back(list(types[0], size));
            choices.push_back(list(types[0], size * 2));
            if (size > 1) choices.push_back(list(types[0], size / 2));
        } else {
            for (unsigned count : {1, 2, 4, 8, 3}) choices.push_back(list(types[0], count));
        }
        if (types.size() > 1) choices.push_back(list(types[1], std::max(size, 1u)));
        return choices;
    }

    /// Arrays of textures: an index comes before the coordinates.
    bool is_array() const {
        const auto end = match_.modifiers.begin() + match_.modifier_count;
        return pattern_.info->chapter == "texture" &&
               std::any_of(match_.modifiers.begin(), end, [](Modifier m) {
                   return spelling(m) == "a1d" || spelling(m) == "a2d" || spelling(m) == "acube" ||
                          spelling(m) == "a2dms";
               });
    }
    std::string array_coordinates(std::string_view index, std::string_view type, unsigned size) {
        std::string text = "{" + reg(index);
        for (unsigned i = 1; i < size; ++i) text += ", " + reg(type);
        return text + "}";
    }

    std::vector<std::string> addresses(const OperandPattern& operand) {
        const std::string wide = reg("b64"), narrow = reg("b32");
        const std::string_view chapter = pattern_.info->chapter;
        if (chapter == "texture") return {"tvar", wide};
        if (chapter == "surface") return {"uvar", wide};
        const std::string_view variable = match_.space == StateSpace::shared     ? "svar"
                                          : match_.space == StateSpace::local    ? "lvar"
                                          : match_.space == StateSpace::constant ? "cvar"
                                          : match_.space == StateSpace::param    ? "pvar"
                                                                                 : "gvar";
        const bool plain_variable = match_.space == StateSpace::param;
        std::vector<std::string> choices{plain_variable ? std::string(variable) : wide,
                                         plain_variable ? wide : std::string(variable),
                                         wide + "+16", wide + "-16", std::string(variable) + "+4", "16"};
        // Elsewhere ptxas warns of an address of another size; we refuse it.
        if (match_.space == StateSpace::shared || match_.space == StateSpace::local ||
            match_.space == StateSpace::constant)
            choices.push_back(narrow);
        return choices;
    }

    std::string_view head_;
    const HeadMatch& match_;
    const FormPattern& pattern_;
    unsigned next_register_ = 0;
    bool exists_ = false;
};

} // namespace

std::vector<std::string> with_operands(std::string_view head, const HeadMatch& match,
                                       bool variants) {
    OperandWriter writer(head, match);
    std::vector<std::string> statements{writer.write(0, 0)};
    if (!variants) return statements;
    for (std::size_t i = 0; i < writer.operand_count(); ++i)
        for (std::size_t variant = 1;; ++variant) {
            std::string statement = writer.write(i, variant);
            if (statement.empty()) break;
            if (std::find(statements.begin(), statements.end(), statement) == statements.end())
                statements.push_back(std::move(statement));
        }
    return statements;
}

} // namespace ptarmigan::test
