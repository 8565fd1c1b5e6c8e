// SPDX-License-Identifier: Apache-2.0
// Floating-point atomics of global memory whose lanes lie side by side: a locked instruction takes as long for 16 bytes
// as for 4.
#pragma once

#include "translator/lower/atomic_operation.h"

namespace ptarmigan::translator::lower {

struct AtomicAccess {
    AtomicOperation operation;
    LaneAddress address;
    LaneValue b, c; ///< as integers; c for cas
    llvm::AtomicOrdering ordering = llvm::AtomicOrdering::Monotonic;
    bool private_memory = false; ///< no other thread of the host reaches it: the shared memory of the CTA's cluster
};

/// combine()'s is_shared for a generic address, null where it does not ask.
Value* shared_condition(WarpEmitter& e, const AtomicAccess& access, Value* address);

/// Does `access`, whose results nobody wants: active lanes whose elements follow each other within 16 aligned bytes by
/// one compare-and-swap of these, which each then sees as its own. Where no lane follows another one, `lane_by_lane`.
/// False, and nothing done, where that is not worth asking.
bool do_in_runs(WarpEmitter& e, const AtomicAccess& access, llvm::function_ref<void()> lane_by_lane);

} // namespace ptarmigan::translator::lower
