// SPDX-License-Identifier: Apache-2.0
// Launch attributes of kernel nodes.
#pragma once

#include "runtime/graph/graph.h"
#include "runtime/shim/convert.h"
#include "runtime/shim/graph_types.h"

namespace ptarmigan::shim {

Status get_attribute(const runtime::KernelWork& work, unsigned id, CUlaunchAttributeValue& value);
Status set_attribute(runtime::KernelWork& work, unsigned id, const CUlaunchAttributeValue& value);
/// Brings those that launches look at into the configuration.
void apply_attributes(runtime::KernelWork& work);

} // namespace ptarmigan::shim
