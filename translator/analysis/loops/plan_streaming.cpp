// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/loops/plan_streaming.h"

#include "translator/analysis/arithmetic/residues.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/memory/alignment.h"

#include <map>
#include <memory>
#include <set>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::Operand;

bool is_own_memory(ptx::StateSpace space) {
    return space == ptx::StateSpace::shared || space == ptx::StateSpace::local || space == ptx::StateSpace::param;
}

/// What a thread does to memory may be observed in some order before the grid's end.
bool orders_memory(const ptx::Instruction& inst) {
    using enum ptx::Effects;
    if (has_effect(inst, call | async | waits | fence)) return true;
    if (is_own_memory(inst.space) || !has_effect(inst, load | store | atomic)) return false;
    return has_effect(inst, atomic | volatile_read) || is_strong(inst);
}

/// Accesses through pointers that are kernel parameters, by parameter.
class Buffers {
public:
    explicit Buffers(const FunctionGraph& graph)
        : graph_(graph), successors_(successor_edges(graph)), predecessors_(reverse_edges(successors_)),
          tree_(successors_, predecessors_, 0), definitions_(definitions_of(graph)) {}

    /// Where the parameter is in the parameter block; none for all other addresses.
    std::optional<std::uint32_t> of(const ptx::Instruction& inst) {
        const Operand& address = inst[ptx::Role::a];
        const unsigned size = access_bytes(inst);
        if (address.kind != Operand::Kind::address || address.base != Operand::Base::reg || size < 2)
            return std::nullopt;
        std::unique_ptr<ResidueAnalysis>& residues = analyses_[size];
        if (!residues) residues = std::make_unique<ResidueAnalysis>(graph_, tree_, size);
        return of(address, *residues, most_sums);
    }

private:
    /// Terms of an address that are looked through for the pointer.
    static constexpr unsigned most_sums = 4;

    /// Strides that only the launch knows leave nothing of a sum's residue, but the pointer is still one of its terms.
    std::optional<std::uint32_t> of(const Operand& address, const ResidueAnalysis& residues, unsigned depth) const {
        const Residue residue = residues.of(address);
        if (residue.root == Residue::Root::parameter) return residue.id;
        const bool is_value = address.kind == Operand::Kind::reg ||
                              (address.kind == Operand::Kind::address && address.base == Operand::Base::reg);
        const GraphInstruction* sum = is_value && depth != 0 ? definitions_[address.index] : nullptr;
        if (!sum || sum->inst.guard != ptx::no_id) return std::nullopt;
        const auto& operands = sum->inst.operands;
        if (sum->inst.form == ptx::FormId::mad_wide) return of(operands[3], residues, depth - 1);
        if (sum->inst.form != ptx::FormId::add_int || ptx::bit_size(sum->inst.type()) != 64) return std::nullopt;
        const std::optional<std::uint32_t> first = of(operands[1], residues, depth - 1),
                                           second = of(operands[2], residues, depth - 1);
        return first && second ? std::nullopt : first ? first : second;
    }

    const FunctionGraph& graph_;
    const Edges successors_, predecessors_;
    const DominatorTree tree_;
    const std::vector<const GraphInstruction*> definitions_;
    std::map<unsigned, std::unique_ptr<ResidueAnalysis>> analyses_;
};

} // namespace

std::uint32_t plan_streaming(FunctionGraph& graph) {
    Buffers buffers(graph);
    std::set<std::uint32_t> read;
    std::vector<std::pair<GraphInstruction*, std::uint32_t>> stores;
    for (Block& block : graph.blocks)
        for (GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            instruction.streams = false;
            if (is_assertion(graph, inst)) continue;
            if (orders_memory(inst)) return 0;
            if (is_own_memory(inst.space) || !has_effect(inst, Effects::load | Effects::store)) continue;
            const std::optional<std::uint32_t> buffer = buffers.of(inst);
            if (!buffer) continue;
            if (has_effect(inst, Effects::load))
                read.insert(*buffer);
            else
                stores.emplace_back(&instruction, *buffer);
        }
    std::uint32_t bytes = 0;
    for (auto& [instruction, buffer] : stores) {
        instruction->streams = !read.contains(buffer);
        if (instruction->streams) bytes += access_bytes(instruction->inst);
    }
    return bytes;
}

} // namespace ptarmigan::translator
