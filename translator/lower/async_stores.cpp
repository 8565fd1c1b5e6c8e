// SPDX-License-Identifier: Apache-2.0
// st.async and red.async (manual 9.7.9.12, 9.7.13.7), and launch control of clusters
// (9.7.13.17, 9.7.13.18).
#include "translator/lower/async_call.h"
#include "translator/lower/lane_array.h"
#include "translator/lower/lane_math.h"
#include "translator/lower/mbarrier_call.h"

namespace ptarmigan::translator::lower {

using ptx::Operand;

namespace {

/// The runtime writes the value and tells the mbarrier object, now or later.
void put(WarpEmitter& e, const Instruction& inst, abi::AsyncOperation operation, std::uint32_t detail) {
    const Operand& b = inst[Role::b];
    const unsigned elements = inst.vector_size;
    AsyncCallBuffer call(e, inst, operation, detail);
    call.set_target(inst[Role::a], space_in_shared_memory(inst, inst[Role::a]));
    call.set_barrier(inst[Role::mbar], space_in_shared_memory(inst, inst[Role::mbar]));
    call.set_value(b, elements);
    call.set_lanes(offsetof(abi::AsyncCall, size), e.splat(e.ir().getInt32(ptx::bit_size(inst.type()) / 8 * elements)));
    call.run();
}

} // namespace

void st_async(WarpEmitter& e, const Instruction& inst) {
    put(e, inst, abi::AsyncOperation::store_value, 0);
}

void red_async(WarpEmitter& e, const Instruction& inst) {
    const bool signed_sum = inst.has(Word::add) && inst.type() == ScalarType::s64; // the copy engine adds u64 only
    const abi::TensorType type = signed_sum ? abi::TensorType::u64 : reduction_type(e, inst);
    put(e, inst, abi::AsyncOperation::reduce_value, abi::reduction_detail(bulk_reduction(e, inst), type));
}

/// A cluster that has not started is one that nobody has drawn: the runtime draws it.
void clusterlaunchcontrol_try_cancel(WarpEmitter& e, const Instruction& inst) {
    Ir& ir = e.ir();
    auto address = [&](const Operand& operand) {
        return e.address(operand, space_in_shared_memory(inst, operand)).address;
    };
    LaneArray responses(e, e.broadcast(address(inst[Role::d])));
    LaneArray objects(e, e.broadcast(address(inst[Role::mbar])));
    e.for_each_lane(e.active_bits(), [&](Value* lane) {
        e.call_service(offsetof(abi::Services, cancel_launch), ir.getVoidTy(),
                       {e.cta_context(), e.step_index(), responses.get(lane), objects.get(lane),
                        ir.getInt32(inst.has(Word::multicast_cluster_all)), ir.getInt32(inst.location.line)});
    });
}

/// The response is what Services::cancel_launch writes: ctaid in three words, then whether there is
/// one.
void clusterlaunchcontrol_is_canceled(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a}, [](Ir& ir, Values v) {
        Value* canceled = ir.CreateLShr(v[0], integer(v[0], 96));
        return ir.CreateICmpNE(canceled, integer(canceled, 0));
    });
}

void clusterlaunchcontrol_first_ctaid(WarpEmitter& e, const Instruction& inst) {
    const LaneValue response = e.read(inst[Role::a]);
    auto word = [&](unsigned index) {
        return e.apply({response}, [&](Ir& ir, Values v) {
            return resize(ir, ir.CreateLShr(v[0], integer(v[0], index * 32)), 32, false);
        });
    };
    const Operand& d = inst[Role::d];
    if (d.kind == Operand::Kind::vector) {
        for (unsigned i = 0; i < d.count; ++i)
            if (e.element(d, i).kind != Operand::Kind::sink) e.write(e.element(d, i), word(i));
        return;
    }
    e.write(d, word(inst.has(Word::get_first_ctaid_x) ? 0 : inst.has(Word::get_first_ctaid_y) ? 1 : 2));
}

} // namespace ptarmigan::translator::lower
