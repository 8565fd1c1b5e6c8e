// SPDX-License-Identifier: Apache-2.0
// What passes make new instructions of.
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <utility>

namespace ptarmigan::translator {

/// A register before SSA, a value behind it.
inline ptx::Operand register_operand(std::uint32_t index, ptx::ScalarType type) {
    ptx::Operand operand;
    operand.kind = ptx::Operand::Kind::reg;
    operand.type = type;
    operand.index = index;
    return operand;
}

/// A constant by its bits, those of `type` only.
inline ptx::Operand constant_operand(std::uint64_t bits, ptx::ScalarType type) {
    ptx::Operand operand;
    operand.kind = ptx::Operand::Kind::imm;
    operand.type = type;
    operand.value = bits;
    return operand;
}

/// One more value of the graph, defined in `block` by what the caller adds; without a shape.
inline ValueId new_value(FunctionGraph& graph, ptx::ScalarType type, BlockId block) {
    SsaValue value;
    value.type = type;
    value.block = block;
    graph.values.push_back(std::move(value));
    return ValueId(graph.values.size() - 1);
}

} // namespace ptarmigan::translator
