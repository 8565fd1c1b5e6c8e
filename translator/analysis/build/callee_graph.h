// SPDX-License-Identifier: Apache-2.0
// Graphs of the functions that a kernel calls for real.
#pragma once

#include "translator/analysis/build/build_graph.h"

namespace ptarmigan::translator {

/// build_graph() where shared_layout() of `options.kernel` is known. That looks at all functions, of which a kernel of
/// libcu++'s tests has hundreds.
FunctionGraph build_callee_graph(ptx::ModuleLoader& loader, ptx::FunctionId function, const GraphOptions& options,
                                 const SharedLayout& layout);

} // namespace ptarmigan::translator
