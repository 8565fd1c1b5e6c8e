// SPDX-License-Identifier: Apache-2.0
// Parameters, the grid's measures, and integers made of these alone leave loops: code for sm_80 and sm_86 reads a
// parameter by each instruction that needs it, so that a pointer seemed to be read anew in each round.
#include "translator/analysis/build/build_ssa.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

using ptx::Operand;

class ParameterHoister {
public:
    explicit ParameterHoister(FunctionGraph& graph) : graph_(graph), is_known_(graph.values.size(), false) {}

    void run() {
        for (ValueId value = 0; value < graph_.values.size(); ++value)
            is_known_[value] = graph_.values[value].is_constant;
        // All that are, in the order of the blocks, which is one in which most are defined before they are read.
        for (const Block& block : graph_.blocks)
            for (const GraphInstruction& instruction : block.instructions) note(instruction);
        for (auto loop = graph_.forest.loops.rbegin(); loop != graph_.forest.loops.rend(); ++loop) // inner ones first
            if (loop->preheader != no_block) hoist(*loop);
    }

private:
    bool is_measure(const Operand& operand) const {
        using enum ptx::SpecialRegister;
        const auto special = ptx::SpecialRegister(operand.index);
        return special == ntid || special == ctaid || special == nctaid;
    }
    /// A function of parameters and the like, so equal in all lanes and rounds.
    bool is_wanted(const GraphInstruction& instruction) const {
        const ptx::Instruction& inst = instruction.inst;
        if (inst.guard != ptx::no_id || !is_removable(inst)) return false;
        const auto infos = ptx::form_info(inst.form).operands;
        for (unsigned i = 0; i < inst.operand_count; ++i)
            if (inst.operands[i].kind == Operand::Kind::special && !is_measure(inst.operands[i])) return false;
        if (has_effect(inst, ptx::Effects::load)) return loads_kernel_parameter(graph_, inst);
        const FewValues results = definitions(graph_, instruction);
        if (results.empty() || std::any_of(results.begin(), results.end(),
                                           [&](ValueId value) { return ptx::is_float(graph_.values[value].type); }))
            return false;
        for (unsigned i = 0; i < inst.operand_count; ++i) {
            const Operand::Kind kind = inst.operands[i].kind;
            const bool is_plain = kind == Operand::Kind::reg || kind == Operand::Kind::imm ||
                                  kind == Operand::Kind::special || kind == Operand::Kind::none ||
                                  kind == Operand::Kind::sink || kind == Operand::Kind::vector;
            if (!is_plain && !infos[i].is_destination) return false;
        }
        const FewValues read = uses(graph_, instruction);
        return std::all_of(read.begin(), read.end(), [&](ValueId value) { return is_known_[value]; });
    }
    void note(const GraphInstruction& instruction) {
        if (!is_wanted(instruction)) return;
        for (const ValueId value : definitions(graph_, instruction)) is_known_[value] = true;
    }

    bool is_inside(ValueId value, const LoopInfo& loop) const {
        const BlockId block = graph_.values[value].block;
        return block != no_block && std::find(loop.blocks.begin(), loop.blocks.end(), block) != loop.blocks.end();
    }
    void hoist(const LoopInfo& loop) {
        Block& preheader = graph_.blocks[loop.preheader];
        std::vector<GraphInstruction> hoisted;
        std::vector<BlockId> blocks = loop.blocks; // by number: each behind its dominators
        std::sort(blocks.begin(), blocks.end());
        for (const BlockId id : blocks) {
            std::vector<GraphInstruction>& code = graph_.blocks[id].instructions;
            std::size_t kept = 0;
            for (std::size_t i = 0; i < code.size(); ++i) {
                const FewValues read = uses(graph_, code[i]);
                const bool leaves = is_wanted(code[i]) && std::none_of(read.begin(), read.end(), [&](ValueId value) {
                                        return is_inside(value, loop);
                                    });
                if (leaves) {
                    for (const ValueId value : definitions(graph_, code[i]))
                        graph_.values[value].block = loop.preheader;
                    hoisted.push_back(std::move(code[i]));
                    continue;
                }
                if (kept != i) code[kept] = std::move(code[i]);
                ++kept;
            }
            code.resize(kept);
        }
        const auto end = preheader.instructions.end() - (preheader.ends_with_barrier ? 1 : 0);
        preheader.instructions.insert(end, std::make_move_iterator(hoisted.begin()),
                                      std::make_move_iterator(hoisted.end()));
    }

    FunctionGraph& graph_;
    std::vector<bool> is_known_; ///< by value: constants, and functions of parameters
};

} // namespace

void hoist_parameters(FunctionGraph& graph) {
    ParameterHoister(graph).run();
}

} // namespace ptarmigan::translator
