// SPDX-License-Identifier: Apache-2.0
// The thread's stack in local memory (manual 9.7.17), as analysis/place_stack.cpp leaves it: stacksave gives where it starts,
// alloca gets the stack pointer less the size.
#include "translator/analysis/function_graph.h"
#include "translator/kernel_abi.h"
#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

namespace {

/// <W x i64>: where the lanes' local memory begins.
Value* local_begin(WarpEmitter& e) {
    Ir& ir = e.ir();
    Value* local = e.context_field(ir.getInt64Ty(), offsetof(abi::CtaContext, local), "local");
    Value* stride = e.context_field(ir.getInt64Ty(), offsetof(abi::CtaContext, local_stride), "local.stride");
    llvm::SmallVector<llvm::Constant*, 32> lanes;
    for (unsigned lane = 0; lane < e.width(); ++lane) lanes.push_back(ir.getInt64(lane));
    Value* thread = ir.CreateAdd(e.splat(ir.CreateZExt(e.first_thread(), ir.getInt64Ty())), llvm::ConstantVector::get(lanes));
    return ir.CreateAdd(e.splat(local), ir.CreateMul(thread, e.splat(stride)));
}

} // namespace

// The end of the thread's local memory, behind its variables and what CU_LIMIT_STACK_SIZE adds.
void stack_save(WarpEmitter& e, const Instruction& inst) {
    Ir& ir = e.ir();
    Value* stride = e.context_field(ir.getInt64Ty(), offsetof(abi::CtaContext, local_stride), "local.stride");
    Value* size = ir.CreateSub(stride, ir.getInt64(FunctionGraph::behind_stack_bytes));
    e.write(inst[Role::d], LaneValue::varying(ir.CreateAdd(local_begin(e), e.splat(size))));
}

void stack_restore(WarpEmitter& e, const Instruction&) { e.unsupported("internal: stackrestore is a move"); }

// A stack that reaches the variables is a fault here; the H200 waits for the first access.
void stack_allocate(WarpEmitter& e, const Instruction& inst) {
    Ir& ir = e.ir();
    const ptx::Operand& alignment = inst[Role::alignment];
    std::uint64_t align = alignment.kind == ptx::Operand::Kind::imm ? std::max<std::uint64_t>(alignment.value, 8) : 8;
    Value* place = ir.CreateAnd(e.lanes(inst[Role::size]), e.splat(ir.getInt64(~(align - 1))));
    Value* lowest = ir.CreateAdd(local_begin(e), e.splat(ir.getInt64(e.frame_bytes())));
    Value* below = ir.CreateAnd(ir.CreateFreeze(ir.CreateICmpULT(place, lowest)), e.active());
    Value* lanes = e.to_bits(below);
    e.if_then(ir.CreateICmpNE(lanes, ir.getInt64(0)), [&] { e.trap(lanes, std::uint32_t(abi::Fault::stack_overflow)); }, false);
    e.write(inst[Role::d], LaneValue::varying(place));
}

} // namespace ptarmigan::translator::lower
