// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/loops/trace_addresses.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/loops/launch_numbers.h"
#include "translator/analysis/memory/cta_order.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

using ptx::Effects;
using ptx::FormId;
using ptx::Operand;
using ptx::Role;
using Kind = LaunchNumber::Kind;
using Step = AddressProgram::Step;

/// Of global memory, at an address in a register.
bool is_access(const ptx::Instruction& inst) {
    const Operand& address = inst[Role::a];
    return (inst.space == ptx::StateSpace::global || inst.space == ptx::StateSpace::generic) &&
           has_effect(inst, Effects::load | Effects::store) && address.kind == Operand::Kind::address &&
           address.base == Operand::Base::reg;
}

/// How values follow from %ctaid.
class CtaDependence {
public:
    explicit CtaDependence(const FunctionGraph& graph) : graph_(graph), level_(graph.values.size(), Level::none) {
        bool changed = true;
        while (changed) {
            changed = false;
            for (const Block& block : graph.blocks) {
                for (const Phi& phi : block.phis) {
                    Level level = Level::none;
                    for (ValueId value : phi.incoming) level = std::max(level, level_[value]);
                    changed = raise(phi.result, level) || changed;
                }
                for (const GraphInstruction& instruction : block.instructions) changed = visit(instruction) || changed;
            }
        }
    }

    /// Not by a constant or a parameter for each CTA.
    bool is_uneven(ValueId value) const { return level_[value] == Level::uneven; }

private:
    enum class Level : std::uint8_t { none, even, uneven };

    bool raise(ValueId value, Level level) {
        if (level_[value] >= level) return false;
        level_[value] = level;
        return true;
    }

    Level of(const Operand& operand) const {
        if (operand.kind == Operand::Kind::special)
            return ptx::SpecialRegister(operand.index) == ptx::SpecialRegister::ctaid ? Level::even : Level::none;
        if (operand.kind == Operand::Kind::reg) return level_[operand.index];
        Level level = Level::none;
        if (operand.has_elements())
            for (std::uint32_t i = 0; i < operand.count; ++i)
                level = std::max(level, of(graph_.pool.at(operand.first + i)));
        return level;
    }

    bool visit(const GraphInstruction& instruction) {
        const ptx::Instruction& inst = instruction.inst;
        if (has_effect(inst, Effects::load | Effects::atomic | Effects::call)) return false;
        Level level = Level::none;
        bool is_product = true; // of two numbers that depend on it
        for (unsigned i = 0; i < inst.operand_count; ++i) {
            if (ptx::form_info(inst.form).operands[i].is_destination) continue;
            const Level operand = of(inst.operands[i]);
            level = std::max(level, operand);
            if (i == 1 || i == 2) is_product = is_product && operand != Level::none;
        }
        if (level == Level::none) return false;
        if (!is_linear(inst, is_product)) level = Level::uneven;
        bool changed = false;
        bool first = true; // of halves the lower one goes on evenly, nearly always
        for (ValueId value : definitions(graph_, instruction)) {
            changed = raise(value, inst.form == FormId::mov_unpack && !first ? Level::uneven : level) || changed;
            first = false;
        }
        return changed;
    }

    static bool is_linear(const ptx::Instruction& inst, bool is_product) {
        using enum ptx::ShapeRule;
        switch (ptx::form_info(inst.form).shape) {
        case copy:
        case narrow:
        case widen:
        case add:
        case subtract: return true;
        case multiply:
        case multiply_add:
        case multiply_wide:
        case multiply_wide_add: return !is_product;
        case shift_left: return inst.operands[2].kind == Operand::Kind::imm;
        case elementwise: // halves, and what subtract's rule says of nothing
            return inst.form == FormId::mov_pack || inst.form == FormId::mov_unpack || inst.form == FormId::neg_int;
        default: return false;
        }
    }

    const FunctionGraph& graph_;
    std::vector<Level> level_;
};

class AddressTracer : LaunchNumberMaker {
public:
    explicit AddressTracer(const FunctionGraph& graph)
        : LaunchNumberMaker(graph), definitions_(definitions_of(graph)), needed_(graph.values.size(), false) {}

