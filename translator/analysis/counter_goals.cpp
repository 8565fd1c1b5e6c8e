// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/counter_goals.h"

#include "translator/analysis/form_queries.h"
#include "translator/analysis/memory_places.h"

#include <algorithm>

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

    const std::vector<const Instruction*>& additions() const { return additions_; }

    /// Compares a counter, as a strong read of it returns it, with what changes from barrier to barrier.
    bool asks_for_goal(const Instruction& inst) const {
        if (opcode(inst) != "setp" || !(inst.has(Modifier::eq) || inst.has(Modifier::ne))) return false;
        if (inst[Role::c].kind != Operand::Kind::none || inst[Role::p].kind != Operand::Kind::reg) return false;
        const Operand &a = inst[Role::a], &b = inst[Role::b];
        if (a.kind != Operand::Kind::reg || b.kind != Operand::Kind::reg) return false; // locks are compared with 0
        if (graph_.values[a.index].is_constant || graph_.values[b.index].is_constant) return false;
        return reads_counter(ValueId(a.index)) || reads_counter(ValueId(b.index));
    }

private:
    bool reads_counter(ValueId value) const {
        const GraphInstruction* read = places_.sums().definition(value).instruction;
        if (!read || !has_effect(read->inst, Effects::load | Effects::atomic)) return false;
        const MemoryPlace& place = places_.of(read->inst);
        return std::any_of(additions_.begin(), additions_.end(), [&](const Instruction* addition) {
            return addition != &read->inst && places_.overlap(place, places_.of(*addition)) >= Overlap::same_object;
        });
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
    if (search.additions().empty()) return goals;
    bool waits_for_one = false;
    for (BlockId block = 0; block < graph.blocks.size(); ++block)
        for (const GraphInstruction& instruction : graph.blocks[block].instructions) {
            if (!search.asks_for_goal(instruction.inst)) continue;
            goals.comparisons.insert(&instruction.inst); // those before a loop too: the first look of a rotated one
            const std::uint32_t loop = graph.forest.loop_of[block];
            if (loop == no_loop || !waits[loop]) continue;
            goals.loops[loop] = true;
            waits_for_one = true;
        }
    if (waits_for_one)
        goals.additions.insert(search.additions().begin(), search.additions().end());
    else
        goals.comparisons.clear();
    return goals;
}

} // namespace ptarmigan::translator
