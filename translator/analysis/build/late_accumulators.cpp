// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/build/late_accumulators.h"

#include "frontend/ptx/matrix_form.h"
#include "frontend/ptx/queries.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>
#include <map>
#include <set>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Operand;
using ptx::Role;

constexpr std::uint32_t poison = 0xa5a5a5a5;

bool is_product(const ptx::Instruction& inst) {
    return opcode(inst) == "wgmma" && inst[Role::d].kind == Operand::Kind::vector;
}

template <class Visit> void for_each_instruction(FunctionGraph& graph, Visit visit) {
    for (Block& block : graph.blocks)
        for (GraphInstruction& instruction : block.instructions) visit(instruction.inst);
}

} // namespace

void name_awaited_registers(FlatFunction& flat) {
    FunctionGraph& graph = flat.graph;
    std::set<ptx::RegisterId> registers;
    for_each_instruction(graph, [&](ptx::Instruction& inst) {
        if (!is_product(inst)) return;
        for (std::uint32_t i = 0; i < inst[Role::d].count; ++i)
            registers.insert(graph.pool[inst[Role::d].first + i].index);
    });
    if (registers.empty()) return;
    for (bool grows = true; grows;) {
        grows = false;
        for_each_instruction(graph, [&](ptx::Instruction& inst) {
            if (opcode(inst) != "mov") return;
            const Operand &to = inst[Role::d], &from = inst[Role::a];
            if (to.kind != Operand::Kind::reg || from.kind != Operand::Kind::reg || !registers.contains(from.index))
                return;
            grows = registers.insert(to.index).second || grows;
        });
    }
    for_each_instruction(graph, [&](ptx::Instruction& inst) {
        if (inst.form != FormId::wgmma_wait_group) return;
        for (const Role role : {Role::before, Role::after}) {
            Operand& list = inst[role];
            list.kind = Operand::Kind::vector;
            list.first = std::uint32_t(graph.pool.size());
            list.count = std::uint32_t(registers.size());
            for (const ptx::RegisterId id : registers) {
                Operand& element = graph.pool.emplace_back();
                element.kind = Operand::Kind::reg;
                element.index = id;
                element.type = flat.registers[id].type;
            }
        }
    });
}

namespace {

/// Which registers a fence has followed, forward over the blocks; for values that products take, and those that they
/// come from by phis and waits.
class FenceFlow {
public:
    explicit FenceFlow(FunctionGraph& graph) : graph_(graph) {}

    void run() {
        collect();
        if (number_.empty()) return;
        find_shapes();
        const std::vector<bool> all(number_.size(), true);
        at_end_.assign(graph_.blocks.size(), all);
        std::vector<BlockId> work;
        for (BlockId block = std::uint32_t(graph_.blocks.size()); block-- > 0;) work.push_back(block);
        while (!work.empty()) {
            const BlockId block = work.back();
            work.pop_back();
            std::vector<bool> fenced = walk(block, false);
            if (fenced == at_end_[block]) continue;
            at_end_[block] = std::move(fenced);
            work.insert(work.end(), graph_.blocks[block].successors.begin(), graph_.blocks[block].successors.end());
        }
        for (BlockId block = 0; block < graph_.blocks.size(); ++block) walk(block, true);
    }

private:
    /// Of the products that a value is the accumulator of.
    struct Shape {
        enum class Kind : std::uint8_t {
            none,
            one,
            other
        } kind = Kind::none; ///< none: it is no register's that was written
        std::uint32_t number = 0;
        bool operator==(const Shape&) const = default;
    };
    bool is_known(const Operand& operand) const {
        return operand.kind == Operand::Kind::reg && number_.contains(operand.index);
    }
    bool is_free(ValueId value) const { return graph_.values[value].is_constant || graph_.values[value].is_undefined; }
    Operand& element(const Operand& list, std::uint32_t i) { return graph_.pool[list.first + i]; }
    static std::uint32_t shape_of(const ptx::Instruction& inst) {
        const ptx::MatrixForm form = ptx::matrix_form(inst);
        return std::uint32_t{form.n} << 16 | std::uint32_t{form.k} << 4 | std::uint32_t(form.d);
    }
    void want(ValueId value) {
        if (number_.try_emplace(value, number_.size()).second) wanted_.push_back(value);
    }
    void collect();
    void find_shapes();
    std::vector<bool> walk(BlockId block, bool spoils);
    void spoil(ptx::Instruction& inst, Role role, const std::vector<bool>& fenced);

