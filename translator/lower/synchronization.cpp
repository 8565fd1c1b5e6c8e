// SPDX-License-Identifier: Apache-2.0
// Barriers, fences, and what stops a thread: manual 9.7.13.1 to 9.7.13.4, 9.7.13.13 and 9.7.19. Barriers that the whole
// CTA reaches alike are cut points of the region form, which the emitter handles; what comes here may suspend the step.
#include "translator/kernel_abi.h"
#include "translator/lower/async_call.h"
#include "translator/lower/collective_call.h"
#include "translator/lower/lane_math.h"

#include <optional>

namespace ptarmigan::translator::lower {

namespace {

/// Kinds of Services::barrier.
enum class BarrierKind : std::uint32_t { sync, arrive, popc, all, any, warpgroup };

/// The operand's value in the first active lane; barrier numbers and counts are the same in all of them.
Value* common(WarpEmitter& e, const ptx::Operand& operand, std::uint32_t fallback) {
    Ir& ir = e.ir();
    if (operand.kind == ptx::Operand::Kind::none) return ir.getInt32(fallback);
    LaneValue value = e.read(operand);
    if (value.is_uniform()) return value.base;
    return ir.CreateExtractElement(e.broadcast(value), e.first_lane(e.active_bits()));
}

/// Calls `body` if any lane is active.
void when_active(WarpEmitter& e, const std::function<void()>& body) {
    if (e.all_active())
        body();
    else
        e.if_then(e.any(e.active()), body);
}

/// Waits or arrives at a CTA barrier; returns the reduction.
Value* barrier(WarpEmitter& e, const Instruction& inst, BarrierKind kind, Value* predicate) {
    Ir& ir = e.ir();
    if (!e.fiber_form()) e.unsupported("internal: this barrier needs the fiber form");
    Value* id = common(e, inst[Role::a], 0);
    Value* threads = common(e, inst[Role::b], 0);
    Value* arriving = e.active_bits();
    auto call = [&]() -> Value* {
        Value* result = e.call_service(offsetof(abi::Services, barrier), ir.getInt32Ty(),
                                       {e.cta_context(), e.step_index(), id, threads, ir.getInt32(std::uint32_t(kind)),
                                        arriving, predicate ? predicate : ir.getInt64(0)});
        llvm::cast<llvm::CallInst>(result)->addFnAttr(
            llvm::Attribute::NoMerge); // each has its line, for reports of hangs
        return result;
    };
    if (e.all_active()) return call();
    return e.if_else(e.any(e.active()), call, [&]() -> Value* { return ir.getInt32(0); });
}

/// Orders the memory accesses of the lanes; their own order is the program's.
void warp_fence(WarpEmitter& e) {
    e.ir().CreateFence(llvm::AtomicOrdering::SequentiallyConsistent, llvm::SyncScope::SingleThread);
}

} // namespace

void bar_sync(WarpEmitter& e, const Instruction& inst) {
    barrier(e, inst, BarrierKind::sync, nullptr);
}

void warpgroup_barrier(WarpEmitter& e, const Instruction& inst) {
    barrier(e, inst, BarrierKind::warpgroup, nullptr);
}

void bar_arrive(WarpEmitter& e, const Instruction& inst) {
    barrier(e, inst, BarrierKind::arrive, nullptr);
}

void bar_red(WarpEmitter& e, const Instruction& inst) {
    Ir& ir = e.ir();
    Value* holds = e.to_bits(ir.CreateAnd(e.lanes(inst[Role::c]), e.active()));
    if (inst.has(Word::popc)) {
        e.write(inst[Role::d], LaneValue::uniform(barrier(e, inst, BarrierKind::popc, holds)));
        return;
    }
    BarrierKind kind = inst.has(Word::and_) ? BarrierKind::all : BarrierKind::any;
    Value* result = barrier(e, inst, kind, holds);
    e.write(inst[Role::p], LaneValue::uniform(ir.CreateICmpNE(result, ir.getInt32(0))));
}

namespace {

/// barrier.cluster: who has arrived is counted by the runtime. Its orderings need no code: the cluster's CTAs run on
/// one thread of the host, and a call orders what is around it.
void cluster_barrier(WarpEmitter& e, bool wait) {
    Ir& ir = e.ir();
    if (!e.fiber_form()) e.unsupported("internal: a cluster's barrier needs the fiber form");
    when_active(e, [&] {
        e.call_service(offsetof(abi::Services, cluster_barrier), ir.getVoidTy(),
                       {e.cta_context(), e.step_index(), ir.getInt32(wait), e.active_bits(), e.live_bits()});
    });
}

} // namespace

void barrier_cluster_arrive(WarpEmitter& e, const Instruction&) {
    cluster_barrier(e, false);
}

void barrier_cluster_wait(WarpEmitter& e, const Instruction&) {
    cluster_barrier(e, true);
}

/// The lanes of a step run in lockstep: only other steps of the warp have to be waited for.
void bar_warp_sync(WarpEmitter& e, const Instruction& inst) {
    if (whole_warp(e)) {
        participants(e, inst); // refuses lanes that the mask does not name
        warp_fence(e);
        return;
    }
    CollectiveCallBuffer call(e, abi::Collective::bar_warp, 0);
    call.set_members(inst);
    call.run();
}

namespace {

/// The orderings of a fence. Scopes are ignored: a wider fence is right.
void order_memory(WarpEmitter& e, const Instruction& inst) {
    bool is_membar = ptx::form_info(inst.form).opcode == "membar";
    llvm::AtomicOrdering order = llvm::AtomicOrdering::AcquireRelease;
    if (is_membar || inst.has(Word::sc)) order = llvm::AtomicOrdering::SequentiallyConsistent;
    if (inst.has(Word::cta) && inst.one_of({Word::sc}) == Word::none && !is_membar) {
        warp_fence(e); // a CTA runs on one thread of the host at a time
        return;
    }
    e.ir().CreateFence(order);
}

} // namespace

namespace {

/// What fence.proxy.async orders accesses to; nothing if that doesn't matter here. Global memory only where threads'
/// writes are noted.
std::optional<abi::FencedMemory> fenced_memory(WarpEmitter& e, const Instruction& inst) {
    using abi::FencedMemory;
    if (!inst.has(Word::proxy) || inst.one_of({Word::async, Word::async_generic}) == Word::none) return std::nullopt;
    const bool notes = e.options().late_copies;
    if (inst.space == ptx::StateSpace::global) return notes ? std::optional(FencedMemory::global) : std::nullopt;
    if (inst.has(Word::shared_cta) || inst.has(Word::sync_restrict_shared_cta)) return FencedMemory::shared_of_cta;
    const bool is_whole = inst.has(Word::async) && inst.space != ptx::StateSpace::shared;
    return is_whole && notes ? FencedMemory::all : FencedMemory::shared_of_cluster;
}

} // namespace

/// membar and fence. Proxies are other ways to the same memory here, but for copies that are put off: they see memory
/// as it was at a proxy fence, which orders accesses to the state space that it names.
void fence(WarpEmitter& e, const Instruction& inst) {
    if (const std::optional<abi::FencedMemory> memory = fenced_memory(e, inst))
        e.if_then(
            copies_are_deferred(e),
            [&] { AsyncCallBuffer(e, inst, abi::AsyncOperation::proxy_fence, std::uint32_t(*memory)).run(); }, false);
    order_memory(e, inst);
}

/// 9.7.13.4: what threads write to tensor maps is there for copies once it has been released and, by the copies' own
/// CTA, acquired.
void fence_proxy_tensormap(WarpEmitter& e, const Instruction& inst) {
    const bool acquires = inst.form == ptx::FormId::fence_proxy_tensormap_acquire;
    e.if_then(
        copies_are_deferred(e),
        [&] {
            using Operation = abi::AsyncOperation;
            AsyncCallBuffer call(e, inst, acquires ? Operation::map_acquire : Operation::map_release);
            if (acquires) call.set_target(inst[Role::a], ptx::StateSpace::generic);
            call.run();
        },
        false);
    order_memory(e, inst);
}

/// Grids of one stream run one after the other, so dependencies are always met.
void griddepcontrol(WarpEmitter& e, const Instruction&) {
    warp_fence(e);
}

/// Lets others run for at least the longest time asked.
void nanosleep(WarpEmitter& e, const Instruction& inst) {
    Ir& ir = e.ir();
    LaneValue time = e.read(inst[Role::a]);
    Value* nanoseconds = time.base;
    if (!time.is_uniform()) {
        Value* lanes = e.broadcast(time);
        nanoseconds = ir.CreateIntMaxReduce(ir.CreateSelect(e.active(), lanes, integer(lanes, 0)), false);
    }
    when_active(e, [&] {
        e.call_service(offsetof(abi::Services, yield), ir.getVoidTy(),
                       {e.cta_context(), e.step_index(), e.active_bits(), ir.CreateZExt(nanoseconds, ir.getInt64Ty())});
    });
}

void trap(WarpEmitter& e, const Instruction&) {
    when_active(e, [&] { e.trap(e.active_bits(), std::uint32_t(abi::Fault::trap)); });
}

/// Without a debugger a breakpoint ends the grid, as a trap does.
void brkpt(WarpEmitter& e, const Instruction& inst) {
    trap(e, inst);
}

} // namespace ptarmigan::translator::lower
