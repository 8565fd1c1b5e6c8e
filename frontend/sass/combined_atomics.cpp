// SPDX-License-Identifier: Apache-2.0
#include "frontend/sass/combined_atomics.h"

#include "frontend/sass/opcode_table.h"

#include <algorithm>
#include <map>
#include <vector>

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

bool is_unguarded(const Instruction& inst) {
    return inst.guard == true_predicate && !inst.guard_negated;
}

bool is_predicate(const Operand& operand) {
    return operand.kind == Kind::predicate || operand.kind == Kind::uniform_predicate;
}

/// The operand that is a destination: a register, or a predicate in bits 81 to 86.
bool is_written(const Instruction& inst, unsigned place) {
    const OperandSpec& spec = inst.form->operands[place];
    if (spec.field.parts.empty()) return false;
    if (spec.kind == 'd' || spec.kind == 'D') return spec.is_result;
    const unsigned first = spec.field.parts[0].first;
    return is_predicate(inst.operands[place]) && (first == 81 || first == 84);
}

/// Registers that an operand takes.
unsigned width(const Instruction& inst, const Operand& operand) {
    return registers_of(inst, unsigned(&operand - inst.operands.data()));
}

/// The register or predicate, R and UR apart.
struct Name {
    Kind kind;
    unsigned index;
    auto operator<=>(const Name&) const = default;
};
Name name_of(const Operand& operand) {
    return {operand.kind, operand.index};
}
bool is_nothing(const Operand& operand) {
    switch (operand.kind) {
    case Kind::reg: return operand.index == zero_register;
    case Kind::uniform: return operand.index == zero_uniform;
    case Kind::predicate:
    case Kind::uniform_predicate: return operand.index == true_predicate;
    default: return true;
    }
}

/// Whether `operand` of `inst` has `what` in it.
bool touches(const Instruction& inst, const Operand& operand, const Operand& what) {
    const bool is_address = operand.kind == Kind::address || operand.kind == Kind::register_target ||
                            (operand.kind == Kind::constant && operand.index != zero_register);
    if (is_address && what.kind == Kind::reg && operand.index != zero_register)
        return what.index >= operand.index && what.index < operand.index + width(inst, operand);
    if (what.kind == Kind::uniform && (operand.kind == Kind::address || operand.kind == Kind::constant) &&
        operand.uniform != zero_uniform) {
        // Shared and local addresses have 32 bits.
        const std::string_view rule = inst.form->rule;
        const bool is_pair = rule == "copy_to_shared" || (!rule.ends_with("_shared") && !rule.ends_with("_local"));
        return what.index == operand.uniform || (is_pair && what.index == operand.uniform + 1u);
    }
    if (operand.kind != what.kind || is_nothing(operand)) return false;
    if (is_predicate(operand)) return operand.index == what.index;
    return what.index >= operand.index && what.index < operand.index + width(inst, operand);
}

/// A move of a whole register.
bool is_move(const Instruction& inst, const Operand& source) {
    const std::string_view rule = inst.form->rule;
    if (rule == "mov" || rule == "r2ur") return true;
    if (rule != "imad" || inst.has("X")) return false;
    const bool is_addend = &source == &inst.operands[4];
    return is_addend && !source.negated && !source.inverted &&
           (is_nothing(inst.operands[2]) || is_nothing(inst.operands[3])) && inst.operands[2].kind == Kind::reg;
}

bool is_atomic(const Instruction& inst) {
    const std::string_view rule = inst.form->rule;
    return rule == "atomic" || rule == "reduction" || rule == "atomic_shared" || rule == "count_shared";
}

/// The atomic operation for which a REDUX of the same words brings the lanes' operands together.
std::string_view operation_of(const Instruction& inst) {
    for (const char* word : {"OR", "XOR", "SUM", "MIN", "MAX"})
        if (inst.has(word)) return word == std::string_view("SUM") ? "ADD" : word;
    return "AND";
}

