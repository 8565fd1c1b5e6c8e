// SPDX-License-Identifier: Apache-2.0
// Hints for the CPU's caches.
#pragma once

#include "translator/emit/warp_emitter.h"

namespace ptarmigan::translator::lower {

/// Asks for the line that is `ahead` bytes behind a uniform address. There need not be memory: prefetches do not fault.
void prefetch_ahead(WarpEmitter& e, const LaneAddress& address, std::int32_t ahead);

} // namespace ptarmigan::translator::lower
