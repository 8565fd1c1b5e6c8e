// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/shapes/lane_agreement.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/graph/make_operands.h"
#include "translator/analysis/graph/split_block.h"
#include "translator/analysis/shapes/entry_code.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Modifier;
using ptx::Operand;
using ptx::Role;
using ptx::ScalarType;

/// Larger kernels are not made twice, for the time that takes; larger blocks neither.
constexpr std::size_t most_statements = 300, most_in_block = 160;
/// Kernels that know tensors' sizes by reciprocals are written out for each dimension that there may be; what they do
/// by lanes takes ten times as long.
constexpr std::size_t most_with_reciprocals = 2500;
constexpr unsigned most_widenings = 8; ///< that are tested
constexpr unsigned deepest = 8;        ///< definitions that are looked through

bool is_special(const Operand& operand, ptx::SpecialRegister which) {
    return operand.kind == Operand::Kind::special && ptx::SpecialRegister(operand.index) == which;
}

/// The kernel twice, behind a test.
class KernelVersions {
public:
    KernelVersions(FunctionGraph& graph, const std::function<CtaSpans()>& spans)
        : graph_(graph), find_spans_(spans), definitions_(definitions_of(graph)), entry_(graph, definitions_) {}

    BlockId run() {
        std::size_t statements = 0;
        for (const Block& block : graph_.blocks) statements += block.instructions.size();
        if (statements > most_with_reciprocals || (statements > most_statements && !has_reciprocals())) return 0;
        find_questions();
        // Addresses alone are not worth it.
        if (!has_question_) return 0;
        return make_twice();
    }

    bool run_in_place(const CtaSpans& spans, ValueId& holds) {
        entry_.has(0);
        spans_ = spans;
        asks_more_ = true;
        find_questions();
        if (tested_.empty()) return true;
        if (!spans_.empty() && !may_ask_ctas()) return false;
        Test test = make_test(0, !spans_.empty(), holds);
        for (BlockId block = 1; block < graph_.blocks.size(); ++block) {
            std::vector<GraphInstruction> code;
            for (const GraphInstruction& instruction : graph_.blocks[block].instructions)
                append_version(block, instruction, instruction, test.quotients, code);
            graph_.blocks[block].instructions = std::move(code);
        }
        std::move(test.code.begin(), test.code.end(), std::back_inserter(graph_.blocks[0].instructions));
        holds = test.holds;
        return true;
    }

private:
    void find_questions() {
        const bool widens = widenings() <= most_widenings;
        for (BlockId block = 0; block < graph_.blocks.size(); ++block) {
            if (graph_.forest.loop_of[block] != no_loop) continue;
            for (const GraphInstruction& instruction : graph_.blocks[block].instructions) {
                const ptx::Instruction& inst = instruction.inst;
                if (is_tested_quotient(graph_, instruction))
                    consider(instruction, inst.operands[1], inst.operands[2], true);
                else if (line_of_comparison(graph_, inst))
                    consider(instruction, inst.operands[2], inst.operands[3], false);
                else if (const auto line = line_of_widening(graph_, inst); line && widens)
                    consider(instruction, inst.operands[*line], inst.operands[*line], true);
                else if (const auto quotient = reciprocal_quotient(graph_, definitions_, instruction))
                    consider(instruction, quotient->line, quotient->factor, true, quotient->shift);
                else if (asks_more_ && (is_shift_by_number(graph_, instruction) || line_of_mask(graph_, inst)))
                    consider(instruction, inst.operands[1], inst.operands[2], true);
            }
        }
    }
    /// Where a question is asked only of those that come there by a branch that all threads take alike.
    struct Side {
        ValueId condition = no_value;
        bool taken = false;
    };
    Side side_of(BlockId block) {
        for (unsigned i = 0; i < deepest && graph_.blocks[block].predecessors.size() == 1; ++i) {
            const BlockId above = graph_.blocks[block].predecessors[0];
            const Terminator& end = graph_.blocks[above].terminator;
            if (end.kind == Terminator::Kind::branch && is_the_same(end.condition)) {
                Operand condition;
                condition.kind = Operand::Kind::reg;
                condition.index = end.condition;
                if (entry_.need({&condition}))
                    return {end.condition, (graph_.blocks[above].successors[0] == block) != end.negated};
            }
            block = above;
        }
        return {};
    }
    /// In all lanes that are asked.
    bool is_the_same(ValueId value) const {
        return spans_.empty() ? graph_.values[value].shape.is_uniform() : spans_[value].is_uniform;
    }
    bool has_reciprocals() const {
        for (BlockId block = 0; block < graph_.blocks.size(); ++block)
            for (const GraphInstruction& instruction : graph_.blocks[block].instructions)
                if (graph_.forest.loop_of[block] == no_loop && reciprocal_quotient(graph_, definitions_, instruction))
                    return true;
        return false;
    }

