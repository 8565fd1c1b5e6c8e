// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/shapes/segment_versions.h"

#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/split_block.h"
#include "translator/analysis/shapes/lane_tests.h"

#include <algorithm>
#include <map>
#include <unordered_set>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::Operand;

/// Longer spans are not made twice; nor are more statements of a kernel in all.
constexpr std::size_t most_in_span = 160, most_in_all = 400;
/// Instructions that a test may need, and questions that it may ask.
constexpr std::size_t most_operands = 32, most_questions = 12;

/// The blocks between `first`, which keeps what it does, and `last`, where all ways meet again.
struct Span {
    BlockId first = no_block, last = no_block;
    std::vector<BlockId> blocks;
    std::size_t statements = 0;
};

bool meets_others(const GraphInstruction& instruction) {
    return has_effect(instruction.inst,
                      Effects::barrier | Effects::convergent | Effects::waits | Effects::async | Effects::call);
}

/// Spans that begin at the entry or behind a barrier.
class Spans {
public:
    explicit Spans(const FunctionGraph& graph) : graph_(graph) {
        const Edges successors = successor_edges(graph), predecessors = reverse_edges(successors);
        behind_ = DominatorTree(predecessors, successors, graph.exit_block);
    }

    std::vector<Span> find() const {
        std::vector<Span> spans;
        for (BlockId block = 0; block < graph_.blocks.size(); ++block) {
            const auto& before = graph_.blocks[block].predecessors;
            const bool begins = block == 0 || (before.size() == 1 && graph_.blocks[before[0]].ends_with_barrier);
            if (!begins || graph_.blocks[block].ends_with_barrier) continue;
            if (std::optional<Span> span = from(block)) spans.push_back(std::move(*span));
        }
        return spans;
    }

private:
    /// The longest one.
    std::optional<Span> from(BlockId first) const {
        std::optional<Span> longest;
        if (!behind_.reachable(first)) return longest;
        for (BlockId last = behind_.parent(first); last != no_block; last = behind_.parent(last)) {
            std::optional<Span> span = between(first, last);
            if (!span) break;
            longest = std::move(span);
            if (graph_.blocks[last].ends_with_barrier) break;
        }
        return longest && !longest->blocks.empty() ? longest : std::nullopt;
    }

    std::optional<Span> between(BlockId first, BlockId last) const {
        Span span{first, last, {}, 0};
        std::vector<bool> seen(graph_.blocks.size(), false);
        std::vector<BlockId> work = graph_.blocks[first].successors;
        while (!work.empty()) {
            const BlockId block = work.back();
            work.pop_back();
            if (block == last || seen[block]) continue;
            const Block& code = graph_.blocks[block];
            if (block == first || block == graph_.exit_block || code.ends_with_barrier || code.hand_over != 0)
                return std::nullopt;
            if (std::any_of(code.instructions.begin(), code.instructions.end(), meets_others)) return std::nullopt;
            seen[block] = true;
            span.blocks.push_back(block);
            span.statements += code.instructions.size();
            if (span.statements > most_in_span) return std::nullopt;
            work.insert(work.end(), code.successors.begin(), code.successors.end());
        }
        // One way in, one way out.
        const auto is_inside = [&](BlockId block) { return block == first || seen[block]; };
        for (BlockId block : span.blocks) {
            const auto& before = graph_.blocks[block].predecessors;
            if (!std::all_of(before.begin(), before.end(), is_inside)) return std::nullopt;
        }
        const auto& before = graph_.blocks[last].predecessors;
        if (!std::all_of(before.begin(), before.end(), is_inside)) return std::nullopt;
        std::sort(span.blocks.begin(), span.blocks.end());
        return span;
    }

    const FunctionGraph& graph_;
    DominatorTree behind_; ///< of ways to the exit
};

class SpanVersions {
public:
    /// `parting`: the headers of loops that lanes leave one by one.
    SpanVersions(FunctionGraph& graph, const Span& span, const std::unordered_set<BlockId>& parting)
        : graph_(graph), span_(span), parting_(parting), inside_(graph.blocks.size(), false),
          definitions_(definitions_of(graph)) {
        for (BlockId block : span.blocks) inside_[block] = true;
    }

