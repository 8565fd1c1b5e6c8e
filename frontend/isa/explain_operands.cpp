// SPDX-License-Identifier: Apache-2.0
// Why the operands of an instruction look like those of no row.
#include "frontend/isa/explain.h"

#include <algorithm>

namespace ptarmigan::ptx {

namespace {

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
        if (match.vector_size > 1) return "a vector of " + std::to_string(match.vector_size) + " elements in braces";
        return "a single register or constant (with .v2 or .v4: a list in braces)";
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
        if (operand.form == Form::hidden || operand.form == Form::bracket_next || operand.form == Form::pair_second)
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

std::string explain_operands(const std::vector<HeadMatch>& matches, const InstructionSyntax& instruction) {
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
        return text + ": " + number_of(counts_of(pattern, match)) + " must stand there, not " + std::to_string(written);

    std::size_t node = 0;
    unsigned place = 0;
    for (const OperandPattern& operand : pattern.operands) {
        using Form = OperandPattern::Form;
        if (operand.form == Form::hidden || operand.form == Form::bracket_next || operand.form == Form::pair_second ||
            detail::tie_of(operand, match) == detail::Tie::absent)
            continue;
        if (node >= nodes.size()) break;
        const OperandSyntax& actual = nodes[node];
        const bool is_list = actual.kind == OperandSyntax::Kind::braces;
        const bool fits = detail::node_fits(operand, actual, match, is_list);
        if (!fits && operand.optional) continue;
        ++place;
        if (!fits)
            return text + ": operand " + std::to_string(place) + " must be " + wanted(operand, match) + ", not " +
                   found(actual);
        if (actual.pair_follows) node += actual.extent;
        if (node < nodes.size()) node += nodes[node].extent;
    }
    return text;
}

} // namespace ptarmigan::ptx
