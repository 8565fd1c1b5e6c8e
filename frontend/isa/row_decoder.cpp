// SPDX-License-Identifier: Apache-2.0
#include "frontend/isa/row_decoder.h"

#include "frontend/isa/constraint_decoder.h"
#include "frontend/ptx/module.h"

#include <algorithm>

namespace ptarmigan::ptx {

namespace {

std::string_view trim(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

/// Takes the text up to `separator` from the front of `rest`.
std::string_view take_until(std::string_view& rest, char separator) {
    const std::size_t at = rest.find(separator);
    const std::string_view part = rest.substr(0, at);
    rest = at == std::string_view::npos ? std::string_view{} : rest.substr(at + 1);
    return trim(part);
}

bool is_word_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
}

class RowDecoder {
public:
    RowDecoder(const RawRow& row, DecodedRow& out, std::vector<std::string>& faults)
        : row_(row), out_(out), faults_(faults) {}

    void decode() {
        const std::size_t space = row_.syntax.find(' ');
        words(row_.syntax.substr(0, space));
        if (space != std::string_view::npos) {
            rest_ = row_.syntax.substr(space);
            operands(false, OperandPattern::Form::plain);
        }
        constraints();
        destinations();
    }

private:
    void fault(std::string text) { faults_.push_back(std::string(row_.name) + ": " + text); }

    // --- words
    // ------------------------------------------------------------------------------------------------------
    void words(std::string_view head) {
        std::size_t at = head.find_first_of(".{");
        out_.opcode = head.substr(0, at);
        bool optional = false;
        while (at < head.size()) {
            const char c = head[at++];
            if (c == '{') {
                optional = true;
            } else if (c == '}') {
                optional = false;
            } else if (c == '.') {
                std::size_t end = at;
                while (end < head.size() && is_word_character(head[end])) ++end;
                word(head.substr(at, end - at), optional);
                at = end;
            } else {
                return fault("unexpected character in the syntax before the operands");
            }
        }
    }

    void word(std::string_view name, bool optional) {
        DecodedRow::Slot slot;
        slot.name = name;
        slot.slot.optional = optional;
        slot.first_word = static_cast<std::uint32_t>(out_.words.size());
        std::string_view choices = class_of(name);
        if (choices.empty()) {
            slot.slot.literal = true;
            choice(name);
        } else {
            while (!choices.empty()) {
                std::string_view one = take_until(choices, ',');
                if (one.starts_with('.')) one.remove_prefix(1);
                choice(one);
            }
        }
        slot.word_count = static_cast<std::uint32_t>(out_.words.size()) - slot.first_word;
        const Word first = out_.words[slot.first_word];
        slot.slot.is_space = space_of(first) != StateSpace::none;
        if (first.kind == Word::Kind::type) slot.slot.type_index = types_++;
        out_.slots.push_back(slot);
    }

    void choice(std::string_view spelling) {
        const Word word = find_word(spelling);
        if (word.kind == Word::Kind::unknown) fault("unknown word '." + std::string(spelling) + "'");
        out_.words.push_back(word);
    }

    /// The text between the braces of `.name = {...}` in `where`; empty if `name` is a literal
    /// word.
    std::string_view class_of(std::string_view name) const {
        std::string_view rest = row_.where;
        while (!rest.empty()) {
            std::string_view item = take_until(rest, ';');
            const std::size_t equals = item.find('=');
            if (equals == std::string_view::npos || !item.starts_with('.')) continue;
            if (trim(item.substr(1, equals - 1)) != name) continue;
            item = trim(item.substr(equals + 1));
            if (item.size() >= 2 && item.front() == '{') return item.substr(1, item.size() - 2);
        }
        return {};
    }

    // --- operands
    // ---------------------------------------------------------------------------------------------------
    void operands(bool optional, OperandPattern::Form form) {
        bool invert = false, negate = false, pair = false;
        while (!rest_.empty()) {
            const char c = rest_.front();
            if (c == '}' || c == ']' || c == ')') return;
            if (rest_.starts_with("{!}")) {
                invert = true;
                rest_.remove_prefix(3);
            } else if (rest_.starts_with("{-}")) {
                negate = true;
                rest_.remove_prefix(3);
            } else if (rest_.starts_with("{.")) { // [a]{.unified}: taken with the bracket
                rest_.remove_prefix(std::min(rest_.find('}'), rest_.size() - 1) + 1);
            } else if (c == '{') {
                group(true, '}', form);
            } else if (c == '[') {
                group(optional, ']', OperandPattern::Form::bracket_first);
            } else if (c == '(') {
                group(optional, ')', OperandPattern::Form::parens);
            } else if (c == '|') {
                pair = true;
                rest_.remove_prefix(1);
            } else if (c == ' ' || c == ',') {
                rest_.remove_prefix(1);
            } else {
                if (!name(optional, pair ? OperandPattern::Form::pair_second : form, invert, negate)) return;
                invert = negate = pair = false;
                if (form == OperandPattern::Form::bracket_first) form = OperandPattern::Form::bracket_next;
            }
        }
    }

    void group(bool optional, char close, OperandPattern::Form form) {
        rest_.remove_prefix(1);
        // The second of a pair may be optional: `d{|p}`.
        operands(optional, form);
        if (rest_.empty() || rest_.front() != close) return fault("unbalanced brackets in the syntax");
        rest_.remove_prefix(1);
    }