    bool run() {
        if (!has_parting_loop()) return false;
        for (BlockId block : span_.blocks)
            if (graph_.forest.loop_of[block] == graph_.forest.loop_of[span_.first])
                for (const GraphInstruction& instruction : graph_.blocks[block].instructions) consider(instruction);
        for_each_use_inside([&](ValueId value) { compute_again(value); });
        if (!asks_ || questions_.size() > most_questions) return false;
        make_twice();
        return true;
    }

private:
    bool has_parting_loop() const {
        return std::any_of(span_.blocks.begin(), span_.blocks.end(),
                           [&](BlockId block) { return parting_.contains(block); });
    }

    template <typename Visit> void for_each_use_inside(Visit visit) const {
        for (BlockId id : span_.blocks) {
            const Block& block = graph_.blocks[id];
            for (const Phi& phi : block.phis)
                for (ValueId value : phi.incoming) visit(value);
            for (const GraphInstruction& instruction : block.instructions)
                for (ValueId value : uses(graph_, instruction)) visit(value);
            if (block.terminator.condition != no_value) visit(block.terminator.condition);
        }
        const Terminator& end = graph_.blocks[span_.first].terminator; // goes into both versions
        if (end.condition != no_value) visit(end.condition);
    }

    bool is_inside(ValueId value) const {
        const BlockId block = graph_.values[value].block;
        return block != no_block && inside_[block];
    }

    bool is_quotient(const GraphInstruction& instruction) const {
        return is_tested_quotient(graph_, instruction) || is_tested_shift(graph_, instruction);
    }

    /// Comparisons and quotients by what is known in front of the span, and indices that are made wider.
    bool consider(const GraphInstruction& instruction) {
        const ptx::Instruction& inst = instruction.inst;
        const bool is_quotient = this->is_quotient(instruction);
        const std::optional<unsigned> compared = line_of_comparison(graph_, inst);
        const std::optional<unsigned> widened = line_of_widening(graph_, inst);
        if (!is_quotient && !compared && !widened) return false;
        if (questions_.contains(&instruction)) return true;
        const std::size_t before = needed_.size();
        const bool known = widened
                               ? need(inst.operands[*widened])
                               : need(inst.operands[is_quotient ? 1 : 2]) && need(inst.operands[is_quotient ? 2 : 3]);
        if (!known || needed_.size() > most_operands) {
            for (std::size_t i = before; i < needed_.size(); ++i) is_needed_.erase(needed_[i]);
            needed_.resize(before);
            return false;
        }
        questions_.insert(&instruction);
        order_.push_back(&instruction);
        asks_ = asks_ || is_quotient; // a bound alone is a mask, and masks keep lanes' distances
        return true;
    }

    bool need(const Operand& operand) {
        if (operand.kind == Operand::Kind::imm || operand.kind == Operand::Kind::special ||
            operand.kind == Operand::Kind::none || operand.kind == Operand::Kind::sink)
            return true;
        return operand.kind == Operand::Kind::reg && need(operand.index);
    }

    /// What is computed inside of the span is computed in front of it, too.
    bool need(ValueId value) {
        const SsaValue& info = graph_.values[value];
        if (info.is_constant) return true;
        if (info.is_undefined || info.shape.is_varying()) return false;
        if (!is_inside(value)) return true;
        const GraphInstruction* made = definitions_[value];
        if (!made || made->inst.guard != ptx::no_id || !is_pure(made->inst)) return false;
        if (is_needed_.contains(made)) return true;
        if (needed_.size() > most_operands) return false;
        const auto infos = ptx::form_info(made->inst.form).operands;
        for (unsigned i = 0; i < made->inst.operand_count; ++i)
            if (!infos[i].is_destination && !need(made->inst.operands[i])) return false;
        for (ValueId result : definitions(graph_, *made))
            if (graph_.values[result].shape.is_varying()) return false;
        is_needed_.insert(made);
        needed_.push_back(made);
        return true;
    }

    /// Varying values from in front of the span that follow from such questions, too: the version without doubts
    /// computes them anew.
    bool compute_again(ValueId value) {
        const SsaValue& info = graph_.values[value];
        if (info.is_constant) return true;
        if (info.is_undefined) return false;
        if (is_inside(value) || !info.shape.is_varying()) return !info.shape.is_varying() && !is_inside(value);
        const auto [known, is_new] = again_.try_emplace(value, false);
        if (!is_new) return known->second;
        const GraphInstruction* made = definitions_[value];
        if (!made || made->inst.guard != ptx::no_id || !is_pure(made->inst) || again_code_.size() > most_operands)
            return false;
        if (!consider(*made)) {
            const auto infos = ptx::form_info(made->inst.form).operands;
            for (unsigned i = 0; i < made->inst.operand_count; ++i) {
                const Operand& operand = made->inst.operands[i];
                if (infos[i].is_destination || operand.kind == Operand::Kind::imm ||
                    operand.kind == Operand::Kind::special || operand.kind == Operand::Kind::none)
                    continue;
                if (operand.kind != Operand::Kind::reg || !compute_again(operand.index)) return false;
            }
        }
        again_code_.push_back(made);
        return again_[value] = true;
    }

