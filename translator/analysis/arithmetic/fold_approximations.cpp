// SPDX-License-Identifier: Apache-2.0
// Approximations of constants. ptxas 13.0 computes these itself, rounded to nearest from double precision, where the
// special function unit would be off in the last place (README.md):
//   * rcp, sqrt, rsqrt, sin, cos, lg2 and ex2 of f32 constants are constants,
//   * div.approx and div.full by a constant are products with its rounded reciprocal.
// Only for numbers whose results are normal; what is beyond is left to the unit's functions.
#include "translator/analysis/build/build_ssa.h"

#include <bit>
#include <cmath>
#include <optional>

namespace ptarmigan::translator {

namespace {

using ptx::FormId;
using ptx::Modifier;
using ptx::Operand;
using ptx::Role;

constexpr float smallest = 0x1p-126f, largest = 0x1p126f;

bool is_ordinary(double value) {
    return std::fabs(value) >= smallest && std::fabs(value) <= largest; // not NaN
}

std::optional<float> constant(const FunctionGraph& graph, const Operand& operand) {
    const bool is_value = operand.kind == Operand::Kind::reg && graph.values[operand.index].is_constant;
    if (operand.kind != Operand::Kind::imm && !is_value) return std::nullopt;
    const std::uint64_t bits = is_value ? graph.values[operand.index].constant : operand.value;
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    return is_ordinary(value) ? std::optional(value) : std::nullopt;
}

std::optional<double> approximation(FormId form, double x) {
    switch (form) {
    case FormId::rcp_approx: return 1 / x;
    case FormId::sqrt_approx: return x > 0 ? std::optional(std::sqrt(x)) : std::nullopt;
    case FormId::rsqrt_approx: return x > 0 ? std::optional(1 / std::sqrt(x)) : std::nullopt;
    case FormId::sin_approx: return std::sin(x);
    case FormId::cos_approx: return std::cos(x);
    case FormId::lg2_approx: return x > 0 ? std::optional(std::log2(x)) : std::nullopt;
    case FormId::ex2_approx: return std::exp2(x);
    default: return std::nullopt;
    }
}

Operand immediate(const Operand& like, float value) {
    Operand operand;
    operand.kind = Operand::Kind::imm;
    operand.type = like.type;
    operand.value = std::bit_cast<std::uint32_t>(value);
    return operand;
}

/// `inst` becomes `form` with the operands that are set already; of its modifiers .ftz may stay.
void become(ptx::Instruction& inst, FormId form, unsigned operands, bool ftz) {
    inst.form = form;
    inst.operand_count = static_cast<std::uint8_t>(operands);
    inst.modifier_count = 0;
    if (ftz) inst.modifiers[inst.modifier_count++] = Modifier::ftz;
}

void fold(const FunctionGraph& graph, ptx::Instruction& inst) {
    const std::optional<float> a = constant(graph, inst[Role::a]);
    if (inst.form == FormId::div_approx || inst.form == FormId::div_full) {
        const std::optional<float> b = constant(graph, inst[Role::b]);
        const bool is_known =
            inst[Role::a].kind == Operand::Kind::imm ||
            (inst[Role::a].kind == Operand::Kind::reg && graph.values[inst[Role::a].index].is_constant);
        if (!b || is_known) return;
        const bool ftz = inst.has(Modifier::ftz);
        if (*b == 1 && !ftz) return become(inst, FormId::mov, 2, false); // a NaN keeps its payload
        inst.operands[2] = immediate(inst.operands[2], static_cast<float>(1 / static_cast<double>(*b)));
        return become(inst, FormId::mul_f32, 3, ftz);
    }
    const std::optional<double> result = a ? approximation(inst.form, *a) : std::nullopt;
    if (!result || !is_ordinary(*result)) return;
    inst.operands[1] = immediate(inst.operands[1], static_cast<float>(*result));
    become(inst, FormId::mov, 2, false);
}

} // namespace

void fold_approximations(FunctionGraph& graph) {
    for (Block& block : graph.blocks)
        for (GraphInstruction& instruction : block.instructions) fold(graph, instruction.inst);
}

} // namespace ptarmigan::translator
