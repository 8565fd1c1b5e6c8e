// SPDX-License-Identifier: Apache-2.0
// cuGetExportTable: the tables of private functions that NVIDIA's runtime library asks its driver
// for.
#pragma once

#include "runtime/shim/cuda_types.h"

namespace ptarmigan::runtime {
class Context;
}

namespace ptarmigan::shim {

/// The table of this id, or null for one that is not provided. Valid for the life of the process.
const void* find_export_table(const CUuuid& id);

/// Runs the destructors of what the runtime library keeps per context; call it before the context's
/// contents go.
void clear_context_storage(runtime::Context& context);

} // namespace ptarmigan::shim
