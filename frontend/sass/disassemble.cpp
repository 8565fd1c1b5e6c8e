// SPDX-License-Identifier: Apache-2.0
// Text of instructions, as NVIDIA's disassembler writes it. Proof that the decoder reads what is there.
#include "frontend/sass/opcode_table.h"
#include "frontend/sass/special_registers.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace ptarmigan::sass {

std::string hexadecimal(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

namespace {

using Kind = Operand::Kind;

std::string signed_hexadecimal(std::int64_t value) {
    return value < 0 ? "-" + hexadecimal(0 - static_cast<std::uint64_t>(value)) : hexadecimal(std::uint64_t(value));
}

std::string floating(double value, bool quiet) {
    if (std::isnan(value)) return std::string(std::signbit(value) ? "-" : "+") + (quiet ? "QNAN " : "SNAN ");
    if (std::isinf(value)) return value < 0 ? "-INF " : "+INF ";
    if (value == 0 && std::signbit(value)) return "-0.0 ";
    char text[64];
    std::snprintf(text, sizeof text, std::fabs(value) < 1e9 ? "%.20g" : "%.20e", value);
    return text;
}

double half(unsigned bits) {
    const unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 0    ? std::ldexp(fraction, -24)
                   : exponent == 31 ? (fraction != 0 ? std::nan("") : INFINITY)
                                    : std::ldexp(1024 + fraction, int(exponent) - 25);
    return (bits & 0x8000u) != 0 ? std::copysign(value, -1.0) : value;
}

std::string immediate(const Instruction& inst, const Operand& operand) {
    const auto bits = static_cast<std::uint32_t>(operand.value);
    switch (operand.type) {
    case ImmediateType::signed_int: return signed_hexadecimal(operand.value);
    case ImmediateType::f32:
        if (inst.form->id == FormId::f2i && inst.has("F16")) return floating(half(bits), (bits & 0x200u) != 0);
        if (inst.form->id == FormId::f2i && inst.has("BF16"))
            return floating(std::bit_cast<float>(bits << 16), (bits & 0x40u) != 0);
        return floating(std::bit_cast<float>(bits), (bits & 0x400000u) != 0);
    case ImmediateType::f64_high:
        return floating(std::bit_cast<double>(std::uint64_t(bits) << 32), (bits & 0x80000u) != 0);
    case ImmediateType::f16x2: {
        if (inst.has("BF16_V2")) {
            const float low = std::bit_cast<float>(bits << 16), high = std::bit_cast<float>(bits & 0xffff0000u);
            return floating(high, (bits & 0x400000u) != 0) + ", " + floating(low, (bits & 0x40u) != 0);
        }
        return floating(half(bits >> 16), (bits & 0x2000000u) != 0) + ", " +
               floating(half(bits & 0xffffu), (bits & 0x200u) != 0);
    }
    case ImmediateType::bits: break;
    }
    return operand.value < 0 ? signed_hexadecimal(operand.value) : hexadecimal(std::uint64_t(operand.value));
}

std::string register_name(unsigned index) {
    return index == zero_register ? "RZ" : "R" + std::to_string(index);
}
std::string uniform_name(unsigned index) {
    return index == zero_uniform ? "URZ" : "UR" + std::to_string(index);
}
std::string predicate_name(unsigned index, bool uniform) {
    return (uniform ? "U" : "") + (index == true_predicate ? std::string("PT") : "P" + std::to_string(index));
}

std::string offset(std::int64_t value) {
    return value == 0 ? std::string() : "+" + signed_hexadecimal(value);
}

std::string address(const Instruction& inst, const OperandSpec& spec, const Operand& operand) {
    std::string text;
    // From sm_100 on a shared address names the uniform register wherever it has one.
    const bool names_zero = inst.architecture >= 100 && inst.code.bit(91) && spec.kind == 's';
    const bool with_uniform = (operand.uniform != zero_uniform || names_zero) && !operand.is_descriptor;
    const bool is_copy = inst.form->id == FormId::ldgsts;
    const bool is_shared = inst.form->id == FormId::ldgsts_uniform; // LDGSTS adds to one of its two addresses
    if (with_uniform && inst.has("E") && !is_shared &&
        (operand.index != zero_register || is_copy || inst.architecture >= 90)) {
        text = register_name(operand.index) + (operand.wide ? ".64" : ".U32");
    } else if (operand.index != zero_register || (operand.value == 0 && !with_uniform)) {
        text = register_name(operand.index);
        if (operand.scale != 0) text += ".X" + std::to_string(1u << operand.scale);
        if (operand.wide && inst.form->id != FormId::qspc) text += ".64";
    }
    if (with_uniform) text += (text.empty() ? "" : "+") + uniform_name(operand.uniform);
    if (operand.value != 0)
        text += text.empty() ? hexadecimal(std::uint64_t(operand.value & 0xffffff)) : offset(operand.value);
    return (operand.names_descriptor ? "desc[" + uniform_name(operand.uniform) + "][" : "[") + text + "]";
}

std::string modified(const Operand& operand, std::string text) {
    constexpr const char* swizzles[] = {"", ".F32", ".H0_H0", ".H1_H1"};
    if (operand.absolute) text = "|" + text + "|";
    if (operand.reuse) text += ".reuse";
    text += swizzles[operand.swizzle];
    if (operand.inverted) text = "~" + text;
    if (operand.negated) text = "-" + text;
    return text;
}

std::string part(const Instruction& inst, const OperandSpec& spec, const Operand& operand) {
    if (operand.part == 0) return {};
    if (spec.type == 'i' && !inst.has("U16") && !inst.has("S16")) return ".B" + std::to_string(operand.part);
    return operand.part == 1 ? ".H1" : ".INVALID" + std::to_string(operand.part);
}

/// Of operands of which the sign is meant.
const char* sign(const OperandSpec& spec) {
    return spec.type == 'g' ? ".SIGN" : "";
}

/// "{3,2}": the bits that are set, the last first.
std::string set_of(std::uint64_t bits) {
    std::string text = "{";
    for (unsigned i = 64; i-- > 0;)
        if ((bits >> i & 1) != 0) text += (text.size() > 1 ? "," : "") + std::to_string(i);
    return text + "}";
}

std::string print(const Instruction& inst, const OperandSpec& spec, const Operand& operand) {
    switch (operand.kind) {
    case Kind::none: return {};
    case Kind::reg: return modified(operand, register_name(operand.index) + part(inst, spec, operand)) + sign(spec);
    case Kind::uniform:
        if (spec.kind == 'm') return "[" + uniform_name(operand.index) + "]";
        if (spec.kind == 'h') return "desc[" + uniform_name(operand.index) + "]";
        if (spec.kind == 'G') return "gdesc[" + uniform_name(operand.index) + "]";
        return modified(operand, uniform_name(operand.index)) + sign(spec);
    case Kind::predicate:
    case Kind::uniform_predicate:
        return (operand.negated ? "!" : "") + predicate_name(operand.index, operand.kind == Kind::uniform_predicate);
    case Kind::immediate:
        return spec.kind == 'L' ? hexadecimal(std::uint64_t(operand.value)) : immediate(inst, operand);
    case Kind::constant: {
        std::string text =
            operand.bindless ? "cx[" + uniform_name(operand.uniform) + "][" : "c[" + hexadecimal(operand.bank) + "][";
        if (operand.index == zero_register && inst.form->id == FormId::ldc && operand.value == 0)
            text += "RZ";
        else if (inst.form->id == FormId::uldc_indexed ||
                 (inst.form->id == FormId::ldcu && (operand.uniform != zero_uniform || operand.value == 0)))
            text += uniform_name(operand.uniform) + offset(operand.value);
        else if (operand.index == zero_register)
            text += signed_hexadecimal(operand.value);
        else
            text += register_name(operand.index) + offset(operand.value);
        return modified(operand, text + "]") + sign(spec);
    }
    case Kind::address:
        if (spec.kind == 'y' || spec.kind == 'z')
            return "[" + (operand.index != zero_register ? register_name(operand.index) + "+" : std::string()) +
                   uniform_name(operand.uniform) + offset(operand.value) + "]";
        return address(inst, spec, operand);
    case Kind::special: return special_register_name(unsigned(operand.value));
    case Kind::target: return signed_hexadecimal(operand.value);
    case Kind::register_target:
        return (inst.form->id == FormId::brxu ? uniform_name(operand.index) : register_name(operand.index)) + " " +
               signed_hexadecimal(inst.form->id == FormId::brx || inst.form->id == FormId::brxu
                                      ? operand.value - inst.address - 16
                                      : operand.value);
    case Kind::number:
        if (spec.kind == '{') return set_of(std::uint64_t(operand.value));
        if (spec.kind == 'X') return "gsb" + std::to_string(operand.value);
        return spec.kind == 'R' ? (inst.form->mnemonic[0] == 'U' ? "UPR" : "PR")
                                : (spec.kind == 'Q' ? "SB" : "B") + std::to_string(operand.value);
    }
    return {};
}

bool is_hidden(const Instruction& inst, const OperandSpec& spec, const Operand& operand) {
    if (operand.kind == Kind::none || !has_operand(inst, spec)) return true;
    if (spec.silent >= 0 && operand.value == spec.silent) return true;
    if (spec.kind == 'X') return operand.value == no_group || !has_operand(inst, spec);
    if (!spec.optional || (spec.always_from_blackwell && inst.architecture >= 100)) return false;
    if (operand.kind == Kind::reg) return operand.index == zero_register;
    if (operand.kind == Kind::uniform) return operand.index == zero_uniform;
    return operand.index == true_predicate && !operand.negated;
}

/// Additions and moves on the multiplier have names of their own.
std::string multiply_alias(const Instruction& inst) {
    const Operand &a = inst.operands[2], &b = inst.operands[3], &c = inst.operands[4];
    const auto zero = [](const Operand& operand) {
        return operand.kind == Kind::reg && operand.index == zero_register;
    };
    if (zero(a) && zero(b) && c.kind != Kind::uniform) return "MOV";
    if (inst.architecture >= 100 && b.kind == Kind::immediate && b.value == 1 && zero(c)) return "MOV";
    if (b.kind == Kind::immediate && b.value == 1) return "IADD";
    const auto bits = static_cast<std::uint32_t>(b.value);
    if (inst.architecture >= 90 && inst.has("U32") && bits == 0x10000) return {};
    if (zero(c) && b.kind == Kind::immediate && std::has_single_bit(bits)) return "SHL";
    return {};
}

} // namespace

namespace {

std::string mnemonic_of(const Instruction& inst) {
    if (inst.form == nullptr) {
        const auto opcode = unsigned(inst.code.bits(0, 12));
        const std::string_view name = name_of_opcode(opcode);
        return (name.empty() ? std::string() : std::string(name) + ", ") + "opcode " + hexadecimal(opcode);
    }
    std::string text = inst.form->mnemonic;
    if (inst.form->id == FormId::imad && !inst.has("X"))
        if (const std::string alias = multiply_alias(inst); !alias.empty()) text += "." + alias;
    const auto is_suffix = [&](std::size_t index) {
        for (const OperandSpec& spec : inst.form->operands)
            if (spec.suffix == int(index)) return true;
        return false;
    };
    for (std::size_t i = 0; i < inst.form->modifiers.size(); ++i) {
        const ModifierSpec& spec = inst.form->modifiers[i];
        if (!spec.is_in(inst.architecture)) continue;
        const std::string& name = spec.names[spec.field.of(inst.code)];
        if (!name.empty() && !is_suffix(i))
            text += "." + (name == "?" ? "INVALID" + std::to_string(spec.field.of(inst.code)) : name);
    }
    return text;
}

std::string unread_bits(const Instruction& inst) {
    std::string text;
    for (unsigned i = 0; i < 128; ++i)
        if (inst.unread.bit(i)) text += (text.empty() ? " with bits " : ", ") + std::to_string(i);
    return text;
}

} // namespace

std::string describe(const Instruction& inst) {
    return mnemonic_of(inst) + unread_bits(inst);
}

std::string disassemble(const Instruction& inst) {
    std::string text;
    if (inst.guard != true_predicate || inst.guard_negated)
        text =
            std::string("@") + (inst.guard_negated ? "!" : "") + predicate_name(inst.guard, inst.guard_uniform) + " ";
    text += mnemonic_of(inst);
    if (inst.form == nullptr) return text;
    const char* separator = " ";
    for (unsigned i = 0; i < inst.operand_count; ++i) {
        const OperandSpec& spec = inst.form->operands[i];
        if (is_hidden(inst, spec, inst.operands[i])) continue;
        text += separator;
        if (spec.kind != 'N') text += print(inst, spec, inst.operands[i]);
        if (spec.suffix >= 0) {
            const ModifierSpec& suffix = inst.form->modifiers[std::size_t(spec.suffix)];
            const std::string& name = suffix.names[suffix.field.of(inst.code)];
            if (!name.empty()) text += (spec.kind == 'N' ? "" : ".") + name;
        }
        separator = ", ";
    }
    return text;
}

} // namespace ptarmigan::sass
