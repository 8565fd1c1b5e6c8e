// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/arithmetic/needed_lanes.h"

#include "translator/analysis/arithmetic/predicate_facts.h"
#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/make_operands.h"

#include <algorithm>
#include <optional>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;

/// Facts that all hold where somebody wants a value. Predicates are values, so what was found true of one stays true
/// for as long as the value itself is there: whoever uses a value that depends on a predicate sees the one it depends
/// on, but for phis of loops in which the predicate is made.
class NeededLanes {
public:
    explicit NeededLanes(FunctionGraph& graph)
        : graph_(graph), definitions_(graph), successors_(successor_edges(graph)),
          predecessors_(reverse_edges(successors_)), tree_(successors_, predecessors_, 0), facts_(graph.blocks.size()),
          wanted_(graph.values.size()), phis_(graph.values.size()), made_in_(graph.values.size(), no_block) {}

    bool run() {
        if (!has_guards()) return false;
        for (BlockId block : tree_.order()) note_facts(block);
        for (BlockId id : tree_.order()) want_effects(id);
        while (!work_.empty()) {
            const ValueId value = work_.back();
            work_.pop_back();
            in_work_[value] = false;
            pass_on(value);
        }
        for (BlockId id : tree_.order()) resolve(id);
        for (BlockId id : tree_.order())
            for (GraphInstruction& instruction : graph_.blocks[id].instructions) hide_previous(instruction);
        return changed_;
    }

private:
    static constexpr std::size_t most_facts = 12;

    /// Nothing for a value that nobody wants.
    struct Wanted {
        bool is_wanted = false;
        PredicateFacts facts;
    };

