// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/clamped_words.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/arithmetic/linear_sums.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <cstdint>
#include <unordered_set>

namespace ptarmigan::translator {
namespace {

class ClampedWords {
public:
    explicit ClampedWords(const FunctionGraph& graph) : graph_(graph), sums_(graph) {}

    std::vector<ClampedStore> stores(std::size_t most) const {
        std::vector<ClampedStore> found;
        if (!has_clamp()) return found;
        for (BlockId id = 0; id < graph_.blocks.size() && found.size() < most; ++id) add_stores(id, most, found);
        return found;
    }

private:
    using Instructions = std::vector<GraphInstruction>;

    static bool is_clamp(const ptx::Instruction& inst) {
        return inst.form == ptx::FormId::min_int || inst.form == ptx::FormId::max_int;
    }
    bool has_clamp() const {
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions)
                if (is_clamp(instruction.inst)) return true;
        return false;
    }

    static bool is_plain_global(const ptx::Instruction& inst) {
        return (inst.space == ptx::StateSpace::global || inst.space == ptx::StateSpace::generic) &&
               !has_effect(inst, ptx::Effects::atomic | ptx::Effects::async);
    }

    /// Stores behind a load of the same word in one block, at which lanes don't wait between.
    void add_stores(BlockId id, std::size_t most, std::vector<ClampedStore>& found) const {
        const Instructions& instructions = graph_.blocks[id].instructions;
        std::size_t first = 0; // behind the last place at which lanes wait
        for (std::size_t i = 0; i < instructions.size() && found.size() < most; ++i) {
            const ptx::Instruction& store = instructions[i].inst;
            if (has_effect(store, ptx::Effects::barrier | ptx::Effects::convergent)) first = i + 1;
            if (!has_effect(store, ptx::Effects::store) || has_effect(store, ptx::Effects::load) ||
                !is_plain_global(store))
                continue;
            if (changes_clamped_word(instructions, first, i)) found.push_back({id, i});
        }
    }

    bool changes_clamped_word(const Instructions& instructions, std::size_t first, std::size_t end) const {
        const ptx::Instruction& store = instructions[end].inst;
        const ptx::Operand &place = accessed_memory(store), &written = store[ptx::Role::b];
        if (place.base != ptx::Operand::Base::reg || written.kind != ptx::Operand::Kind::reg) return false;
        for (std::size_t j = first; j < end; ++j) {
            const ptx::Instruction& load = instructions[j].inst;
            if (!has_effect(load, ptx::Effects::load) || !is_plain_global(load)) continue;
            if (!are_one(accessed_memory(load), place)) continue;
            if (comes_from(written.index, instructions[j]) && is_clamped(place.index)) return true;
        }
        return false;
    }

    bool are_one(const ptx::Operand& load, const ptx::Operand& store) const {
        if (load.base != ptx::Operand::Base::reg) return false;
        if (load.index == store.index) return load.value == store.value;
        auto from = sums_.of(load.index, no_loop), to = sums_.of(store.index, no_loop);
        if (!from || !to) return false;
        const LinearSum distance = from->plus(*to, -1);
        return distance.terms.empty() &&
               std::uint64_t(distance.constant) == std::uint64_t(store.value) - std::uint64_t(load.value);
    }

    /// Calls `visit` with each instruction that `value` is computed from, loads being ends, until it returns true.
    template <class Visit> bool any_source(ValueId value, Visit visit) const {
        std::unordered_set<ValueId> seen;
        std::vector<ValueId> work{value};
        for (std::size_t next = 0; next < work.size() && seen.size() < most_sources; ++next) { // the nearest first
            const ValueId here = work[next];
            if (!seen.insert(here).second) continue;
            const LinearSums::Definition& definition = sums_.definition(here);
            if (definition.phi)
                work.insert(work.end(), definition.phi->incoming.begin(), definition.phi->incoming.end());
            if (!definition.instruction) continue;
            if (visit(*definition.instruction)) return true;
            if (has_effect(definition.instruction->inst, ptx::Effects::load)) continue;
            for (const ValueId source : uses(graph_, *definition.instruction)) work.push_back(source);
        }
        return false;
    }
    static constexpr std::size_t most_sources = 200;

    bool comes_from(ValueId value, const GraphInstruction& load) const {
        return any_source(value, [&](const GraphInstruction& source) { return &source == &load; });
    }

    bool is_clamped(ValueId address) const {
        return any_source(address, [&](const GraphInstruction& source) {
            return is_clamp(source.inst) &&
                   is_of_thread(source.inst[ptx::Role::a]) != is_of_thread(source.inst[ptx::Role::b]);
        });
    }

    static bool is_thread_number(const ptx::Operand& operand) {
        if (operand.kind != ptx::Operand::Kind::special) return false;
        const auto name = ptx::SpecialRegister(operand.index);
        return name == ptx::SpecialRegister::tid || name == ptx::SpecialRegister::laneid;
    }
    bool is_of_thread(const ptx::Operand& operand) const {
        if (operand.kind != ptx::Operand::Kind::reg) return is_thread_number(operand);
        return any_source(operand.index, [](const GraphInstruction& source) {
            return std::any_of(source.inst.operands.begin(), source.inst.operands.end(), is_thread_number);
        });
    }

    const FunctionGraph& graph_;
    const LinearSums sums_;
};

} // namespace

bool changes_clamped_words(const FunctionGraph& graph) {
    return !ClampedWords(graph).stores(1).empty();
}

std::vector<ClampedStore> stores_of_clamped_words(const FunctionGraph& graph) {
    return ClampedWords(graph).stores(SIZE_MAX);
}

} // namespace ptarmigan::translator
