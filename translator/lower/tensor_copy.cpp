// SPDX-License-Identifier: Apache-2.0
// The bulk forms of the chapter that go through tensor maps (manual 9.7.9.25.5, 9.7.9.28 and 9.7.13.16).
#include "translator/lower/async_call.h"
#include "translator/lower/collective_call.h"
#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

using abi::AsyncCall;
using abi::AsyncOperation;
using abi::TensorMapField;
using abi::TensorMode;
using ptx::Operand;
using ptx::StateSpace;

namespace {

TensorMode mode_of(const Instruction& inst) {
    if (inst.has(Word::im2col) || inst.has(Word::im2col_no_offs)) return TensorMode::im2col;
    if (inst.has(Word::im2col_w)) return TensorMode::im2col_w;
    if (inst.has(Word::im2col_w_128)) return TensorMode::im2col_w_128;
    return inst.has(Word::tile_gather4) || inst.has(Word::tile_scatter4) ? TensorMode::four_rows : TensorMode::tile;
}

unsigned rank_of(WarpEmitter& e, const Instruction& inst) {
    switch (inst.one_of({Word::dim_1d, Word::dim_2d, Word::dim_3d, Word::dim_4d, Word::dim_5d})) {
    case Word::dim_1d: return 1;
    case Word::dim_2d: return 2;
    case Word::dim_3d: return 3;
    case Word::dim_4d: return 4;
    case Word::dim_5d: return 5;
    default: e.unsupported("internal: a tensor form without dimensions");
    }
}

std::uint32_t detail_of(WarpEmitter& e, const Instruction& inst, abi::BulkReduction reduction = {}) {
    return abi::tensor_detail(mode_of(inst), rank_of(e, inst), reduction);
}

void set_place(AsyncCallBuffer& call, const Instruction& inst) {
    call.set_list(offsetof(AsyncCall, coordinates), inst[Role::c], 5);
    if (inst[Role::offsets].kind != Operand::Kind::none)
        call.set_list(offsetof(AsyncCall, offsets), inst[Role::offsets], 3);
}

} // namespace

void tensor_load(WarpEmitter& e, const Instruction& inst) {
    AsyncCallBuffer call(e, inst, AsyncOperation::tensor_load, detail_of(e, inst));
    call.set_target(inst[Role::d], StateSpace::shared);
    call.set_source(inst[Role::a], StateSpace::generic);
    call.set_barrier(inst[Role::mbar], StateSpace::shared);
    set_place(call, inst);
    if (inst.has(Word::multicast_cluster)) {
        call.add_flags(AsyncCall::multicast);
        call.set_mask(inst[Role::cta_mask]);
    }
    if (inst.has(Word::cta_group_2)) call.add_flags(AsyncCall::pair_barrier);
    call.run();
}

void tensor_store(WarpEmitter& e, const Instruction& inst) {
    AsyncCallBuffer call(e, inst, AsyncOperation::tensor_store, detail_of(e, inst));
    call.set_target(inst[Role::d], StateSpace::generic);
    call.set_source(inst[Role::a], StateSpace::shared);
    set_place(call, inst);
    call.run();
}

void tensor_reduce(WarpEmitter& e, const Instruction& inst) {
    AsyncCallBuffer call(e, inst, AsyncOperation::tensor_reduce, detail_of(e, inst, bulk_reduction(e, inst)));
    call.set_target(inst[Role::d], StateSpace::generic);
    call.set_source(inst[Role::a], StateSpace::shared);
    set_place(call, inst);
    call.run();
}

void tensor_prefetch(WarpEmitter& e, const Instruction& inst) {
    AsyncCallBuffer call(e, inst, AsyncOperation::tensor_prefetch, detail_of(e, inst));
    call.set_source(inst[Role::a], StateSpace::generic);
    set_place(call, inst);
    call.run();
}

void prefetch_tensormap(WarpEmitter& e, const Instruction& inst) {
    AsyncCallBuffer call(e, inst, AsyncOperation::prefetch_map);
    call.set_source(inst[Role::a], inst.space == StateSpace::none ? StateSpace::generic : inst.space);
    call.run();
}

void tensormap_replace(WarpEmitter& e, const Instruction& inst) {
    using Field = TensorMapField;
    Field field = Field::global_address;
    switch (inst.one_of({Word::global_address, Word::rank, Word::box_dim, Word::global_dim, Word::global_stride,
                         Word::element_stride, Word::elemtype, Word::interleave_layout, Word::swizzle_mode,
                         Word::swizzle_atomicity, Word::fill_mode})) {
    case Word::global_address: field = Field::global_address; break;
    case Word::rank: field = Field::rank; break;
    case Word::box_dim: field = Field::box_dim; break;
    case Word::global_dim: field = Field::global_dim; break;
    case Word::global_stride: field = Field::global_stride; break;
    case Word::element_stride: field = Field::element_stride; break;
    case Word::elemtype: field = Field::elemtype; break;
    case Word::interleave_layout: field = Field::interleave_layout; break;
    case Word::swizzle_mode: field = Field::swizzle_mode; break;
    case Word::swizzle_atomicity: field = Field::swizzle_atomicity; break;
    case Word::fill_mode: field = Field::fill_mode; break;
    default: e.unsupported("internal: a field that tensor maps don't have");
    }
    AsyncCallBuffer call(e, inst, AsyncOperation::replace, std::uint32_t(field));
    call.set_target(inst[Role::d], inst.space == StateSpace::none ? StateSpace::generic : inst.space);
    Ir& ir = e.ir();
    call.set_lanes(offsetof(AsyncCall, source),
                   ir.CreateZExtOrTrunc(e.lanes(inst[Role::a]), e.lanes_type(ir.getInt64Ty())));
    if (inst[Role::n].kind != Operand::Kind::none) call.set_size(inst[Role::n]);
    call.run();
}

/// The copy, then a fence: whoever acquires afterwards sees the map. One of the step's lanes copies for all, and all
/// steps of the warp have copied before any goes on.
void tensormap_cp_fenceproxy(WarpEmitter& e, const Instruction& inst) {
    meet_in_warp(e);
    AsyncCallBuffer call(e, inst, AsyncOperation::copy_map);
    call.set_target(inst[Role::d], StateSpace::global);
    call.set_source(inst[Role::a], StateSpace::shared);
    call.run();
    e.ir().CreateFence(llvm::AtomicOrdering::Release);
    meet_in_warp(e);
}

} // namespace ptarmigan::translator::lower