    AddressProgram run() {
        find_needed();
        program_.places = static_cast<std::uint32_t>(graph_.values.size());
        const std::vector<BlockId> order = reachable_blocks();
        std::vector<std::uint32_t> start(graph_.blocks.size(), 0);
        for (const BlockId block : order) {
            start[block] = static_cast<std::uint32_t>(program_.steps.size());
            for (const GraphInstruction& instruction : graph_.blocks[block].instructions) trace(instruction);
            leave(block);
            if (program_.steps.size() > most_steps) return {};
        }
        for (const std::size_t jump : jumps_) program_.steps[jump].result = start[program_.steps[jump].result];
        return std::move(program_);
    }

private:
    static constexpr std::size_t most_steps = 8000;

    std::vector<BlockId> reachable_blocks() const {
        std::vector<BlockId> order{0};
        std::vector<bool> seen(graph_.blocks.size(), false);
        seen[0] = true;
        for (std::size_t i = 0; i < order.size(); ++i)
            for (const BlockId next : graph_.blocks[order[i]].successors) {
                if (!seen[next]) order.push_back(next);
                seen[next] = true;
            }
        return order;
    }

    /// Values that addresses and branches follow from.
    void find_needed() {
        std::vector<ValueId> work;
        const auto need = [&](ValueId value) {
            if (value == no_value || needed_[value]) return;
            needed_[value] = true;
            work.push_back(value);
        };
        for (const Block& block : graph_.blocks) {
            if (block.terminator.kind == Terminator::Kind::branch) need(block.terminator.condition);
            for (const GraphInstruction& instruction : block.instructions)
                if (is_access(instruction.inst)) {
                    need(instruction.inst[Role::a].index);
                    if (instruction.inst.guard != ptx::no_id) need(instruction.inst.guard);
                }
        }
        std::vector<const Phi*> phis(graph_.values.size(), nullptr);
        for (const Block& block : graph_.blocks)
            for (const Phi& phi : block.phis) phis[phi.result] = &phi;
        while (!work.empty()) {
            const ValueId value = work.back();
            work.pop_back();
            if (phis[value])
                for (const ValueId incoming : phis[value]->incoming) need(incoming);
            if (definitions_[value] && !is_access(definitions_[value]->inst))
                for (const ValueId source : uses(graph_, *definitions_[value])) need(source);
        }
    }

    std::uint32_t new_place() { return program_.places++; }

    Index add(const LaunchNumber& number) override {
        const std::uint32_t place = new_place();
        program_.steps.push_back({Step::Kind::number, place, number});
        return place;
    }

    Index of(ValueId value) override {
        const SsaValue& info = graph_.values[value];
        if (!info.is_constant) return value;
        return constant(static_cast<std::int64_t>(info.constant));
    }

    Index special(std::uint32_t id, std::uint8_t component) override {
        if (component > 2) return std::nullopt;
        switch (ptx::SpecialRegister(id)) {
        case ptx::SpecialRegister::nctaid: return add({.kind = Kind::grid_extent, .value = component});
        case ptx::SpecialRegister::ctaid: return add({.kind = Kind::cta_index, .value = component});
        case ptx::SpecialRegister::tid: return add({.kind = Kind::thread_index, .value = component});
        default: return std::nullopt;
        }
    }

    void move(std::uint32_t to, std::uint32_t from) { program_.steps.push_back({Step::Kind::move, to, {.a = from}}); }
    /// What the last step has made needs no move.
    void put(ValueId value, std::uint32_t place) {
        if (place >= graph_.values.size() && place + 1 == program_.places)
            program_.steps.back().result = value;
        else
            move(value, place);
    }
    /// To a block, whose step is filled in at the end.
    void jump(BlockId to) {
        jumps_.push_back(program_.steps.size());
        program_.steps.push_back({Step::Kind::jump, to, {}});
    }
    /// To what is behind the steps that follow.
    std::size_t branch(std::uint32_t condition) {
        program_.steps.push_back({Step::Kind::branch, 0, {.a = condition}});
        return program_.steps.size() - 1;
    }
    void land(std::size_t branch) { program_.steps[branch].result = static_cast<std::uint32_t>(program_.steps.size()); }

