// SPDX-License-Identifier: Apache-2.0
// Rules of matrix instructions.
#include "frontend/sass/lifter.h"

namespace ptarmigan::sass {

namespace {

/// "{%t1, %t2}".
std::string list_of(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "{" : ", ") + name;
    return text + "}";
}

} // namespace

/// Registers from `operand` on, "{%r4, %r5}". A negated one has the signs of its elements, the bits of `signs`,
/// changed.
std::string Lifter::fragment(const Operand& operand, unsigned count, const char* signs) {
    std::vector<std::string> names;
    for (unsigned i = 0; i < count; ++i) {
        names.push_back(in_register(operand.index == zero_register ? constant(0) : read_index(operand.index + i)));
        if (!operand.negated) continue;
        if (signs == nullptr) refuse_here("a negated matrix");
        const std::string negative = temporary();
        emit("xor.b32 " + negative + ", " + names.back() + ", " + signs);
        names.back() = negative;
    }
    return list_of(names);
}

std::vector<std::string> Lifter::result_temporaries(unsigned count) {
    std::vector<std::string> names;
    for (unsigned i = 0; i < count; ++i) names.push_back(temporary());
    return names;
}

void Lifter::write_results(const Operand& first, const std::vector<std::string>& results) {
    if (first.index == zero_register) return;
    for (unsigned i = 0; i < results.size(); ++i) write_index(first.index + i, value_of(results[i]));
}

void Lifter::hmma(const Instruction& inst) {
    if (inst.has("SP")) refuse_here();
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
    // Complex products negate one of their parts.
    const char* signs = tf32 ? "0x80000000" : "0x80008000";
    const std::string left = fragment(inst.operands[1], a, signs), right = fragment(inst.operands[2], b, signs),
                      addend = fragment(inst.operands[3], count);
    const std::vector<std::string> results = result_temporaries(count);
    if (!is_unguarded(inst)) refuse_here("a condition");
    emit("mma.sync.aligned." + std::string(shape) + ".row.col." + sum + "." + of + "." + sum + " " + list_of(results) +
         ", " + left + ", " + right + ", " + addend);
    write_results(inst.operands[0], results);
}

/// Products of bytes.
void Lifter::imma(const Instruction& inst) {
    const bool a_is_narrow = inst.code.bit(83), b_is_narrow = inst.code.bit(84);
    if (a_is_narrow || b_is_narrow || !is_unguarded(inst)) refuse_here();
    const char* shape = nullptr;
    unsigned a = 1, b = 1, count = 4;
    if (inst.has("8816")) {
        shape = "m8n8k16";
        count = 2;
    } else if (inst.has("16816")) {
        shape = "m16n8k16";
        a = 2;
    } else if (inst.has("16832")) {
        shape = "m16n8k32";
        a = 4;
        b = 2;
    }
    if (shape == nullptr) refuse_here();
    const std::string left = fragment(inst.operands[1], a), right = fragment(inst.operands[2], b),
                      addend = fragment(inst.operands[3], count);
    const std::vector<std::string> results = result_temporaries(count);
    emit("mma.sync.aligned." + std::string(shape) + ".row.col" + (inst.has("SAT") ? ".satfinite" : "") + ".s32" +
         (inst.code.bit(76) ? ".s8" : ".u8") + (inst.code.bit(78) ? ".s8" : ".u8") + ".s32 " + list_of(results) + ", " +
         left + ", " + right + ", " + addend);
    write_results(inst.operands[0], results);
}

