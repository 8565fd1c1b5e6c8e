// SPDX-License-Identifier: Apache-2.0
// Instructions run ahead, on numbers that are known.
#pragma once

#include "translator/analysis/build/build_ssa.h"
#include "translator/analysis/graph/function_graph.h"
#include "translator/analysis/graph/low_mask.h"

#include <optional>
#include <vector>

namespace ptarmigan::translator {

/// The result of a pure instruction with one result, in a register as wide; its guard is not looked at. Nothing if it
/// is not one of those that are folded. `number(operand)`: of a source that is no immediate, as it is before a
/// negation; nothing if that is not known. `sources`: for fold_constant(), to be used again.
template <typename NumberOf>
std::optional<std::uint64_t> evaluate(const FunctionGraph& graph, const ptx::Instruction& inst, const NumberOf& number,
                                      std::vector<std::uint64_t>& sources) {
    using Kind = ptx::Operand::Kind;
    const ptx::Operand& d = inst.operands[0];
    const auto info = ptx::form_info(inst.form);
    if (info.effects != ptx::Effects::pure || inst.operand_count < 2 || d.kind != Kind::reg) return std::nullopt;
    const unsigned bits = ptx::bit_size(d.type);
    if (bits > 64 || bits != ptx::bit_size(graph.values[d.index].type)) return std::nullopt;
    sources.clear();
    for (unsigned i = 1; i < inst.operand_count; ++i) {
        const ptx::Operand& operand = inst.operands[i];
        if (operand.kind == Kind::none) continue;
        const unsigned size = ptx::bit_size(operand.type);
        if (info.operands[i].is_destination || size == 0 || size > 64 || (operand.negated && size != 1))
            return std::nullopt;
        const std::optional<std::uint64_t> value =
            operand.kind == Kind::imm ? std::optional(std::uint64_t(operand.value)) : number(operand);
        if (!value) return std::nullopt;
        sources.push_back((operand.negated ? *value ^ 1 : *value) & low_mask(size));
    }
    const auto result = fold_constant(inst, sources);
    return result ? std::optional(*result & low_mask(bits)) : std::nullopt;
}

} // namespace ptarmigan::translator
