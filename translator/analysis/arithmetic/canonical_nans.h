// SPDX-License-Identifier: Apache-2.0
// Which values can hold no single-precision NaN but the hardware's own.
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <vector>

namespace ptarmigan::translator {

/// By ValueId: true for values of 32 bits that, taken as f32, are never a NaN other than 0x7fffffff, because they are
/// results of arithmetic, constants, or chosen among such. Where only arithmetic reads them, NaNs of other bits may
/// stand in.
std::vector<bool> canonical_nans(const FunctionGraph& graph);

} // namespace ptarmigan::translator