    /// Without them no value is wanted but for all, as far as choices are concerned.
    bool has_guards() {
        in_work_.assign(graph_.values.size(), false);
        is_chosen_.assign(graph_.values.size(), false);
        bool any = false;
        for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
            for (const Phi& phi : graph_.blocks[id].phis) {
                phis_[phi.result] = &phi;
                made_in_[phi.result] = id;
            }
            for (const GraphInstruction& instruction : graph_.blocks[id].instructions) {
                any = any || instruction.inst.guard != ptx::no_id || instruction.inst.form == FormId::selp;
                const bool is_chosen = instruction.inst.form == FormId::selp || !instruction.previous.empty();
                for (ValueId result : definitions(graph_, instruction)) {
                    made_in_[result] = id;
                    is_chosen_[result] = is_chosen;
                }
            }
        }
        return any;
    }

    void add_branch(BlockId from, BlockId to, PredicateFacts& facts) const {
        const Block& before = graph_.blocks[from];
        if (before.terminator.kind != Terminator::Kind::branch || before.successors[0] == before.successors[1]) return;
        definitions_.assume(before.terminator.condition, (before.successors[0] == to) != before.terminator.negated,
                            facts);
    }

    /// What the branches above a block say, the nearest first.
    void note_facts(BlockId block) {
        PredicateFacts& facts = facts_[block];
        if (predecessors_[block].size() == 1) add_branch(predecessors_[block][0], block, facts);
        const BlockId parent = tree_.parent(block);
        if (parent != no_block) add(facts, facts_[parent]);
        if (facts.size() > most_facts) facts.resize(most_facts);
    }

    static const PredicateFact* find(const PredicateFacts& facts, ValueId predicate) {
        const auto found = std::find_if(facts.begin(), facts.end(),
                                        [&](const PredicateFact& fact) { return fact.predicate == predicate; });
        return found == facts.end() ? nullptr : &*found;
    }
    /// What is there already stays: where two contradict each other, nobody comes.
    static void add(PredicateFacts& facts, const PredicateFacts& more) {
        for (const PredicateFact& fact : more)
            if (find(facts, fact.predicate) == nullptr) facts.push_back(fact);
    }
    template <typename Keep> static void keep_if(PredicateFacts& facts, Keep&& keep) {
        facts.erase(std::stable_partition(facts.begin(), facts.end(), keep), facts.end());
    }
    /// Keeps what `others` has, too.
    static void intersect(PredicateFacts& facts, const PredicateFacts& others) {
        keep_if(facts, [&](const PredicateFact& fact) {
            return std::find(others.begin(), others.end(), fact) != others.end();
        });
    }
    /// The new ones first: many branches above must not hide them.
    PredicateFacts with(const PredicateFacts& facts, ValueId predicate, bool holds) const {
        PredicateFacts result;
        definitions_.assume(predicate, holds, result);
        add(result, facts);
        return result;
    }

    void want(ValueId value, const PredicateFacts& facts) {
        Wanted& wanted = wanted_[value];
        const std::size_t before = wanted.facts.size();
        if (!wanted.is_wanted) {
            wanted.is_wanted = true;
            wanted.facts = facts;
            if (wanted.facts.size() > most_facts) wanted.facts.resize(most_facts);
        } else {
            intersect(wanted.facts, facts);
            if (wanted.facts.size() == before) return;
        }
        if (in_work_[value]) return;
        in_work_[value] = true;
        work_.push_back(value);
    }

    /// Computed for its results alone, which are all that others see of it.
    static bool is_computed(const ptx::Instruction& inst) {
        return is_removable(inst) && !has_effect(inst, ptx::Effects::load);
    }

    void want_effects(BlockId id) {
        const Block& block = graph_.blocks[id];
        if (block.terminator.condition != no_value) want(block.terminator.condition, facts_[id]);
        for (const GraphInstruction& instruction : block.instructions)
            if (!is_computed(instruction.inst)) want_operands(instruction, facts_[id]);
    }

    static bool is_choice(const ptx::Instruction& inst) {
        return inst.form == FormId::selp && inst.guard == ptx::no_id && inst.operands[3].kind == Operand::Kind::reg;
    }

    /// Calls fn(value, facts) for all that an instruction reads whose results are wanted under `facts`.
    template <typename Fn> void for_each_use(GraphInstruction& instruction, const PredicateFacts& facts, Fn&& fn) {
        ptx::Instruction& inst = instruction.inst;
        if (is_choice(inst)) {
            const ValueId chooser = inst.operands[3].index;
            const bool negated = inst.operands[3].negated;
            for (unsigned arm : {1u, 2u})
                if (inst.operands[arm].kind == Operand::Kind::reg)
                    fn(inst.operands[arm].index, with(facts, chooser, (arm == 1) != negated));
            fn(inst.operands[3].index, facts);
            return;
        }
        const auto operands_under = [&](const PredicateFacts& inside) {
            for_each_register(graph_, instruction, [&](Operand& operand, bool is_definition) {
                if (!is_definition) fn(operand.index, inside);
            });
        };
        if (inst.guard == ptx::no_id) return operands_under(facts);
        operands_under(with(facts, inst.guard, !inst.guard_negated));
        const PredicateFacts outside = with(facts, inst.guard, inst.guard_negated);
        for (ValueId& value : instruction.previous) fn(value, outside);
        fn(inst.guard, facts);
    }

    void want_operands(const GraphInstruction& instruction, const PredicateFacts& facts) {
        for_each_use(const_cast<GraphInstruction&>(instruction), facts,
                     [&](ValueId value, const PredicateFacts& where) { want(value, where); });
    }

    /// Where an instruction's results are wanted, all of them.
    PredicateFacts wanted_results(BlockId id, const GraphInstruction& instruction) const {
        PredicateFacts facts;
        if (!is_computed(instruction.inst)) return facts_[id];
        bool is_first = true;
        for (ValueId result : definitions(graph_, instruction)) {
            const Wanted& wanted = wanted_[result];
            if (!wanted.is_wanted) continue;
            if (is_first)
                facts = wanted.facts;
            else
                intersect(facts, wanted.facts);
            is_first = false;
        }
        add(facts, facts_[id]);
        return facts;
    }

    /// A predicate that is made above a phi is the same for all who come there.
    PredicateFacts wanted_incoming(const Phi& phi, BlockId block, BlockId from) const {
        PredicateFacts facts = wanted_[phi.result].facts;
        keep_if(facts, [&](const PredicateFact& fact) {
            const BlockId made = made_in_[fact.predicate];
            return made == no_block || (made != block && tree_.dominates(made, block));
        });
        PredicateFacts there = facts_[from];
        add_branch(from, block, there);
        add(facts, there);
        return facts;
    }

    void pass_on(ValueId value) {
        const BlockId block = made_in_[value];
        if (block == no_block || !tree_.reachable(block)) return;
        if (const Phi* phi = phis_[value]) {
            for (std::size_t i = 0; i < phi->incoming.size(); ++i)
                want(phi->incoming[i], wanted_incoming(*phi, block, graph_.blocks[block].predecessors[i]));
            return;
        }
        const GraphInstruction* instruction = definitions_[value].instruction;
        if (instruction != nullptr && is_computed(instruction->inst))
            want_operands(*instruction, wanted_results(block, *instruction));
    }

    void put(ValueId& value, const PredicateFacts& facts) {
        if (facts.empty()) return;
        const ValueId other = definitions_.resolved(value, [&](ValueId predicate) -> std::optional<bool> {
            const PredicateFact* fact = find(facts, predicate);
            if (fact == nullptr) return std::nullopt;
            return fact->holds;
        });
        changed_ = changed_ || other != value;
        value = other;
    }

    /// Something that put() may change.
    bool reads_chosen(const GraphInstruction& instruction) const {
        const auto is_chosen = [&](ValueId value) { return is_chosen_[value]; };
        const auto& inst = instruction.inst;
        bool reads = inst.guard != ptx::no_id && is_chosen(inst.guard);
        for_each_register(graph_, instruction, [&](const Operand& operand, bool is_definition) {
            reads = reads || (!is_definition && is_chosen(operand.index));
        });
        return reads || std::any_of(instruction.previous.begin(), instruction.previous.end(), is_chosen);
    }

    void resolve(BlockId id) {
        Block& block = graph_.blocks[id];
        for (Phi& phi : block.phis)
            for (std::size_t i = 0; i < phi.incoming.size(); ++i)
                put(phi.incoming[i], wanted_incoming(phi, id, block.predecessors[i]));
        for (GraphInstruction& instruction : block.instructions)
            if (reads_chosen(instruction))
                for_each_use(instruction, wanted_results(id, instruction),
                             [&](ValueId& value, const PredicateFacts& where) { put(value, where); });
        if (block.terminator.condition != no_value) put(block.terminator.condition, facts_[id]);
    }

    /// Of a guarded result that nobody wants where the guard fails.
    void hide_previous(GraphInstruction& instruction) {
        if (instruction.inst.guard == ptx::no_id || instruction.previous.empty()) return;
        const auto [guard, inverted] = definitions_.plain(instruction.inst.guard);
        const bool holds = instruction.inst.guard_negated == inverted;
        const FewValues results = definitions(graph_, instruction);
        for (std::size_t i = 0; i < results.size(); ++i) {
            const Wanted& wanted = wanted_[results[i]];
            const PredicateFact* fact = find(wanted.facts, guard);
            if (wanted.is_wanted && (fact == nullptr || fact->holds != holds)) continue;
            if (graph_.values[instruction.previous[i]].is_undefined) continue;
            instruction.previous[i] = new_value(graph_, graph_.values[results[i]].type, no_block);
            graph_.values.back().is_undefined = true;
            changed_ = true;
        }
    }

    FunctionGraph& graph_;
    const ValueDefinitions definitions_;
    const Edges successors_, predecessors_;
    const DominatorTree tree_;
    std::vector<PredicateFacts> facts_; ///< by block
    std::vector<Wanted> wanted_;        ///< by value
    std::vector<const Phi*> phis_;      ///< by value
    std::vector<BlockId> made_in_;      ///< by value
    std::vector<ValueId> work_;
    std::vector<bool> in_work_;   ///< by value
    std::vector<bool> is_chosen_; ///< by value: by a predicate, between two
    bool changed_ = false;
};

} // namespace

bool resolve_needed_lanes(FunctionGraph& graph) {
    return NeededLanes(graph).run();
}

} // namespace ptarmigan::translator