    void make_twice() {
        std::vector<GraphInstruction> again_code;
        for (const GraphInstruction* instruction : again_code_) again_code.push_back(*instruction);
        std::vector<bool> is_asked_again;
        for (const GraphInstruction* instruction : again_code_)
            is_asked_again.push_back(questions_.contains(instruction));
        std::vector<GraphInstruction> test_code = test_lanes();
        const ValueId agrees = test_.value();
        // Which instructions are asked about, by what they define: they are about to move.
        std::unordered_set<ValueId> asked;
        for (const GraphInstruction* instruction : questions_) asked.insert(instruction->inst.operands[0].index);

        Block& first = graph_.blocks[span_.first];
        first.instructions.insert(first.instructions.end(), std::make_move_iterator(test_code.begin()),
                                  std::make_move_iterator(test_code.end()));
        split_block(graph_, span_.first, first.instructions.size());
        const auto general = BlockId(graph_.blocks.size() - 1);
        std::vector<BlockId> blocks = span_.blocks;
        blocks.push_back(general);
        std::map<BlockId, BlockId> twin;
        for (std::size_t i = 0; i < blocks.size(); ++i) twin[blocks[i]] = BlockId(graph_.blocks.size() + i);
        const BlockId uniform = twin[general];

        Copies copies(graph_);
        std::vector<GraphInstruction> head;
        for (std::size_t i = 0; i < again_code.size(); ++i) {
            for (ValueId value : definitions(graph_, again_code[i])) copies.add(value, uniform);
            GraphInstruction copy = copies.copy(again_code[i]);
            if (is_asked_again[i])
                append_uniform(graph_, uniform, std::move(copy), head);
            else
                head.push_back(std::move(copy));
        }
        std::vector<ValueId> defined;
        for (BlockId block : blocks) {
            for (const Phi& phi : graph_.blocks[block].phis) {
                graph_.values[copies.add(phi.result, twin[block])].is_phi = true;
                defined.push_back(phi.result);
            }
            for (const GraphInstruction& instruction : graph_.blocks[block].instructions)
                for (ValueId value : definitions(graph_, instruction)) {
                    copies.add(value, twin[block]);
                    defined.push_back(value);
                }
        }
        for (BlockId old : blocks) {
            Block block = graph_.blocks[old];
            for (Phi& phi : block.phis) {
                phi.result = copies.name(phi.result);
                for (ValueId& value : phi.incoming) value = copies.name(value);
            }
            std::vector<GraphInstruction> code = old == general ? std::move(head) : std::vector<GraphInstruction>();
            for (const GraphInstruction& instruction : graph_.blocks[old].instructions) {
                const Operand& d = instruction.inst.operands[0];
                GraphInstruction copy = copies.copy(instruction);
                if (d.kind == Operand::Kind::reg && asked.contains(d.index))
                    append_uniform(graph_, twin[old], std::move(copy), code);
                else
                    code.push_back(std::move(copy));
            }
            block.instructions = std::move(code);
            if (block.terminator.condition != no_value)
                block.terminator.condition = copies.name(block.terminator.condition);
            for (std::vector<BlockId>* edges : {&block.successors, &block.predecessors})
                for (BlockId& other : *edges)
                    if (const auto found = twin.find(other); found != twin.end()) other = found->second;
            graph_.blocks.push_back(std::move(block));
        }
        Block& entry = graph_.blocks[span_.first];
        entry.terminator.kind = Terminator::Kind::branch;
        entry.terminator.condition = agrees;
        entry.terminator.negated = false;
        entry.successors = {uniform, general};
        join_at_end(twin, copies, defined);
        find_loops_again(graph_);
    }

