// SPDX-License-Identifier: Apache-2.0
// Calls to the runtime's mbarrier service, see mbarrier_call.h.
#include "translator/lower/mbarrier_call.h"

#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

using ptx::Operand;

namespace {

LaneValue counts_of(WarpEmitter& e, const Operand& operand) {
    if (operand.kind == Operand::Kind::none) return LaneValue::uniform(e.ir().getInt32(1));
    return e.apply({e.read(operand)}, [](Ir& ir, Values v) { return resize(ir, v[0], 32, false); });
}

} // namespace

ptx::StateSpace space_in_shared_memory(const Instruction& inst, const Operand& address) {
    if (inst.space != ptx::StateSpace::none && inst.space != ptx::StateSpace::generic) return inst.space;
    const bool narrow = address.base == Operand::Base::reg && ptx::bit_size(address.type) == 32;
    return narrow ? ptx::StateSpace::shared : ptx::StateSpace::generic;
}

MbarrierCallBuffer::MbarrierCallBuffer(WarpEmitter& e, const Instruction& inst, abi::MbarrierOperation operation,
                                       std::uint32_t flags, const Operand& counts)
    : CallBuffer(e, sizeof(abi::MbarrierCall), "mbarrier"), flags_(flags) {
    const LaneValue object = e.address(inst[Role::a], space_in_shared_memory(inst, inst[Role::a])).address;
    const LaneValue count = counts_of(e, counts);
    uniform_ = object.is_uniform() && count.is_uniform();
    if (uniform_) {
        flags_ |= abi::MbarrierCall::uniform;
        store(offsetof(abi::MbarrierCall, object), object.base);
        store(offsetof(abi::MbarrierCall, count), count.base);
    } else {
        store_lanes(offsetof(abi::MbarrierCall, object), e.broadcast(object));
        store_lanes(offsetof(abi::MbarrierCall, count), e.broadcast(count));
    }
    store_number(offsetof(abi::MbarrierCall, operation), std::uint32_t(operation));
    store_number(offsetof(abi::MbarrierCall, line), inst.location.line);
    store(offsetof(abi::MbarrierCall, others), e.ir().CreateZExt(e.others_can_run(), e.ir().getInt32Ty()));
    store(offsetof(abi::MbarrierCall, active), e.active_bits());
}

void MbarrierCallBuffer::set_state(const LaneValue& value) {
    uniform_ = uniform_ && value.is_uniform();
    store_lanes(offsetof(abi::MbarrierCall, state), e_.broadcast(value));
}

void MbarrierCallBuffer::set_limit(const LaneValue& value) {
    uniform_ = uniform_ && value.is_uniform();
    store_lanes(offsetof(abi::MbarrierCall, limit), e_.broadcast(value));
}

void MbarrierCallBuffer::run(bool one_answer) {
    if (one_answer && uniform_) flags_ |= abi::MbarrierCall::one_answer;
    store_number(offsetof(abi::MbarrierCall, flags), flags_);
    call(offsetof(abi::Services, mbarrier));
}

/// Lanes outside the call may find anything there, as long as it is the same at every look.
LaneValue MbarrierCallBuffer::state() {
    Ir& ir = e_.ir();
    if (uniform_ && (flags_ & abi::MbarrierCall::in_turn) == 0)
        return LaneValue::uniform(
            ir.CreateFreeze(ir.CreateLoad(ir.getInt64Ty(), place(offsetof(abi::MbarrierCall, state)))));
    return LaneValue::varying(ir.CreateFreeze(load_lanes(offsetof(abi::MbarrierCall, state), ir.getInt64Ty())));
}

LaneValue MbarrierCallBuffer::complete() {
    Ir& ir = e_.ir();
    const bool one = (flags_ & abi::MbarrierCall::one_answer) != 0;
    Value* words = one ? ir.CreateLoad(ir.getInt32Ty(), place(offsetof(abi::MbarrierCall, complete)))
                       : load_lanes(offsetof(abi::MbarrierCall, complete), ir.getInt32Ty());
    words = ir.CreateFreeze(words);
    Value* complete = ir.CreateICmpNE(words, integer(words, 0));
    return one ? LaneValue::uniform(complete) : LaneValue::varying(complete);
}

} // namespace ptarmigan::translator::lower
