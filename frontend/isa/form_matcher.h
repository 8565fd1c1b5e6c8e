// SPDX-License-Identifier: Apache-2.0
// From an instruction's words and the look of its operands to the row it is an instance of.
#pragma once

#include "frontend/isa/form_pattern.h"
#include "frontend/parse/syntax.h"
#include "frontend/ptx/module.h"
#include "frontend/source/text_hash.h"

#include <array>
#include <deque>
#include <string>
#include <vector>

namespace ptarmigan::ptx {

/// A row whose words fit the instruction's, with what the words say.
struct HeadMatch {
    FormId form{};
    std::uint8_t literal_words = 0; ///< more of them is a better match
    std::uint8_t vector_size = 1;
    std::uint8_t modifier_count = 0;
    /// Words that ask for an operand: the row has it as optional, the text must have it exactly then.
    bool cache_hint = false; ///< .L2::cache_hint: cache-policy
    bool multicast = false;  ///< .multicast::cluster: cta-mask
    bool cp_mask = false;    ///< .cp_mask: byte-mask
    /// Words of the text that the row does not have and ptxas overlooks (word_rules.def), a bit each; the first 32
    /// words.
    std::uint32_t overlooked = 0;
    /// The words have passed word_rules; set by whoever asked first.
    mutable bool words_checked = false;
    /// `_` must stand for the result; set with words_checked.
    mutable bool result_is_sink = false;
    StateSpace space = StateSpace::none;
    StateSpace source_space = StateSpace::none; ///< the second space of a copy: that of its source
    std::array<ScalarType, 6> types{};
    std::array<Modifier, Instruction::max_modifiers> modifiers{};
};

/// For each operand pattern of a row: the index of the node in InstructionSyntax::operands, or -1.
using OperandNodes = std::array<std::int32_t, Instruction::max_operands>;

/// Remembers what it found: instructions repeat a few heads ("ld.global.f32") over and over.
class FormMatcher {
public:
    /// All rows that may be meant by an opcode and words.
    struct Head {
        std::uint32_t number; ///< of heads that differ, in the order in which they were met
        std::vector<HeadMatch> matches;
    };
    const Head& find(const InstructionSyntax& instruction);
    /// Rows whose words fit, best first; rows of equal merit in table order.
    const std::vector<HeadMatch>& heads(const InstructionSyntax& instruction) { return find(instruction).matches; }

    /// True if the operands look like the row's; then `nodes` says which is which.
    /// `is_vector(name)` tells names of vector registers, which stand for a braced list.
    template <typename IsVector>
    static bool operands_fit(const HeadMatch& match, const InstructionSyntax& instruction, const IsVector& is_vector,
                             OperandNodes& nodes);

private:
    struct Known {
        std::string words;
        std::size_t hash;
        Head head;
    };
    void insert(Known& known);
    const Head& add(const InstructionSyntax& instruction, std::string_view words, std::size_t hash);

    std::deque<Known> known_;
    std::vector<Known*> table_; ///< open addressing by hash, a power of two, at most half full
    std::string key_;
};

namespace detail {
/// Whether a word of the instruction decides on an optional operand.
enum class Tie : std::uint8_t { free, present, absent };
Tie tie_of(const OperandPattern& pattern, const HeadMatch& match);
/// Whether one operand node looks like the pattern; `is_list` says that it is braced or a vector
/// register.
bool node_fits(const OperandPattern& pattern, const OperandSyntax& node, const HeadMatch& match, bool is_list);
} // namespace detail

template <typename IsVector>
bool FormMatcher::operands_fit(const HeadMatch& match, const InstructionSyntax& instruction, const IsVector& is_vector,
                               OperandNodes& nodes) {
    const std::vector<OperandSyntax>& syntax = instruction.operands;
    const auto patterns = FormTable::get().pattern(match.form).operands;
    auto form_of = [&](std::size_t i) { return patterns[i].form; };
    using Form = OperandPattern::Form;

    // Operands beyond the required ones go to optional patterns from left to right.
    int extra = static_cast<int>(instruction.operand_count);
    for (std::size_t i = 0; i < syntax.size(); i += syntax[i].extent)
        if (syntax[i].pair_follows) --extra;
    for (const OperandPattern& pattern : patterns)
        if (!pattern.optional &&
            (pattern.form == Form::plain || pattern.form == Form::parens || pattern.form == Form::bracket_first))
            --extra;
    if (extra < 0) return false;

    nodes.fill(-1);
    std::size_t node = 0;
    bool pair_open = false;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
        const OperandPattern& pattern = patterns[i];
        if (form_of(i) == Form::hidden || form_of(i) == Form::bracket_next) continue;
        if (form_of(i) == Form::pair_second) {
            if (pair_open) {
                nodes[i] = static_cast<std::int32_t>(node);
                node += syntax[node].extent;
            } else if (!pattern.optional) {
                return false;
            }
            pair_open = false;
            continue;
        }
        if (pair_open) return false;
        const detail::Tie tie = detail::tie_of(pattern, match);
        if (tie == detail::Tie::absent) continue;
        const bool optional = pattern.optional && tie != detail::Tie::present;
        if (node >= syntax.size()) {
            if (optional) continue;
            return false;
        }
        const OperandSyntax& actual = syntax[node];
        const bool is_list =
            actual.kind == OperandSyntax::Kind::braces ||
            (actual.kind == OperandSyntax::Kind::name && actual.component.empty() && is_vector(actual.name));
        const bool fits = detail::node_fits(pattern, actual, match, is_list);
        if (optional && (!fits || extra == 0)) continue;
        if (!fits) return false;
        if (pattern.optional) --extra;
        nodes[i] = static_cast<std::int32_t>(node);
        if (pattern.form == Form::bracket_first) {
            // Members of the bracket are the node's children.
            std::size_t child = node + 1, last = node + actual.extent;
            nodes[i] = child < last ? static_cast<std::int32_t>(child) : -1;
            for (; child < last; child += syntax[child].extent) {
                if (nodes[i] == static_cast<std::int32_t>(child)) continue;
                if (++i >= patterns.size() || form_of(i) != Form::bracket_next) return false;
                nodes[i] = static_cast<std::int32_t>(child);
            }
            while (i + 1 < patterns.size() && form_of(i + 1) == Form::bracket_next)
                if (!patterns[++i].optional) return false;
        }
        pair_open = actual.pair_follows;
        node += actual.extent;
    }
    return node == syntax.size() && !pair_open;
}

} // namespace ptarmigan::ptx
