// SPDX-License-Identifier: Apache-2.0
// How many lanes of a warp one step executes, when the user does not say.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Lanes per step for this kernel and CPU. Needs shapes computed for natural_width(), and leaves it only where lanes do
/// not communicate inside a warp.
unsigned choose_width(const FunctionGraph& graph, const TargetCpu& target, bool whole_warp);

/// The same for code that is to be made quickly: one lane, which takes a fifth of the time to compile, but for kernels
/// whose lanes count on their warp being one step (`talks`).
unsigned quick_width(const FunctionGraph& graph, const TargetCpu& target, bool talks);

/// The CPU's own width: what fits its registers, or the whole warp for kernels whose lanes talk to each other.
unsigned natural_width(const TargetCpu& target, bool whole_warp);

} // namespace ptarmigan::translator
