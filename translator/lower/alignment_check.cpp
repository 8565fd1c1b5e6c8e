// SPDX-License-Identifier: Apache-2.0
// The common path is one test of low bits, of all lanes whether active or not, and a branch that is never taken; the
// exact question is asked behind it. Of one lane in code that is made quickly it is asked at once: fewer instructions.
#include "translator/lower/alignment_check.h"

#include "translator/kernel_abi.h"

#include <llvm/IR/MDBuilder.h>

#include <algorithm>

namespace ptarmigan::translator::lower {

using llvm::Value;

namespace {

/// i1: the addresses together have low bits. Folded to four lanes, because LLVM makes one `vptest` of that: tests into
/// mask registers between gathers cost Zen 4 5 ns each.
Value* some_lane_has_low_bits(WarpEmitter& e, Value* addresses, unsigned bytes) {
    Ir& ir = e.ir();
    unsigned lanes = e.width();
    while (lanes > 4) {
        lanes /= 2;
        llvm::SmallVector<int, 32> low, high;
        for (unsigned i = 0; i < lanes; ++i) {
            low.push_back(int(i));
            high.push_back(int(lanes + i));
        }
        addresses = ir.CreateOr(ir.CreateShuffleVector(addresses, low), ir.CreateShuffleVector(addresses, high));
    }
    Value* bits = ir.CreateAnd(addresses, ir.CreateVectorSplat(lanes, ir.getInt64(bytes - 1)));
    llvm::Type* whole = ir.getIntNTy(lanes * 64);
    return ir.CreateICmpNE(ir.CreateBitCast(bits, whole), llvm::ConstantInt::get(whole, 0));
}

/// i1: some lane's address may be misaligned.
Value* is_suspicious(WarpEmitter& e, const LaneValue& address, unsigned bytes) {
    Ir& ir = e.ir();
    if (address.shape.is_varying()) return some_lane_has_low_bits(e, address.base, bytes);
    Value* bits = address.base;
    if (address.is_affine()) {
        const LaneOffsets& offsets = *address.shape.offsets;
        // A guard's correction is a multiple of 2^32, so it changes nothing.
        if (std::any_of(offsets.begin(), offsets.end(), [&](std::int64_t o) { return o % std::int64_t(bytes) != 0; }))
            return some_lane_has_low_bits(e, e.broadcast(address), bytes);
        if (address.stride) bits = ir.CreateOr(bits, address.stride);
    }
    return ir.CreateICmpNE(ir.CreateAnd(bits, ir.getInt64(bytes - 1)), ir.getInt64(0));
}

} // namespace

void check_alignment(WarpEmitter& e, const LaneAddress& address, unsigned bytes, bool is_write, Value* counted) {
    Ir& ir = e.ir();
    Value* suspicious = is_suspicious(e, address.address, bytes);
    if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(suspicious); constant && constant->isZero()) return;
    const bool at_once = e.width() == 1 && e.options().optimization == Optimization::least;
    llvm::BasicBlock* fault = e.new_block("alignment.fault");
    llvm::BasicBlock* aligned = e.new_block("aligned");
    llvm::MDNode* rarely = llvm::MDBuilder(e.context()).createBranchWeights(1, 1u << 20);
    if (!at_once) {
        llvm::BasicBlock* look = e.new_block("alignment.look");
        // Lanes that don't execute may hold undefined addresses.
        ir.CreateCondBr(ir.CreateFreeze(suspicious), look, aligned, rarely);
        ir.SetInsertPoint(look);
    }
    Value* addresses = e.broadcast(address.address);
    Value* low = ir.CreateAnd(addresses, e.splat(ir.getInt64(bytes - 1)));
    Value* misaligned = ir.CreateICmpNE(low, llvm::Constant::getNullValue(low->getType()));
    if (counted) misaligned = ir.CreateAnd(misaligned, counted);
    if (!e.all_active())
        misaligned = ir.CreateSelect(e.active(), misaligned, llvm::Constant::getNullValue(misaligned->getType()));
    Value* lanes = ir.CreateFreeze(e.to_bits(misaligned));
    ir.CreateCondBr(ir.CreateICmpNE(lanes, ir.getInt64(0)), fault, aligned, at_once ? rarely : nullptr);

    ir.SetInsertPoint(fault);
    Value* first = ir.CreateExtractElement(addresses, e.first_lane(lanes));
    e.call_service(
        offsetof(abi::Services, misaligned), ir.getVoidTy(),
        {e.cta_context(), e.step_index(), lanes, first, ir.getInt32(is_write), ir.getInt32(e.current().location.line)});
    ir.CreateUnreachable();
    ir.SetInsertPoint(aligned);
}

} // namespace ptarmigan::translator::lower
