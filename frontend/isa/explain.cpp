// SPDX-License-Identifier: Apache-2.0
// Why no row takes the words of an instruction.
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
    bool types_exchanged = false; ///< the words would do, in another order
    /// Who writes a type rarely forgets another one, and who writes two rarely exchanges them.
    std::size_t size() const {
        std::size_t size = 2 * extra.size() + (types_exchanged ? 4 : 0);
        for (const WordSlot* slot : missing) size += slot->type_index >= 0 && types_written ? 3 : 1;
        return size;
    }
    bool types_written = false; ///< some type was placed
    /// Of rows that differ as much, the one for which the rounding is wrong is meant rather than the type.
    bool rounding_extra() const {
        return std::any_of(extra.begin(), extra.end(), [](std::string_view word) {
            return word == "rn" || word == "rz" || word == "rm" || word == "rp";
        });
    }
    bool types_extra() const {
        return std::any_of(extra.begin(), extra.end(),
                           [](std::string_view word) { return find_word(word).kind == Word::Kind::type; });
    }
};

/// Each word goes to the first free slot that takes it; what is left over on either side differs.
Difference compare(const FormPattern& pattern, const InstructionSyntax& instruction) {
    Difference difference{&pattern, {}, {}};
    int last_type = -1;
    std::vector<bool> used(pattern.slots.size());
    for (std::string_view spelt : instruction.words) {
        const Word word = find_word(spelt);
        std::size_t slot = 0;
        while (slot < used.size() && (used[slot] || !takes(pattern.slots[slot], word))) ++slot;
        if (slot == used.size())
            difference.extra.push_back(spelt);
        else
            used[slot] = true;
        if (slot == used.size() || pattern.slots[slot].type_index < 0) continue;
        difference.types_written = true;
        difference.types_exchanged |= pattern.slots[slot].type_index < last_type;
        last_type = pattern.slots[slot].type_index;
    }
    for (std::size_t slot = 0; slot < used.size(); ++slot)
        if (!used[slot] && !pattern.slots[slot].optional) difference.missing.push_back(&pattern.slots[slot]);
    return difference;
}

/// ".rn, .rz, .rm or .rp"; long lists are cut.
std::string either(std::span<const Word> words) {
    constexpr std::size_t shown = 20; // all types of 'add'
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
        text += (text.empty() ? "'." : ", '.") + std::string(word.substr(0, 60)) + "' does not go there";
    if (text.empty()) text = "the types stand in another order, or a word stands twice";
    return text + ": " + std::string(difference.pattern->info->syntax);
}

std::string unknown_opcode(const InstructionSyntax& instruction) {
    return "unknown instruction '" + std::string(instruction.opcode.substr(0, 60)) + "'" +
           FormTable::get().nearest_opcode(instruction.opcode, instruction.words).question();
}

void add_new(std::vector<Word>& words, Word word) {
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
}

/// What could stand in place of a word that doesn't fit, the others being as they are: what a row misses then, or else
/// other words of its kind that are optional.
std::vector<Word> replacements(const InstructionSyntax& instruction, std::span<const FormId> rows,
                               std::string_view wrong) {
    std::vector<Word> missing, optional;
    const Word::Kind kind = find_word(wrong).kind;
    for (FormId form : rows) {
        const FormPattern& pattern = FormTable::get().pattern(form);
        const Difference difference = compare(pattern, instruction);
        if (difference.extra.size() != 1 || difference.extra.front() != wrong) continue;
        if (difference.missing.size() == 1)
            for (Word word : difference.missing.front()->choices)
                if (kind == Word::Kind::unknown || kind == word.kind) add_new(missing, word);
        if (!difference.missing.empty() || kind == Word::Kind::unknown || kind == Word::Kind::modifier) continue;
        for (const WordSlot& slot : pattern.slots)
            for (Word word : slot.choices)
                if (slot.optional && word.kind == kind) add_new(optional, word);
    }
    return missing.empty() ? optional : missing;
}

/// "; .b16, .b32 or .b64 can stand in its place".
std::string replacements_text(const InstructionSyntax& instruction, std::span<const FormId> rows,
                              std::string_view wrong) {
    const std::vector<Word> words = replacements(instruction, rows, wrong);
    return words.empty() ? "" : "; " + either(words) + " can stand in its place";
}