    std::vector<GraphInstruction> test_lanes() {
        std::vector<GraphInstruction> code;
        Copies operands(graph_);
        LaneTest test(graph_, span_.first, code);
        for (const GraphInstruction* instruction : needed_) {
            for (ValueId value : definitions(graph_, *instruction)) operands.add(value, span_.first);
            code.push_back(operands.copy(*instruction));
        }
        for (const GraphInstruction* instruction : order_) {
            const ptx::Instruction named = operands.copy(*instruction).inst;
            if (const auto compared = line_of_comparison(graph_, instruction->inst))
                test.add_comparison(*instruction, *compared, named.operands[2], named.operands[3]);
            else if (const auto widened = line_of_widening(graph_, instruction->inst))
                test.add_widening(*instruction, *widened, named.operands[*widened]);
            else
                test.add(*instruction, named.operands[1], named.operands[2]);
        }
        test_ = test.result();
        return code;
    }

    /// Values that leave the span are phis behind it.
    void join_at_end(const std::map<BlockId, BlockId>& twin, const Copies& copies,
                     const std::vector<ValueId>& defined) {
        Block& last = graph_.blocks[span_.last];
        const std::vector<BlockId> before = last.predecessors;
        for (BlockId block : before) last.predecessors.push_back(twin.at(block));
        for (Phi& phi : last.phis)
            for (std::size_t i = 0; i < before.size(); ++i) phi.incoming.push_back(copies.name(phi.incoming[i]));
        const std::unordered_set<ValueId> leaving(defined.begin(), defined.end());
        std::map<ValueId, ValueId> joined;
        const auto rename = [&](ValueId& value) {
            if (!leaving.contains(value)) return;
            const auto [place, is_new] = joined.try_emplace(value, no_value);
            if (is_new) {
                SsaValue copy = graph_.values[value];
                copy.block = span_.last;
                copy.is_phi = true;
                graph_.values.push_back(std::move(copy));
                place->second = ValueId(graph_.values.size() - 1);
            }
            value = place->second;
        };
        const auto is_part = [&](BlockId block) {
            return twin.contains(block) ||
                   std::any_of(twin.begin(), twin.end(), [&](const auto& each) { return each.second == block; });
        };
        for (BlockId id = 0; id < graph_.blocks.size(); ++id) {
            if (is_part(id)) continue;
            Block& block = graph_.blocks[id];
            if (id != span_.last)
                for (Phi& phi : block.phis)
                    for (ValueId& value : phi.incoming) rename(value);
            for (GraphInstruction& instruction : block.instructions) {
                for_each_register(graph_, instruction, [&](Operand& operand, bool is_destination) {
                    if (is_destination) return;
                    ValueId value = operand.index;
                    rename(value);
                    operand.index = value;
                });
                if (instruction.inst.guard != ptx::no_id) {
                    ValueId guard = instruction.inst.guard;
                    rename(guard);
                    instruction.inst.guard = guard;
                }
                for (ValueId& value : instruction.previous) rename(value);
            }
            if (block.terminator.condition != no_value) rename(block.terminator.condition);
        }
        for (const auto& [value, phi_value] : joined) {
            Phi phi;
            phi.result = phi_value;
            phi.incoming.assign(before.size(), value);
            phi.incoming.resize(2 * before.size(), copies.name(value));
            graph_.blocks[span_.last].phis.push_back(std::move(phi));
        }
    }

    FunctionGraph& graph_;
    const Span& span_;
    const std::unordered_set<BlockId>& parting_;
    std::vector<bool> inside_;
    std::vector<const GraphInstruction*> definitions_;
    std::vector<const GraphInstruction*> needed_; ///< by the test, each behind what it reads
    std::unordered_set<const GraphInstruction*> is_needed_, questions_;
    std::vector<const GraphInstruction*> order_; ///< of the questions
    std::map<ValueId, bool> again_;
    std::vector<const GraphInstruction*> again_code_;
    bool asks_ = false;
    std::optional<ValueId> test_;
};

} // namespace

bool version_segments(FunctionGraph& graph) {
    std::unordered_set<BlockId> parting; // what is done to the first span forgets which they are
    for (const LoopInfo& loop : graph.forest.loops)
        if (loop.divergent_exit) parting.insert(loop.header);
    std::size_t made = 0;
    bool changed = false;
    for (const Span& span : Spans(graph).find()) { // none is part of another; blocks keep their numbers
        if (made + span.statements > most_in_all || !SpanVersions(graph, span, parting).run()) continue;
        made += span.statements;
        changed = true;
    }
    return changed;
}

} // namespace ptarmigan::translator