    /// A guard is a comparison at each access, a test one for all of them; but what it compares has to be known, and
    /// kept, from the entry on.
    unsigned widenings() const {
        unsigned count = 0;
        for (BlockId block = 0; block < graph_.blocks.size(); ++block)
            for (const GraphInstruction& instruction : graph_.blocks[block].instructions)
                if (graph_.forest.loop_of[block] == no_loop && line_of_widening(graph_, instruction.inst)) ++count;
        return count;
    }

    /// Everything that the operands are computed from is known where the kernel begins. Lanes compare their numbers in
    /// the block with something in order to part, but those in the grid in order to stay within bounds.
    void consider(const GraphInstruction& instruction, const Operand& a, const Operand& b, bool in_block,
                  const Operand& c = {}) {
        if ((!in_block && !depends_on_cta(a, deepest) && !depends_on_cta(b, deepest)) || !entry_.need({&a, &b, &c}))
            return;
        const ValueId result = instruction.inst.operands[0].index;
        tested_.insert(result);
        if (asks_more_) sides_[result] = side_of(graph_.values[result].block);
        has_question_ = has_question_ || !line_of_widening(graph_, instruction.inst);
    }
    bool depends_on_cta(const Operand& operand, unsigned depth) const {
        if (is_special(operand, ptx::SpecialRegister::ctaid)) return true;
        if (operand.kind != Operand::Kind::reg || depth == 0) return false;
        const GraphInstruction* made = definitions_[operand.index];
        if (!made) return false;
        const auto infos = ptx::form_info(made->inst.form).operands;
        for (unsigned i = 0; i < made->inst.operand_count; ++i)
            if (!infos[i].is_destination && depends_on_cta(made->inst.operands[i], depth - 1)) return true;
        return false;
    }
    /// The same in all threads, or what `line` is.
    bool is_known_in_cta(const Operand& operand, bool line) const {
        if (operand.kind != Operand::Kind::reg) return operand.kind == Operand::Kind::imm;
        const CtaSpan& span = spans_[operand.index];
        return line ? span.is_line : span.is_uniform;
    }
    /// Whether all that is tested can be asked of a CTA's threads at once.
    bool may_ask_ctas() const {
        if (spans_.empty() || !entry_.is_of_cta()) return false;
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions) {
                if (!is_tested(instruction)) continue;
                const auto& operands = instruction.inst.operands;
                bool known = false;
                if (const auto line = line_of_comparison(graph_, instruction.inst))
                    known = is_known_in_cta(operands[*line], true) && is_known_in_cta(operands[5 - *line], false);
                else if (const auto line = line_of_widening(graph_, instruction.inst))
                    known = is_known_in_cta(operands[*line], true);
                else if (const auto quotient = reciprocal_quotient(graph_, definitions_, instruction))
                    known = is_known_in_cta(quotient->line, true) && is_known_in_cta(quotient->factor, false) &&
                            is_known_in_cta(quotient->shift, false);
                else if (const auto line = line_of_mask(graph_, instruction.inst))
                    known = is_known_in_cta(operands[*line], true) && is_known_in_cta(operands[3 - *line], false);
                else
                    known = is_known_in_cta(operands[1], true) && is_known_in_cta(operands[2], false);
                if (!known) return false;
            }
        return true;
    }

    struct Test {
        std::vector<GraphInstruction> code;
        ValueId holds = no_value;
        std::map<ValueId, Operand> quotients; ///< if it holds; by the results that they stand for
    };
    /// For the CTA: of thread 0.
    Test make_test(BlockId block, bool for_cta, ValueId before = no_value) {
        Test result;
        Copies operands(graph_);
        LaneTest test(graph_, block, result.code, for_cta ? &spans_ : nullptr);
        entry_.copy(result.code, operands, block, for_cta);
        for (BlockId id = 0; id < graph_.blocks.size(); ++id)
            for (std::size_t i = 0; i < graph_.blocks[id].instructions.size(); ++i) {
                if (!is_tested(graph_.blocks[id].instructions[i])) continue;
                const GraphInstruction instruction = graph_.blocks[id].instructions[i];
                const ptx::Instruction named = operands.copy(instruction).inst;
                Operand& quotient = result.quotients[instruction.inst.operands[0].index];
                const auto found = sides_.find(instruction.inst.operands[0].index);
                const Side side = found == sides_.end() ? Side() : found->second;
                if (side.condition != no_value) test.begin_if();
                if (const auto compared = line_of_comparison(graph_, instruction.inst))
                    test.add_comparison(instruction, *compared, named.operands[2], named.operands[3]);
                else if (const auto widened = line_of_widening(graph_, instruction.inst))
                    test.add_widening(instruction, *widened, named.operands[*widened]);
                else if (const auto reciprocal = reciprocal_quotient(graph_, definitions_, instruction))
                    quotient = test.add_reciprocal(instruction, *reciprocal, named_by(operands, *reciprocal));
                else if (const auto masked = line_of_mask(graph_, instruction.inst))
                    quotient =
                        test.add_mask(instruction, *masked, named.operands[*masked], named.operands[3 - *masked]);
                else
                    quotient = test.add(instruction, named.operands[1], named.operands[2]);
                if (side.condition != no_value)
                    test.end_if(register_operand(entry_.name(operands, side.condition), ScalarType::pred), side.taken);
            }
        std::erase_if(result.quotients, [](const auto& each) { return each.second.kind == Operand::Kind::none; });
        if (before != no_value) test.add_result(before);
        result.holds = test.result();
        return result;
    }

    /// `yes` and `no` are entered by this block alone.
    void ask(BlockId block, Test test, BlockId yes, BlockId no) {
        Block& asking = graph_.blocks[block];
        asking.instructions = std::move(test.code);
        asking.terminator.kind = Terminator::Kind::branch;
        asking.terminator.condition = test.holds;
        asking.terminator.location = asking.instructions.front().inst.location;
        asking.successors = {yes, no};
        for (BlockId version : asking.successors) graph_.blocks[version].predecessors = {block};
    }

    BlockId make_twice() {
        // The general version keeps its values and its numbers, but for the entry, which becomes the last block.
        const auto count = BlockId(graph_.blocks.size()); // of each version; its entry's number in the general one
        const BlockId general = count, common = 2 * count, exit = common + 1, of_cta = exit + 1, of_step = exit + 2,
                      ask_step = exit + 3;
        if (find_spans_) spans_ = find_spans_();
        const bool asks_ctas = may_ask_ctas();
        Test cta_test;
        if (asks_ctas) cta_test = make_test(0, true);
        Test step_test = make_test(asks_ctas ? ask_step : 0, false);
        const bool divides = !step_test.quotients.empty();
        std::vector<Phi> phis; // quotients of the CTA or of the step
        std::map<ValueId, Operand> quotients = step_test.quotients;
        if (asks_ctas)
            for (auto& [result, quotient] : quotients) {
                const ValueId either = new_value(graph_, quotient.type, common);
                graph_.values[either].is_phi = true;
                phis.push_back({either, {cta_test.quotients.at(result).index, quotient.index}});
                quotient.index = either;
            }
        put_block_in_front(graph_);
        copy_blocks(count, quotients);
        graph_.blocks.emplace_back();
        graph_.blocks[exit].terminator = graph_.blocks[graph_.exit_block].terminator;
        for (BlockId old : {graph_.exit_block, graph_.exit_block + count}) {
            graph_.blocks[old].terminator.kind = Terminator::Kind::jump;
            graph_.blocks[old].successors = {exit};
            graph_.blocks[exit].predecessors.push_back(old);
        }
        graph_.exit_block = exit;
        if (asks_ctas) {
            for (BlockId way : {of_cta, of_step}) {
                graph_.blocks.emplace_back();
                graph_.blocks[way].terminator.kind = Terminator::Kind::jump;
                graph_.blocks[way].successors = {common};
            }
            graph_.blocks.emplace_back();
            ask(0, std::move(cta_test), of_cta, ask_step);
            ask(ask_step, std::move(step_test), of_step, general);
            graph_.blocks[common].predecessors = {of_cta, of_step};
            graph_.blocks[common].phis = std::move(phis);
        } else {
            ask(0, std::move(step_test), common, general);
        }
        if (!divides) graph_.parted_blocks = count;
        find_loops_again(graph_);
        return count;
    }

    static ReciprocalQuotient named_by(const Copies& names, ReciprocalQuotient quotient) {
        for (Operand* operand : {&quotient.line, &quotient.factor, &quotient.shift})
            if (operand->kind == Operand::Kind::reg) operand->index = names.name(operand->index);
        return quotient;
    }

    bool is_tested(const GraphInstruction& instruction) const {
        const Operand& d = instruction.inst.operands[0];
        return d.kind == Operand::Kind::reg && tested_.contains(d.index) && definitions_[d.index] == &instruction;
    }

    /// Appends what `instruction`, which is `made` in `block`, is where lanes agree.
    void append_version(BlockId block, const GraphInstruction& instruction, GraphInstruction made,
                        const std::map<ValueId, Operand>& quotients, std::vector<GraphInstruction>& code) {
        const auto known =
            is_tested(instruction) ? quotients.find(instruction.inst.operands[0].index) : quotients.end();
        if (const auto line = known != quotients.end() ? line_of_mask(graph_, instruction.inst) : std::nullopt)
            append_masked(std::move(made), *line, known->second, code);
        else if (known != quotients.end())
            append_known(graph_, block, std::move(made), known->second, code);
        else if (is_tested(instruction))
            append_uniform(graph_, block, std::move(made), code);
        else
            code.push_back(std::move(made));
    }

    /// Blocks 1 to `count` once more, behind them.
    void copy_blocks(BlockId count, const std::map<ValueId, Operand>& quotients) {
        Copies copies(graph_);
        for (BlockId old = 1; old <= count; ++old) {
            for (const Phi& phi : graph_.blocks[old].phis)
                graph_.values[copies.add(phi.result, old + count)].is_phi = true;
            for (const GraphInstruction& instruction : graph_.blocks[old].instructions)
                for (ValueId value : definitions(graph_, instruction)) copies.add(value, old + count);
        }
        for (BlockId old = 1; old <= count; ++old) {
            Block block = graph_.blocks[old];
            for (Phi& phi : block.phis) {
                phi.result = copies.name(phi.result);
                for (ValueId& value : phi.incoming) value = copies.name(value);
            }
            std::vector<GraphInstruction> code;
            for (const GraphInstruction& instruction : graph_.blocks[old].instructions)
                append_version(old + count, instruction, copies.copy(instruction), quotients, code);
            block.instructions = std::move(code);
            if (block.terminator.condition != no_value)
                block.terminator.condition = copies.name(block.terminator.condition);
            for (BlockId& successor : block.successors) successor += count;
            for (BlockId& predecessor : block.predecessors) predecessor += count;
            graph_.blocks.push_back(std::move(block));
        }
    }

    FunctionGraph& graph_;
    const std::function<CtaSpans()>& find_spans_;
    CtaSpans spans_; ///< none: CTAs are not asked
    std::vector<const GraphInstruction*> definitions_;
    EntryCode entry_;                    ///< what a test needs
    std::unordered_set<ValueId> tested_; ///< results of what is tested
    bool asks_more_ = false;             ///< questions that few kernels have, and those that only some launches have
    std::unordered_map<ValueId, Side> sides_; ///< by results
    bool has_question_ = false;               ///< there are quotients and answers among them
};

