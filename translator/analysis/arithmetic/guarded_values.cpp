// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/arithmetic/guarded_values.h"

#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;

class GuardedValues {
public:
    explicit GuardedValues(FunctionGraph& graph)
        : graph_(graph), definitions_(graph.values.size()), facts_(graph.values.size()) {}

    bool run() {
        if (!find_definitions()) return false;
        const Edges successors = successor_edges(graph_), predecessors = reverse_edges(successors);
        const DominatorTree tree(successors, predecessors, 0);
        // Down the tree: what the branch above says holds for all blocks below.
        struct Visit {
            BlockId block;
            std::size_t child = 0, known = 0;
        };
        std::vector<Visit> visits{{0}};
        while (!visits.empty()) {
            Visit& visit = visits.back();
            const BlockId block = visit.block;
            if (visit.child == 0) {
                visit.known = known_.size();
                note_branch(predecessors, block);
                resolve(block);
            }
            if (visit.child < tree.children(block).size()) {
                visits.push_back({tree.children(block)[visit.child++]});
                continue;
            }
            for (; known_.size() > visit.known; known_.pop_back()) facts_[known_.back()].reset();
            visits.pop_back();
        }
        return changed_;
    }

private:
    struct Definition {
        const GraphInstruction* instruction = nullptr;
        std::size_t place = 0; ///< among the instruction's results
    };

    /// Whether any instruction keeps what was before.
    bool find_definitions() {
        bool any = false;
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions) {
                any = any || !instruction.previous.empty();
                const FewValues results = definitions(graph_, instruction);
                for (std::size_t i = 0; i < results.size(); ++i) definitions_[results[i]] = {&instruction, i};
            }
        return any;
    }

    /// Without inversions: the value, and whether it is inverted.
    std::pair<ValueId, bool> plain(ValueId value) const {
        bool inverted = false;
        for (unsigned step = 0; step < 8; ++step) {
            const GraphInstruction* instruction = definitions_[value].instruction;
            if (instruction == nullptr) break;
            const ptx::Instruction& inst = instruction->inst;
            if (inst.form != FormId::not_bits || inst.guard != ptx::no_id || !is_predicate(inst.operands[1])) break;
            inverted = inverted != !inst.operands[1].negated;
            value = inst.operands[1].index;
        }
        return {value, inverted};
    }
    bool is_predicate(const Operand& operand) const {
        return operand.kind == Operand::Kind::reg && graph_.values[operand.index].type == ptx::ScalarType::pred;
    }

    /// `value` is `holds`; of a conjunction that is true, and of a disjunction that is false, the parts too.
    void assume(ValueId value, bool holds, unsigned depth = 0) {
        const auto [base, inverted] = plain(value);
        holds = holds != inverted;
        if (facts_[base]) return;
        facts_[base] = holds;
        known_.push_back(base);
        const GraphInstruction* instruction = definitions_[base].instruction;
        if (instruction == nullptr || depth > 8) return;
        const ptx::Instruction& inst = instruction->inst;
        if (inst.form != (holds ? FormId::and_bits : FormId::or_bits) || inst.guard != ptx::no_id) return;
        if (graph_.values[base].type != ptx::ScalarType::pred) return;
        for (unsigned i = 1; i < inst.operand_count; ++i)
            if (is_predicate(inst.operands[i]))
                assume(inst.operands[i].index, holds != inst.operands[i].negated, depth + 1);
    }

    void note_branch(const Edges& predecessors, BlockId block) {
        if (predecessors[block].size() != 1) return;
        const Block& before = graph_.blocks[predecessors[block][0]];
        if (before.terminator.kind != Terminator::Kind::branch || before.successors[0] == before.successors[1]) return;
        assume(before.terminator.condition, (before.successors[0] == block) != before.terminator.negated);
    }

    ValueId resolved(ValueId value) const {
        for (unsigned step = 0; step < 64; ++step) {
            const Definition& definition = definitions_[value];
            if (definition.instruction == nullptr || definition.instruction->previous.empty()) break;
            const ptx::Instruction& inst = definition.instruction->inst;
            const auto [guard, inverted] = plain(inst.guard);
            if (!facts_[guard]) break;
            const bool is_done = *facts_[guard] != (inst.guard_negated != inverted);
            const bool is_copy = inst.form == FormId::mov && inst.operand_count == 2 &&
                                 inst.operands[1].kind == Operand::Kind::reg && !inst.operands[1].negated;
            if (is_done && !is_copy) break;
            const ValueId other = is_done ? inst.operands[1].index : definition.instruction->previous[definition.place];
            if (graph_.values[other].type != graph_.values[value].type) break;
            value = other;
        }
        return value;
    }

    void put(ValueId& value) {
        const ValueId other = resolved(value);
        changed_ = changed_ || other != value;
        value = other;
    }

    void resolve(BlockId id) {
        if (known_.empty()) return;
        Block& block = graph_.blocks[id];
        for (GraphInstruction& instruction : block.instructions) {
            if (instruction.inst.guard != ptx::no_id) put(instruction.inst.guard);
            for (ValueId& value : instruction.previous) put(value);
            for_each_register(graph_, instruction, [&](Operand& operand, bool is_definition) {
                if (!is_definition) put(operand.index);
            });
        }
        if (block.terminator.condition != no_value) put(block.terminator.condition);
        for (const BlockId next : block.successors) {
            Block& target = graph_.blocks[next];
            for (std::size_t i = 0; i < target.predecessors.size(); ++i)
                if (target.predecessors[i] == id)
                    for (Phi& phi : target.phis) put(phi.incoming[i]);
        }
    }

    FunctionGraph& graph_;
    std::vector<Definition> definitions_; ///< by value
    std::vector<std::optional<bool>> facts_;
    std::vector<ValueId> known_; ///< that facts_ has, in the order of finding
    bool changed_ = false;
};

} // namespace

bool resolve_guarded_values(FunctionGraph& graph) {
    return GuardedValues(graph).run();
}

} // namespace ptarmigan::translator
