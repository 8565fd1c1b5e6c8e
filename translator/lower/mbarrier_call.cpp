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
    : e_(e), flags_(flags) {
    Ir& ir = e.ir();
    buffer_ = e.entry_alloca(llvm::ArrayType::get(ir.getInt64Ty(), sizeof(abi::MbarrierCall) / 8), "mbarrier");
    const LaneValue object = e.address(inst[Role::a], space_in_shared_memory(inst, inst[Role::a])).address;
    const LaneValue count = counts_of(e, counts);
    uniform_ = object.is_uniform() && count.is_uniform();
    if (uniform_) {
        flags_ |= abi::MbarrierCall::uniform;
        ir.CreateStore(object.base, place(offsetof(abi::MbarrierCall, object)));
        ir.CreateStore(count.base, place(offsetof(abi::MbarrierCall, count)));
    } else {
        store(offsetof(abi::MbarrierCall, object), e.broadcast(object), 8);
        store(offsetof(abi::MbarrierCall, count), e.broadcast(count), 4);
    }
    auto set = [&](unsigned offset, Value* value) { ir.CreateStore(value, place(offset)); };
    set(offsetof(abi::MbarrierCall, operation), ir.getInt32(std::uint32_t(operation)));
    set(offsetof(abi::MbarrierCall, line), ir.getInt32(inst.location.line));
    set(offsetof(abi::MbarrierCall, others), ir.CreateZExt(e.others_can_run(), ir.getInt32Ty()));
    set(offsetof(abi::MbarrierCall, active), e.active_bits());
}

Value* MbarrierCallBuffer::place(unsigned offset) {
    return e_.ir().CreateConstInBoundsGEP1_64(e_.ir().getInt8Ty(), buffer_, offset);
}

void MbarrierCallBuffer::store(unsigned offset, Value* vector, unsigned alignment) {
    e_.ir().CreateAlignedStore(vector, place(offset), llvm::Align(alignment));
}

Value* MbarrierCallBuffer::load(unsigned offset, llvm::Type* scalar) {
    return e_.ir().CreateAlignedLoad(e_.lanes_type(scalar), place(offset),
                                     llvm::Align(scalar->getScalarSizeInBits() / 8));
}

void MbarrierCallBuffer::set_state(const LaneValue& value) {
    uniform_ = uniform_ && value.is_uniform();
    store(offsetof(abi::MbarrierCall, state), e_.broadcast(value), 8);
}

void MbarrierCallBuffer::set_limit(const LaneValue& value) {
    uniform_ = uniform_ && value.is_uniform();
    store(offsetof(abi::MbarrierCall, limit), e_.broadcast(value), 4);
}

void MbarrierCallBuffer::run(bool one_answer) {
    Ir& ir = e_.ir();
    if (one_answer && uniform_) flags_ |= abi::MbarrierCall::one_answer;
    ir.CreateStore(ir.getInt32(flags_), place(offsetof(abi::MbarrierCall, flags)));
    auto call = [&] {
        e_.call_service(offsetof(abi::Services, mbarrier), ir.getVoidTy(),
                        {e_.cta_context(), e_.step_index(), buffer_});
    };
    if (e_.all_active())
        call();
    else
        e_.if_then(e_.any(e_.active()), call);
}

/// Lanes outside the call may find anything there, as long as it is the same at every look.
LaneValue MbarrierCallBuffer::state() {
    Ir& ir = e_.ir();
    if (uniform_ && (flags_ & abi::MbarrierCall::in_turn) == 0)
        return LaneValue::uniform(
            ir.CreateFreeze(ir.CreateLoad(ir.getInt64Ty(), place(offsetof(abi::MbarrierCall, state)))));
    return LaneValue::varying(ir.CreateFreeze(load(offsetof(abi::MbarrierCall, state), ir.getInt64Ty())));
}

LaneValue MbarrierCallBuffer::complete() {
    Ir& ir = e_.ir();
    const bool one = (flags_ & abi::MbarrierCall::one_answer) != 0;
    Value* words = one ? ir.CreateLoad(ir.getInt32Ty(), place(offsetof(abi::MbarrierCall, complete)))
                       : load(offsetof(abi::MbarrierCall, complete), ir.getInt32Ty());
    words = ir.CreateFreeze(words);
    Value* complete = ir.CreateICmpNE(words, integer(words, 0));
    return one ? LaneValue::uniform(complete) : LaneValue::varying(complete);
}

} // namespace ptarmigan::translator::lower
