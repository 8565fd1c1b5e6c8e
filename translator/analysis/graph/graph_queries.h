// SPDX-License-Identifier: Apache-2.0
// Walks over the values that an instruction of the graph reads and writes.
#pragma once

#include "frontend/ptx/queries.h"
#include "translator/analysis/graph/function_graph.h"

#include <boost/container/small_vector.hpp>

#include <cstdint>
#include <optional>
#include <utility>

namespace ptarmigan::translator {

/// Calls fn(Operand&, is_definition) for each register operand, elements of vectors and lists and address bases
/// included. A base of an address is a use even in a destination's place. Guard and `previous` are not operands.
template <typename Fn> void for_each_register(FunctionGraph& graph, GraphInstruction& instruction, Fn&& fn) {
    ptx::for_each_register(instruction.inst, graph.pool, std::forward<Fn>(fn));
}
template <typename Fn>
void for_each_register(const FunctionGraph& graph, const GraphInstruction& instruction, Fn&& fn) {
    ptx::for_each_register(instruction.inst, graph.pool, std::forward<Fn>(fn));
}

/// Few values: made for each instruction again and again.
using FewValues = boost::container::small_vector<ValueId, 12>;
/// Values written, in operand order (the order of `previous`).
FewValues definitions(const FunctionGraph& graph, const GraphInstruction& instruction);
/// Instructions by the values that they write; null for phis' and others. Valid until the blocks change.
std::vector<const GraphInstruction*> definitions_of(const FunctionGraph& graph);
/// Values read: operands, guard and previous.
FewValues uses(const FunctionGraph& graph, const GraphInstruction& instruction);

/// An `ld` of a kernel's own parameter, which nothing writes; not of a call's returns, which are in the same state
/// space.
inline bool loads_kernel_parameter(const FunctionGraph& graph, const ptx::Instruction& inst) {
    const ptx::Operand& address = inst[ptx::Role::a];
    return graph.is_entry && inst.form == ptx::FormId::ld && inst.space == ptx::StateSpace::param &&
           address.kind == ptx::Operand::Kind::address && address.base == ptx::Operand::Base::variable &&
           address.scope == ptx::VariableScope::parameter;
}

/// A call that ends the kernel with a message; nothing comes behind it.
inline bool is_assertion(const FunctionGraph& graph, const ptx::Instruction& inst) {
    const ptx::Operand& function = inst[ptx::Role::f];
    return ptx::any(ptx::form_info(inst.form).effects, ptx::Effects::call) &&
           function.kind == ptx::Operand::Kind::function &&
           graph.module->functions[function.index].name == "__assertfail";
}

/// What all other instructions together do.
ptx::Effects effects_but_of_assertions(const FunctionGraph& graph);

/// The number that an immediate, or a register whose value is known, holds; whether it is read negated is not looked
/// at.
inline std::optional<std::uint64_t> constant_of(const FunctionGraph& graph, const ptx::Operand& operand) {
    if (operand.kind == ptx::Operand::Kind::imm) return operand.value;
    if (operand.kind == ptx::Operand::Kind::reg && graph.values[operand.index].is_constant)
        return graph.values[operand.index].constant;
    return std::nullopt;
}

} // namespace ptarmigan::translator
