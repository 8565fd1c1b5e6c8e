// SPDX-License-Identifier: Apache-2.0
// The thread's stack in local memory (manual 9.7.17), as analysis/build/place_stack.cpp leaves it: stacksave gives
// where it starts, alloca gets the stack pointer less the size.
#include "translator/analysis/graph/function_graph.h"
#include "translator/kernel_abi.h"
#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

// The end of the thread's local memory, behind its variables and what CU_LIMIT_STACK_SIZE adds; or that of the
// function's frame.
void stack_save(WarpEmitter& e, const Instruction& inst) {
    Ir& ir = e.ir();
    if (e.stack_goes_up())
        return e.write(inst[Role::d],
                       LaneValue::varying(ir.CreateAdd(e.frame_begin(), e.splat(ir.getInt64(e.frame_bytes())))));
    Value* stride = e.context_field(ir.getInt64Ty(), offsetof(abi::CtaContext, local_stride), "local.stride");
    Value* size = ir.CreateSub(stride, ir.getInt64(FunctionGraph::behind_stack_bytes));
    e.write(inst[Role::d], LaneValue::varying(ir.CreateAdd(e.local_begin(), e.splat(size))));
}

void stack_restore(WarpEmitter& e, const Instruction&) {
    e.unsupported("internal: stackrestore is a move");
}

// A stack that reaches the variables, or the end, is a fault here; the H200 waits for the first access.
void stack_allocate(WarpEmitter& e, const Instruction& inst) {
    Ir& ir = e.ir();
    auto fault_where = [&](Value* outside) {
        Value* lanes = e.to_bits(ir.CreateAnd(ir.CreateFreeze(outside), e.active()));
        e.if_then(
            ir.CreateICmpNE(lanes, ir.getInt64(0)), [&] { e.trap(lanes, std::uint32_t(abi::Fault::stack_overflow)); },
            false);
    };
    if (e.stack_goes_up()) {
        Value* pointer = e.lanes(inst[Role::size]);
        Value* stride = e.context_field(ir.getInt64Ty(), offsetof(abi::CtaContext, local_stride), "local.stride");
        Value* most = ir.CreateSub(stride, ir.getInt64(FunctionGraph::behind_stack_bytes));
        fault_where(ir.CreateICmpUGT(ir.CreateSub(pointer, e.local_begin()), e.splat(most)));
        return e.write(inst[Role::d], LaneValue::varying(pointer));
    }
    const ptx::Operand& alignment = inst[Role::alignment];
    std::uint64_t align = alignment.kind == ptx::Operand::Kind::imm ? std::max<std::uint64_t>(alignment.value, 8) : 8;
    Value* place = ir.CreateAnd(e.lanes(inst[Role::size]), e.splat(ir.getInt64(~(align - 1))));
    Value* lowest = ir.CreateAdd(e.local_begin(), e.splat(ir.getInt64(e.frame_bytes())));
    fault_where(ir.CreateICmpULT(place, lowest));
    e.write(inst[Role::d], LaneValue::varying(place));
}

} // namespace ptarmigan::translator::lower
