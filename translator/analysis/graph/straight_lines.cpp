// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/graph/straight_lines.h"

#include "translator/analysis/graph/form_queries.h"

namespace ptarmigan::translator {

using ptx::Effects;
using ptx::FormId;
using ptx::Modifier;
using ptx::Operand;
using ptx::Role;

namespace {

/// Arithmetic that takes a call or a loop where its operand is no constant.
bool is_iterative(const ptx::Instruction& inst) {
    switch (inst.form) {
    case FormId::div_f32:
    case FormId::div_f64:
    case FormId::rsqrt_approx_f64: return true;
    case FormId::rcp_f32:
    case FormId::rcp_f64:
    case FormId::sqrt_f32:
    case FormId::sqrt_f64: return inst[Role::a].kind != Operand::Kind::imm;
    case FormId::div_int:
    case FormId::rem_int: return inst.type() != ptx::ScalarType::u32; // which is done in place, s32 is not
    case FormId::bfind: return ptx::bit_size(inst.type()) == 64;
    case FormId::createpolicy_range: return true;
    default: return false;
    }
}

bool is_gradient_of_volume(const ptx::Instruction& inst) {
    switch (inst.form) {
    case FormId::tex_grad:
    case FormId::tex_grad_f16x2:
    case FormId::tex_grad_sampler:
    case FormId::tex_grad_sampler_f16x2:
        return inst.one_of({Modifier::dim_3d, Modifier::cube, Modifier::acube}) != Modifier::none;
    default: return false;
    }
}

bool orders_or_signals(const ptx::Instruction& inst) {
    switch (inst.form) {
    case FormId::fence: return !inst.has(Modifier::acquire) && !inst.has(Modifier::release);
    case FormId::griddepcontrol: return inst.has(Modifier::launch_dependents);
    case FormId::membar:
    case FormId::pmevent:
    case FormId::pmevent_mask:
    case FormId::setmaxnreg:
    case FormId::trap:
    case FormId::brkpt: return true;
    default: return false;
    }
}

/// Guards of these become branches, those of other arithmetic predicates of the machine's.
bool branches_when_guarded(const ptx::Instruction& inst) {
    constexpr Effects outside = Effects::load | Effects::store | Effects::atomic | Effects::convergent |
                                Effects::barrier | Effects::fence | Effects::async | Effects::may_trap |
                                Effects::waits | Effects::call;
    switch (inst.form) {
    case FormId::stackrestore: return false;
    case FormId::add_cc:
    case FormId::addc_cc:
    case FormId::sub_cc:
    case FormId::subc_cc:
    case FormId::mad_cc:
    case FormId::madc_cc:
    case FormId::lop3_pred: return true; // two results
    default: return has_effect(inst, outside);
    }
}

} // namespace

bool ends_straight_line(const ptx::Instruction& inst) {
    if (is_iterative(inst) || is_gradient_of_volume(inst) || orders_or_signals(inst)) return true;
    return inst.guard != ptx::no_id && branches_when_guarded(inst);
}

bool reads_constant_bank(const ptx::Instruction& inst, bool is_entry) {
    if (inst.form != FormId::ld) return false;
    const Operand& address = inst[Role::a];
    const bool constant_space =
        inst.space == ptx::StateSpace::constant || (inst.space == ptx::StateSpace::param && is_entry);
    return constant_space && address.kind == Operand::Kind::address && address.base == Operand::Base::variable;
}

} // namespace ptarmigan::translator
