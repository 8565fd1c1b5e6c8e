// SPDX-License-Identifier: Apache-2.0
#include "frontend/isa/explain.h"

#include <algorithm>

namespace ptarmigan::ptx {

namespace {

bool takes(const WordSlot& slot, Word word) {
    return std::find(slot.choices.begin(), slot.choices.end(), word) != slot.choices.end();
}

/// How a row differs from what is written.
struct Difference {
    const FormPattern* pattern = nullptr;
    std::vector<const WordSlot*> missing;
    std::vector<std::string_view> extra;
    std::size_t size() const { return missing.size() + 2 * extra.size(); }
};

/// Each word goes to the first free slot that takes it; what is left over on either side differs.
Difference compare(const FormPattern& pattern, const InstructionSyntax& instruction) {
    Difference difference{&pattern, {}, {}};
    std::vector<bool> used(pattern.slots.size());
    for (std::string_view spelt : instruction.words) {
        const Word word = find_word(spelt);
        std::size_t slot = 0;
        while (slot < used.size() && (used[slot] || !takes(pattern.slots[slot], word))) ++slot;
        if (slot == used.size())
            difference.extra.push_back(spelt);
        else
            used[slot] = true;
    }
    for (std::size_t slot = 0; slot < used.size(); ++slot)
        if (!used[slot] && !pattern.slots[slot].optional)
            difference.missing.push_back(&pattern.slots[slot]);
    return difference;
}

/// ".rn, .rz, .rm or .rp"; long lists are cut.
std::string either(std::span<const Word> words) {
    constexpr std::size_t shown = 8;
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i == shown) return text + ", ...";
        const bool last = i + 1 == words.size();
        if (i != 0) text += last ? " or " : ", ";
        text += "." + std::string(spelling(words[i]));
    }
    return text;
}

/// Where one word is missing from each of the nearest rows: any of theirs will do.
std::string one_missing(std::span<const Difference> nearest) {
    std::vector<Word> words;
    for (const Difference& difference : nearest)
        for (Word word : difference.missing.front()->choices)
            if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    return either(words) + " is missing: " + std::string(nearest.front().pattern->info->syntax);
}

std::string describe(const Difference& difference) {
    std::string text;
    for (const WordSlot* slot : difference.missing)
        text += (text.empty() ? "" : ", ") + either(slot->choices) + " is missing";
    for (std::string_view word : difference.extra)
        text += (text.empty() ? "'." : ", '.") + std::string(word.substr(0, 60)) +
                "' does not go there";
    if (text.empty()) text = "the types stand in another order, or a word stands twice";
    return text + ": " + std::string(difference.pattern->info->syntax);
}

std::string unknown_opcode(const InstructionSyntax& instruction) {
    const std::string_view near = FormTable::get().nearest_opcode(instruction.opcode);
    const std::string text =
        "unknown instruction '" + std::string(instruction.opcode.substr(0, 60)) + "'";
    return near.empty() ? text : text + " (did you mean '" + std::string(near) + "'?)";
}

/// What is wrong with a single word; empty if each is one that the opcode takes somewhere.
std::string wrong_word(const InstructionSyntax& instruction, std::span<const FormId> rows) {
    const FormTable& table = FormTable::get();
    for (std::string_view word : instruction.words) {
        if (find_word(word).kind != Word::Kind::unknown) continue;
        const std::string_view near = nearest_word(word);
        const std::string text = "unknown modifier '." + std::string(word.substr(0, 60)) + "'";
        return near.empty() ? text : text + " (did you mean '." + std::string(near) + "'?)";
    }
    for (std::string_view spelt : instruction.words) {
        const bool used = std::any_of(rows.begin(), rows.end(), [&](FormId form) {
            const auto slots = table.pattern(form).slots;
            return std::any_of(slots.begin(), slots.end(),
                               [&](const WordSlot& slot) { return takes(slot, find_word(spelt)); });
        });
        if (!used)
            return "'" + std::string(instruction.opcode) + "' does not take '." +
                   std::string(spelt) + "'";
    }
    return {};
}

/// What a row wants to see in an operand's place.
std::string wanted(const OperandPattern& pattern, const HeadMatch& match) {
    using Want = Constraint::Kind;
    switch (pattern.form) {
    case OperandPattern::Form::bracket_first: return "an address in brackets";
    case OperandPattern::Form::parens: return "a list in parentheses";
    default: break;
    }
    switch (pattern.constraint.kind) {
    case Want::pack:
    case Want::list: return "a list in braces";
    case Want::vec:
        if (match.vector_size > 1)
            return "a vector of " + std::to_string(match.vector_size) + " elements in braces";
        return "a single register or constant";
    case Want::label: return "a label";
    case Want::function: return "a function or a register";
    case Want::targets: return "a .branchtargets list";
    case Want::prototype: return "a prototype";
    case Want::imm: return "a constant";
    case Want::pred: return "a predicate";
    default: return "a single register or constant";
    }
}

