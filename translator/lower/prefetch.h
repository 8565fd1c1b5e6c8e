// SPDX-License-Identifier: Apache-2.0
// Hints for the CPU's caches.
#pragma once

#include "translator/emit/warp_emitter.h"

namespace ptarmigan::translator::lower {

/// Asks for the lines of an access of `bytes` per lane to addresses `ahead` (an i64) bytes behind `address`; nothing if
/// they are too many or lie anywhere. There need not be memory: prefetches do not fault. `for_write`: they will be
/// written to.
enum class CacheLevel : std::uint8_t {
    first,  ///< for what this warp reads soon
    second, ///< for others
};
void prefetch_ahead(WarpEmitter& e, const LaneAddress& address, unsigned bytes, llvm::Value* ahead, CacheLevel level,
                    bool for_write = false);

} // namespace ptarmigan::translator::lower
