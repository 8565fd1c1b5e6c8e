// SPDX-License-Identifier: Apache-2.0
// Arithmetic on doubles that LLVM does not compute itself, since it can't find out the operands.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Sets GraphInstruction::has_unknown_operand of sums, products and quotients of doubles that have an operand which no
/// pass makes a constant of: it comes from memory or the launch, and what was made of it has no bits that are known.
/// What a load finds is unknown, too, since GraphInstruction::hides_value is set of stores of what may be a constant to
/// state spaces from which the graph loads doubles, or pieces of them.
void mark_unknown_operands(FunctionGraph& graph);

} // namespace ptarmigan::translator
