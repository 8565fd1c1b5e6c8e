// SPDX-License-Identifier: Apache-2.0
// The bulk forms of the chapter without tensor maps (manual 9.7.9.25.4 and 9.7.9.25.6): cp.async.bulk,
// cp.reduce.async.bulk, st.bulk, groups.
#include "translator/lower/async_call.h"
#include "translator/lower/lane_math.h"
#include "translator/lower/mbarrier_call.h"

namespace ptarmigan::translator::lower {

using abi::AsyncCall;
using abi::AsyncOperation;
using ptx::Operand;
using ptx::StateSpace;

void bulk_load(WarpEmitter& e, const Instruction& inst) {
    AsyncCallBuffer call(e, inst, AsyncOperation::load);
    call.set_target(inst[Role::d], StateSpace::shared);
    call.set_source(inst[Role::a], StateSpace::global);
    call.set_size(inst[Role::size]);
    call.set_barrier(inst[Role::mbar], StateSpace::shared);
    if (inst.has(Word::multicast_cluster)) {
        call.add_flags(AsyncCall::multicast);
        call.set_mask(inst[Role::cta_mask]);
    }
    if (inst.has(Word::ignore_oob)) {
        call.add_flags(AsyncCall::ignores);
        call.set_list(offsetof(AsyncCall, offsets), inst[Role::ignore_left], 1);
        call.set_list(offsetof(AsyncCall, offsets) + sizeof(AsyncCall::offsets[0]), inst[Role::ignore_right], 1);
    }
    call.run();
}

void bulk_store(WarpEmitter& e, const Instruction& inst) {
    AsyncCallBuffer call(e, inst, AsyncOperation::store);
    call.set_target(inst[Role::d], StateSpace::global);
    call.set_source(inst[Role::a], StateSpace::shared);
    call.set_size(inst[Role::size]);
    if (inst.has(Word::cp_mask)) {
        call.add_flags(AsyncCall::masked);
        call.set_mask(inst[Role::byte_mask]);
    }
    if (ptx::form_info(inst.form).opcode == "multimem") call.add_flags(AsyncCall::multimem);
    call.run();
}

void bulk_move(WarpEmitter& e, const Instruction& inst) {
    AsyncCallBuffer call(e, inst, AsyncOperation::move);
    call.set_target(inst[Role::d], StateSpace::shared);
    call.set_source(inst[Role::a], StateSpace::shared);
    call.set_size(inst[Role::size]);
    call.set_barrier(inst[Role::mbar], StateSpace::shared);
    call.run();
}

void bulk_reduce(WarpEmitter& e, const Instruction& inst) {
    const bool to_shared = inst[Role::mbar].kind != Operand::Kind::none;
    AsyncCallBuffer call(e, inst, to_shared ? AsyncOperation::reduce_shared : AsyncOperation::reduce,
                         abi::reduction_detail(bulk_reduction(e, inst), reduction_type(e, inst)));
    call.set_target(inst[Role::d], to_shared ? StateSpace::shared : StateSpace::global);
    call.set_source(inst[Role::a], StateSpace::shared);
    call.set_size(inst[Role::size]);
    if (to_shared) call.set_barrier(inst[Role::mbar], StateSpace::shared);
    if (ptx::form_info(inst.form).opcode == "multimem") call.add_flags(AsyncCall::multimem);
    call.run();
}

void bulk_prefetch(WarpEmitter& e, const Instruction& inst) {
    AsyncCallBuffer call(e, inst, AsyncOperation::prefetch);
    call.set_source(inst[Role::a], StateSpace::global);
    call.run();
}

void bulk_commit(WarpEmitter& e, const Instruction& inst) {
    AsyncCallBuffer(e, inst, AsyncOperation::commit).run();
}

void bulk_wait(WarpEmitter& e, const Instruction& inst) {
    const AsyncOperation operation = inst.has(Word::read) ? AsyncOperation::wait_read : AsyncOperation::wait;
    AsyncCallBuffer(e, inst, operation, std::uint32_t(inst[Role::n].value)).run();
}

void st_bulk(WarpEmitter& e, const Instruction& inst) {
    AsyncCallBuffer call(e, inst, AsyncOperation::clear);
    call.set_target(inst[Role::a], space_in_shared_memory(inst, inst[Role::a]));
    Ir& ir = e.ir();
    call.set_lanes(offsetof(AsyncCall, source),
                   ir.CreateZExtOrTrunc(e.lanes(inst[Role::size]), e.lanes_type(ir.getInt64Ty())));
    call.run();
}

} // namespace ptarmigan::translator::lower
