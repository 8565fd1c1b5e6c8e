// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/arithmetic/guarded_values.h"

#include "translator/analysis/arithmetic/predicate_facts.h"
#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <optional>

namespace ptarmigan::translator {
namespace {

using ptx::Operand;

class GuardedValues {
public:
    explicit GuardedValues(FunctionGraph& graph) : graph_(graph), definitions_(graph), facts_(graph.values.size()) {}

    bool run() {
        if (!has_choices()) return false;
        const Edges successors = successor_edges(graph_), predecessors = reverse_edges(successors);
        const DominatorTree tree(successors, predecessors, 0);
        // Down the tree: what the branch above says holds for all blocks below.
        std::vector<std::size_t> known; ///< what held above each block on the way down
        walk_down(
            tree,
            [&](BlockId block) {
                known.push_back(known_.size());
                note_branch(predecessors, block);
                resolve(block);
            },
            [&](BlockId) {
                for (; known_.size() > known.back(); known_.pop_back()) facts_[known_.back()].reset();
                known.pop_back();
            });
        return changed_;
    }

private:
    /// Whether any instruction keeps what was before, or chooses.
    bool has_choices() const {
        return std::any_of(graph_.blocks.begin(), graph_.blocks.end(), [](const Block& block) {
            return std::any_of(block.instructions.begin(), block.instructions.end(),
                               [](const GraphInstruction& instruction) {
                                   return !instruction.previous.empty() || instruction.inst.form == ptx::FormId::selp;
                               });
        });
    }

    void note_branch(const Edges& predecessors, BlockId block) {
        if (predecessors[block].size() != 1) return;
        const Block& before = graph_.blocks[predecessors[block][0]];
        if (before.terminator.kind != Terminator::Kind::branch || before.successors[0] == before.successors[1]) return;
        PredicateFacts facts;
        definitions_.assume(before.terminator.condition, (before.successors[0] == block) != before.terminator.negated,
                            facts);
        for (const PredicateFact& fact : facts) {
            if (facts_[fact.predicate]) continue;
            facts_[fact.predicate] = fact.holds;
            known_.push_back(fact.predicate);
        }
    }

    void put(ValueId& value) {
        const ValueId other = definitions_.resolved(value, [&](ValueId predicate) { return facts_[predicate]; });
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
    const ValueDefinitions definitions_;
    std::vector<std::optional<bool>> facts_;
    std::vector<ValueId> known_; ///< that facts_ has, in the order of finding
    bool changed_ = false;
};

} // namespace

bool resolve_guarded_values(FunctionGraph& graph) {
    return GuardedValues(graph).run();
}

} // namespace ptarmigan::translator
