// SPDX-License-Identifier: Apache-2.0
// Measured (2026-11-21, Zen 4, bench/kernels): transpose 13.0 -> 8.9 ms in pairs, 9.1 in fours. Where nothing continues
// in y, pairs cost: stencil 5.1 -> 5.5 ms, 9.1 in fours.
// In rows of 4,096 threads (2026-11-27, two Zen 5 cores, CPU ms): fdtd_e 3.1 -> 1.9 to 2.1, stencil 4.2 -> 3.6, lbm 3.4
// -> 3.1, a convolution by columns 3.7 -> 3.3. In rows of 512 threads fdtd_e 3.3, stencil 6, lbm 6: the prefetchers
// want longer ones.
#include "translator/analysis/memory/cta_order.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/arithmetic/linear_sums.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

using ptx::Operand;
using Kind = LinearSum::Term::Kind;

/// A piece that is further from its neighbour's is in another page.
constexpr std::int64_t near = 4096;
/// Threads of a row of CTAs that run together.
constexpr std::uint32_t most_in_row = 4096;
/// A CTA's row of more threads is a stream of its own.
constexpr std::uint32_t longest_row = 256;

class CtaOrder {
public:
    explicit CtaOrder(const FunctionGraph& graph) : graph_(graph), sums_(graph) {}

    bool continues_in_x(const ptx::Instruction& inst) const {
        const Operand& address = inst[ptx::Role::a];
        if (!accesses_global(inst) || graph_.values[address.index].shape.is_varying()) return false;
        const std::optional<LinearSum> sum = sums_.of(address, no_loop);
        return sum && is_near(*sum, 0);
    }

    bool continues_in_y(const ptx::Instruction& inst) const {
        if (!accesses_global(inst)) return false;
        const Operand& address = inst[ptx::Role::a];
        // One number per row is no piece of a line that matters.
        const Shape& shape = graph_.values[address.index].shape;
        if (!shape.is_affine() || shape.steps) return false;
        const std::optional<LinearSum> sum = sums_.of(address, no_loop);
        return sum && is_near(*sum, 1) && !is_near(*sum, 0);
    }

    static bool accesses_global(const ptx::Instruction& inst) {
        const Operand& address = inst[ptx::Role::a];
        const bool global = inst.space == ptx::StateSpace::global || inst.space == ptx::StateSpace::generic;
        return global && has_effect(inst, ptx::Effects::load | ptx::Effects::store) &&
               address.kind == Operand::Kind::address && address.base == Operand::Base::reg;
    }

private:
    /// The address moves by a small constant with that component of %ctaid.
    bool is_near(const LinearSum& sum, std::uint8_t component) const {
        std::int64_t step = 0;
        for (auto [term, factor] : sum.terms)
            if (term.kind == Kind::special && is_ctaid(term.id, term.component, component)) step = factor;
        if (step == 0 || step > near || step < -near) return false;
        return std::none_of(sum.terms.begin(), sum.terms.end(), [&](const auto& term) {
            return term.first.kind != Kind::special && depends_on_ctaid(term.first, component);
        });
    }

    static bool is_ctaid(std::uint32_t id, std::uint8_t component, std::uint8_t wanted) {
        return ptx::SpecialRegister(id) == ptx::SpecialRegister::ctaid && component == wanted;
    }

    bool depends_on_ctaid(const LinearSum::Term& term, std::uint8_t component) const {
        std::vector<ValueId> work;
        std::vector<bool> seen(graph_.values.size(), false);
        auto reads_ctaid = [&](const Operand& operand) {
            if (operand.kind == Operand::Kind::reg) work.push_back(operand.index);
            return operand.kind == Operand::Kind::special && is_ctaid(operand.index, operand.component, component);
        };
        if (term.kind == Kind::product) {
            const ptx::Instruction& inst = sums_.definition(term.id).instruction->inst;
            if (reads_ctaid(inst.operands[1]) || reads_ctaid(inst.operands[2])) return true;
        } else {
            work.push_back(term.id);
        }
        while (!work.empty()) {
            ValueId next = work.back();
            work.pop_back();
            if (seen[next]) continue;
            seen[next] = true;
            const LinearSums::Definition& definition = sums_.definition(next);
            if (definition.phi)
                work.insert(work.end(), definition.phi->incoming.begin(), definition.phi->incoming.end());
            if (!definition.instruction) continue;
            const ptx::Instruction& inst = definition.instruction->inst;
            for (unsigned i = 0; i < inst.operand_count; ++i)
                if (reads_ctaid(inst.operands[i])) return true;
            for (ValueId source : uses(graph_, *definition.instruction)) work.push_back(source);
        }
        return false;
    }

    const FunctionGraph& graph_;
    const LinearSums sums_;
};

/// What other CTAs do may be seen by it, so it may wait for lower ones in ways that may_spin() doesn't know: in a
/// function, for some time only, at places that change.
bool may_meet_others(const ptx::Instruction& inst) {
    using enum ptx::Effects;
    if (has_effect(inst, call | async | waits | fence)) return true;
    const bool is_own = inst.space == ptx::StateSpace::shared || inst.space == ptx::StateSpace::local;
    return !is_own && (has_effect(inst, atomic) || (has_effect(inst, load) && has_effect(inst, volatile_read)));
}

template <typename Test> bool any_instruction(const FunctionGraph& graph, Test&& test) {
    return std::any_of(graph.blocks.begin(), graph.blocks.end(), [&](const Block& block) {
        return std::any_of(block.instructions.begin(), block.instructions.end(),
                           [&](const GraphInstruction& instruction) { return test(instruction.inst); });
    });
}

/// The multiprocessor, which CTAs that run together have in common.
bool reads_smid(const ptx::Instruction& inst) {
    return std::any_of(inst.operands.begin(), inst.operands.begin() + inst.operand_count, [](const Operand& operand) {
        return operand.kind == Operand::Kind::special &&
               ptx::SpecialRegister(operand.index) == ptx::SpecialRegister::smid;
    });
}

} // namespace

bool may_meet_other_ctas(const FunctionGraph& graph) {
    return any_instruction(graph, [&](const ptx::Instruction& inst) {
        return !is_assertion(graph, inst) && (may_meet_others(inst) || reads_smid(inst));
    });
}

bool continues_in_y(const FunctionGraph& graph) {
    if (any_instruction(graph, may_meet_others)) return false;
    const CtaOrder order(graph);
    return any_instruction(graph, [&](const ptx::Instruction& inst) { return order.continues_in_y(inst); });
}

std::uint32_t ctas_in_row(const FunctionGraph& graph, const BlockShape& shape) {
    const std::uint32_t rows = shape.ntid[1] * shape.ntid[2];
    if (rows < 2 || shape.ntid[0] > longest_row || any_instruction(graph, may_meet_others) ||
        any_instruction(graph, reads_smid))
        return 1;
    const CtaOrder order(graph);
    bool continues = false;
    for (BlockId block = 0; block < graph.blocks.size(); ++block)
        for (const GraphInstruction& instruction : graph.blocks[block].instructions) {
            if (!CtaOrder::accesses_global(instruction.inst)) continue;
            if (graph.forest.loop_of[block] != no_loop || order.continues_in_y(instruction.inst)) return 1;
            continues = continues ||
                        (has_effect(instruction.inst, ptx::Effects::load) && order.continues_in_x(instruction.inst));
        }
    return continues ? most_in_row / shape.ntid[0] : 1;
}

} // namespace ptarmigan::translator
