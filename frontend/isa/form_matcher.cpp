// SPDX-License-Identifier: Apache-2.0
#include "frontend/isa/form_matcher.h"

#include "frontend/isa/word_rules.h"

#include <algorithm>
#include <bit>

namespace ptarmigan::ptx {

namespace {

/// Puts each word into a slot of the row. The order of words is free, but types keep theirs, so
/// that `cvt.u32.u64` is not read as `cvt.u64.u32`. Words in `overlooked` (bits) may go without one.
class WordPlacement {
public:
    WordPlacement(const FormPattern& pattern, const std::vector<Word>& words, std::uint32_t overlooked = 0)
        : slots_(pattern.slots), words_(words), overlooked_(overlooked) {
        slot_of_.resize(words.size());
    }

    bool place() {
        if (words_.size() > slots_.size() + static_cast<std::size_t>(std::popcount(overlooked_)) || slots_.size() > 32)
            return false;
        return place(0, 0, -1);
    }

    HeadMatch result(FormId form) const {
        HeadMatch match;
        match.form = form;
        std::array<int, 32> word_in{};
        word_in.fill(-1);
        for (std::size_t i = 0; i < words_.size(); ++i) {
            if (slot_of_[i] == nowhere)
                match.overlooked |= 1u << i;
            else
                word_in[slot_of_[i]] = static_cast<int>(i);
        }
        bool allows_space = false;
        for (std::size_t s = 0; s < slots_.size(); ++s) {
            const WordSlot& slot = slots_[s];
            allows_space = allows_space || (slot.is_space && slot.optional);
            if (word_in[s] < 0) continue;
            if (slot.literal) ++match.literal_words;
            apply(slot, words_[static_cast<std::size_t>(word_in[s])], match);
        }
        if (match.space == StateSpace::none && allows_space) match.space = StateSpace::generic;
        return match;
    }

private:
    bool place(std::size_t word, std::uint32_t used, int last_type) {
        if (word == words_.size()) {
            for (std::size_t s = 0; s < slots_.size(); ++s)
                if (!slots_[s].optional && (used >> s & 1) == 0) return false;
            return true;
        }
        for (std::size_t s = 0; s < slots_.size(); ++s) {
            const WordSlot& slot = slots_[s];
            if ((used >> s & 1) != 0 || (slot.type_index >= 0 && slot.type_index <= last_type)) continue;
            if (std::find(slot.choices.begin(), slot.choices.end(), words_[word]) == slot.choices.end()) continue;
            slot_of_[word] = s;
            const int type = slot.type_index >= 0 ? slot.type_index : last_type;
            if (place(word + 1, used | 1u << s, type)) return true;
        }
        if (word >= 32 || (overlooked_ >> word & 1) == 0) return false;
        slot_of_[word] = nowhere;
        return place(word + 1, used, last_type);
    }

    static void apply(const WordSlot& slot, Word word, HeadMatch& match) {
        const StateSpace space = space_of(word);
        if (space != StateSpace::none) (match.space == StateSpace::none ? match.space : match.source_space) = space;
        switch (word.kind) {
        case Word::Kind::type:
            if (slot.type_index < 6)
                match.types[static_cast<std::size_t>(slot.type_index)] = static_cast<ScalarType>(word.value);
            break;
        case Word::Kind::vector: match.vector_size = static_cast<std::uint8_t>(word.value); break;
        case Word::Kind::modifier: {
            const auto modifier = static_cast<Modifier>(word.value);
            if (modifier == Modifier::L2_cache_hint) match.cache_hint = true;
            if (modifier == Modifier::multicast_cluster) match.multicast = true;
            if (modifier == Modifier::cp_mask) match.cp_mask = true;
            if (match.modifier_count < match.modifiers.size()) match.modifiers[match.modifier_count++] = modifier;
            break;
        }
        default: break;
        }
    }

