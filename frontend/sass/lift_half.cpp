// SPDX-License-Identifier: Apache-2.0
// Rules of packed halves.
#include "frontend/sass/lifter.h"

namespace ptarmigan::sass {

using Kind = Operand::Kind;

/// Two halves as an operand of a packed instruction, chosen, made absolute and negated.
std::string Lifter::read_halves(const Operand& operand, bool bfloat) {
    const Value value = read_plain(operand);
    std::string text = value.text;
    if (operand.swizzle == 1 && value.constant != 0u) refuse_here("a f32 among halves");
    if (operand.kind == Kind::immediate || value.constant) {
        std::uint32_t bits = *value.constant;
        if (operand.swizzle >= 2) bits = (operand.swizzle == 2 ? bits & 0xffffu : bits >> 16) * 0x10001u;
        if (operand.absolute) bits &= 0x7fff7fffu;
        if (operand.negated) bits ^= 0x80008000u;
        text = temporary();
        emit("mov.b32 " + text + ", " + std::to_string(bits));
        return text;
    }
    if (operand.swizzle >= 2) {
        const std::string twice = temporary();
        emit("prmt.b32 " + twice + ", " + text + ", 0, " + (operand.swizzle == 2 ? "0x1010" : "0x3232"));
        text = twice;
    }
    static_cast<void>(bfloat);
    if (operand.absolute) {
        const std::string result = temporary();
        emit("and.b32 " + result + ", " + text + ", 0x7fff7fff");
        text = result;
    }
    if (operand.negated) {
        const std::string result = temporary();
        emit("xor.b32 " + result + ", " + text + ", 0x80008000");
        text = result;
    }
    return text;
}

std::string Lifter::read_half(const Operand& operand) {
    if (operand.part > 1) refuse_here();
    if (operand.kind == Kind::immediate) { // its 16 bits
        const auto bits = std::uint32_t(operand.value);
        if (bits > 0xffff || operand.part != 0 || operand.absolute || operand.negated) refuse_here();
        return half_of(in_register(constant(bits)));
    }
    std::string text = in_register(read_plain(operand));
    const auto change = [&](const char* opcode, const char* by) {
        const std::string result = temporary();
        emit(opcode + result + ", " + text + ", " + by);
        text = result;
    };
    if (operand.part == 1) change("shr.u32 ", "16");
    if (operand.absolute) change("and.b32 ", "0x7fff");
    if (operand.negated) change("xor.b32 ", "0x8000");
    return half_of(text);
}

void Lifter::hmnmx2(const Instruction& inst) {
    const bool bfloat = inst.has("BF16_V2");
    if (bfloat && inst.has("FTZ")) refuse_here();
    Operand left = inst.operands[1], right = inst.operands[2];
    std::string words = std::string(inst.has("FTZ") ? ".ftz" : "") + (inst.has("NAN") ? ".NaN" : "");
    if (inst.has("XORSIGN")) { // as ptxas writes PTX's .xorsign.abs
        use_signs_of_absolutes(left, 0x80008000);
        use_signs_of_absolutes(right, 0x80008000);
        words += ".xorsign.abs";
    }
    const std::string a = read_halves(left, bfloat), b = read_halves(right, bfloat);
    write_extreme(inst, words + (bfloat ? ".bf16x2 " : ".f16x2 "), a, b);
}

/// HMNMX2 of three: ptxas joins two of the same kind, but none with .ftz or .xorsign.
void Lifter::vhmnmx(const Instruction& inst) {
    if (inst.has("FTZ") || inst.has("XORSIGN")) refuse_here();
    const bool bfloat = inst.has("BF16_V2");
    std::string operands[3];
    for (unsigned i = 0; i < 3; ++i) operands[i] = read_halves(inst.operands[i + 1], bfloat);
    write_extreme(inst, std::string(inst.has("NAN") ? ".NaN" : "") + (bfloat ? ".bf16x2 " : ".f16x2 "), operands[0],
                  operands[1], operands[2]);
}

void Lifter::hadd2(const Instruction& inst) {
    const bool is_turned = inst.architecture < 80 && is_zero_register(inst.operands[2]); // zero stands behind on sm_75
    const Operand &a = inst.operands[is_turned ? 2 : 1], &b = inst.operands[is_turned ? 1 : 2];
    const bool bfloat = inst.has("BF16_V2");
    if (inst.has("F32")) { // -0 and a half: the conversion to f32
        if (!is_zero_register(a) || !a.negated || (a.swizzle > 1 && !is_turned) || b.swizzle < 2 || inst.has("FTZ") ||
            bfloat)
            refuse_here();
        const std::string pair = read_halves(b, false), half = "%h0", result = temporary();
        emit("cvt.u16.u32 " + half + ", " + pair);
        emit(std::string("cvt") + (inst.has("SAT") ? ".sat" : "") + ".f32.f16 " + result + ", " + half);
        write(inst.operands[0], value_of(result));
        return;
    }
    const std::string left = read_halves(a, bfloat), right = read_halves(b, bfloat), result = temporary();
    if (bfloat && (inst.has("FTZ") || inst.has("SAT") || inst.architecture < 90)) refuse_here();
    emit(std::string("add.rn") + (inst.has("FTZ") ? ".ftz" : "") + (inst.has("SAT") ? ".sat" : "") +
         (bfloat ? ".bf16x2 " : ".f16x2 ") + result + ", " + left + ", " + right);
    write(inst.operands[0], value_of(result));
}

std::array<std::string, 2> Lifter::compare_halves(const Instruction& inst, unsigned first) {
    const bool bfloat = inst.has("BF16_V2");
    const std::string word = compare_word(inst);
    if (word.empty() || (bfloat && inst.has("FTZ"))) refuse_here();
    const std::string a = read_halves(inst.operands[first], bfloat), b = read_halves(inst.operands[first + 1], bfloat);
    std::array<std::string, 2> results = {predicate_temporary(), predicate_temporary()};
    emit("setp." + word + (inst.has("FTZ") ? ".ftz" : "") + (bfloat ? ".bf16x2 " : ".f16x2 ") + results[0] + "|" +
         results[1] + ", " + a + ", " + b);
    const Condition with = condition(inst.operands[first + 2]);
    const bool is_and = inst.has("AND");
    if (with.name.empty() && with.value && is_and) return results;
    const std::string other = as_register(with);
    for (std::string& result : results) {
        const std::string combined = predicate_temporary();
        emit((is_and           ? "and.pred "
              : inst.has("OR") ? "or.pred "
                               : "xor.pred ") +
             combined + ", " + result + ", " + other);
        result = combined;
    }
    return results;
}

/// 1.0 (.BF) or all bits in each half where the comparison holds.
void Lifter::hset2(const Instruction& inst) {
    const auto holds = compare_halves(inst, 1);
    const unsigned one = !inst.has("BF") ? 0xffff : inst.has("BF16_V2") ? 0x3f80 : 0x3c00;
    const std::string low = temporary(), high = temporary(), both = temporary();
    emit("selp.b32 " + low + ", " + hexadecimal(one) + ", 0, " + holds[0]);
    emit("selp.b32 " + high + ", " + hexadecimal(one << 16) + ", 0, " + holds[1]);
    emit("or.b32 " + both + ", " + low + ", " + high);
    write(inst.operands[0], value_of(both));
}

void Lifter::hsetp2(const Instruction& inst) {
    const auto holds = compare_halves(inst, 2);
    write_predicate(inst.operands[0], holds[0]);
    write_predicate(inst.operands[1], holds[1]);
}

void Lifter::hmul2(const Instruction& inst) {
    const bool bfloat = inst.has("BF16_V2");
    if (inst.has("FMZ")) refuse_here();
    if (bfloat && (inst.has("FTZ") || inst.has("SAT") || inst.architecture < 90)) refuse_here();
    const std::string left = read_halves(inst.operands[1], bfloat), right = read_halves(inst.operands[2], bfloat),
                      result = temporary();
    emit(std::string("mul.rn") + (inst.has("FTZ") ? ".ftz" : "") + (inst.has("SAT") ? ".sat" : "") +
         (bfloat ? ".bf16x2 " : ".f16x2 ") + result + ", " + left + ", " + right);
    write(inst.operands[0], value_of(result));
}

void Lifter::hfma2(const Instruction& inst) {
    const Operand &a = inst.operands[1], &b = inst.operands[2], &c = inst.operands[3];
    if (inst.has("FMZ")) refuse_here();
    // -0 * 0 plus a constant: how a constant comes into a register without the integer unit.
    if (is_zero_register(a) && is_zero_register(b) && a.negated != b.negated && c.kind == Kind::immediate &&
        !inst.has("SAT") && !inst.has("RELU") && !inst.has("FTZ") && !inst.has("OOB")) {
        const auto bits = std::uint32_t(c.value);
        const auto changes = [](std::uint32_t half) { return (half & 0x7fffu) > 0x7c00u; };
        if (!changes(bits & 0xffffu) && !changes(bits >> 16) && !inst.has("BF16_V2")) {
            write(inst.operands[0], constant(bits));
            return;
        }
    }
    const bool bfloat = inst.has("BF16_V2");
    const std::string x = read_halves(a, bfloat), z = read_halves(c, bfloat), result = temporary();
    std::string y = read_halves(b, bfloat);
    if (inst.has("H0_NH1")) { // a complex number times i: the lower half above, the upper one negated below
        if (b.swizzle != 0 || b.kind != Kind::reg) refuse_here();
        const std::string turned = temporary();
        emit("prmt.b32 " + turned + ", " + y + ", 0, 0x1032");
        emit("xor.b32 " + turned + ", " + turned + ", 0x8000");
        y = turned;
    }
    if (bfloat && (inst.has("FTZ") || inst.has("SAT"))) refuse_here();
    if (inst.has("OOB") && (inst.architecture < 90 || inst.has("SAT"))) refuse_here(); // PTX has it there
    emit(std::string("fma.rn") + (inst.has("FTZ") ? ".ftz" : "") + (inst.has("OOB") ? ".oob" : "") +
         (inst.has("SAT") ? ".sat" : "") + (inst.has("RELU") ? ".relu" : "") + (bfloat ? ".bf16x2 " : ".f16x2 ") +
         result + ", " + x + ", " + y + ", " + z);
    write(inst.operands[0], value_of(result));
}

} // namespace ptarmigan::sass