/// What is wrong with a single word; empty if each is one that the opcode takes somewhere.
Explanation wrong_word(const InstructionSyntax& instruction, std::span<const FormId> rows) {
    const FormTable& table = FormTable::get();
    for (std::string_view word : instruction.words) {
        if (find_word(word).kind != Word::Kind::unknown) continue;
        NearestSpelling nearest(word);
        for (FormId form : rows)
            for (const WordSlot& slot : table.pattern(form).slots)
                for (Word choice : slot.choices) nearest.offer(spelling(choice));
        const std::string text = "unknown modifier '." + std::string(word.substr(0, 60)) + "'";
        const std::string question = nearest.question(".");
        return {text + (question.empty() ? replacements_text(instruction, rows, word) : question), word, true};
    }
    for (std::string_view spelt : instruction.words) {
        const bool used = std::any_of(rows.begin(), rows.end(), [&](FormId form) {
            const auto slots = table.pattern(form).slots;
            return std::any_of(slots.begin(), slots.end(),
                               [&](const WordSlot& slot) { return takes(slot, find_word(spelt)); });
        });
        if (!used)
            return {"'" + std::string(instruction.opcode) + "' does not take '." + std::string(spelt) + "'" +
                        replacements_text(instruction, rows, spelt),
                    spelt};
    }
    return {};
}

/// "'.wrong' cannot be combined with '.V': syntax", where a row takes `wrong` once another word is left out or
/// replaced. Empty if none does.
std::string conflict(std::span<const Difference> nearest, std::string_view wrong) {
    for (const Difference& row : nearest) {
        if (row.extra.size() != 1 || row.extra.front() == wrong || row.missing.size() > 1 || row.types_extra())
            continue;
        const std::string other = "'." + std::string(row.extra.front()) + "'";
        std::string text = "'." + std::string(wrong.substr(0, 60)) + "' cannot be combined with " + other;
        if (!row.missing.empty())
            text += "; " + either(row.missing.front()->choices) + " can stand in place of " + other;
        return text + ": " + std::string(row.pattern->info->syntax);
    }
    return {};
}

} // namespace

Explanation explain_words(const InstructionSyntax& instruction) {
    const FormTable& table = FormTable::get();
    const std::span<const FormId> rows = table.rows_of(instruction.opcode);
    if (rows.empty()) return {unknown_opcode(instruction), {}};
    if (Explanation wrong = wrong_word(instruction, rows); !wrong.text.empty()) return wrong;

    std::vector<Difference> differences;
    for (FormId form : rows) differences.push_back(compare(table.pattern(form), instruction));
    std::stable_sort(differences.begin(), differences.end(), [](const Difference& a, const Difference& b) {
        return a.size() != b.size() ? a.size() < b.size() : a.rounding_extra() > b.rounding_extra();
    });
    constexpr std::size_t near = 3, shown = 3;
    std::string text = "no form of '" + std::string(instruction.opcode) + "' takes these modifiers";
    const Difference& best = differences.front();
    if (best.missing.size() == 1 && best.extra.empty()) {
        const auto end = std::find_if(differences.begin(), differences.end(),
                                      [](const Difference& d) { return d.missing.size() != 1 || !d.extra.empty(); });
        return {text + "; " + one_missing({differences.begin(), end}), {}};
    }
    if (best.missing.size() == 1 && best.extra.size() == 1) {
        const std::string_view wrong = best.extra.front();
        return {text + "; '." + std::string(wrong.substr(0, 60)) + "' does not go there" +
                    replacements_text(instruction, rows, wrong) + ": " + std::string(best.pattern->info->syntax),
                wrong};
    }
    if (best.missing.empty() && best.extra.size() == 1) {
        const std::string_view wrong = best.extra.front();
        if (const std::string pair = conflict(differences, wrong); !pair.empty()) return {text + "; " + pair, wrong};
    }
    if (best.size() <= near)
        return {text + "; " + describe(best), best.extra.empty() ? std::string_view() : best.extra.front()};
    text += " together; the nearest are:";
    for (std::size_t i = 0; i < std::min(shown, differences.size()); ++i)
        text += "\n      " + std::string(differences[i].pattern->info->syntax);
    return {text, {}};
}

std::string explain_other_sign(const InstructionSyntax& instruction, std::span<const FormId> rows) {
    for (std::string_view word : instruction.words) {
        if (find_word(word).kind != Word::Kind::type || (word[0] != 'u' && word[0] != 's')) continue;
        const std::string twin = (word[0] == 'u' ? "s" : "u") + std::string(word.substr(1));
        const std::vector<Word> others = replacements(instruction, rows, word);
        const bool fits =
            std::any_of(others.begin(), others.end(), [&](Word other) { return spelling(other) == twin; });
        if (fits) return "." + twin + " can stand in place of '." + std::string(word) + "'";
    }
    return {};
}

} // namespace ptarmigan::ptx
