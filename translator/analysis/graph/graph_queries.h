// SPDX-License-Identifier: Apache-2.0
// Walks over the values that an instruction of the graph reads and writes.
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <functional>

namespace ptarmigan::translator {

/// Calls fn(Operand&, is_definition) for each register operand, elements of vectors and lists and address bases
/// included. A base of an address is a use even in a destination's place. Guard and `previous` are not operands.
void for_each_register(FunctionGraph& graph, GraphInstruction& instruction,
                       const std::function<void(ptx::Operand&, bool)>& fn);
void for_each_register(const FunctionGraph& graph, const GraphInstruction& instruction,
                       const std::function<void(const ptx::Operand&, bool)>& fn);

/// Values written, in operand order (the order of `previous`).
std::vector<ValueId> definitions(const FunctionGraph& graph, const GraphInstruction& instruction);
/// Values read: operands, guard and previous.
std::vector<ValueId> uses(const FunctionGraph& graph, const GraphInstruction& instruction);

} // namespace ptarmigan::translator
