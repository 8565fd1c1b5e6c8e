// SPDX-License-Identifier: Apache-2.0
// Rules of products by warpgroups, and of what their four warps do together.
#include "frontend/sass/combined_atomics.h"
#include "frontend/sass/lifter.h"

#include <cstdlib>

namespace ptarmigan::sass {

/// Groups are committed by the product that names one, and it is waited for by the instruction without a product.
/// ARRIVE and WAIT are the two halves of a barrier of the warpgroup, which the commit of an empty group is here;
/// without WAIT, ARRIVE orders accesses to registers.
void Lifter::warpgroup(const Instruction& inst) {
    if (!is_unguarded(inst)) refuse_here("a condition");
    if (inst.has("ARRIVE"))
        emit("wgmma.fence.sync.aligned");
    else if (inst.has("WAIT"))
        emit("wgmma.commit_group.sync.aligned");
    else if (inst.has("DEPBAR") && inst.has("LE"))
        emit("wgmma.wait_group.sync.aligned " + std::to_string(inst.operands[1].value));
    else
        refuse_here();
}

/// The description of a matrix in shared memory, whose address begins with the system's kilobyte.
std::string Lifter::matrix_description(unsigned index) {
    const std::string result = wide_temporary();
    emit("sub.s64 " + result + ", " + wide_text(pair_at(index)) + ", " + std::to_string(system_shared / 16));
    return result;
}

void Lifter::warpgroup_product(const Instruction& inst) {
    const FormId id = inst.form->id;
    const bool a_in_registers = id == FormId::hgmma_reg || id == FormId::qgmma_reg || id == FormId::igmma_reg;
    const bool is_half = id == FormId::hgmma || id == FormId::hgmma_reg,
               is_small = id == FormId::qgmma || id == FormId::qgmma_reg, is_integer = !is_half && !is_small;
    const bool sparse = inst.has("SP"), single = !is_integer && inst.has("F32");
    if (!is_unguarded(inst)) refuse_here("a condition");
    std::string shape;
    unsigned columns = 0, depth = 0;
    for (unsigned i = 0; i < inst.modifier_count; ++i)
        if (const std::string_view word = inst.modifiers[i]; word.rfind("64x", 0) == 0) {
            shape = std::string(word);
            columns = unsigned(std::strtoul(shape.c_str() + 3, nullptr, 10));
            depth = unsigned(std::strtoul(shape.c_str() + shape.rfind('x') + 1, nullptr, 10));
        }
    const bool bfloat = inst.has("BF16"), tf32 = inst.has("TF32");
    if ((bfloat || tf32) && !single) refuse_here();
    const unsigned plain_depth = is_half ? (tf32 ? 8 : 16) : 32;
    if (columns == 0 || depth != plain_depth * (sparse ? 2 : 1)) refuse_here();
    unsigned at = 1; // of the operands
    const Operand* a = a_in_registers ? &inst.operands[at++] : nullptr;
    const Operand& description = inst.operands[at++];
    const Operand& addend = inst.operands[at++];
    const Condition adds = condition(inst.operands[at++]);
    const Operand* metadata = sparse ? &inst.operands[at] : nullptr;
    const Operand* selector = sparse && is_half ? &inst.operands[at + 1] : nullptr;
    const Operand& d = inst.operands[0];
    const Operand& group = inst.operands[inst.operand_count - 1];

    const bool never_adds = addend.index == zero_register || (adds.name.empty() && !adds.value);
    if (addend.index != zero_register && addend.index != d.index) refuse_here("a sum in other registers");
    const unsigned count = is_integer || single ? columns / 2 : columns / 4;
    if (d.index == zero_register || d.index + count > zero_register) refuse_here();

    const bool negates_a = a != nullptr ? a->negated : inst.code.bit(72), negates_b = inst.code.bit(63);
    const bool transposes_a = a == nullptr && inst.code.bit(61), transposes_b = inst.code.bit(62);
    const bool may_transpose = is_half && !tf32;
    if ((transposes_a || transposes_b) && !may_transpose) refuse_here();
    std::string types;
    if (is_half)
        types = tf32 ? ".f32.tf32.tf32" : bfloat ? ".f32.bf16.bf16" : single ? ".f32.f16.f16" : ".f16.f16.f16";
    else if (is_small)
        types = std::string(single ? ".f32" : ".f16") + (inst.code.bit(76) ? ".e5m2" : ".e4m3") +
                (inst.code.bit(77) ? ".e5m2" : ".e4m3");
    else
        types = std::string(inst.has("SAT") ? ".satfinite" : "") + ".s32" + (inst.code.bit(76) ? ".s8" : ".u8") +
                (inst.code.bit(82) ? ".s8" : ".u8");

    const unsigned descriptions = index_of(description);
    if (descriptions == zero_register || descriptions % 2 != 0) refuse_here("a pair at an odd register");
    const std::string left = a != nullptr ? fragment(*a, 4) : matrix_description(descriptions),
                      right = matrix_description(descriptions + 2); // its place is the same where a is in registers
    std::string accumulators;
    for (unsigned i = 0; i < count; ++i) accumulators += (i == 0 ? "{" : ", ") + register_name(d.index + i);
    accumulators += "}";
    std::string text = std::string("wgmma.mma_async") + (sparse ? ".sp" : "") + ".sync.aligned.m64n" +
                       std::to_string(columns) + "k" + std::to_string(depth) + types + " " + accumulators + ", " +
                       left + ", " + right;
    if (sparse)
        text += ", " + in_register(read(*metadata)) + ", " +
                std::to_string(selector != nullptr ? selector->value : std::int64_t(0));
    text += ", " + (never_adds ? std::string("%pfalse") : as_register(adds));
    if (!is_integer) text += std::string(negates_a ? ", -1" : ", 1") + (negates_b ? ", -1" : ", 1");
    if (may_transpose) {
        if (a == nullptr) text += transposes_a ? ", 1" : ", 0";
        text += transposes_b ? ", 1" : ", 0";
    }
    emit(text);
    if (group.value == 0) emit("wgmma.commit_group.sync.aligned");
    for (unsigned i = 0; i < count; ++i) forget(d.index + i);
}

/// A statement has written the register.
void Lifter::forget(unsigned index) {
    pairs_.reset(index / 2);
    pairs_.reset(window_high_bits + index);
    forget_sine_argument(index);
    registers_[index] = Register{};
    registers_[index].number = next_number_++;
}

void Lifter::write_all(unsigned index, const Value& value) {
    if (index == zero_register) return;
    emit("mov.b32 " + register_name(index) + ", " + value.text);
    forget(index);
}

void Lifter::stsm(const Instruction& inst) {
    const unsigned count = inst.has("4") ? 4 : inst.has("2") ? 2 : 1;
    const std::string where = address(inst.operands[0], ".shared");
    emit_guarded("stmatrix.sync.aligned.m8n8.x" + std::to_string(count) + (inst.has("MT88") ? ".trans" : "") +
                 ".shared.b16 " + where + ", " + fragment(inst.operands[1], count));
}

} // namespace ptarmigan::sass