/// Products of numbers of 8 bits.
void Lifter::qmma(const Instruction& inst) {
    if (!is_unguarded(inst)) refuse_here("a condition");
    const bool is_long = inst.has("16832"), single = inst.has("F32");
    constexpr unsigned second_type = 79, first_type = 78;
    const unsigned count = single ? 4 : 2;
    const std::string left = fragment(inst.operands[1], is_long ? 4 : 2),
                      right = fragment(inst.operands[2], is_long ? 2 : 1), addend = fragment(inst.operands[3], count);
    const std::vector<std::string> results = result_temporaries(count);
    const auto type = [&](unsigned bit) { return std::string(inst.code.bit(bit) ? ".e5m2" : ".e4m3"); };
    const std::string sum = single ? ".f32" : ".f16";
    emit("mma.sync.aligned." + std::string(is_long ? "m16n8k32" : "m16n8k16") + ".row.col" + sum + type(first_type) +
         type(second_type) + sum + " " + list_of(results) + ", " + left + ", " + right + ", " + addend);
    write_results(inst.operands[0], results);
}

/// Products of doubles, which lie in pairs of registers in PTX's order.
void Lifter::dmma(const Instruction& inst) {
    for (const char* rounding : {"RM", "RP", "RZ"})
        if (inst.has(rounding)) refuse_here();
    if (!is_unguarded(inst)) refuse_here("a condition");
    struct Shape {
        const char *name, *ptx;
        unsigned a, b, sum;
    };
    constexpr Shape shapes[] = {
        {"16x8x4", "m16n8k4", 2, 1, 4}, {"16x8x8", "m16n8k8", 4, 2, 4}, {"16x8x16", "m16n8k16", 8, 4, 4}};
    Shape shape{"884", "m8n8k4", 1, 1, 2};
    for (const Shape& large : shapes)
        if (inst.has(large.name)) shape = large;
    const auto pairs = [&](const Operand& operand, unsigned count) {
        std::string list;
        for (unsigned i = 0; i < count; ++i) {
            const bool is_zero = operand.index == zero_register;
            std::string element = wide_text(pair_at(is_zero ? operand.index : operand.index + 2 * i));
            const auto change = [&](const char* operation, const char* bits) {
                const std::string changed = wide_temporary();
                emit(std::string(operation) + ".b64 " + changed + ", " + element + ", " + bits);
                element = changed;
            };
            if (operand.absolute) change("and", "0x7fffffffffffffff");
            if (operand.negated) change("xor", "0x8000000000000000");
            list += (i == 0 ? "{" : ", ") + element;
        }
        return list + "}";
    };
    const std::string left = pairs(inst.operands[1], shape.a), right = pairs(inst.operands[2], shape.b),
                      addend = pairs(inst.operands[3], shape.sum);
    std::vector<std::string> results;
    std::string list;
    for (unsigned i = 0; i < shape.sum; ++i) {
        results.push_back(wide_temporary());
        list += (i == 0 ? "{" : ", ") + results.back();
    }
    emit("mma.sync.aligned." + std::string(shape.ptx) + ".row.col.f64.f64.f64.f64 " + list + "}, " + left + ", " +
         right + ", " + addend);
    Operand d = inst.operands[0];
    if (d.index == zero_register) return;
    for (const std::string& result : results) {
        write_pair(d, name_wide(result));
        d.index = std::uint8_t(d.index + 2);
    }
}

void Lifter::ldsm(const Instruction& inst) {
    if (inst.has("M816") || inst.has("M832")) refuse_here();
    const unsigned count = inst.has("4") ? 4 : inst.has("2") ? 2 : 1;
    const std::string where = address(inst.operands[1], ".shared");
    const std::vector<std::string> results = result_temporaries(count);
    emit_guarded("ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) + (inst.has("MT88") ? ".trans" : "") +
                 ".shared.b16 " + list_of(results) + ", " + where);
    write_results(inst.operands[0], results);
}

void Lifter::movm(const Instruction& inst) {
    if (!inst.has("MT88")) refuse_here();
    const std::string result = temporary();
    emit_guarded("movmatrix.sync.aligned.m8n8.trans.b16 " + result + ", " + in_register(read(inst.operands[1])));
    write(inst.operands[0], value_of(result));
}

} // namespace ptarmigan::sass