bool is_lane_number(std::span<const Instruction> code, const Operand& operand) {
    constexpr int lane_number = 0; // SR_LANEID
    return std::any_of(code.begin(), code.end(), [&](const Instruction& inst) {
        return inst.form != nullptr && inst.form->rule == "s2r" && inst.operand_count > 1 &&
               inst.operands[1].value == lane_number && name_of(inst.operands[0]) == name_of(operand);
    });
}

class Search {
public:
    Search(std::span<const Instruction> code, std::uint32_t begin, std::uint32_t end,
           const IsReadBehind& is_read_behind)
        : code_(code), begin_(begin), end_(end), is_read_behind_(is_read_behind) {}

    /// Follows the vote's result. False if it is used for anything else.
    bool follow_vote(const Instruction& vote) {
        holds_.clear();
        atomics_.clear();
        holds_[name_of(vote.operands[0])] = {What::mask, vote.operands[0]};
        const std::uint32_t last = std::min(end_, vote.address + 16 * combination_limit);
        for (std::uint32_t at = vote.address + 16; at < last; at += 16)
            if (!step(code_[at / 16])) return false;
        for (const auto& [name, held] : holds_)
            if (is_read_behind_(last, held.operand)) return false;
        return !atomics_.empty();
    }

    /// Where the result of a REDUX goes: to the atomic operations of the last vote followed, with the same operation,
    /// and nowhere else; to them and elsewhere, or changed; not to them.
    enum class Use { atomics_only, atomics_too, others };
    Use follow_reduction(const Instruction& redux) {
        struct Value {
            Operand operand;
            bool is_result; ///< else something that was made of it
        };
        std::vector<Value> held = {{redux.operands[0], true}};
        bool is_used = false, has_others = false, is_changed = false;
        const std::uint32_t last = std::min(end_, redux.address + 16 * combination_limit);
        for (std::uint32_t at = redux.address + 16; at < last; at += 16) {
            const Instruction& inst = code_[at / 16];
            if (inst.form == nullptr) return Use::atomics_too;
            std::vector<Value> more;
            for (unsigned i = 0; i < inst.operand_count; ++i) {
                const Operand& operand = inst.operands[i];
                if (is_written(inst, i) || !has_operand(inst, inst.form->operands[i])) continue;
                for (const Value& value : held) {
                    if (!touches(inst, operand, value.operand)) continue;
                    if (atomics_.count(inst.address) != 0) {
                        is_used = true;
                        is_changed = is_changed || !value.is_result || operand.kind == Kind::address ||
                                     !inst.has(operation_of(redux)) || inst.has("S32") != redux.has("S32") ||
                                     width(inst, operand) != 1;
                        continue;
                    }
                    const bool is_same = value.is_result && is_move(inst, operand) && is_unguarded(inst);
                    has_others = has_others || !is_same;
                    for (unsigned other = 0; other < inst.operand_count; ++other)
                        if (is_written(inst, other)) more.push_back({inst.operands[other], is_same});
                }
            }
            std::erase_if(held, [&](const Value& value) { return overwrites(inst, value.operand); });
            for (const Value& value : more) {
                const auto known = std::find_if(held.begin(), held.end(), [&](const Value& other) {
                    return name_of(other.operand) == name_of(value.operand);
                });
                if (known == held.end())
                    held.push_back(value);
                else
                    known->is_result = known->is_result && value.is_result;
            }
            if (held.size() > steps_) return Use::atomics_too;
            steps_ -= held.size();
        }
        for (const Value& value : held)
            if (value.is_result && is_read_behind_(last, value.operand)) has_others = true;
        if (!is_used) return Use::others;
        return is_changed || has_others ? Use::atomics_too : Use::atomics_only;
    }

