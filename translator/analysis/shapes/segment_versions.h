// SPDX-License-Identifier: Apache-2.0
// Between two barriers threads often walk through an array by the block's size (`for (i = tid; i < n; i += 128)`). A
// compiler that unrolls such a loop begins with its number of rounds, (n - 1 - tid) / 128 + 1, as a varying value: the
// lanes part there, and every index behind it is each lane's own. But lanes of a step nearly always have the same
// number. So what lies between such barriers is made twice, behind a test as lane_agreement.h makes it.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Makes spans of blocks twice that have one way in and one way out, neither barriers nor collectives, and loops that
/// lanes leave one by one. Needs shapes of a width above 1, which have to be computed anew where it returns true, as
/// have all plans.
bool version_segments(FunctionGraph& graph);

} // namespace ptarmigan::translator
