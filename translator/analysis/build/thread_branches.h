// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// A way that comes to a comparison which has already been made on it, of the same numbers, goes straight on to where
/// the answer leads: `if (i < n) { ...; i += 128; } if (i < n) ...`, which compilers make of threads with several
/// elements each, comes to the second comparison with an i that is not less than n. Behind it i is one number then,
/// where it was either of two. Outside of loops' edges only. Needs no shapes; true if something changed, loops have
/// been found again then.
bool thread_branches(FunctionGraph& graph);

} // namespace ptarmigan::translator