    /// Whether an atomic operation of the last vote followed takes the result of a REDUX that is not among
    /// `combination`.
    bool takes_other_sums(const std::set<std::uint32_t>& combination) const {
        for (const std::uint32_t at : atomics_) {
            const Instruction& atomic = code_[at / 16];
            for (unsigned i = 0; i < atomic.operand_count; ++i)
                if (!is_written(atomic, i) && !is_nothing(atomic.operands[i]) && !is_predicate(atomic.operands[i]) &&
                    is_other_sum(atomic.operands[i], at, combination))
                    return true;
        }
        return false;
    }

private:
    bool is_other_sum(Operand value, std::uint32_t at, const std::set<std::uint32_t>& combination) const {
        const std::uint32_t first = at - begin_ > 16 * combination_limit ? at - 16 * combination_limit : begin_;
        while (at > first) {
            at -= 16;
            const Instruction& inst = code_[at / 16];
            if (inst.form == nullptr) return true;
            bool is_result = false;
            for (unsigned i = 0; i < inst.operand_count; ++i)
                is_result = is_result || (is_written(inst, i) && touches(inst, inst.operands[i], value));
            if (!is_result) continue;
            if (inst.form->rule == "redux") return combination.count(at) == 0;
            if (!is_unguarded(inst)) continue;
            const Operand* source = nullptr;
            for (unsigned i = 0; i < inst.operand_count; ++i)
                if (!is_written(inst, i) && !is_nothing(inst.operands[i]) && is_move(inst, inst.operands[i]))
                    source = &inst.operands[i];
            if (source == nullptr) return false;
            value = *source;
        }
        // From another block or far away, where only the register's name is known.
        return std::any_of(code_.begin(), code_.end(), [&](const Instruction& inst) {
            return inst.form != nullptr && inst.form->rule == "redux" && touches(inst, inst.operands[0], value);
        });
    }

    enum class What { mask, lane, is_chosen };
    struct Held {
        What what;
        Operand operand;
    };

    static const Operand& destination(const Instruction& inst) {
        for (unsigned i = 0; i < inst.operand_count; ++i)
            if (is_written(inst, i) && !is_predicate(inst.operands[i])) return inst.operands[i];
        return inst.operands[0];
    }

    /// One instruction behind the vote.
    bool step(const Instruction& inst) {
        if (inst.form == nullptr) return false;
        std::map<Name, Held> more;
        const std::string_view rule = inst.form->rule;
        for (const auto& [name, held] : holds_) {
            const bool is_guard = is_predicate(held.operand) && inst.guard == held.operand.index &&
                                  inst.guard_uniform == (held.operand.kind == Kind::uniform_predicate);
            if (is_guard) {
                // Beside the operation the fences that order it.
                if (inst.guard_negated) return false;
                if (is_atomic(inst))
                    atomics_.insert(inst.address);
                else if (rule != "fence" && rule != "nothing" && rule != "no_operation" && rule != "cache_control")
                    return false;
            }
            for (unsigned i = 0; i < inst.operand_count; ++i) {
                const Operand& operand = inst.operands[i];
                if (is_written(inst, i) || !has_operand(inst, inst.form->operands[i]) ||
                    !touches(inst, operand, held.operand))
                    continue;
                if (!is_unguarded(inst) && !is_guard) return false;
                const Operand& result = destination(inst);
                if (held.what == What::mask) {
                    if (is_move(inst, operand)) {
                        more[name_of(result)] = {What::mask, result};
                    } else if (rule == "flo") {
                        if (!inst.has("U32") || inst.has("SH") || operand.inverted) return false;
                        more[name_of(result)] = {What::lane, result};
                    } else if (rule == "lop3") {
                        // With %lanemask_lt: the lanes below this one.
                        if (inst.operands[5].value != 0xc0) return false;
                    } else if (rule != "popc" || operand.inverted) {
                        return false;
                    }
                } else if (held.what == What::lane) {
                    if (is_move(inst, operand)) {
                        more[name_of(result)] = {What::lane, result};
                    } else if (rule == "isetp") {
                        const Operand& other = &operand == &inst.operands[2] ? inst.operands[3] : inst.operands[2];
                        if (!inst.has("EQ") || !inst.has("AND") || inst.has("EX") || !is_nothing(inst.operands[1]) ||
                            !is_nothing(inst.operands[4]) || inst.operands[4].negated || !is_lane_number(code_, other))
                            return false;
                        more[name_of(inst.operands[0])] = {What::is_chosen, inst.operands[0]};
                    } else if (rule == "shuffle") {
                        if (!inst.has("IDX") || i != 3) return false;
                    } else {
                        return false;
                    }
                } else {
                    return false;
                }
            }
        }
        std::erase_if(holds_, [&](const auto& entry) { return overwrites(inst, entry.second.operand); });
        holds_.merge(more);
        return true;
    }

