// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/memory/shared_edges.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/arithmetic/linear_sums.h"
#include "translator/analysis/arithmetic/value_ranges.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/memory/alignment.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

using ptx::Operand;
using Kind = LinearSum::Term::Kind;

constexpr std::uint64_t page = 4096; // or a multiple of it

class Edges {
public:
    Edges(const FunctionGraph& graph, const BlockShape& block) : graph_(graph), block_(block), sums_(graph) {
        for (const auto& variable : graph.shared) {
            end_ = std::max<std::uint64_t>(end_, variable.offset + variable.size);
            is_dynamic_ = is_dynamic_ || variable.size == 0;
        }
    }

    /// May the address be less than that of shared memory, as far as is known?
    bool may_begin_below(const Operand& address) {
        if (address.base != Operand::Base::reg) return std::int64_t(address.value) < 0;
        const std::optional<LinearSum> sum = sums_.of(address, no_loop);
        if (!sum) return true;
        std::int64_t low = sum->constant;
        for (const auto& [term, factor] : sum->terms) {
            const std::optional<std::int64_t> least = lowest(term, factor);
            if (!least) return true;
            low += *least;
        }
        return low < 0;
    }
    /// May `bytes` that begin inside of shared memory end beyond its last page?
    bool may_end_beyond(std::uint64_t bytes) const { return !is_dynamic_ && (page - end_ % page) % page < bytes; }

private:
    std::optional<std::int64_t> lowest(const LinearSum::Term& term, std::int64_t factor) {
        constexpr std::int64_t far = std::int64_t(1) << 31;
        Interval range;
        if (term.kind == Kind::special && ptx::SpecialRegister(term.id) == ptx::SpecialRegister::tid &&
            term.component < 3)
            range = {0, std::int64_t(block_.ntid[term.component]) - 1};
        if (term.kind == Kind::value) {
            if (is_shared_variable(term.id)) return factor > 0 ? std::optional<std::int64_t>(0) : std::nullopt;
            if (ranges_.empty()) ranges_ = value_ranges(graph_, block_, false);
            range = ranges_[term.id];
        }
        if (!range.known() || range.low < -far || range.high > far || factor < -far || factor > far)
            return std::nullopt;
        return std::min(range.low * factor, range.high * factor);
    }

    bool is_shared_variable(ValueId value) const {
        const GraphInstruction* definition = sums_.definition(value).instruction;
        if (!definition || definition->inst.form != ptx::FormId::mov) return false;
        const Operand& source = definition->inst.operands[1];
        return source.kind == Operand::Kind::variable && source.scope == ptx::VariableScope::shared &&
               std::int64_t(source.value) >= 0;
    }

    const FunctionGraph& graph_;
    const BlockShape& block_;
    LinearSums sums_;
    std::uint64_t end_ = 0; ///< of the variables whose size is known
    bool is_dynamic_ = false;
    std::vector<Interval> ranges_; ///< when first asked
};

} // namespace

void plan_shared_edges(FunctionGraph& graph, const BlockShape& block, unsigned width) {
    if (graph.shared.empty()) return;
    std::optional<Edges> edges;
    for (Block& each : graph.blocks)
        for (GraphInstruction& instruction : each.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            const Operand& address = accessed_memory(inst);
            if (inst.space != ptx::StateSpace::shared || address.kind != Operand::Kind::address ||
                !has_effect(inst, ptx::Effects::load | ptx::Effects::store))
                continue;
            if (!edges) edges.emplace(graph, block);
            instruction.shared_edges.below = edges->may_begin_below(address);
            instruction.shared_edges.beyond = edges->may_end_beyond(std::uint64_t(width) * access_bytes(inst));
        }
}

} // namespace ptarmigan::translator
