// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/loops/hoist_steady_loads.h"

#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <numeric>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::Operand;

class SteadyLoadHoister {
public:
    explicit SteadyLoadHoister(FunctionGraph& graph) : graph_(graph), stands_for_(graph.values.size()) {
        std::iota(stands_for_.begin(), stands_for_.end(), 0);
    }

    void run(const ThreadWalks& walks) {
        for (std::uint32_t loop = 0; loop < graph_.forest.loops.size(); ++loop) {
            const LoopInfo& info = graph_.forest.loops[loop];
            std::vector<bool> leaves(graph_.blocks[info.header].instructions.size());
            for (const ThreadWalks::SteadyLoad& each : walks.steady_loads)
                if (each.loop == loop) leaves[each.instruction] = true;
            // A barrier is the last thing in its block.
            if (std::none_of(leaves.begin(), leaves.end(), [](bool each) { return each; }) ||
                graph_.blocks[info.preheader].ends_with_barrier)
                continue;
            hoist(loop, info, std::move(leaves));
        }
        put_values();
    }

private:
    void hoist(std::uint32_t loop, const LoopInfo& info, std::vector<bool> leaves) {
        Block& preheader = graph_.blocks[info.preheader];
        std::vector<GraphInstruction>& code = graph_.blocks[info.header].instructions;
        const std::size_t first = preheader.instructions.size();
        std::size_t kept = 0;
        for (std::size_t i = 0; i < code.size(); ++i) {
            if (leaves[i] || is_computed_of_hoisted(code[i], loop)) {
                if (!is_there(preheader, first, code[i])) {
                    for (const ValueId value : definitions(graph_, code[i])) {
                        graph_.values[value].block = info.preheader;
                        hoisted_.push_back(value);
                    }
                    preheader.instructions.push_back(std::move(code[i]));
                }
                continue;
            }
            if (kept != i) code[kept] = std::move(code[i]);
            ++kept;
        }
        code.resize(kept);
    }

    bool is_hoisted(ValueId value) const {
        return std::find(hoisted_.begin(), hoisted_.end(), stands_for_[value]) != hoisted_.end();
    }

    bool is_computed_of_hoisted(const GraphInstruction& instruction, std::uint32_t loop) const {
        const ptx::Instruction& inst = instruction.inst;
        if (ptx::form_info(inst.form).effects != Effects::pure || inst.guard != ptx::no_id) return false;
        const FewValues read = uses(graph_, instruction);
        const auto comes_from_outside = [&](ValueId value) {
            const BlockId block = graph_.values[stands_for_[value]].block;
            return block == no_block || !graph_.forest.inside(graph_.forest.loop_of[block], loop);
        };
        return std::any_of(read.begin(), read.end(), [&](ValueId value) { return is_hoisted(value); }) &&
               std::all_of(read.begin(), read.end(), comes_from_outside);
    }

    /// One of those that have left already gives the same.
    bool is_there(const Block& preheader, std::size_t first, const GraphInstruction& instruction) {
        for (std::size_t i = first; i < preheader.instructions.size(); ++i) {
            const GraphInstruction& other = preheader.instructions[i];
            if (!is_same(other, instruction)) continue;
            const FewValues from = definitions(graph_, instruction), to = definitions(graph_, other);
            for (std::size_t j = 0; j < from.size(); ++j) stands_for_[from[j]] = to[j];
            return true;
        }
        return false;
    }

    bool is_same(const GraphInstruction& a, const GraphInstruction& b) const {
        const ptx::Instruction &x = a.inst, &y = b.inst;
        if (x.form != y.form || x.types != y.types || x.space != y.space || x.vector_size != y.vector_size ||
            x.operand_count != y.operand_count || x.modifier_count != y.modifier_count ||
            !std::equal(x.modifiers.begin(), x.modifiers.begin() + x.modifier_count, y.modifiers.begin()))
            return false;
        const auto infos = ptx::form_info(x.form).operands;
        for (unsigned i = 0; i < x.operand_count; ++i) {
            const Operand &p = x.operands[i], &q = y.operands[i];
            if (p.kind != q.kind || p.type != q.type || p.negated != q.negated || p.component != q.component)
                return false;
            // Elements of vectors are not looked at.
            if (p.kind != Operand::Kind::reg && p.kind != Operand::Kind::imm && p.kind != Operand::Kind::address &&
                p.kind != Operand::Kind::none)
                return false;
            if (infos[i].is_destination && p.kind == Operand::Kind::reg) continue;
            if (p.value != q.value || p.base != q.base || p.scope != q.scope) return false;
            const bool is_value =
                p.kind == Operand::Kind::reg || (p.kind == Operand::Kind::address && p.base == Operand::Base::reg);
            if (is_value ? stands_for_[p.index] != stands_for_[q.index] : p.index != q.index) return false;
        }
        return true;
    }

    void put_values() {
        const auto put = [&](ValueId& value) {
            if (value != no_value) value = stands_for_[value];
        };
        for (Block& block : graph_.blocks) {
            for (Phi& phi : block.phis) std::for_each(phi.incoming.begin(), phi.incoming.end(), put);
            for (GraphInstruction& instruction : block.instructions) {
                for_each_register(graph_, instruction, [&](Operand& operand, bool is_definition) {
                    if (!is_definition) operand.index = stands_for_[operand.index];
                });
                if (instruction.inst.guard != ptx::no_id) put(instruction.inst.guard);
                std::for_each(instruction.previous.begin(), instruction.previous.end(), put);
            }
            put(block.terminator.condition);
        }
    }

    FunctionGraph& graph_;
    std::vector<ValueId> stands_for_; ///< by value: itself, or one that has left a loop
    std::vector<ValueId> hoisted_;
};

} // namespace

void hoist_steady_loads(FunctionGraph& graph, const ThreadWalks& walks) {
    if (!walks.steady_loads.empty()) SteadyLoadHoister(graph).run(walks);
}

} // namespace ptarmigan::translator
