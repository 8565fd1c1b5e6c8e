// SPDX-License-Identifier: Apache-2.0
// What the analyses ask of an instruction's row.
#pragma once

#include "frontend/ptx/module.h"

namespace ptarmigan::translator {

inline bool has_effect(const ptx::Instruction& inst, ptx::Effects effects) {
    return ptx::any(ptx::form_info(inst.form).effects, effects);
}
inline std::string_view opcode(const ptx::Instruction& inst) {
    return ptx::form_info(inst.form).opcode;
}

inline bool is_cluster_barrier(const ptx::Instruction& inst) {
    return has_effect(inst, ptx::Effects::barrier) && has_effect(inst, ptx::Effects::waits);
}
/// bar/barrier .sync and .red: all threads wait. Neither arrive nor the cluster's barrier.
inline bool is_cta_barrier(const ptx::Instruction& inst) {
    return has_effect(inst, ptx::Effects::barrier) && !has_effect(inst, ptx::Effects::waits) &&
           !inst.has(ptx::Modifier::arrive);
}
/// Which lanes of the warp are here: nobody is waited for.
inline bool is_query(const ptx::Instruction& inst) {
    return inst.form == ptx::FormId::activemask;
}
inline bool is_call(const ptx::Instruction& inst) {
    return has_effect(inst, ptx::Effects::call);
}
inline bool is_terminator(const ptx::Instruction& inst) {
    return has_effect(inst, ptx::Effects::terminator);
}

/// A load, store or atomic that says how others see it: manual 8.4. Others are weak.
inline bool is_strong(const ptx::Instruction& inst) {
    using enum ptx::Modifier;
    return inst.has(volatile_) || inst.has(relaxed) || inst.has(acquire) || inst.has(release) || inst.has(mmio);
}

/// The operand that names memory of `inst.space`: where a copy writes (its source is of another space), else the
/// address of a load, a store or an atomic.
inline const ptx::Operand& accessed_memory(const ptx::Instruction& inst) {
    const ptx::Operand& destination = inst[ptx::Role::d];
    return destination.kind == ptx::Operand::Kind::address ? destination : inst[ptx::Role::a];
}
/// It reads memory of `inst.space`: not so a copy, whose effects are a load and a store.
inline bool loads_accessed_memory(const ptx::Instruction& inst) {
    return has_effect(inst, ptx::Effects::load) && inst[ptx::Role::d].kind != ptx::Operand::Kind::address;
}

/// Removable when nothing reads its results.
inline bool is_removable(const ptx::Instruction& inst) {
    using enum ptx::Effects;
    return !has_effect(inst, store | atomic | convergent | barrier | fence | async | may_trap | call | waits |
                                 volatile_read | terminator);
}

} // namespace ptarmigan::translator
