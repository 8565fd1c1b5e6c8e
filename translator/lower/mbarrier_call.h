// SPDX-License-Identifier: Apache-2.0
// What mbarrier instructions share: the call to the runtime's mbarrier service, one for all lanes
// of a step.
#pragma once

#include "translator/lower/call_buffer.h"

namespace ptarmigan::translator::lower {

/// The space of an address of an instruction that knows shared memory only. One without a space is generic; but 32 bits
/// of it are a place in shared memory, as in the machine code that ptxas 13.0 makes of st.async, red.async,
/// cp.async.mbarrier.arrive, st.bulk and clusterlaunchcontrol.try_cancel (of 64 bits it takes the low ones).
ptx::StateSpace space_in_shared_memory(const ptx::Instruction& inst, const ptx::Operand& address);

/// An abi::MbarrierCall on the stack. Where the object's address and the count are uniform, only
/// their first element is written.
class MbarrierCallBuffer : private CallBuffer {
public:
    /// The object is at the instruction's operand `a`. `counts`: the operand for
    /// abi::MbarrierCall::count; none: 1 for all lanes.
    MbarrierCallBuffer(WarpEmitter& e, const ptx::Instruction& inst, abi::MbarrierOperation operation,
                       std::uint32_t flags, const ptx::Operand& counts);

    void set_state(const LaneValue& value);
    void set_limit(const LaneValue& value);
    /// Calls the service if any lane is active. `one_answer`: for a wait; where all operands are
    /// uniform it is made once for all lanes.
    void run(bool one_answer = false);
    /// States of arrivals, one for all lanes where all operands are uniform; and whether the phase
    /// is complete. Unspecified for lanes that do not take part.
    LaneValue state();
    LaneValue complete();

private:
    std::uint32_t flags_;
    bool uniform_ = true; ///< all operands so far
};

} // namespace ptarmigan::translator::lower