    std::span<const Instruction> code_;
    std::uint32_t begin_, end_;
    const IsReadBehind& is_read_behind_;
    std::map<Name, Held> holds_;
    std::set<std::uint32_t> atomics_;
    std::size_t steps_ =
        std::size_t(1) << 22; ///< of following sums, for all votes together: code may be made to be slow
};

} // namespace

bool reads(const Instruction& inst, const Operand& what) {
    if (is_predicate(what) && inst.guard == what.index &&
        inst.guard_uniform == (what.kind == Kind::uniform_predicate) && !is_nothing(what))
        return true;
    if (inst.form == nullptr) return true;
    // Those of a mask at once.
    if (inst.form->rule == "p2r" && is_predicate(what) &&
        inst.guard_uniform == (what.kind == Kind::uniform_predicate) &&
        (inst.operands[3].value >> (what.index & 63) & 1) != 0)
        return true;
    for (unsigned i = 0; i < inst.operand_count; ++i)
        if (!is_written(inst, i) && has_operand(inst, inst.form->operands[i]) && touches(inst, inst.operands[i], what))
            return true;
    return false;
}

bool overwrites(const Instruction& inst, const Operand& what) {
    if (inst.form == nullptr || !is_unguarded(inst)) return false;
    for (unsigned i = 0; i < inst.operand_count; ++i) {
        if (!is_written(inst, i) || !touches(inst, inst.operands[i], what)) continue;
        // Of several registers, of which there may be less, the first is certain.
        if (!inst.form->operands[i].is_at_most || what.index == inst.operands[i].index) return true;
    }
    return false;
}

std::set<std::uint32_t> find_combined_atomics(std::span<const Instruction> code, std::uint32_t begin, std::uint32_t end,
                                              const IsReadBehind& is_read_behind) {
    std::set<std::uint32_t> found;
    Search search(code, begin, end, is_read_behind);
    for (std::uint32_t at = begin; at < end; at += 16) {
        const Instruction& vote = code[at / 16];
        if (vote.form == nullptr || vote.form->rule != "vote" || !vote.has("ANY") || !is_unguarded(vote) ||
            is_nothing(vote.operands[0]) || !is_nothing(vote.operands[1]) || !is_nothing(vote.operands[2]) ||
            vote.operands[2].negated || !search.follow_vote(vote))
            continue;
        // What lanes bring together must not be added by each of them: all goes, or nothing.
        std::set<std::uint32_t> combination = {at};
        bool is_whole = true;
        const std::uint32_t from = at - begin > 16 * combination_limit ? at - 16 * combination_limit : begin;
        for (std::uint32_t other = from; other < std::min(end, at + 16 * combination_limit); other += 16) {
            const Instruction& redux = code[other / 16];
            if (redux.form == nullptr || redux.form->rule != "redux") continue;
            const Search::Use use = search.follow_reduction(redux);
            if (use == Search::Use::atomics_too || (use == Search::Use::atomics_only && !is_unguarded(redux)))
                is_whole = false;
            else if (use == Search::Use::atomics_only)
                combination.insert(other);
        }
        if (is_whole && !search.takes_other_sums(combination)) found.merge(combination);
    }
    return found;
}

} // namespace ptarmigan::sass
