// SPDX-License-Identifier: Apache-2.0
#include "frontend/ptx/matrix_form.h"

#include "frontend/isa/matrix_shape.h"

#include <span>

namespace ptarmigan::ptx {
namespace {

std::span<const Modifier> words_of(const Instruction& inst) {
    return {inst.modifiers.data(), inst.modifier_count};
}

MatrixType from_scalar(ScalarType type) {
    switch (type) {
    case ScalarType::f16: return MatrixType::f16;
    case ScalarType::bf16: return MatrixType::bf16;
    case ScalarType::tf32: return MatrixType::tf32;
    case ScalarType::e4m3: return MatrixType::e4m3;
    case ScalarType::e5m2: return MatrixType::e5m2;
    case ScalarType::e3m2: return MatrixType::e3m2;
    case ScalarType::e2m3: return MatrixType::e2m3;
    case ScalarType::e2m1: return MatrixType::e2m1_in_byte;
    case ScalarType::f64: return MatrixType::f64;
    case ScalarType::s32: return MatrixType::s32;
    case ScalarType::s8: return MatrixType::s8;
    case ScalarType::u8: return MatrixType::u8;
    default: return MatrixType::f32;
    }
}

MatrixKind kind_of(const Instruction& inst) {
    switch (
        inst.one_of({Modifier::kind_f8f6f4, Modifier::kind_mxf8f6f4, Modifier::kind_mxf4, Modifier::kind_mxf4nvf4})) {
    case Modifier::kind_f8f6f4: return MatrixKind::mixed;
    case Modifier::kind_mxf8f6f4: return MatrixKind::scaled_mixed;
    case Modifier::kind_mxf4:
    case Modifier::kind_mxf4nvf4: return MatrixKind::scaled_e2m1;
    default: return MatrixKind::plain;
    }
}

/// Types of less than a byte are words of the rows, as many as stand there: `types` gets them in order.
unsigned small_types(const Instruction& inst, MatrixType (&types)[2]) {
    unsigned count = 0;
    for (Modifier word : words_of(inst)) {
        if (word != Modifier::s4 && word != Modifier::u4 && word != Modifier::b1) continue;
        if (count < 2)
            types[count++] = word == Modifier::s4   ? MatrixType::s4
                             : word == Modifier::u4 ? MatrixType::u4
                                                    : MatrixType::b1;
    }
    return count;
}

void set_shape(MatrixForm& form, const Instruction& inst) {
    const MatrixShape shape = matrix_shape(words_of(inst));
    form.m = static_cast<std::uint16_t>(shape.m);
    form.n = static_cast<std::uint16_t>(shape.n);
    form.k = static_cast<std::uint16_t>(shape.k);
}

bool is_number(const Operand& operand, std::uint64_t value) {
    return operand.kind == Operand::Kind::imm &&
           static_cast<std::uint32_t>(operand.value) == static_cast<std::uint32_t>(value);
}

/// wgmma.mma_async, of whose form shape and D are known.
MatrixForm warpgroup_form(MatrixForm form, const Instruction& inst) {
    constexpr unsigned warps = 4;
    form.m /= warps;
    form.opcode = inst.has(Modifier::sp) ? MatrixOpcode::wgmma_sp : MatrixOpcode::wgmma;
    form.c = form.d;
    MatrixType small[2] = {};
    form.a = small_types(inst, small) != 0 ? small[0] : from_scalar(inst.types[1]);
    form.b = small_types(inst, small) != 0 ? small[1] : from_scalar(inst.types[2]);
    form.satfinite = inst.has(Modifier::satfinite);
    form.bits_and = inst.has(Modifier::and_);
    form.negate =
        is_number(inst[Role::scale_a], std::uint64_t(-1)) != is_number(inst[Role::scale_b], std::uint64_t(-1));
    form.a_by_columns = is_number(inst[Role::trans_a], 1);
    form.b_by_rows = is_number(inst[Role::trans_b], 1);
    form.a_in_memory = inst[Role::a].kind != Operand::Kind::vector;
    return form;
}

} // namespace

MatrixForm matrix_form(const Instruction& inst) {
    MatrixForm form;
    set_shape(form, inst);
    const bool is_wmma = form_info(inst.form).opcode == "wmma";
    const bool is_sparse = inst.has(Modifier::sp) || inst.has(Modifier::sp_ordered_metadata);
    form.opcode = is_wmma ? MatrixOpcode::wmma : is_sparse ? MatrixOpcode::mma_sp : MatrixOpcode::mma;
    form.d = from_scalar(inst.types[0]);
    if (form_info(inst.form).opcode == "wgmma") return warpgroup_form(form, inst);
    MatrixType small[2] = {};
    if (small_types(inst, small) == 2) { // .s32.s4.u4.s32
        form.a = small[0];
        form.b = small[1];
        form.c = from_scalar(inst.types[1]);
    } else if (inst.types[2] == ScalarType::none) { // wmma: .dtype.ctype, of halves
        form.a = form.b = MatrixType::f16;
        form.c = from_scalar(inst.types[1]);
    } else {
        form.a = from_scalar(inst.types[1]);
        form.b = from_scalar(inst.types[2]);
        form.c = from_scalar(inst.types[3]);
    }
    form.kind = kind_of(inst);
    if (form.kind == MatrixKind::scaled_e2m1) form.a = form.b = MatrixType::e2m1;
    if (form.kind == MatrixKind::scaled_mixed) form.scales = 1;
    if (form.kind == MatrixKind::scaled_e2m1) form.scales = inst.has(Modifier::scale_vec_4X) ? 4 : 2;
    form.scale_ue4m3 = form.scales != 0 && inst.types[4] == ScalarType::ue4m3;
    switch (inst.one_of({Modifier::rz, Modifier::rm, Modifier::rp})) {
    case Modifier::rz: form.rounding = MatrixRounding::toward_zero; break;
    case Modifier::rm: form.rounding = MatrixRounding::down; break;
    case Modifier::rp: form.rounding = MatrixRounding::up; break;
    default: break;
    }
    form.satfinite = inst.has(Modifier::satfinite);
    form.bits_and = inst.has(Modifier::and_);
    if (!is_wmma && form.m == 8 && form.a == MatrixType::f16) {
        unsigned place = 0;
        for (Modifier word : words_of(inst)) {
            if (word != Modifier::row && word != Modifier::col) continue;
            if (place++ == 0)
                form.a_by_columns = word == Modifier::col;
            else
                form.b_by_rows = word == Modifier::row;
        }
    }
    return form;
}

MatrixForm moved_form(const Instruction& inst) {
    MatrixForm form;
    set_shape(form, inst);
    form.opcode = MatrixOpcode::wmma;
    MatrixType small[2] = {};
    form.a = form.b = form.c = form.d = small_types(inst, small) != 0 ? small[0] : from_scalar(inst.types[0]);
    return form;
}

} // namespace ptarmigan::ptx
