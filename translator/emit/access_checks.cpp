// SPDX-License-Identifier: Apache-2.0
// Asks the runtime in front of each access of global and generic memory whether a kernel may make it
// (CompileOptions::checked_memory). A GPU knows by its own page tables; here the host's memory lies in reach.
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/memory/alignment.h"
#include "translator/emit/graph_emitter.h"
#include "translator/kernel_abi.h"

namespace ptarmigan::translator {
namespace {

/// Loads, stores and atomics; no copies, matrices, textures.
bool is_plain_access(const ptx::Instruction& inst) {
    using enum ptx::StateSpace;
    using ptx::Effects;
    if (inst.space != none && inst.space != generic && inst.space != global) return false;
    if (has_effect(inst, Effects::async) || (has_effect(inst, Effects::load) && has_effect(inst, Effects::store)))
        return false;
    if (!has_effect(inst, Effects::load | Effects::store | Effects::atomic)) return false;
    return ptx::form_info(inst.form).chapter != "matrix" && opcode(inst) != "multimem" &&
           inst[ptx::Role::a].kind == ptx::Operand::Kind::address && access_bytes(inst) != 0;
}

} // namespace

void GraphEmitter::check_accesses(const GraphInstruction& instruction) {
    const ptx::Instruction& inst = instruction.inst;
    if (!unit_.options.checked_memory || instruction.lane_granule != 0 || !is_plain_access(inst)) return;
    const LaneAddress place =
        address(inst[ptx::Role::a], inst.space == ptx::StateSpace::none ? ptx::StateSpace::generic : inst.space);
    if (place.interleaved) return; // local memory
    tell_of_addresses(broadcast(place.address), [&](llvm::Value* addresses) {
        call_service(offsetof(abi::Services, check_access), ir_.getVoidTy(),
                     {cta_context(), step_index(), addresses, active_bits(), ir_.getInt32(access_bytes(inst)),
                      ir_.getInt32(!has_effect(inst, ptx::Effects::load)), ir_.getInt32(inst.location.line)});
    });
}

} // namespace ptarmigan::translator
