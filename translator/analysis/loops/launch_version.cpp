// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/loops/launch_version.h"

#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/make_operands.h"
#include "translator/analysis/shapes/entry_code.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

using ptx::Operand;

class VersionInFront {
public:
    VersionInFront(FunctionGraph& graph, const LaunchFacts& facts, const CtaSpans& spans)
        : graph_(graph), facts_(facts), spans_(spans), definitions_(definitions_of(graph)),
          entry_(graph, definitions_) {}

    bool run(FunctionGraph version, ValueId holds) {
        for (const auto& [phi, value] : facts_.firsts) entry_.begin_with(phi, value);
        if (!find_questions() || (!spans_.empty() && !entry_.is_of_cta())) return false;
        LaneTest test(graph_, 0, code_, spans_.empty() ? nullptr : &spans_);
        ask_facts(test);
        const BlockId general = put_block_in_front(graph_);
        std::vector<GraphInstruction> of_lanes = std::move(version.blocks[0].instructions);
        const ValueId first = join(std::move(version), of_lanes);
        std::move(of_lanes.begin(), of_lanes.end(), std::back_inserter(code_));
        if (holds != no_value) test.add_result(holds + first);
        Block& asking = graph_.blocks[0];
        asking.terminator.kind = Terminator::Kind::branch;
        asking.terminator.condition = test.result();
        asking.terminator.location = code_.front().inst.location;
        asking.instructions = std::move(code_);
        asking.successors.push_back(general);
        graph_.blocks[general].predecessors = {0};
        find_loops_again(graph_);
        return true;
    }

private:
    bool find_questions() {
        for (const auto& [result, number] : facts_.rounds) {
            const GraphInstruction* made = definitions_[result];
            if (!made) return false;
            const bool compares = is_comparison(*made);
            if (!entry_.need({&made->inst.operands[compares ? 2 : 1], &made->inst.operands[compares ? 3 : 2]}))
                return false;
        }
        for (const LaunchFacts::Stride& stride : facts_.strides) {
            const GraphInstruction* load = load_of(stride);
            if (!load || !entry_.need({&load->inst[ptx::Role::d]})) return false;
            loads_.push_back(load);
        }
        return true;
    }
    static bool is_comparison(const GraphInstruction& made) { return made.inst.form != ptx::FormId::div_int; }
    const GraphInstruction* load_of(const LaunchFacts::Stride& stride) const {
        LaunchFacts only;
        only.strides = {stride};
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions)
                if (stride_of(graph_, only, instruction.inst)) return &instruction;
        return nullptr;
    }

    void ask_facts(LaneTest& test) {
        Copies names(graph_);
        entry_.copy(code_, names, 0, !spans_.empty());
        const auto named = [&](Operand operand) {
            if (operand.kind == Operand::Kind::reg) operand.index = entry_.name(names, operand.index);
            return operand;
        };
        for (std::size_t i = 0; i < loads_.size(); ++i)
            test.add_number(*loads_[i], named(loads_[i]->inst[ptx::Role::d]), facts_.strides[i].number);
        for (const auto& [result, number] : facts_.rounds) {
            const GraphInstruction& made = *definitions_[result];
            const auto& operands = made.inst.operands;
            if (is_comparison(made))
                test.add_answer(made, *line_of_comparison(graph_, made.inst), named(operands[2]), named(operands[3]),
                                number != 0);
            else
                test.add_quotient(made, named(operands[1]), named(operands[2]), number);
        }
    }

    /// Appends the blocks of `version`, whose empty first one becomes the graph's, and names values of `code` anew.
    /// Returns the first of their names.
    ValueId join(FunctionGraph version, std::vector<GraphInstruction>& code) {
        const auto values = ValueId(graph_.values.size()), elements = std::uint32_t(graph_.pool.size());
        const auto blocks = BlockId(graph_.blocks.size() - 1);
        const auto block_name = [&](BlockId block) { return block == 0 || block == no_block ? block : block + blocks; };
        const auto operand_name = [&](Operand& operand) {
            const bool is_value = operand.kind == Operand::Kind::reg ||
                                  (operand.kind == Operand::Kind::address && operand.base == Operand::Base::reg);
            if (is_value) operand.index += values;
            if (operand.has_elements()) operand.first += elements;
        };
        const auto rename = [&](GraphInstruction& instruction) {
            for (unsigned i = 0; i < instruction.inst.operand_count; ++i) operand_name(instruction.inst.operands[i]);
            if (instruction.inst.guard != ptx::no_id) instruction.inst.guard += values;
            for (ValueId& value : instruction.previous) value += values;
        };
        for (SsaValue& value : version.values) {
            value.block = block_name(value.block);
            graph_.values.push_back(std::move(value));
        }
        for (Operand& operand : version.pool) {
            operand_name(operand);
            graph_.pool.push_back(operand);
        }
        for (Block& block : version.blocks) {
            for (Phi& phi : block.phis) {
                phi.result += values;
                for (ValueId& value : phi.incoming) value += values;
            }
            for (GraphInstruction& instruction : block.instructions) rename(instruction);
            if (block.terminator.condition != no_value) block.terminator.condition += values;
            for (BlockId& each : block.successors) each = block_name(each);
            for (BlockId& each : block.predecessors) each = block_name(each);
        }
        for (GraphInstruction& instruction : code) rename(instruction);
        Block& last = version.blocks[version.exit_block];
        last.terminator.kind = Terminator::Kind::jump;
        last.successors = {graph_.exit_block};
        graph_.blocks[graph_.exit_block].predecessors.push_back(block_name(version.exit_block));
        graph_.blocks[0].successors = version.blocks[0].successors;
        std::move(version.blocks.begin() + 1, version.blocks.end(), std::back_inserter(graph_.blocks));
        return values;
    }

    FunctionGraph& graph_;
    const LaunchFacts& facts_;
    const CtaSpans& spans_;
    std::vector<const GraphInstruction*> definitions_;
    EntryCode entry_;
    std::vector<const GraphInstruction*> loads_; ///< of the strides
    std::vector<GraphInstruction> code_;         ///< asks whether the launch is so
};

} // namespace

bool add_version(FunctionGraph& graph, FunctionGraph version, ValueId holds, const LaunchFacts& facts,
                 const CtaSpans& spans) {
    return VersionInFront(graph, facts, spans).run(std::move(version), holds);
}

} // namespace ptarmigan::translator