    FunctionGraph& graph_;
    std::map<ValueId, std::size_t> number_;
    std::vector<ValueId> wanted_;
    std::map<ValueId, Shape> shapes_;
    std::vector<std::vector<bool>> at_end_; ///< by block, then value
};

void FenceFlow::collect() {
    std::map<ValueId, std::vector<ValueId>> sources; // of phis and waits
    for (const Block& block : graph_.blocks) {
        for (const Phi& phi : block.phis) sources[phi.result] = phi.incoming;
        for (const GraphInstruction& instruction : block.instructions) {
            const ptx::Instruction& inst = instruction.inst;
            if (is_product(inst))
                for (const Role role : {Role::a, Role::before})
                    for (std::uint32_t i = 0; inst[role].kind == Operand::Kind::vector && i < inst[role].count; ++i)
                        if (element(inst[role], i).kind == Operand::Kind::reg) want(element(inst[role], i).index);
            if (inst.form == FormId::wgmma_wait_group)
                for (std::uint32_t i = 0; i < inst[Role::after].count; ++i)
                    if (element(inst[Role::before], i).kind == Operand::Kind::reg)
                        sources[element(inst[Role::after], i).index] = {element(inst[Role::before], i).index};
        }
    }
    while (!wanted_.empty()) {
        const ValueId value = wanted_.back();
        wanted_.pop_back();
        const auto found = sources.find(value);
        if (found == sources.end()) continue;
        for (const ValueId source : found->second) want(source);
    }
}

/// From the products on, through phis and waits.
void FenceFlow::find_shapes() {
    for (const auto& [value, number] : number_)
        shapes_[value] = {graph_.values[value].is_phi || is_free(value) ? Shape::Kind::none : Shape::Kind::other, 0};
    const auto merge = [&](ValueId into, const Shape& from) {
        Shape& shape = shapes_[into];
        const Shape before = shape;
        if (shape.kind == Shape::Kind::none)
            shape = from;
        else if (from.kind != Shape::Kind::none && from != shape)
            shape = {Shape::Kind::other, 0};
        return shape != before;
    };
    for_each_instruction(graph_, [&](const ptx::Instruction& inst) {
        if (is_product(inst))
            for (std::uint32_t i = 0; i < inst[Role::d].count; ++i)
                if (is_known(element(inst[Role::d], i)))
                    shapes_[element(inst[Role::d], i).index] = {Shape::Kind::one, shape_of(inst)};
        for (std::uint32_t i = 0; inst.form == FormId::wgmma_wait_group && i < inst[Role::after].count; ++i)
            if (is_known(element(inst[Role::after], i))) shapes_[element(inst[Role::after], i).index] = {};
    });
    for (bool changes = true; changes;) {
        changes = false;
        for (const Block& block : graph_.blocks) {
            for (const Phi& phi : block.phis)
                for (const ValueId value : phi.incoming)
                    if (number_.contains(phi.result)) changes = merge(phi.result, shapes_[value]) || changes;
            for (const GraphInstruction& instruction : block.instructions) {
                const ptx::Instruction& inst = instruction.inst;
                for (std::uint32_t i = 0; inst.form == FormId::wgmma_wait_group && i < inst[Role::after].count; ++i)
                    if (is_known(element(inst[Role::after], i)) && is_known(element(inst[Role::before], i)))
                        changes =
                            merge(element(inst[Role::after], i).index, shapes_[element(inst[Role::before], i).index]) ||
                            changes;
            }
        }
    }
}

std::vector<bool> FenceFlow::walk(BlockId id, bool spoils) {
    Block& block = graph_.blocks[id];
    std::vector<bool> fenced(number_.size(), !block.predecessors.empty());
    for (const BlockId before : block.predecessors)
        for (std::size_t i = 0; i < fenced.size(); ++i) fenced[i] = fenced[i] && at_end_[before][i];
    for (const Phi& phi : block.phis) {
        const auto found = number_.find(phi.result);
        if (found == number_.end()) continue;
        bool all = true;
        for (std::size_t p = 0; p < phi.incoming.size(); ++p)
            all = all && (is_free(phi.incoming[p]) || at_end_[block.predecessors[p]][number_.at(phi.incoming[p])]);
        fenced[found->second] = all;
    }
    for (GraphInstruction& instruction : block.instructions) {
        ptx::Instruction& inst = instruction.inst;
        if (inst.form == FormId::wgmma_fence) {
            fenced.assign(fenced.size(), true);
        } else if (inst.form == FormId::wgmma_wait_group) {
            for (std::uint32_t i = 0; i < inst[Role::after].count; ++i) {
                const Operand &before = element(inst[Role::before], i), &after = element(inst[Role::after], i);
                if (is_known(after))
                    fenced[number_.at(after.index)] = !is_known(before) || fenced[number_.at(before.index)];
            }
        } else {
            if (spoils && is_product(inst)) {
                spoil(inst, Role::a, fenced);
                spoil(inst, Role::before, fenced);
            }
            ptx::for_each_register(inst, graph_.pool, [&](Operand& operand, bool definition) {
                if (definition && is_known(operand)) fenced[number_.at(operand.index)] = false;
            });
        }
    }
    return fenced;
}

void FenceFlow::spoil(ptx::Instruction& inst, Role role, const std::vector<bool>& fenced) {
    for (std::uint32_t i = 0; inst[role].kind == Operand::Kind::vector && i < inst[role].count; ++i) {
        Operand& operand = element(inst[role], i);
        if (operand.kind != Operand::Kind::reg || is_free(operand.index) || fenced[number_.at(operand.index)]) continue;
        const Shape& shape = shapes_[operand.index];
        const bool follows = role == Role::before && shape.kind != Shape::Kind::other &&
                             (shape.kind == Shape::Kind::none || shape.number == shape_of(inst));
        if (follows) continue;
        operand.kind = Operand::Kind::imm;
        operand.value = poison;
    }
}

} // namespace

void spoil_unfenced_registers(FunctionGraph& graph) {
    FenceFlow(graph).run();
}

} // namespace ptarmigan::translator
