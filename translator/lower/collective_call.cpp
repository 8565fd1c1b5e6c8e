// SPDX-License-Identifier: Apache-2.0
// Calls to the runtime's collective service, see collective_call.h.
#include "translator/lower/collective_call.h"

namespace ptarmigan::translator::lower {

using llvm::Value;
using ptx::Operand;
using ptx::Role;

Value* lane_numbers(WarpEmitter& e) {
    llvm::SmallVector<llvm::Constant*, 32> lanes;
    for (unsigned lane = 0; lane < e.width(); ++lane) lanes.push_back(e.ir().getInt32(lane));
    return llvm::ConstantVector::get(lanes);
}

void meet_in_warp(WarpEmitter& e) {
    constexpr std::uint32_t aligned = 1; // bar.warp.sync is 0
    if (!whole_warp(e)) CollectiveCallBuffer(e, abi::Collective::bar_warp, aligned).run();
}

CollectiveCallBuffer::CollectiveCallBuffer(WarpEmitter& e, abi::Collective kind, std::uint32_t operation) : e_(e) {
    Ir& ir = e.ir();
    if (!e.fiber_form()) e.unsupported("internal: a collective of a narrow step needs the fiber form");
    buffer_ = e.entry_alloca(llvm::ArrayType::get(ir.getInt64Ty(), sizeof(abi::CollectiveCall) / 8), "collective");
    auto field = [&](unsigned offset, Value* value) {
        ir.CreateStore(value, ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), buffer_, offset));
    };
    field(offsetof(abi::CollectiveCall, kind), ir.getInt32(std::uint32_t(kind)));
    field(offsetof(abi::CollectiveCall, operation), ir.getInt32(operation));
    field(offsetof(abi::CollectiveCall, active), e.active_bits());
    store(offsetof(abi::CollectiveCall, members), e.splat(ir.getInt32(~0u)));
}

void CollectiveCallBuffer::store(unsigned offset, Value* vector) {
    Ir& ir = e_.ir();
    ir.CreateAlignedStore(vector, ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), buffer_, offset), llvm::Align(4));
}

Value* CollectiveCallBuffer::load(unsigned offset, llvm::Type* scalar) {
    Ir& ir = e_.ir();
    return ir.CreateAlignedLoad(e_.lanes_type(scalar), ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), buffer_, offset),
                                llvm::Align(4));
}

void CollectiveCallBuffer::set_members(const ptx::Instruction& inst) {
    const Operand& mask = inst[Role::membermask];
    if (mask.kind != Operand::Kind::none) store(offsetof(abi::CollectiveCall, members), e_.lanes(mask));
}

void CollectiveCallBuffer::set_source(Value* lanes) {
    store(offsetof(abi::CollectiveCall, source), e_.ir().CreateZExt(lanes, e_.lanes_type(e_.ir().getInt64Ty())));
}

void CollectiveCallBuffer::set_b(Value* lanes) {
    store(offsetof(abi::CollectiveCall, b), lanes);
}

void CollectiveCallBuffer::set_c(Value* lanes) {
    store(offsetof(abi::CollectiveCall, c), lanes);
}

void CollectiveCallBuffer::run() {
    Ir& ir = e_.ir();
    auto call = [&] {
        e_.call_service(offsetof(abi::Services, collective), ir.getVoidTy(),
                        {e_.cta_context(), e_.step_index(), buffer_});
    };
    // Lanes that don't take part read results too: give them defined ones.
    store(offsetof(abi::CollectiveCall, result), llvm::Constant::getNullValue(e_.lanes_type(ir.getInt64Ty())));
    store(offsetof(abi::CollectiveCall, predicate), llvm::Constant::getNullValue(e_.lanes_type(ir.getInt32Ty())));
    if (e_.all_active())
        call();
    else
        e_.if_then(e_.any(e_.active()), call);
}

Value* CollectiveCallBuffer::result(llvm::Type* scalar) {
    Value* words = load(offsetof(abi::CollectiveCall, result), e_.ir().getInt64Ty());
    return e_.ir().CreateTrunc(words, e_.lanes_type(scalar));
}

Value* CollectiveCallBuffer::predicate() {
    return load(offsetof(abi::CollectiveCall, predicate), e_.ir().getInt32Ty());
}

} // namespace ptarmigan::translator::lower
