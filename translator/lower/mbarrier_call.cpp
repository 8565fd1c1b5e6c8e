// SPDX-License-Identifier: Apache-2.0
// Calls to the runtime's mbarrier service, see mbarrier_call.h.
#include "translator/lower/mbarrier_call.h"

#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

using ptx::Operand;

namespace {

LaneValue counts_of(WarpEmitter& e, const Operand& operand, std::uint32_t fallback) {
    if (operand.kind == Operand::Kind::none) return LaneValue::uniform(e.ir().getInt32(fallback));
    LaneValue value = e.read(operand);
    return e.apply({value}, [](Ir& ir, Values v) { return resize(ir, v[0], 32, false); });
}

} // namespace

MbarrierCallBuffer::MbarrierCallBuffer(WarpEmitter& e, const Instruction& inst, abi::MbarrierOperation operation,
                                       std::uint32_t flags, const Operand& counts, std::uint32_t fallback)
    : e_(e) {
    Ir& ir = e.ir();
    buffer_ = e.entry_alloca(llvm::ArrayType::get(ir.getInt64Ty(), sizeof(abi::MbarrierCall) / 8), "mbarrier");
    const LaneValue object =
        e.address(inst[Role::a], inst.space == ptx::StateSpace::none ? ptx::StateSpace::generic : inst.space).address;
    const LaneValue count = counts_of(e, counts, fallback);
    if (object.is_uniform() && count.is_uniform()) {
        flags |= abi::MbarrierCall::uniform;
        ir.CreateStore(object.base, place(offsetof(abi::MbarrierCall, object)));
        ir.CreateStore(count.base, place(offsetof(abi::MbarrierCall, count)));
    } else {
        store(offsetof(abi::MbarrierCall, object), e.broadcast(object), 8);
        store(offsetof(abi::MbarrierCall, count), e.broadcast(count), 4);
    }
    auto set = [&](unsigned offset, Value* value) { ir.CreateStore(value, place(offset)); };
    set(offsetof(abi::MbarrierCall, operation), ir.getInt32(std::uint32_t(operation)));
    set(offsetof(abi::MbarrierCall, flags), ir.getInt32(flags));
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
    return e_.ir().CreateAlignedLoad(e_.lanes_type(scalar), place(offset), llvm::Align(scalar->getScalarSizeInBits() / 8));
}

void MbarrierCallBuffer::set_state(Value* lanes) { store(offsetof(abi::MbarrierCall, state), lanes, 8); }

void MbarrierCallBuffer::set_limit(Value* lanes) { store(offsetof(abi::MbarrierCall, limit), lanes, 4); }

void MbarrierCallBuffer::run() {
    Ir& ir = e_.ir();
    auto call = [&] {
        e_.call_service(offsetof(abi::Services, mbarrier), ir.getVoidTy(), {e_.cta_context(), e_.step_index(), buffer_});
    };
    if (e_.all_active())
        call();
    else
        e_.if_then(e_.any(e_.active()), call);
}

/// Lanes outside the call may find anything there, as long as it is the same at every look.
Value* MbarrierCallBuffer::state() {
    return e_.ir().CreateFreeze(load(offsetof(abi::MbarrierCall, state), e_.ir().getInt64Ty()));
}

Value* MbarrierCallBuffer::complete() {
    return e_.ir().CreateFreeze(load(offsetof(abi::MbarrierCall, complete), e_.ir().getInt32Ty()));
}

} // namespace ptarmigan::translator::lower