/// The part of one block that depends on quotients, twice.
class BlockVersions {
public:
    BlockVersions(FunctionGraph& graph, BlockId block) : graph_(graph), block_(block) {}

    bool run() {
        if (graph_.blocks[block_].ends_with_barrier || graph_.blocks[block_].instructions.size() > most_in_block)
            return false;
        part();
        if (divisions_.empty()) return false;
        std::vector<GraphInstruction> rest = std::move(rest_);
        LaneTest test(graph_, block_, first_);
        for (std::size_t i : divisions_) test.add(rest[i], rest[i].inst.operands[1], rest[i].inst.operands[2]);
        graph_.blocks[block_].instructions = std::move(first_);
        split_block(graph_, block_, graph_.blocks[block_].instructions.size());
        make_twice(rest, test.result());
        return true;
    }

private:
    /// What does not depend on quotients comes first.
    void part() {
        std::unordered_set<ValueId> late;
        for (GraphInstruction& instruction : graph_.blocks[block_].instructions) {
            const FewValues read = uses(graph_, instruction);
            const bool is_late = std::any_of(read.begin(), read.end(), [&](ValueId v) { return late.contains(v); });
            const bool divides = !is_late && is_tested_quotient(graph_, instruction);
            if (!divides && !is_late && (divisions_.empty() || is_pure(instruction.inst))) {
                first_.push_back(instruction);
                continue;
            }
            for (ValueId value : definitions(graph_, instruction)) late.insert(value);
            if (divides) divisions_.push_back(rest_.size());
            rest_.push_back(instruction);
        }
    }

