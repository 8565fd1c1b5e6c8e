// SPDX-License-Identifier: Apache-2.0
// A compiler can't know that `a[t][column] = ...` leaves `a[t][k]` alone, so its loops load that again in each round.
// Where walks through shared memory have seen it, such loads leave the loop, and what is computed of them alone.
#pragma once

#include "translator/analysis/waits/thread_walks.h"

namespace ptarmigan::translator {

/// `walks` are of this very graph, whose blocks and loops stay.
void hoist_steady_loads(FunctionGraph& graph, const ThreadWalks& walks);

} // namespace ptarmigan::translator