    void trace(const GraphInstruction& instruction) {
        const ptx::Instruction& inst = instruction.inst;
        const FewValues results = definitions(graph_, instruction);
        const bool is_needed = std::any_of(results.begin(), results.end(), [&](ValueId each) { return needed_[each]; });
        if (!is_access(inst) && !is_needed) return;
        std::optional<std::size_t> skip;
        if (inst.guard != ptx::no_id) {
            for (std::size_t i = 0; i < std::min(results.size(), instruction.previous.size()); ++i)
                move(results[i], instruction.previous[i]);
            const Index guard = of(ValueId(inst.guard));
            const Index off = inst.guard_negated ? guard : combine(Kind::bit_xor, 1, guard, constant(1), false);
            skip = branch(*off);
        }
        if (is_access(inst))
            access(inst);
        else
            compute(inst, results);
        if (skip) land(*skip);
    }

    void access(const ptx::Instruction& inst) {
        const Operand& address = inst[Role::a];
        const Index at =
            combine(Kind::add, 64, of(ValueId(address.index)), constant(static_cast<std::int64_t>(address.value)));
        const unsigned bytes = ptx::bit_size(inst.type()) / 8 * std::max<unsigned>(inst.vector_size, 1);
        program_.steps.push_back({Step::Kind::access, 0, {.a = *at, .value = bytes}});
    }

    void compute(const ptx::Instruction& inst, const FewValues& results) {
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (!needed_[results[i]]) continue;
            Index value;
            if (inst.form == FormId::mov_unpack)
                value = unpacked(inst, static_cast<unsigned>(element_of(inst, results[i])));
            else if (loads_kernel_parameter(graph_, inst))
                value = parameter(inst, results[i]);
            else if (results.size() == 1)
                value = result(inst);
            if (value) put(results[i], *value);
        }
    }

    std::size_t element_of(const ptx::Instruction& inst, ValueId value) const {
        const Operand& parts = inst.operands[0];
        std::uint32_t i = 0;
        while (i + 1 < parts.count && graph_.pool.at(parts.first + i).index != value) ++i;
        return i;
    }

    void leave(BlockId block) {
        const Block& from = graph_.blocks[block];
        const bool branches = from.terminator.kind == Terminator::Kind::branch && from.successors.size() == 2;
        if (!branches && (from.terminator.kind != Terminator::Kind::jump || from.successors.size() != 1)) {
            program_.steps.push_back({Step::Kind::end, 0, {}});
            return;
        }
        if (!branches) return go(block, from.successors[0]);
        const BlockId taken = from.successors[from.terminator.negated ? 1 : 0],
                      other = from.successors[from.terminator.negated ? 0 : 1];
        const std::size_t to_taken = branch(*of(from.terminator.condition));
        go(block, other);
        land(to_taken);
        go(block, taken);
    }

    /// Phis are moved all at once.
    void go(BlockId from, BlockId to) {
        const std::vector<BlockId>& predecessors = graph_.blocks[to].predecessors;
        const auto edge =
            static_cast<std::size_t>(std::find(predecessors.begin(), predecessors.end(), from) - predecessors.begin());
        std::vector<std::pair<std::uint32_t, std::uint32_t>> moved;
        for (const Phi& phi : graph_.blocks[to].phis) {
            if (!needed_[phi.result] || edge >= phi.incoming.size()) continue;
            const std::uint32_t place = new_place();
            move(place, *of(phi.incoming[edge]));
            moved.emplace_back(phi.result, place);
        }
        for (const auto& [result, place] : moved) move(result, place);
        jump(to);
    }

    const std::vector<const GraphInstruction*> definitions_;
    std::vector<bool> needed_;
    AddressProgram program_;
    std::vector<std::size_t> jumps_; ///< their `result` is a block
};

} // namespace

AddressProgram trace_addresses(const FunctionGraph& graph) {
    if (may_meet_other_ctas(graph)) return {};
    const CtaDependence dependence(graph);
    const bool is_uneven = std::any_of(graph.blocks.begin(), graph.blocks.end(), [&](const Block& block) {
        return std::any_of(block.instructions.begin(), block.instructions.end(), [&](const GraphInstruction& each) {
            return is_access(each.inst) && dependence.is_uneven(each.inst[Role::a].index);
        });
    });
    return is_uneven ? AddressTracer(graph).run() : AddressProgram{};
}

} // namespace ptarmigan::translator
