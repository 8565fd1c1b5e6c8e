// SPDX-License-Identifier: Apache-2.0
// Code in two versions, for quotients that turn out to be the same in all lanes. The quotient of a thread's number and
// something uniform (i / columns; the rounds of a grid-stride loop, which compilers count before they unroll it) is
// varying, and with it everything behind it: row and column are, and with them addresses; lanes leave loops by
// themselves. Yet lanes next to each other nearly always have the same one. Quotients grow with the dividend, so it is
// enough to compare those of the lanes with the lowest and the highest dividend.
//
// A value of an instruction with the modifier .uni, which PTX has for branches only, is what lane 0 computes: the tests
// read their operands by such a mov, and the quotient has it in the version that is run where they hold.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Makes the kernel twice if it divides outside of loops, by numbers that are known where it begins, and tests there
/// which version a step runs. For kernels whose threads don't meet. Returns how many of the first blocks behind the
/// entry are those of the general version, 0 if nothing was done.
BlockId version_by_quotients(FunctionGraph& graph);

/// Makes what depends on quotients twice in blocks of loops, of those from `first` on.
bool version_blocks_by_quotients(FunctionGraph& graph, BlockId first);

/// Both need shapes of a width above 1, which have to be computed anew where something was done, as have all plans.

} // namespace ptarmigan::translator