    bool name(bool optional, OperandPattern::Form form, bool invert, bool negate) {
        std::size_t end = 0;
        while (end < rest_.size() && (is_word_character(rest_[end]) || rest_[end] == '-')) ++end;
        if (end == 0) {
            fault("unexpected '" + std::string(1, rest_.front()) + "' among the operands");
            return false;
        }
        add(rest_.substr(0, end), optional, form, invert, negate);
        rest_.remove_prefix(end);
        return true;
    }

    void add(std::string_view name, bool optional, OperandPattern::Form form, bool invert, bool negate) {
        OperandPattern pattern;
        pattern.form = form;
        pattern.role = find_role(name);
        pattern.optional = optional;
        pattern.may_invert = invert;
        pattern.may_negate = negate;
        if (pattern.role == Role::none) fault("unknown role '" + std::string(name) + "'");
        if (form == OperandPattern::Form::bracket_first) {
            pattern.constraint.kind = Constraint::Kind::address;
        } else {
            pattern.constraint.kind = types_ == 0 ? Constraint::Kind::any : Constraint::Kind::type;
            pattern.constraint.slot = 0;
        }
        if (out_.operands.size() >= ptx::Instruction::max_operands)
            fault("more operands than an instruction has places for");
        out_.operands.push_back(pattern);
        out_.constraint_texts.push_back(form == OperandPattern::Form::bracket_first ? "address" : "type");
    }

    // --- constraints
    // ------------------------------------------------------------------------------------------------
    void constraints() {
        std::string_view rest = row_.where;
        while (!rest.empty()) {
            std::string_view item = take_until(rest, ';');
            if (item.empty() || (item.starts_with('.') && item.find('=') != std::string_view::npos)) continue;
            const std::size_t colon = item.find(':');
            if (colon == std::string_view::npos) {
                fault("'" + std::string(item) + "' is neither a class nor a constraint");
                continue;
            }
            std::string_view names = item.substr(0, colon);
            const std::string_view text = trim(item.substr(colon + 1));
            while (!names.empty()) constrain(take_until(names, ','), text);
        }
    }

    void constrain(std::string_view name, std::string_view text) {
        const Role role = find_role(name);
        if (text == "hidden" && role != Role::none) {
            add(name, false, OperandPattern::Form::hidden, false, false);
            out_.operands.back().constraint.kind = Constraint::Kind::hidden;
            out_.operands.back().constraint.literal = ScalarType::pred;
            out_.operands.back().constraint.slot = -1;
            out_.constraint_texts.back() = text;
            return;
        }
        for (std::size_t i = 0; i < out_.operands.size(); ++i) {
            if (out_.operands[i].role != role || role == Role::none) continue;
            const std::string_view whole = text;
            const std::size_t of = text.find(" of ");
            const SelectorRule selector =
                of == std::string_view::npos ? SelectorRule::none : selector_rule(text.substr(of + 4));
            text = text.substr(0, of);
            const std::size_t in = text.find(" in ");
            std::string fault_text;
            out_.operands[i].constraint = decode_constraint(text.substr(0, in), out_.slots, fault_text);
            if (!fault_text.empty()) fault(fault_text);
            out_.operands[i].constraint.selector = selector;
            if (in != std::string_view::npos) out_.operands[i].constraint.values = text.substr(in + 4);
            out_.constraint_texts[i] = whole;
            return;
        }
        fault("constraint for '" + std::string(name) + "', which is no operand");
    }

    SelectorRule selector_rule(std::string_view name) {
        constexpr std::string_view names[] = {"none", "part", "halves", "bytes", "half_mask", "byte_mask"};
        const auto found = std::find(std::begin(names), std::end(names), name);
        if (found == std::end(names)) {
            fault("unknown selectors '" + std::string(name) + "'");
            return SelectorRule::none;
        }
        return static_cast<SelectorRule>(found - std::begin(names));
    }

    /// The first operand, unless the row has no result or it is a memory operand; its pair; the
    /// carry flag; what a load reduces to.
    void destinations() {
        for (std::size_t i = 0; i < out_.operands.size(); ++i) {
            OperandPattern& operand = out_.operands[i];
            const auto form = operand.form;
            if (i == 0)
                operand.is_destination = row_.shape != ShapeRule::none && form != OperandPattern::Form::bracket_first;
            else if (form == OperandPattern::Form::pair_second)
                operand.is_destination = out_.operands[i - 1].is_destination;
            else if (operand.role == Role::redval) // tcgen05.ld.red, beside the registers that it loads
                operand.is_destination = true;
            else if (form == OperandPattern::Form::hidden)
                operand.is_destination = operand.role == Role::cc_out || operand.role == Role::after;
        }
    }

    const RawRow& row_;
    DecodedRow& out_;
    std::vector<std::string>& faults_;
    std::string_view rest_; ///< operands not yet read
    std::int8_t types_ = 0;
};

} // namespace

void decode_row(const RawRow& row, DecodedRow& out, std::vector<std::string>& faults) {
    out.opcode = {};
    out.words.clear();
    out.slots.clear();
    out.operands.clear();
    out.constraint_texts.clear();
    RowDecoder(row, out, faults).decode();
}

} // namespace ptarmigan::ptx