    static constexpr std::size_t nowhere = 32;
    std::span<const WordSlot> slots_;
    const std::vector<Word>& words_;
    std::uint32_t overlooked_;
    std::vector<std::size_t> slot_of_;
};

std::string join_words(const InstructionSyntax& instruction) {
    std::string text(instruction.opcode);
    for (std::string_view word : instruction.words) {
        text += '.';
        text += word;
    }
    return text;
}

void place_words(std::string_view opcode, const std::vector<Word>& words, std::uint32_t overlooked,
                 std::vector<HeadMatch>& matches) {
    const FormTable& table = FormTable::get();
    for (FormId form : table.rows_of(opcode)) {
        WordPlacement placement(table.pattern(form), words, overlooked);
        if (placement.place()) matches.push_back(placement.result(form));
    }
}

} // namespace

const FormMatcher::Head& FormMatcher::find(const InstructionSyntax& instruction) {
    std::string_view words = instruction.head;
    if (words.empty()) words = key_ = join_words(instruction);
    const std::size_t hash = TextHash()(words), mask = table_.size() - 1;
    for (std::size_t at = hash; !table_.empty() && table_[at & mask] != nullptr; ++at) {
        const Known& known = *table_[at & mask];
        if (known.hash == hash && known.words == words) return known.head;
    }
    return add(instruction, words, hash);
}

void FormMatcher::insert(Known& known) {
    std::size_t at = known.hash;
    while (table_[at & (table_.size() - 1)] != nullptr) ++at;
    table_[at & (table_.size() - 1)] = &known;
}

const FormMatcher::Head& FormMatcher::add(const InstructionSyntax& instruction, std::string_view key,
                                          std::size_t hash) {
    const auto number = static_cast<std::uint32_t>(known_.size());
    Known& known = known_.emplace_back(Known{std::string(key), hash, {number, {}}});
    if (2 * known_.size() > table_.size()) {
        table_.assign(std::max<std::size_t>(64, 2 * table_.size()), nullptr);
        for (Known& one : known_) insert(one);
    } else {
        insert(known);
    }
    Head& head = known.head;
    std::vector<HeadMatch>& matches = head.matches;
    std::vector<Word> words;
    for (std::string_view word : instruction.words) {
        words.push_back(find_word(word));
        if (words.back().kind == Word::Kind::unknown) return head;
    }
    place_words(instruction.opcode, words, 0, matches);
    if (matches.empty())
        if (const std::uint32_t overlooked = overlooked_words(instruction.opcode, instruction.words); overlooked != 0)
            place_words(instruction.opcode, words, overlooked, matches);
    std::stable_sort(matches.begin(), matches.end(), [](const HeadMatch& a, const HeadMatch& b) {
        const int dropped_a = std::popcount(a.overlooked), dropped_b = std::popcount(b.overlooked);
        return dropped_a != dropped_b ? dropped_a < dropped_b : a.literal_words > b.literal_words;
    });
    return head;
}

namespace {
/// ptxas takes `!` on every predicate that is read, also where the manual shows none (mov.pred,
/// and.pred).
bool is_predicate_source(const OperandPattern& pattern, const HeadMatch& match) {
    const Constraint& c = pattern.constraint;
    const ScalarType type = c.slot >= 0 && c.slot < 6         ? match.types[static_cast<std::size_t>(c.slot)]
                            : c.kind == Constraint::Kind::any ? match.types[0]
                                                              : c.literal;
    return type == ScalarType::pred && !pattern.is_destination;
}
} // namespace

detail::Tie detail::tie_of(const OperandPattern& pattern, const HeadMatch& match) {
    if (!pattern.optional) return Tie::free;
    switch (pattern.role) {
    case Role::cache_policy: return match.cache_hint ? Tie::present : Tie::absent;
    case Role::cta_mask: return match.multicast ? Tie::present : Tie::absent;
    case Role::byte_mask: return match.cp_mask ? Tie::present : Tie::absent;
    default: return Tie::free;
    }
}

bool detail::node_fits(const OperandPattern& pattern, const OperandSyntax& node, const HeadMatch& match, bool is_list) {
    using Kind = OperandSyntax::Kind;
    using Want = Constraint::Kind;
    switch (pattern.form) {
    case OperandPattern::Form::bracket_first: return node.kind == Kind::bracket;
    case OperandPattern::Form::parens: return node.kind == Kind::parens;
    default: break;
    }
    if (node.inverted && !pattern.may_invert && !is_predicate_source(pattern, match)) return false;
    if (node.minus && !pattern.may_negate) return false;
    // `{x}` is x, except where a list is asked for.
    const bool single = node.kind == Kind::braces && node.children == 1;
    const bool simple = single || (!is_list && (node.kind == Kind::name || node.kind == Kind::constant));
    switch (pattern.constraint.kind) {
    case Want::pack: return is_list && !single;
    case Want::list: return is_list;
    case Want::vec: return match.vector_size > 1 ? is_list : simple;
    case Want::label:
    case Want::function:
    case Want::targets:
    case Want::prototype: return node.kind == Kind::name;
    default: return simple;
    }
}

} // namespace ptarmigan::ptx
