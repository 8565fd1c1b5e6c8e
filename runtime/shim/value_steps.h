// SPDX-License-Identifier: Apache-2.0
// Operations of cuStreamBatchMemOp, which graphs have as nodes, too.
#pragma once

#include "runtime/memory/stream_values.h"
#include "runtime/shim/stream_types.h"

namespace ptarmigan::shim {

/// What an operation does; the status is what cuStreamBatchMemOp says of it, its memory included.
runtime::Status make_value_step(const CUstreamBatchMemOpParams& given, runtime::ValueStep& step);

} // namespace ptarmigan::shim