    void make_twice(const std::vector<GraphInstruction>& rest, ValueId condition) {
        const auto join = BlockId(graph_.blocks.size() - 1); // what split_block() made
        const BlockId uniform = join + 1, general = join + 2;
        graph_.blocks.resize(graph_.blocks.size() + 2);
        std::unordered_set<ValueId> defined;
        for (const GraphInstruction& instruction : rest)
            for (ValueId value : definitions(graph_, instruction)) defined.insert(value);
        std::unordered_set<ValueId> leaving;
        const auto use = [&](ValueId value) {
            if (defined.contains(value)) leaving.insert(value);
        };
        for (const Block& block : graph_.blocks) {
            for (const Phi& phi : block.phis)
                for (ValueId value : phi.incoming) use(value);
            for (const GraphInstruction& instruction : block.instructions)
                for (ValueId value : uses(graph_, instruction)) use(value);
            if (block.terminator.condition != no_value) use(block.terminator.condition);
        }
        Copies in_uniform(graph_), in_general(graph_);
        for (const GraphInstruction& instruction : rest)
            for (ValueId value : definitions(graph_, instruction)) {
                in_uniform.add(value, uniform);
                if (!leaving.contains(value)) {
                    graph_.values[value].block = general;
                    continue;
                }
                in_general.add(value, general);
                Phi phi;
                phi.result = value;
                phi.incoming = {in_uniform.name(value), in_general.name(value)};
                graph_.blocks[join].phis.push_back(std::move(phi));
                graph_.values[value].block = join;
                graph_.values[value].is_phi = true;
            }
        std::vector<GraphInstruction> uniform_code, general_code;
        for (std::size_t i = 0; i < rest.size(); ++i) {
            if (std::find(divisions_.begin(), divisions_.end(), i) != divisions_.end())
                append_uniform(graph_, uniform, in_uniform.copy(rest[i]), uniform_code);
            else
                uniform_code.push_back(in_uniform.copy(rest[i]));
            general_code.push_back(in_general.copy(rest[i]));
        }
        Block& block = graph_.blocks[block_];
        block.terminator.kind = Terminator::Kind::branch;
        block.terminator.condition = condition;
        block.successors = {uniform, general};
        for (BlockId version : {uniform, general}) {
            Block& made = graph_.blocks[version];
            made.instructions = std::move(version == uniform ? uniform_code : general_code);
            made.terminator.kind = Terminator::Kind::jump;
            made.terminator.location = block.terminator.location;
            made.predecessors = {block_};
            made.successors = {join};
        }
        graph_.blocks[join].predecessors = {uniform, general};
    }

