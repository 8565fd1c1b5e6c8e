// SPDX-License-Identifier: Apache-2.0
// cp.async (manual 9.7.9.25.3): the copy is done when it is started, which is one of the moments the manual allows.
// Groups then have nothing to wait for. Launches that want other moments (PTARMIGAN_ASYNC) call the service instead.
#include "translator/lower/access_mark.h"
#include "translator/lower/async_call.h"
#include "translator/lower/lane_access.h"
#include "translator/lower/lane_array.h"
#include "translator/lower/lane_math.h"
#include "translator/lower/memory_access.h"

namespace ptarmigan::translator::lower {

using ptx::StateSpace;

namespace {

/// A side of the copy as 32-bit words.
MemoryAccess side(WarpEmitter& e, const ptx::Operand& operand, StateSpace space, unsigned bytes) {
    MemoryAccess access;
    access.address = e.address(operand, space);
    access.address.space = space;
    access.element = e.ir().getInt32Ty();
    access.bytes = 4;
    access.count = bytes / 4;
    return access;
}

/// Bytes that each lane reads, <W x i32>: `src-size`, or with a predicate none where it is true.
Value* source_sizes(WarpEmitter& e, const ptx::Operand& operand, unsigned bytes) {
    Ir& ir = e.ir();
    Value* full = e.splat(ir.getInt32(bytes));
    Value* value = e.lanes(operand);
    if (operand.type == ScalarType::pred)
        return ir.CreateSelect(value, llvm::Constant::getNullValue(full->getType()), full);
    return ir.CreateZExtOrTrunc(value, full->getType());
}

/// Lane by lane, in a loop.
void copy_in_loop(WarpEmitter& e, const MemoryAccess& to, const MemoryAccess& from, unsigned bytes) {
    Ir& ir = e.ir();
    LaneArray targets(e, e.broadcast(to.address.address)), sources(e, e.broadcast(from.address.address));
    llvm::Type* type = bytes <= 8 ? static_cast<llvm::Type*>(ir.getIntNTy(8 * bytes))
                                  : llvm::FixedVectorType::get(ir.getInt64Ty(), bytes / 8);
    e.for_each_lane(e.active_bits(), [&](Value* lane) {
        const AccessMark mark(e, note_lane(e, lane));
        llvm::LoadInst* data = ir.CreateAlignedLoad(type, pointer(e, sources.get(lane)), llvm::Align(bytes));
        tag_space(e, data, from.address.space);
        tag_space(e, ir.CreateAlignedStore(data, pointer(e, targets.get(lane)), llvm::Align(bytes)), to.address.space);
    });
}

/// Lane by lane: bytes at and behind the lane's size are zero and the source behind it is not touched.
void copy_padded(WarpEmitter& e, const MemoryAccess& to, const MemoryAccess& from, Value* sizes, unsigned bytes) {
    Ir& ir = e.ir();
    LaneArray targets(e, e.broadcast(to.address.address)), sources(e, e.broadcast(from.address.address));
    LaneArray size_array(e, sizes);
    auto* type = llvm::FixedVectorType::get(ir.getInt8Ty(), bytes);
    llvm::SmallVector<llvm::Constant*, 16> numbers;
    for (unsigned i = 0; i < bytes; ++i) numbers.push_back(ir.getInt32(i));
    e.for_each_lane(e.active_bits(), [&](Value* lane) {
        const AccessMark mark(e, note_lane(e, lane));
        Value* size = ir.CreateVectorSplat(bytes, size_array.get(lane));
        Value* wanted = ir.CreateICmpULT(llvm::ConstantVector::get(numbers), size);
        llvm::CallInst* data = ir.CreateMaskedLoad(type, pointer(e, sources.get(lane)), llvm::Align(1), wanted,
                                                   llvm::Constant::getNullValue(type));
        tag_space(e, data, from.address.space);
        tag_space(e, ir.CreateAlignedStore(data, pointer(e, targets.get(lane)), llvm::Align(bytes)), to.address.space);
    });
}

/// Lanes whose source is larger than the copy: a misaligned address for the H200, unless the low bits make it none of
/// these sizes.
void check_sizes(WarpEmitter& e, Value* sizes, unsigned bytes) {
    Ir& ir = e.ir();
    Value* low = ir.CreateAnd(sizes, e.splat(ir.getInt32(2 * bytes - 1)));
    Value* wrong = ir.CreateAnd(e.active(), ir.CreateICmpUGT(low, e.splat(ir.getInt32(bytes))));
    e.if_then(
        e.any(wrong), [&] { e.trap(e.to_bits(wrong), std::uint32_t(abi::Fault::misaligned_address)); }, false);
}

} // namespace

void cp_async(WarpEmitter& e, const Instruction& inst) {
    const std::uint64_t size = inst[Role::size].value;
    const bool known = size == 16 || (inst.has(Word::ca) && (size == 4 || size == 8));
    if (!known) e.unsupported("a copy of " + std::to_string(size) + " bytes");
    const auto bytes = static_cast<unsigned>(size);
    const ptx::Operand& source_size = inst[Role::src_size];
    const bool padded = source_size.kind != ptx::Operand::Kind::none;
    Value* sizes = padded ? source_sizes(e, source_size, bytes) : nullptr;
    if (padded) check_sizes(e, sizes, bytes);
    Value* deferred = copies_are_deferred(e);
    e.if_then(
        deferred,
        [&] {
            AsyncCallBuffer call(e, inst, abi::AsyncOperation::copy, bytes);
            call.set_target(inst[Role::d], StateSpace::shared);
            call.set_source(inst[Role::a], StateSpace::global);
            call.set_lanes(offsetof(abi::AsyncCall, size), padded ? sizes : e.splat(e.ir().getInt32(bytes)));
            call.run();
        },
        false);
    e.if_then(e.ir().CreateNot(deferred), [&] {
        const MemoryAccess to = side(e, inst[Role::d], StateSpace::shared, bytes);
        const MemoryAccess from = side(e, inst[Role::a], StateSpace::global, bytes);
        if (padded)
            copy_padded(e, to, from, sizes, bytes);
        else if (goes_in_loops(e))
            copy_in_loop(e, to, from, bytes);
        else
            store_lanes(e, to, load_lanes(e, from));
    });
}

void cp_async_commit_group(WarpEmitter& e, const Instruction& inst) {
    e.if_then(
        copies_are_deferred(e), [&] { AsyncCallBuffer(e, inst, abi::AsyncOperation::copy_commit).run(); }, false);
}

void cp_async_wait_group(WarpEmitter& e, const Instruction& inst) {
    const bool all = inst.form == ptx::FormId::cp_async_wait_all;
    e.if_then(
        copies_are_deferred(e),
        [&] {
            AsyncCallBuffer(e, inst, all ? abi::AsyncOperation::copy_wait_all : abi::AsyncOperation::copy_wait,
                            all ? 0 : std::uint32_t(inst[Role::n].value))
                .run();
        },
        false);
}

} // namespace ptarmigan::translator::lower
