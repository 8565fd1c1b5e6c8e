// SPDX-License-Identifier: Apache-2.0
// 64-bit numbers that go round a loop, or come from several ways, in two registers of 32 bits: a phi for each half
// becomes one phi where each way's halves are those of one number. Machine code keeps addresses in pairs of registers,
// and not always in two that stand side by side.
#include "translator/analysis/build/build_ssa.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/make_operands.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;
using ptx::ScalarType;

class HalfJoiner {
public:
    explicit HalfJoiner(FunctionGraph& graph)
        : graph_(graph), halves_(graph.values.size()), phis_(graph.values.size()) {}

    bool run() {
        const bool has_widened = widen_words();
        return join_phis() || has_widened;
    }

private:
    /// A word, and its sign or zeros above it, is a word made wider.
    bool widen_words() {
        std::vector<ValueId> sign_of(graph_.values.size(), no_value);
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions) {
                const ptx::Instruction& inst = instruction.inst;
                const Operand &d = inst.operands[0], &a = inst.operands[1], &amount = inst.operands[2];
                if (inst.form == FormId::shr && inst.guard == ptx::no_id && inst.type() == ScalarType::s32 &&
                    amount.kind == Operand::Kind::imm && amount.value == 31 && is_word(d) && is_word(a))
                    sign_of[d.index] = a.index;
            }
        bool changed = false;
        for (Block& block : graph_.blocks)
            for (GraphInstruction& instruction : block.instructions) {
                ptx::Instruction& inst = instruction.inst;
                const Operand d = inst.operands[0], a = inst.operands[1];
                if (inst.form != FormId::mov_pack || inst.guard != ptx::no_id || ptx::bit_size(inst.type()) != 64 ||
                    d.kind != Operand::Kind::reg || ptx::bit_size(graph_.values[d.index].type) != 64 ||
                    a.kind != Operand::Kind::vector || a.count != 2)
                    continue;
                const Operand low = graph_.pool[a.first], high = graph_.pool[a.first + 1];
                if (!is_word(low) || graph_.values[low.index].is_constant) continue;
                const bool is_sign = is_word(high) && sign_of[high.index] == low.index;
                const bool is_zero = high.kind == Operand::Kind::imm
                                         ? (high.value & 0xffffffff) == 0
                                         : is_word(high) && graph_.values[high.index].is_constant &&
                                               (graph_.values[high.index].constant & 0xffffffff) == 0;
                if (!is_sign && !is_zero) continue;
                const ScalarType wide = is_sign ? ScalarType::s64 : ScalarType::u64,
                                 narrow = is_sign ? ScalarType::s32 : ScalarType::u32;
                ptx::Instruction made;
                made.form = FormId::cvt_widen_64;
                made.location = inst.location;
                made.types[0] = wide;
                made.types[1] = narrow;
                made.operand_count = 2;
                made.operands[0] = register_operand(d.index, wide);
                made.operands[1] = register_operand(low.index, narrow);
                inst = made;
                changed = true;
            }
        return changed;
    }

    bool join_phis() {
        find_halves();
        if (packs_.empty()) return false;
        for (const auto& [halves, packs] : packs_)
            if (is_phi(halves)) {
                wanted_.emplace(halves, no_value);
                known_.insert(halves);
            }
        while (remove_others()) {
        }
        if (wanted_.empty()) return false;
        make_phis();
        replace_packs();
        return true;
    }

    using Halves = std::pair<ValueId, ValueId>; ///< the lower one, the upper one
    struct Half {
        ValueId whole = no_value;
        unsigned place = 0;
    };

    bool is_word(const Operand& operand) const {
        return operand.kind == Operand::Kind::reg && ptx::bit_size(graph_.values[operand.index].type) == 32;
    }
    void find_halves() {
        for (Block& block : graph_.blocks) {
            for (const Phi& phi : block.phis)
                if (ptx::bit_size(graph_.values[phi.result].type) == 32) phis_[phi.result] = &phi;
            for (const GraphInstruction& instruction : block.instructions) {
                const ptx::Instruction& inst = instruction.inst;
                if (inst.guard != ptx::no_id) continue;
                const Operand &d = inst.operands[0], &a = inst.operands[1];
                if (inst.form == FormId::cvt_narrow_32 && !inst.has(ptx::Modifier::sat) && is_word(d) &&
                    a.kind == Operand::Kind::reg && ptx::bit_size(a.type) == 64 &&
                    ptx::bit_size(graph_.values[a.index].type) == 64 && ptx::bit_size(d.type) == 32)
                    halves_[d.index] = {a.index, 0};
                if (ptx::bit_size(inst.type()) != 64) continue;
                if (inst.form == FormId::mov_unpack && a.kind == Operand::Kind::reg &&
                    d.kind == Operand::Kind::vector && d.count == 2 &&
                    ptx::bit_size(graph_.values[a.index].type) == 64) {
                    for (unsigned place = 0; place < 2; ++place)
                        if (is_word(graph_.pool[d.first + place]))
                            halves_[graph_.pool[d.first + place].index] = {a.index, place};
                }
                if (inst.form == FormId::mov_pack && d.kind == Operand::Kind::reg && a.kind == Operand::Kind::vector &&
                    a.count == 2 && is_word(graph_.pool[a.first]) && is_word(graph_.pool[a.first + 1]) &&
                    ptx::bit_size(graph_.values[d.index].type) == 64)
                    packs_[{graph_.pool[a.first].index, graph_.pool[a.first + 1].index}].push_back(d.index);
            }
        }
    }

    /// The number that both are halves of.
    std::optional<ValueId> whole(ValueId low, ValueId high) {
        const SsaValue &a = graph_.values[low], &b = graph_.values[high];
        if (a.is_constant && b.is_constant)
            return constant((b.constant & 0xffffffff) << 32 | (a.constant & 0xffffffff));
        if (a.is_undefined && b.is_undefined) {
            const ValueId value = new_value(graph_, ScalarType::b64, no_block);
            graph_.values[value].is_undefined = true;
            return value;
        }
        if (halves_[low].whole == no_value || halves_[low].whole != halves_[high].whole) return std::nullopt;
        if (halves_[low].place != 0 || halves_[high].place != 1) return std::nullopt;
        return halves_[low].whole;
    }
    ValueId constant(std::uint64_t bits) {
        ValueId& value = constants_.try_emplace(bits, no_value).first->second;
        if (value == no_value) {
            value = new_value(graph_, ScalarType::b64, no_block);
            graph_.values[value].is_constant = true;
            graph_.values[value].constant = bits;
        }
        return value;
    }

    /// Phis that are not of one block, or to which a way leads with halves of different numbers.
    bool remove_others() {
        return std::erase_if(wanted_,
                             [&](const auto& item) {
                                 const Phi &low = *phis_[item.first.first], &high = *phis_[item.first.second];
                                 if (graph_.values[low.result].block != graph_.values[high.result].block) return true;
                                 for (std::size_t i = 0; i < low.incoming.size(); ++i) {
                                     const Halves way{low.incoming[i], high.incoming[i]};
                                     if (wanted_.count(way) != 0) continue;
                                     if (is_phi(way)) {
                                         also_.push_back(way);
                                         continue;
                                     }
                                     if (!whole(way.first, way.second)) return true;
                                 }
                                 return false;
                             }) != 0 ||
               take_also();
    }
    /// Phis that lead to others are wanted, too, unless they were left out.
    bool take_also() {
        bool changed = false;
        for (const Halves& halves : also_)
            if (known_.insert(halves).second) changed = wanted_.emplace(halves, no_value).second || changed;
        also_.clear();
        return changed;
    }
    bool is_phi(const Halves& halves) const {
        return phis_[halves.first] != nullptr && phis_[halves.second] != nullptr && known_.count(halves) == 0;
    }

    void make_phis() {
        for (auto& [halves, result] : wanted_) {
            result = new_value(graph_, ScalarType::b64, graph_.values[halves.first].block);
            graph_.values[result].is_phi = true;
        }
        std::vector<std::pair<BlockId, Phi>> made;
        for (const auto& [halves, result] : wanted_) {
            const Phi &low = *phis_[halves.first], &high = *phis_[halves.second];
            Phi phi;
            phi.result = result;
            for (std::size_t i = 0; i < low.incoming.size(); ++i) {
                const auto other = wanted_.find({low.incoming[i], high.incoming[i]});
                phi.incoming.push_back(other != wanted_.end() ? other->second
                                                              : *whole(low.incoming[i], high.incoming[i]));
            }
            made.emplace_back(graph_.values[result].block, std::move(phi));
        }
        for (auto& [block, phi] : made) graph_.blocks[block].phis.push_back(std::move(phi));
    }
    void replace_packs() {
        std::map<ValueId, ValueId> replacement;
        for (const auto& [halves, result] : wanted_)
            if (const auto packs = packs_.find(halves); packs != packs_.end())
                for (const ValueId pack : packs->second) replacement[pack] = result;
        const auto put = [&](ValueId& value) {
            if (const auto found = replacement.find(value); found != replacement.end()) value = found->second;
        };
        for (Block& block : graph_.blocks) {
            for (Phi& phi : block.phis)
                for (ValueId& value : phi.incoming) put(value);
            for (GraphInstruction& instruction : block.instructions) {
                for (ValueId& value : instruction.previous) put(value);
                for_each_register(graph_, instruction, [&](Operand& operand, bool is_definition) {
                    if (!is_definition) put(operand.index);
                });
            }
        }
    }

    FunctionGraph& graph_;
    std::vector<Half> halves_;                     ///< by value
    std::vector<const Phi*> phis_;                 ///< by value
    std::map<Halves, std::vector<ValueId>> packs_; ///< what is put together of them
    std::map<Halves, ValueId> wanted_;             ///< pairs of phis, and the phi that they become
    std::set<Halves> known_;                       ///< pairs of phis that are wanted or were
    std::vector<Halves> also_;
    std::map<std::uint64_t, ValueId> constants_;
};

} // namespace

bool join_halves(FunctionGraph& graph) {
    return HalfJoiner(graph).run();
}

} // namespace ptarmigan::translator
