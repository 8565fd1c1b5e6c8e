// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/build/thread_branches.h"

#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace ptarmigan::translator {
namespace {

using ptx::Operand;

/// More in a block, and it does more than ask.
constexpr std::size_t most_in_block = 4;
/// Branches above that are looked at.
constexpr unsigned most_branches = 8;

class Threading {
public:
    explicit Threading(FunctionGraph& graph) : graph_(graph), definitions_(definitions_of(graph)) {}

    bool run() {
        bool changed = false;
        for (BlockId block = 0; block < graph_.blocks.size(); ++block) {
            if (!only_asks(block)) continue;
            for (bool again = true; again;) {
                again = false;
                for (std::size_t edge = 0; edge < graph_.blocks[block].predecessors.size() && !again; ++edge)
                    again = thread(block, edge);
                changed = changed || again;
            }
        }
        return changed;
    }

private:
    bool only_asks(BlockId id) const {
        const Block& block = graph_.blocks[id];
        if (block.terminator.kind != Terminator::Kind::branch || block.predecessors.size() < 2 ||
            block.instructions.size() > most_in_block || is_header(id))
            return false;
        return std::all_of(block.instructions.begin(), block.instructions.end(),
                           [](const GraphInstruction& instruction) {
                               return ptx::form_info(instruction.inst.form).effects == ptx::Effects::pure &&
                                      instruction.previous.empty();
                           });
    }
    bool is_header(BlockId block) const {
        const std::uint32_t loop = graph_.forest.loop_of[block];
        return loop != no_loop && graph_.forest.loops[loop].header == block;
    }

    /// What `operand` of an instruction in `block` is for those that come over `edge`.
    Operand seen_from(const Operand& operand, BlockId block, std::size_t edge) const {
        Operand result = operand;
        if (operand.kind == Operand::Kind::reg)
            for (const Phi& phi : graph_.blocks[block].phis)
                if (phi.result == operand.index) result.index = phi.incoming[edge];
        return result;
    }

    /// The answer that the block's question has on the edge.
    std::optional<bool> answer(BlockId block, std::size_t edge) const {
        const GraphInstruction* question = definitions_[graph_.blocks[block].terminator.condition];
        if (!question || graph_.values[graph_.blocks[block].terminator.condition].block != block ||
            !is_comparison(question->inst))
            return std::nullopt;
        BlockId at = graph_.blocks[block].predecessors[edge];
        for (unsigned i = 0; i < most_branches && graph_.blocks[at].predecessors.size() == 1; ++i) {
            const BlockId above = graph_.blocks[at].predecessors[0];
            const Terminator& end = graph_.blocks[above].terminator;
            if (end.kind == Terminator::Kind::branch) {
                const GraphInstruction* asked = definitions_[end.condition];
                if (asked && are_same(*asked, *question, block, edge))
                    return (graph_.blocks[above].successors[0] == at) != end.negated;
            }
            at = above;
        }
        return std::nullopt;
    }
    static bool is_comparison(const ptx::Instruction& inst) {
        return (inst.form == ptx::FormId::setp_signed || inst.form == ptx::FormId::setp_unsigned) &&
               inst.guard == ptx::no_id && inst.operands[1].kind != Operand::Kind::reg;
    }
    bool are_same(const GraphInstruction& asked, const GraphInstruction& question, BlockId block,
                  std::size_t edge) const {
        const ptx::Instruction &a = asked.inst, &q = question.inst;
        if (!is_comparison(a) || a.form != q.form || a.type() != q.type() || a.modifier_count != q.modifier_count ||
            !std::equal(a.modifiers.begin(), a.modifiers.begin() + a.modifier_count, q.modifiers.begin()))
            return false;
        for (unsigned i = 2; i < 4; ++i) {
            const Operand here = seen_from(q.operands[i], block, edge);
            const Operand& there = a.operands[i];
            if (here.kind != there.kind || here.negated != there.negated || here.type != there.type) return false;
            if (here.kind == Operand::Kind::reg ? here.index != there.index
                                                : here.kind != Operand::Kind::imm || here.value != there.value)
                return false;
        }
        return true;
    }

    bool thread(BlockId block, std::size_t edge) {
        const std::optional<bool> known = answer(block, edge);
        if (!known) return false;
        const BlockId from = graph_.blocks[block].predecessors[edge];
        const Terminator& end = graph_.blocks[block].terminator;
        const BlockId way = graph_.blocks[block].successors[*known != end.negated ? 0 : 1];
        const Block& landing = graph_.blocks[way];
        if (graph_.blocks[from].terminator.kind != Terminator::Kind::jump || graph_.blocks[from].ends_with_barrier ||
            landing.terminator.kind != Terminator::Kind::jump || !landing.instructions.empty() ||
            !landing.phis.empty() || landing.predecessors.size() != 1)
            return false;
        const BlockId target = landing.successors[0];
        for (BlockId each : {from, way, target})
            if (graph_.forest.loop_of[each] != graph_.forest.loop_of[block] || is_header(each)) return false;
        const std::size_t landing_edge = edge_from(target, way);
        std::vector<ValueId> incoming;
        for (const Phi& phi : graph_.blocks[target].phis) {
            const ValueId seen = value_seen_from(phi.incoming[landing_edge], block, edge);
            if (graph_.values[seen].block == block) return false;
            incoming.push_back(seen);
        }
        Edges successors = successor_edges(graph_);
        successors[from] = {target};
        const DominatorTree tree(successors, reverse_edges(successors), 0); // once `from` leads to `target`
        const std::optional<std::vector<ValueId>> joined = used_behind(target, block, tree);
        if (!joined) return false;
        for (ValueId value : *joined) incoming.push_back(value_seen_from(value, block, edge));
        join_at(target, *joined, block, tree);
        redirect(block, edge, target, incoming);
        return true;
    }