    FunctionGraph& graph_;
    const BlockId block_;
    std::vector<GraphInstruction> first_, rest_;
    std::vector<std::size_t> divisions_; ///< in rest_
};

} // namespace

BlockId version_kernel(FunctionGraph& graph, const std::function<CtaSpans()>& spans) {
    return KernelVersions(graph, spans).run();
}

bool assume_agreement(FunctionGraph& graph, const CtaSpans& spans, ValueId& holds) {
    const std::function<CtaSpans()> none;
    return KernelVersions(graph, none).run_in_place(spans, holds);
}

BlockId put_block_in_front(FunctionGraph& graph) {
    const auto to = BlockId(graph.blocks.size());
    graph.blocks.push_back(std::move(graph.blocks[0]));
    graph.blocks[0] = {};
    for (const BlockId successor : graph.blocks[to].successors)
        std::replace(graph.blocks[successor].predecessors.begin(), graph.blocks[successor].predecessors.end(),
                     BlockId(0), to);
    for (const GraphInstruction& instruction : graph.blocks[to].instructions)
        for (const ValueId value : definitions(graph, instruction)) graph.values[value].block = to;
    if (graph.exit_block == 0) graph.exit_block = to;
    return to;
}

bool is_for_parted_lanes(const FunctionGraph& graph, BlockId block) {
    return block != 0 && block <= graph.parted_blocks;
}

bool version_blocks(FunctionGraph& graph, BlockId first) {
    bool changed = false;
    const auto count = BlockId(graph.blocks.size());
    for (BlockId block = first; block < count; ++block)
        if (graph.forest.loop_of[block] != no_loop && BlockVersions(graph, block).run()) changed = true;
    if (changed) find_loops_again(graph);
    return changed;
}

} // namespace ptarmigan::translator
