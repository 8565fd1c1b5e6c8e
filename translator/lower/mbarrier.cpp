// SPDX-License-Identifier: Apache-2.0
// mbarrier objects (manual 9.7.13.15): every operation is one call of the runtime for all lanes of the step, because
// phases that complete wake steps that wait. `.sem` and `.scope` need no code: the CTAs of a cluster run on one thread
// of the host, and a call orders what is around it.
#include "translator/lower/mbarrier_call.h"
#include "translator/mbarrier_word.h"

#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

using Call = abi::MbarrierCall;
using Operation = abi::MbarrierOperation;

namespace {

void arrive(WarpEmitter& e, const Instruction& inst, Operation operation) {
    const ptx::Operand& state = inst[Role::d];
    const bool wants_state = state.kind == ptx::Operand::Kind::reg;
    std::uint32_t flags = wants_state ? Call::wants_state : 0;
    if (inst.has(Word::expect_tx)) flags |= Call::transactions;
    if (inst.has(Word::noComplete)) flags |= Call::in_turn;
    MbarrierCallBuffer call(e, inst, operation, flags,
                            inst.has(Word::expect_tx) ? inst[Role::tx_count] : inst[Role::count]);
    call.run();
    if (wants_state) e.write(state, call.state());
}

void wait(WarpEmitter& e, const Instruction& inst, Operation operation) {
    const bool parity = inst.has(Word::parity);
    const ptx::Operand& limit = inst[Role::hint];
    std::uint32_t flags = parity ? Call::parity : 0;
    if (limit.kind != ptx::Operand::Kind::none) flags |= Call::limited;
    MbarrierCallBuffer call(e, inst, operation, flags, inst[parity ? Role::parity : Role::count]);
    if (!parity) call.set_state(e.read(inst[Role::state]));
    if (limit.kind != ptx::Operand::Kind::none) call.set_limit(e.read(limit));
    call.run(true);
    e.write(inst[Role::p], call.complete());
}

} // namespace

void mbarrier_init(WarpEmitter& e, const Instruction& inst) {
    MbarrierCallBuffer(e, inst, Operation::init, 0, inst[Role::count]).run();
}

void mbarrier_inval(WarpEmitter& e, const Instruction& inst) {
    MbarrierCallBuffer(e, inst, Operation::inval, 0, inst[Role::count]).run();
}

void mbarrier_expect_tx(WarpEmitter& e, const Instruction& inst) {
    MbarrierCallBuffer(e, inst, Operation::expect_tx, 0, inst[Role::tx_count]).run();
}

void mbarrier_complete_tx(WarpEmitter& e, const Instruction& inst) {
    MbarrierCallBuffer(e, inst, Operation::complete_tx, 0, inst[Role::tx_count]).run();
}

void mbarrier_arrive(WarpEmitter& e, const Instruction& inst) {
    arrive(e, inst, Operation::arrive);
}

void mbarrier_arrive_drop(WarpEmitter& e, const Instruction& inst) {
    arrive(e, inst, Operation::arrive_drop);
}

void cp_async_mbarrier_arrive(WarpEmitter& e, const Instruction& inst) {
    const std::uint32_t flags = inst.has(Word::noinc) ? Call::no_increment : 0;
    MbarrierCallBuffer(e, inst, Operation::copy_arrive, flags, inst[Role::count]).run();
}

void mbarrier_test_wait(WarpEmitter& e, const Instruction& inst) {
    wait(e, inst, Operation::test_wait);
}

void mbarrier_try_wait(WarpEmitter& e, const Instruction& inst) {
    wait(e, inst, Operation::try_wait);
}

void mbarrier_pending_count(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::state}, [](Ir& ir, Values v) {
        Value* field =
            ir.CreateAnd(ir.CreateLShr(v[0], integer(v[0], mbarrier::pending_bit)), integer(v[0], mbarrier::full - 1));
        return resize(ir, ir.CreateSub(integer(field, mbarrier::full), field), 32, false);
    });
}

} // namespace ptarmigan::translator::lower
