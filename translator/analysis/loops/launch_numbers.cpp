// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/loops/launch_numbers.h"

#include "frontend/ptx/queries.h"
#include "translator/analysis/graph/graph_queries.h"

#include <algorithm>

namespace ptarmigan::translator {

using ptx::FormId;
using ptx::Modifier;
using ptx::Operand;
using ptx::Role;
using Index = LaunchNumberMaker::Index;
using Kind = LaunchNumber::Kind;

Index LaunchNumberMaker::parameter(const ptx::Instruction& inst, ValueId value) {
    const Operand& address = inst[Role::a];
    const Operand& target = inst[Role::d];
    const unsigned bits = ptx::bit_size(inst.type());
    if (!loads_kernel_parameter(graph_, inst) || bits == 0 || bits > 64 || ptx::is_float(inst.type()))
        return std::nullopt;
    const ptx::Function& entry = graph_.module->functions[graph_.function];
    std::uint64_t offset = ptx::parameter_layout(entry).offsets.at(address.index) + address.value;
    if (target.kind == Operand::Kind::vector)
        for (unsigned i = 0; i < target.count && graph_.pool.at(target.first + i).index != value; ++i)
            offset += bits / 8;
    return add(
        {.kind = Kind::parameter, .bits = static_cast<std::uint8_t>(bits), .value = static_cast<std::int64_t>(offset)});
}

Index LaunchNumberMaker::of(const Operand& operand) {
    switch (operand.kind) {
    case Operand::Kind::imm: return constant(static_cast<std::int64_t>(operand.value));
    case Operand::Kind::reg: {
        const Index value = of(operand.index);
        if (!operand.negated) return value;
        if (ptx::bit_size(operand.type) != 1) return std::nullopt;
        return combine(Kind::bit_xor, 1, value, constant(1), false);
    }
    case Operand::Kind::special: return special(operand.index, operand.component);
    default: return std::nullopt;
    }
}

Index LaunchNumberMaker::result(const ptx::Instruction& inst) {
    const unsigned bits = ptx::bit_size(inst.type());
    if (bits == 0 || bits > 64) return std::nullopt;
    const bool is_signed = ptx::is_signed(inst.type());
    const auto both = [&](Kind kind) {
        const Index a = of(inst.operands[1]);
        return a ? combine(kind, bits, a, of(inst.operands[2]), is_signed) : std::nullopt;
    };
    switch (inst.form) {
    case FormId::mov: return of(inst.operands[1]);
    case FormId::cvt_same_8:
    case FormId::cvt_same_16:
    case FormId::cvt_same_32:
    case FormId::cvt_same_64:
    case FormId::cvt_widen_16:
    case FormId::cvt_widen_32:
    case FormId::cvt_widen_64:
    case FormId::cvt_narrow_8:
    case FormId::cvt_narrow_16:
    case FormId::cvt_narrow_32: {
        const Index source = of(inst.operands[1]);
        const unsigned from = std::min(bits, ptx::bit_size(inst.types[1]));
        return combine(Kind::extend, from, source, source, ptx::is_signed(inst.types[1]));
    }
    case FormId::add_int: return both(Kind::add);
    case FormId::sub_int: return both(Kind::subtract);
    case FormId::mul_lo:
    case FormId::mul_wide: return both(Kind::multiply);
    case FormId::mad_lo:
    case FormId::mad_wide: return combine(Kind::add, 64, both(Kind::multiply), of(inst.operands[3]));
    case FormId::mul_hi: return both(Kind::multiply_high);
    case FormId::mad_hi: return combine(Kind::add, 64, both(Kind::multiply_high), of(inst.operands[3]));
    case FormId::div_int: return both(Kind::divide);
    case FormId::rem_int: return both(Kind::remainder);
    case FormId::min_int: return both(Kind::minimum);
    case FormId::max_int: return both(Kind::maximum);
    case FormId::and_bits: return both(Kind::bit_and);
    case FormId::or_bits: return both(Kind::bit_or);
    case FormId::xor_bits: return both(Kind::bit_xor);
    case FormId::shl: return both(Kind::shift_left);
    case FormId::shr: return both(Kind::shift_right);
    case FormId::neg_int: {
        const Index source = of(inst.operands[1]);
        return source ? combine(Kind::subtract, bits, constant(0), source) : std::nullopt;
    }
    case FormId::not_bits: return combine(Kind::bit_xor, bits, of(inst.operands[1]), constant(-1), is_signed);
    case FormId::mov_pack: return packed(inst);
    case FormId::setp_bits:
    case FormId::setp_signed:
    case FormId::setp_unsigned: return compared(inst);
    case FormId::selp: return selected(inst);
    default: return std::nullopt;
    }
}

/// Halves or quarters, the low ones first.
Index LaunchNumberMaker::packed(const ptx::Instruction& inst) {
    const Operand& parts = inst.operands[1];
    const unsigned bits = ptx::bit_size(inst.type());
    if (!parts.has_elements() || parts.count == 0 || bits > 64) return std::nullopt;
    const unsigned part_bits = bits / parts.count;
    Index whole;
    for (unsigned i = 0; i < parts.count; ++i) {
        const Index source = of(graph_.pool.at(parts.first + i));
        Index part = combine(Kind::extend, part_bits, source, source, false);
        if (i != 0) part = combine(Kind::shift_left, 64, part, constant(std::int64_t{part_bits} * i), false);
        whole = i == 0 ? part : combine(Kind::bit_or, 64, whole, part);
    }
    return whole;
}

Index LaunchNumberMaker::unpacked(const ptx::Instruction& inst, unsigned element) {
    const unsigned bits = ptx::bit_size(inst.type());
    const Operand& parts = inst.operands[0];
    if (!parts.has_elements() || parts.count == 0 || bits > 64) return std::nullopt;
    const unsigned part_bits = bits / parts.count;
    const Index whole = of(inst.operands[1]);
    const Index shifted =
        element == 0 ? whole
                     : combine(Kind::shift_right, bits, whole, constant(std::int64_t{part_bits} * element), false);
    return combine(Kind::extend, part_bits, shifted, shifted, false);
}

Index LaunchNumberMaker::compared(const ptx::Instruction& inst) {
    if (inst[Role::p].kind != Operand::Kind::none && inst.operands[0].kind != Operand::Kind::reg) return std::nullopt;
    const unsigned bits = ptx::bit_size(inst.type());
    const Index a = of(inst[Role::a]), b = of(inst[Role::b]);
    const auto inverted = [&](Index value) { return combine(Kind::bit_xor, 1, value, constant(1), false); };
    const auto less = [&](Index left, Index right, bool is_signed) {
        return combine(Kind::less, bits, left, right, is_signed);
    };
    const bool is_signed = ptx::is_signed(inst.type());
    switch (inst.one_of({Modifier::eq, Modifier::ne, Modifier::lt, Modifier::le, Modifier::gt, Modifier::ge,
                         Modifier::lo, Modifier::ls, Modifier::hi, Modifier::hs})) {
    case Modifier::eq: return combine(Kind::equal, bits, a, b, is_signed);
    case Modifier::ne: return inverted(combine(Kind::equal, bits, a, b, is_signed));
    case Modifier::lt: return less(a, b, is_signed);
    case Modifier::le: return inverted(less(b, a, is_signed));
    case Modifier::gt: return less(b, a, is_signed);
    case Modifier::ge: return inverted(less(a, b, is_signed));
    case Modifier::lo: return less(a, b, false);
    case Modifier::ls: return inverted(less(b, a, false));
    case Modifier::hi: return less(b, a, false);
    case Modifier::hs: return inverted(less(a, b, false));
    default: return std::nullopt;
    }
}

/// b ^ ((a ^ b) & -c).
Index LaunchNumberMaker::selected(const ptx::Instruction& inst) {
    const Index a = of(inst.operands[1]), b = of(inst.operands[2]), c = of(inst.operands[3]);
    if (!a || !b || !c) return std::nullopt;
    const Index mask = combine(Kind::subtract, 64, constant(0), combine(Kind::extend, 1, c, c, false));
    return combine(Kind::bit_xor, 64, b, combine(Kind::bit_and, 64, combine(Kind::bit_xor, 64, a, b), mask));
}

} // namespace ptarmigan::translator
