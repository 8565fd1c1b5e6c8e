// SPDX-License-Identifier: Apache-2.0
// Tells the runtime what threads are going to write to global memory, in kernels whose copies may be late
// (CompileOptions::late_copies): the async proxy sees that behind a fence only (PTX manual 9.7.9.25.2).
#include "frontend/isa/instruction_form.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/memory/alignment.h"
#include "translator/emit/graph_emitter.h"
#include "translator/kernel_abi.h"

namespace ptarmigan::translator {
namespace {

/// A store, an atomic or a reduction at an address that may be one of global memory. Not of the service of asynchronous
/// copies, which completes at mbarriers.
bool may_write_global(const ptx::Instruction& inst) {
    using enum ptx::StateSpace;
    using ptx::Effects;
    if (!has_effect(inst, Effects::store | Effects::atomic) || has_effect(inst, Effects::load)) return false;
    if (inst.space == shared || inst.space == local || inst.space == param || opcode(inst) == "mbarrier") return false;
    if (opcode(inst) == "multimem") return false; // nothing is at the address itself
    return inst[ptx::Role::a].kind == ptx::Operand::Kind::address && access_bytes(inst) != 0;
}

} // namespace

/// In front of the instruction, so that what was there can still be read.
void GraphEmitter::note_write(const ptx::Instruction& inst) {
    if (!unit_.notes_writes || !may_write_global(inst)) return;
    const auto space = inst.space == ptx::StateSpace::none ? ptx::StateSpace::generic : inst.space;
    const LaneAddress place = address(inst[ptx::Role::a], space);
    if (place.interleaved) return; // local memory
    note_write(broadcast(place.address), access_bytes(inst));
}

void GraphEmitter::note_write(llvm::Value* addresses, unsigned bytes) {
    if (!unit_.notes_writes) return;
    tell_of_addresses(addresses, [&](llvm::Value* slot) {
        call_service(offsetof(abi::Services, note_write), ir_.getVoidTy(),
                     {cta_context(), slot, active_bits(), ir_.getInt32(bytes)});
    });
}

void GraphEmitter::tell_of_addresses(llvm::Value* addresses, const std::function<void(llvm::Value* slot)>& call) {
    llvm::AllocaInst* slot = take_lane_slot(addresses->getType());
    ir_.CreateStore(addresses, slot);
    if (all_active())
        call(slot);
    else
        if_then(any(active()), [&] { call(slot); });
    return_lane_slot(slot);
}

} // namespace ptarmigan::translator
