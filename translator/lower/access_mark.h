// SPDX-License-Identifier: Apache-2.0
// Says of memory accesses whose they are, so that a fault names its lane (translator/fault_lanes.h).
#pragma once

#include "translator/emit/warp_emitter.h"

namespace ptarmigan::translator::lower {

/// What is emitted while it lives accesses memory as `form` says. Only accesses matter; the stack's never fault.
class AccessMark {
public:
    AccessMark(WarpEmitter& e, const AccessForm& form) : ir_(e.ir()), before_(ir_.getCurrentDebugLocation()) {
        // With one lane the step is the thread.
        if (e.width() > 1) ir_.SetCurrentDebugLocation(e.access_location(form));
    }
    ~AccessMark() { ir_.SetCurrentDebugLocation(before_); }
    AccessMark(const AccessMark&) = delete;
    AccessMark& operator=(const AccessMark&) = delete;

private:
    Ir& ir_;
    llvm::DebugLoc before_;
};

/// Accesses of `bytes` bytes (0: of any size) for one lane.
AccessForm of_lane(unsigned lane, unsigned bytes);
/// An access that every lane makes: all are active.
AccessForm of_all_lanes(WarpEmitter& e);
/// A gather or scatter of lanes [first, first + count).
AccessForm of_gather(unsigned first, unsigned count);
/// In a loop over lanes: notes which one's turn it is. Accesses that follow are marked with the form returned.
AccessForm note_lane(WarpEmitter& e, llvm::Value* lane);
/// Accesses of `bytes` bytes for the lane that is `more` behind the one that was noted.
AccessForm behind_noted(AccessForm noted, unsigned more, unsigned bytes);

} // namespace ptarmigan::translator::lower
