// SPDX-License-Identifier: Apache-2.0
// Code in two versions, for what lanes nearly always agree on although nothing says so. A thread's number in the grid
// is compared with bounds (`if (i < n)`): all lanes of a step pass, but at the border. Its quotient by something
// uniform (i / columns; the rounds of a grid-stride loop, which compilers count before they unroll it) is the same in
// lanes next to each other, but at the end of a row. As varying values these make masks, and all that depends on them
// varying: rows, columns, addresses, the rounds of loops. Answers and quotients grow with the number, so it is enough
// to compare those of the lanes with the lowest and the highest. The same test says that no lane wraps where a number
// is made wider (shape.h, guards).
//
// The modifier .uni, which PTX has for branches only, marks instructions that rely on a test: their result is what lane
// 0 computes, or is widened without a guard. Tests themselves read lane 0's value by such a mov.
#pragma once

#include "translator/analysis/shapes/lane_tests.h"

#include <functional>

namespace ptarmigan::translator {

/// Makes the kernel twice if it compares or divides outside of loops, by numbers that are known where it begins, and
/// tests there which version a step runs. With `spans` (which finds cta_spans()) it first asks for the whole CTA, which
/// is the same for all of its steps, and for a step only where the CTA's threads part. For kernels whose threads don't
/// meet. Returns how many of the first blocks behind the entry are those of the general version, 0 if nothing was done.
BlockId version_kernel(FunctionGraph& graph, const std::function<CtaSpans()>& spans = {});
/// Code of the general version, which only steps run whose lanes part at a bound: not all lanes are active in it.
bool is_for_parted_lanes(const FunctionGraph& graph, BlockId block);

/// Makes the kernel the version whose threads agree, with all of their CTA where `spans` are not empty. Its first
/// block, which does nothing else, asks whether it may run; `holds` is what it has asked so far, and then all
/// (no_value: nothing). What depends on quotients is asked only once these are known to be shared: with new shapes,
/// again. False, and nothing is done, if CTAs can't be asked.
bool assume_agreement(FunctionGraph& graph, const CtaSpans& spans, ValueId& holds);
/// The first block, with the number that it gets; an empty one is in front of it then.
BlockId put_block_in_front(FunctionGraph& graph);

/// Makes what depends on quotients twice in blocks of loops, of those from `first` on.
bool version_blocks(FunctionGraph& graph, BlockId first);

/// The first and the last need shapes of a width above 1, which have to be computed anew where something was done, as
/// have all plans.

} // namespace ptarmigan::translator
