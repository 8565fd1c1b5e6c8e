// SPDX-License-Identifier: Apache-2.0
// Hints for the CPU's caches.
#pragma once

#include "translator/emit/warp_emitter.h"

namespace ptarmigan::translator::lower {

/// Asks for the lines of an access of `bytes` per lane to addresses `ahead` bytes behind `address`: into all caches for a
/// uniform address, which is this warp's own stream; all but the first for an affine one, which is for others. There need
/// not be memory: prefetches do not fault.
void prefetch_ahead(WarpEmitter& e, const LaneAddress& address, unsigned bytes, std::int32_t ahead);

} // namespace ptarmigan::translator::lower
