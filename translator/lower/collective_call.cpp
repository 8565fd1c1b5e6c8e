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

namespace {

/// For lanes that have come with masks that do not name all of them: a fault, unless they are all of the warp with one
/// mask.
void refuse_others(WarpEmitter& e, const LaneValue& mask) {
    Ir& ir = e.ir();
    Value* wrong = ir.CreateICmpNE(e.active_bits(), e.existing_bits());
    if (!mask.is_uniform()) {
        Value* lanes = e.broadcast(mask);
        Value* first = ir.CreateExtractElement(lanes, e.first_lane(e.active_bits()));
        Value* other = ir.CreateAnd(ir.CreateICmpNE(lanes, e.splat(first)), e.active());
        wrong = ir.CreateOr(wrong, e.any(other));
    }
    e.if_then(
        wrong, [&] { e.trap(e.active_bits(), std::uint32_t(abi::Fault::illegal_instruction)); }, false);
}

} // namespace

LaneValue participants(WarpEmitter& e, const ptx::Instruction& inst) {
    Ir& ir = e.ir();
    Value* active = ir.CreateTrunc(e.active_bits(), ir.getInt32Ty());
    const Operand& operand = inst[Role::membermask];
    if (operand.kind == Operand::Kind::none || e.meets_whole_warp()) return LaneValue::uniform(active);
    const LaneValue mask = e.read(operand);
    if (mask.is_uniform()) {
        Value* others = ir.CreateAnd(active, ir.CreateNot(mask.base));
        e.if_then(
            ir.CreateICmpNE(others, ir.getInt32(0)), [&] { refuse_others(e, mask); }, false);
        return LaneValue::uniform(active);
    }
    Value* lanes = e.broadcast(mask);
    Value* own = ir.CreateShl(e.splat(ir.getInt32(1)), lane_numbers(e));
    Value* unnamed = ir.CreateICmpEQ(ir.CreateAnd(lanes, own), e.splat(ir.getInt32(0)));
    Value* whole = e.if_else(
        e.any(ir.CreateAnd(unnamed, e.active())),
        [&]() -> Value* {
            refuse_others(e, mask);
            return ir.getTrue();
        },
        [&]() -> Value* { return ir.getFalse(); });
    Value* named = ir.CreateOr(lanes, e.splat(ir.CreateSExt(whole, ir.getInt32Ty())));
    return LaneValue::varying(ir.CreateAnd(named, e.splat(active)));
}

CollectiveCallBuffer::CollectiveCallBuffer(WarpEmitter& e, abi::Collective kind, std::uint32_t operation)
    : e_(e), what_(std::uint32_t(kind) | operation << 8), members_(e.ir().getInt32(~0u)), source_(e.ir().getInt64(0)),
      b_(e.ir().getInt32(0)), c_(b_) {
    Ir& ir = e.ir();
    if (!e.fiber_form()) e.unsupported("internal: a collective of a narrow step needs the fiber form");
    const bool by_address = kind == abi::Collective::matrix || kind == abi::Collective::warpgroup;
    if (e.width() == 1 && !by_address && kind != abi::Collective::activemask) return;
    buffer_ = e.take_lane_slot(llvm::ArrayType::get(ir.getInt64Ty(), sizeof(abi::CollectiveCall) / 8));
    auto field = [&](unsigned offset, Value* value) {
        ir.CreateStore(value, ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), buffer_, offset));
    };
    field(offsetof(abi::CollectiveCall, kind), ir.getInt32(std::uint32_t(kind)));
    field(offsetof(abi::CollectiveCall, operation), ir.getInt32(operation));
    field(offsetof(abi::CollectiveCall, active), e.active_bits());
    store(offsetof(abi::CollectiveCall, members), e.splat(members_));
}

CollectiveCallBuffer::~CollectiveCallBuffer() {
    if (buffer_) e_.return_lane_slot(buffer_);
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
    if (mask.kind == Operand::Kind::none || e_.meets_whole_warp()) return;
    if (buffer_)
        store(offsetof(abi::CollectiveCall, members), e_.lanes(mask));
    else
        members_ = e_.only_lane(e_.lanes(mask));
}

void CollectiveCallBuffer::set_source(Value* lanes) {
    if (buffer_)
        store(offsetof(abi::CollectiveCall, source), e_.ir().CreateZExt(lanes, e_.lanes_type(e_.ir().getInt64Ty())));
    else
        source_ = e_.ir().CreateZExt(e_.only_lane(lanes), e_.ir().getInt64Ty());
}

void CollectiveCallBuffer::set_b(Value* lanes) {
    if (buffer_)
        store(offsetof(abi::CollectiveCall, b), lanes);
    else
        b_ = e_.only_lane(lanes);
}

void CollectiveCallBuffer::set_c(Value* lanes) {
    if (buffer_)
        store(offsetof(abi::CollectiveCall, c), lanes);
    else
        c_ = e_.only_lane(lanes);
}

void CollectiveCallBuffer::run() {
    Ir& ir = e_.ir();
    // Where a call returns to tells its line, and who asks activemask at one place: calls of two arms stay two.
    const auto keep_apart = [](Value* made) -> Value* {
        llvm::cast<llvm::CallInst>(made)->addFnAttr(llvm::Attribute::NoMerge);
        return made;
    };
    if (!buffer_) {
        const auto call = [&]() -> Value* {
            Value* upper = ir.CreateShl(ir.CreateZExt(c_, ir.getInt64Ty()), ir.getInt64(32));
            Value* operands = ir.CreateOr(upper, ir.CreateZExt(b_, ir.getInt64Ty()));
            return keep_apart(
                e_.call_service(offsetof(abi::Services, lane_collective), ir.getInt64Ty(),
                                {e_.cta_context(), e_.step_index(), ir.getInt32(what_), members_, source_, operands}));
        };
        answer_ = e_.all_active() ? call()
                                  : e_.if_else(e_.any(e_.active()), call, [&]() -> Value* { return ir.getInt64(0); });
        return;
    }
    auto call = [&] {
        keep_apart(e_.call_service(offsetof(abi::Services, collective), ir.getVoidTy(),
                                   {e_.cta_context(), e_.step_index(), buffer_}));
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
    Ir& ir = e_.ir();
    if (!buffer_) return e_.splat(ir.CreateTrunc(answer_, scalar));
    Value* words = load(offsetof(abi::CollectiveCall, result), ir.getInt64Ty());
    return ir.CreateTrunc(words, e_.lanes_type(scalar));
}

Value* CollectiveCallBuffer::predicate() {
    Ir& ir = e_.ir();
    if (!buffer_) return e_.splat(ir.CreateTrunc(ir.CreateLShr(answer_, ir.getInt64(32)), ir.getInt32Ty()));
    return load(offsetof(abi::CollectiveCall, predicate), ir.getInt32Ty());
}

} // namespace ptarmigan::translator::lower
