// SPDX-License-Identifier: Apache-2.0
// How many lanes of a warp one step executes, when the user does not say.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Lanes per step for this kernel and CPU. Needs shapes computed for natural_width(), and leaves it only where lanes do
/// not communicate inside a warp. `row`: threads of a block that are next to each other in x.
unsigned choose_width(const FunctionGraph& graph, const TargetCpu& target, bool whole_warp, unsigned row);

/// Has the kernel products of the tensor core, which are the warp's, or does it ask which lanes are together? The
/// latter come together again behind each branch where they are one step, as on a GPU, and lanes of different rounds of
/// a loop are never taken for one group (raft's adj_to_csr counts a row's entries so).
bool is_of_whole_warps(const FunctionGraph& graph);

/// The same for code that is to be made quickly: one lane, which takes a fifth of the time to compile, but for kernels
/// whose lanes count on their warp being one step (`talks`), and for products of the tensor core: there lanes one by
/// one hand around what they multiply, which takes as long in two launches as whole warps take to make (cuDNN's f16
/// convolution, CPU s: 0.08 to make and 0.18 to run, whole warps 0.44 and 0.003; cuBLAS' nvjet 0.06 and 0.43, 0.32 and
/// 0.02).
unsigned quick_width(const FunctionGraph& graph, const TargetCpu& target, bool talks);

/// The CPU's own width: what fits its registers, or the whole warp for kernels whose lanes talk to each other.
unsigned natural_width(const TargetCpu& target, bool whole_warp);

} // namespace ptarmigan::translator
