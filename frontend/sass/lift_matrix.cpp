// SPDX-License-Identifier: Apache-2.0
// Rules of matrix instructions.
#include "frontend/sass/lifter.h"

namespace ptarmigan::sass {

namespace {

using Kind = Operand::Kind;

} // namespace

/// Registers from `operand` on, "{%r4, %r5}".
std::string Lifter::fragment(const Operand& operand, unsigned count) {
    std::string text = "{";
    for (unsigned i = 0; i < count; ++i) {
        const Value value = operand.index == zero_register ? constant(0) : read_index(operand.index + i);
        text += (i ? ", " : "") + in_register(value);
    }
    return text + "}";
}

void Lifter::hmma(const Instruction& inst) {
    if (inst.has("SP") || inst.operands[1].negated || inst.operands[2].negated) refuse_here();
    const bool single = inst.has("F32"), bfloat = inst.has("BF16"), tf32 = inst.has("TF32");
    if (bfloat && !single) refuse_here();
    const char* shape = nullptr;
    unsigned a = 4, b = 2;
    if (tf32 && inst.has("1684")) {
        shape = "m16n8k4";
        a = 2;
        b = 1;
    } else if (tf32 && inst.has("1688")) {
        shape = "m16n8k8";
    } else if (!tf32 && inst.has("1688")) {
        shape = "m16n8k8";
        a = 2;
        b = 1;
    } else if (!tf32 && inst.has("16816")) {
        shape = "m16n8k16";
    }
    if (shape == nullptr) refuse_here();
    const unsigned count = single ? 4 : 2;
    const std::string of = tf32 ? "tf32.tf32" : bfloat ? "bf16.bf16" : "f16.f16", sum = single ? "f32" : "f16";
    const std::string left = fragment(inst.operands[1], a), right = fragment(inst.operands[2], b),
                      addend = fragment(inst.operands[3], count);
    std::string results[4], list;
    for (unsigned i = 0; i < count; ++i) {
        results[i] = temporary();
        list += (i ? ", " : "") + results[i];
    }
    if (!is_unguarded(inst)) refuse_here("a condition");
    emit("mma.sync.aligned." + std::string(shape) + ".row.col." + sum + "." + of + "." + sum + " {" + list + "}, " +
         left + ", " + right + ", " + addend);
    const unsigned first = inst.operands[0].index;
    for (unsigned i = 0; i < count && first != zero_register; ++i) write_index(first + i, value_of(results[i]));
}

void Lifter::ldsm(const Instruction& inst) {
    if (inst.has("M816") || inst.has("M832")) refuse_here();
    const unsigned count = inst.has("4") ? 4 : inst.has("2") ? 2 : 1;
    const std::string where = address(inst.operands[1], ".shared");
    std::string results[4], list;
    for (unsigned i = 0; i < count; ++i) {
        results[i] = temporary();
        list += (i ? ", " : "") + results[i];
    }
    emit_guarded("ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) + (inst.has("MT88") ? ".trans" : "") +
                 ".shared.b16 {" + list + "}, " + where);
    const unsigned first = inst.operands[0].index;
    for (unsigned i = 0; i < count && first != zero_register; ++i) write_index(first + i, value_of(results[i]));
}

void Lifter::movm(const Instruction& inst) {
    if (!inst.has("MT88")) refuse_here();
    const std::string result = temporary();
    emit_guarded("movmatrix.sync.aligned.m8n8.trans.b16 " + result + ", " + in_register(read(inst.operands[1])));
    write(inst.operands[0], value_of(result));
}

} // namespace ptarmigan::sass