std::string found(const OperandSyntax& node) {
    switch (node.kind) {
    case OperandSyntax::Kind::bracket: return "an address in brackets";
    case OperandSyntax::Kind::braces: return "a list in braces";
    case OperandSyntax::Kind::parens: return "a list in parentheses";
    default: break;
    }
    if (node.inverted) return "'!'";
    if (node.minus) return "'-'";
    return node.kind == OperandSyntax::Kind::constant ? "a constant" : "a name";
}

struct Counts {
    unsigned least = 0, most = 0;
};

/// Operands that stand apart from each other in the text.
Counts counts_of(const FormPattern& pattern, const HeadMatch& match) {
    Counts counts;
    for (const OperandPattern& operand : pattern.operands) {
        using Form = OperandPattern::Form;
        if (operand.form == Form::hidden || operand.form == Form::bracket_next ||
            operand.form == Form::pair_second)
            continue;
        const detail::Tie tie = detail::tie_of(operand, match);
        if (tie == detail::Tie::absent) continue;
        ++counts.most;
        if (!operand.optional || tie == detail::Tie::present) ++counts.least;
    }
    return counts;
}

std::string number_of(Counts counts) {
    std::string text = std::to_string(counts.least);
    if (counts.most != counts.least) text += " to " + std::to_string(counts.most);
    return text + (counts.most == 1 ? " operand" : " operands");
}

} // namespace

std::string explain_words(const InstructionSyntax& instruction) {
    const FormTable& table = FormTable::get();
    const std::span<const FormId> rows = table.rows_of(instruction.opcode);
    if (rows.empty()) return unknown_opcode(instruction);
    std::string wrong = wrong_word(instruction, rows);
    if (!wrong.empty()) return wrong;

    std::vector<Difference> differences;
    for (FormId form : rows) differences.push_back(compare(table.pattern(form), instruction));
    std::stable_sort(differences.begin(), differences.end(),
                     [](const Difference& a, const Difference& b) { return a.size() < b.size(); });
    constexpr std::size_t near = 3, shown = 3;
    std::string text = "no form of '" + std::string(instruction.opcode) + "' takes these modifiers";
    const Difference& best = differences.front();
    if (best.missing.size() == 1 && best.extra.empty()) {
        const auto end =
            std::find_if(differences.begin(), differences.end(), [](const Difference& d) {
                return d.missing.size() != 1 || !d.extra.empty();
            });
        return text + "; " + one_missing({differences.begin(), end});
    }
    if (best.size() <= near) return text + "; " + describe(best);
    text += " together; the nearest are:";
    for (std::size_t i = 0; i < std::min(shown, differences.size()); ++i)
        text += "\n      " + std::string(differences[i].pattern->info->syntax);
    return text;
}

std::string explain_operands(const std::vector<HeadMatch>& matches,
                             const InstructionSyntax& instruction) {
    const FormTable& table = FormTable::get();
    unsigned written = instruction.operand_count;
    const auto& nodes = instruction.operands;
    for (std::size_t i = 0; i < nodes.size(); i += nodes[i].extent)
        if (nodes[i].pair_follows && written > 0) --written;
    const auto number_fits = [&](const HeadMatch& match) {
        const Counts counts = counts_of(table.pattern(match.form), match);
        return written >= counts.least && written <= counts.most;
    };
    // Rows of the same words differ in their operands: one with the right number is meant.
    const auto meant = std::find_if(matches.begin(), matches.end(), number_fits);
    const HeadMatch& match = meant == matches.end() ? matches.front() : *meant;
    const FormPattern& pattern = table.pattern(match.form);
    const std::string text = "the operands do not fit '" + std::string(pattern.info->syntax) + "'";
    if (meant == matches.end())
        return text + ": " + number_of(counts_of(pattern, match)) + " must stand there, not " +
               std::to_string(written);

    std::size_t node = 0;
    unsigned place = 0;
    for (const OperandPattern& operand : pattern.operands) {
        using Form = OperandPattern::Form;
        if (operand.form == Form::hidden || operand.form == Form::bracket_next ||
            operand.form == Form::pair_second ||
            detail::tie_of(operand, match) == detail::Tie::absent)
            continue;
        if (node >= nodes.size()) break;
        const OperandSyntax& actual = nodes[node];
        const bool is_list = actual.kind == OperandSyntax::Kind::braces;
        const bool fits = detail::node_fits(operand, actual, match, is_list);
        if (!fits && operand.optional) continue;
        ++place;
        if (!fits)
            return text + ": operand " + std::to_string(place) + " must be " +
                   wanted(operand, match) + ", not " + found(actual);
        if (actual.pair_follows) node += actual.extent;
        if (node < nodes.size()) node += nodes[node].extent;
    }
    return text;
}

} // namespace ptarmigan::ptx