    ValueId value_seen_from(ValueId value, BlockId block, std::size_t edge) const {
        Operand operand;
        operand.kind = Operand::Kind::reg;
        operand.index = value;
        return seen_from(operand, block, edge).index;
    }

    std::size_t edge_from(BlockId target, BlockId source) const {
        const std::vector<BlockId>& from = graph_.blocks[target].predecessors;
        return std::size_t(std::find(from.begin(), from.end(), source) - from.begin());
    }

    /// Calls fn(value, way) for each use of a value that `block` defines; `way`: where it is alive, the using block or
    /// a phi's predecessor.
    template <typename Fn> void for_each_use(BlockId block, Fn&& fn) {
        const auto is_here = [&](ValueId value) { return value != no_value && graph_.values[value].block == block; };
        const auto visit = [&](ValueId& value, BlockId way) {
            if (is_here(value)) fn(value, way);
        };
        for (BlockId user = 0; user < graph_.blocks.size(); ++user) {
            Block& here = graph_.blocks[user];
            for (Phi& phi : here.phis)
                for (std::size_t i = 0; i < phi.incoming.size(); ++i) visit(phi.incoming[i], here.predecessors[i]);
            for (GraphInstruction& instruction : here.instructions) {
                for_each_register(graph_, instruction, [&](Operand& operand, bool is_definition) {
                    if (!is_definition) visit(operand.index, user);
                });
                if (instruction.inst.guard != ptx::no_id) visit(instruction.inst.guard, user);
                for (ValueId& value : instruction.previous) visit(value, user);
            }
            visit(here.terminator.condition, user);
        }
    }

    /// What of the block's values is used behind `target`, to which a way leads past the block: phis only. None if
    /// others are, or if they are used elsewhere.
    std::optional<std::vector<ValueId>> used_behind(BlockId target, BlockId block, const DominatorTree& tree) {
        for (BlockId predecessor : graph_.blocks[target].predecessors)
            if (!tree.dominates(block, predecessor)) return std::nullopt;
        std::vector<ValueId> values;
        bool fits = true;
        for_each_use(block, [&](ValueId value, BlockId way) {
            if (tree.dominates(block, way)) return;
            fits = fits && graph_.values[value].is_phi && tree.dominates(target, way);
            if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
        });
        if (!fits) return std::nullopt;
        return values;
    }

    /// Behind `target` the values are phis there, which have no value for the new way yet.
    void join_at(BlockId target, const std::vector<ValueId>& values, BlockId block, const DominatorTree& tree) {
        std::unordered_map<ValueId, ValueId> names;
        for (ValueId value : values) {
            SsaValue join = graph_.values[value];
            join.block = target;
            names[value] = ValueId(graph_.values.size());
            graph_.values.push_back(std::move(join));
            definitions_.push_back(nullptr);
        }
        for_each_use(block, [&](ValueId& value, BlockId way) {
            if (!tree.dominates(block, way)) value = names.at(value);
        });
        for (ValueId value : values) {
            std::vector<ValueId> incoming(graph_.blocks[target].predecessors.size(), value);
            graph_.blocks[target].phis.push_back({names.at(value), std::move(incoming)});
        }
    }

    void redirect(BlockId block, std::size_t edge, BlockId target, const std::vector<ValueId>& incoming) {
        Block& here = graph_.blocks[block];
        const BlockId from = here.predecessors[edge];
        here.predecessors.erase(here.predecessors.begin() + std::ptrdiff_t(edge));
        for (Phi& phi : here.phis) phi.incoming.erase(phi.incoming.begin() + std::ptrdiff_t(edge));
        graph_.blocks[from].successors = {target};
        Block& there = graph_.blocks[target];
        there.predecessors.push_back(from);
        for (std::size_t i = 0; i < there.phis.size(); ++i) there.phis[i].incoming.push_back(incoming[i]);
        for (BlockId changed : {block, target}) replace_phis_of_one_value(changed);
    }

    void replace_phis_of_one_value(BlockId block) {
        std::unordered_map<ValueId, ValueId> names;
        std::erase_if(graph_.blocks[block].phis, [&](const Phi& phi) {
            const ValueId one = phi.incoming[0];
            if (std::any_of(phi.incoming.begin(), phi.incoming.end(), [&](ValueId value) { return value != one; }))
                return false;
            names[phi.result] = one;
            return true;
        });
        if (names.empty()) return;
        const auto rename = [&](ValueId& value) {
            for (auto found = names.find(value); found != names.end(); found = names.find(value)) value = found->second;
        };
        for (Block& user : graph_.blocks) {
            for (Phi& phi : user.phis)
                for (ValueId& value : phi.incoming) rename(value);
            for (GraphInstruction& instruction : user.instructions) {
                for_each_register(graph_, instruction, [&](Operand& operand, bool) { rename(operand.index); });
                if (instruction.inst.guard != ptx::no_id) rename(instruction.inst.guard);
                for (ValueId& value : instruction.previous) rename(value);
            }
            if (user.terminator.condition != no_value) rename(user.terminator.condition);
        }
    }

    FunctionGraph& graph_;
    std::vector<const GraphInstruction*> definitions_; ///< by value
};

} // namespace

bool thread_branches(FunctionGraph& graph) {
    if (!graph.forest.reducible || !Threading(graph).run()) return false;
    find_loops_again(graph);
    return true;
}

} // namespace ptarmigan::translator
