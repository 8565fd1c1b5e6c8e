// SPDX-License-Identifier: Apache-2.0
// Invariants of a graph; the first that does not hold is thrown as std::logic_error with a readable text.
#pragma once

#include "translator/analysis/graph/linear_plan.h"

namespace ptarmigan::translator {

/// Checks, in this order:
///  1. block 0 is the entry and has no predecessors; exactly one block has Kind::exit, it is exit_block and is empty;
///  2. predecessors and successors mirror each other (with multiplicity); every block is reachable from the entry;
///  3. branch has two different successors, jump one, exit none; conditions are values of predicate (branch) or integer
///  type;
///  4. no critical edges: a block with several successors has only successors with one predecessor;
///  5. every loop of graph.forest has its unique preheader and latch, both ending in a jump; exit targets have one
///  predecessor;
///  6. a CTA barrier is the last instruction of its block, ends_with_barrier is set, the terminator is a jump and the
///     successor has no other predecessor;
///  7. every value is defined once: by a phi, by an instruction, or it is a constant or undefined; definitions dominate
///  uses
///     (a phi's incoming value: the end of the predecessor);
///     and lie in the loop of the definition or inside it (loop-closed form, for reducible graphs);
///  8. phi incoming lists are as long as the predecessor list; no phi with several has all values equal (or equal to
///  itself);
///  9. `previous` of a guarded instruction is as long as its list of written registers, and empty without a guard;
/// 10. calls, barriers and terminators have no guard; no terminator form is left among the instructions;
/// 11. indices of operands (variables, pool ranges, values) are in range.
void verify_graph(const FunctionGraph& graph);

/// Checks a plan against its graph: order is topological but for back edges with loops contiguous, every jump target
/// and skip target lies behind its block (or is the header of the latch), mask sources dominate their blocks.
void verify_plan(const FunctionGraph& graph, const LinearPlan& plan);

} // namespace ptarmigan::translator
