// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "translator/address_program.h"
#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Of a kernel some of whose addresses go with %ctaid in a way that only the launch knows: through quotients,
/// remainders, shifts or masks, as where an element's number is taken apart into places along several dimensions.
/// Empty for all others, and for kernels that may see what other CTAs do (cta_order.h): their order is left alone.
AddressProgram trace_addresses(const FunctionGraph& graph);

} // namespace ptarmigan::translator
