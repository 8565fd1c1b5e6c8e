// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/waits/counter_goals.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/memory/memory_places.h"

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Operand;
using ptx::Role;

bool is_addition(const Instruction& inst) {
    return has_effect(inst, Effects::atomic) && (inst.has(Modifier::add) || inst.has(Modifier::inc));
}

class GoalSearch {
public:
    explicit GoalSearch(const FunctionGraph& graph) : graph_(graph), places_(graph) {
        for (const Block& block : graph.blocks)
            for (const GraphInstruction& instruction : block.instructions)
                if (is_addition(instruction.inst)) additions_.push_back(&instruction.inst);
    }

    bool has_additions() const { return !additions_.empty(); }

    /// The additions to the counter that `inst` compares, as a strong read returns it, with what changes from barrier
    /// to barrier. Empty if it does nothing like that.
    std::vector<const Instruction*> counted_for(const Instruction& inst) const {
        if (opcode(inst) != "setp" || !(inst.has(Modifier::eq) || inst.has(Modifier::ne))) return {};
        if (inst[Role::c].kind != Operand::Kind::none || inst[Role::p].kind != Operand::Kind::reg) return {};
        const Operand &a = inst[Role::a], &b = inst[Role::b];
        if (a.kind != Operand::Kind::reg || b.kind != Operand::Kind::reg) return {}; // locks are compared with 0
        if (graph_.values[a.index].is_constant || graph_.values[b.index].is_constant) return {};
        std::vector<const Instruction*> found = additions_to(ValueId(a.index));
        return found.empty() ? additions_to(ValueId(b.index)) : found;
    }

private:
    /// To the object that `value` was read from.
    std::vector<const Instruction*> additions_to(ValueId value) const {
        const GraphInstruction* read = places_.sums().definition(value).instruction;
        if (!read || !has_effect(read->inst, Effects::load | Effects::atomic)) return {};
        const MemoryPlace& place = places_.of(read->inst);
        std::vector<const Instruction*> found;
        for (const Instruction* addition : additions_)
            if (addition != &read->inst && places_.overlap(place, places_.of(*addition)) >= Overlap::same_object)
                found.push_back(addition);
        return found;
    }

    const FunctionGraph& graph_;
    const MemoryPlaces places_;
    std::vector<const Instruction*> additions_;
};

} // namespace

CounterGoals find_counter_goals(const FunctionGraph& graph, const std::vector<bool>& waits) {
    CounterGoals goals;
    goals.loops.resize(graph.forest.loops.size());
    const GoalSearch search(graph);
    if (!search.has_additions()) return goals;
    bool waits_for_one = false;
    for (BlockId block = 0; block < graph.blocks.size(); ++block)
        for (const GraphInstruction& instruction : graph.blocks[block].instructions) {
            const std::vector<const Instruction*> additions = search.counted_for(instruction.inst);
            if (additions.empty()) continue;
            goals.comparisons.insert(&instruction.inst); // those before a loop too: the first look of a rotated one
            goals.additions.insert(additions.begin(), additions.end());
            const std::uint32_t loop = graph.forest.loop_of[block];
            if (loop == no_loop || !waits[loop]) continue;
            goals.loops[loop] = true;
            waits_for_one = true;
        }
    if (!waits_for_one) {
        goals.comparisons.clear();
        goals.additions.clear();
    }
    return goals;
}

} // namespace ptarmigan::translator
