// SPDX-License-Identifier: Apache-2.0
// Rules of integer comparisons, minima and differences; sums are in lift_sums.cpp, products in lift_products.cpp,
// moves, logic and predicates in lift_logic.cpp.
#include "frontend/sass/lifter.h"

namespace ptarmigan::sass {

using Kind = Operand::Kind;

std::string Lifter::compare_word(const Instruction& inst) {
    static constexpr const char* words[][2] = {
        {"LT", "lt"},   {"EQ", "eq"},   {"LE", "le"},   {"GT", "gt"},   {"NE", "ne"},   {"GE", "ge"},   {"NUM", "num"},
        {"NAN", "nan"}, {"LTU", "ltu"}, {"EQU", "equ"}, {"LEU", "leu"}, {"GTU", "gtu"}, {"NEU", "neu"}, {"GEU", "geu"}};
    for (const auto& word : words)
        if (inst.has(word[0])) return word[1];
    return {};
}

/// first = result OP with, second = not result OP with.
void Lifter::combine(const Instruction& inst, const std::string& result, const Operand& first, const Operand& second,
                     const Operand& with) {
    const Condition other = condition(with);
    const std::string operation = inst.has("OR") ? "or" : inst.has("XOR") ? "xor" : "and";
    const auto one = [&](const std::string& value) {
        if (other.name.empty()) {
            if (operation == "and") return other.value ? value : std::string("%pfalse");
            if (operation == "or") return other.value ? std::string("%ptrue") : value;
        }
        const std::string combined = predicate_temporary();
        emit(operation + ".pred " + combined + ", " + value + ", " + as_register(other));
        return combined;
    };
    const bool needs_second = second.index != true_predicate;
    std::string inverse;
    if (needs_second) {
        inverse = predicate_temporary();
        emit("not.pred " + inverse + ", " + result);
        inverse = one(inverse);
    }
    const std::string value = one(result);
    // A source may be a destination, too.
    if (needs_second) {
        const std::string copy = predicate_temporary();
        emit("mov.pred " + copy + ", " + inverse);
        write_predicate(first, value);
        write_predicate(second, copy);
    } else {
        write_predicate(first, value);
    }
}

void Lifter::isetp(const Instruction& inst) {
    const std::string word = compare_word(inst);
    std::string result;
    if (inst.has("S64") || inst.has("U64")) {
        if (inst.has("EX") || word.empty()) refuse_here();
        const std::string first = read_wide(inst.operands[2]), second = read_wide(inst.operands[3]);
        result = predicate_temporary();
        emit("setp." + word + (inst.has("U64") ? ".u64 " : ".s64 ") + result + ", " + first + ", " + second);
        return combine(inst, result, inst.operands[0], inst.operands[1], inst.operands[4]);
    }
    const std::string type = inst.has("U32") ? ".u32 " : ".s32 ";
    const Value a = read(inst.operands[2]), b = read(inst.operands[3]);
    if (word.empty()) {
        result = inst.has("T") ? "%ptrue" : "%pfalse";
    } else {
        result = predicate_temporary();
        emit("setp." + word + type + result + ", " + a.text + ", " + b.text);
    }
    if (inst.has("EX")) { // upper halves: where they are equal the lower ones, compared before, decide
        if (word.empty()) refuse_here();
        if (a.constant && b.constant && *a.constant == *b.constant) {
            combine(inst, as_register(condition(inst.operands[5])), inst.operands[0], inst.operands[1],
                    inst.operands[4]);
            return;
        }
        const std::string equal = predicate_temporary(), low = as_register(condition(inst.operands[5])),
                          by_low = predicate_temporary(), unequal = predicate_temporary(),
                          by_high = predicate_temporary(), both = predicate_temporary();
        emit("setp.eq.s32 " + equal + ", " + a.text + ", " + b.text);
        emit("and.pred " + by_low + ", " + equal + ", " + low);
        emit("not.pred " + unequal + ", " + equal);
        emit("and.pred " + by_high + ", " + unequal + ", " + result);
        emit("or.pred " + both + ", " + by_low + ", " + by_high);
        result = both;
    }
    combine(inst, result, inst.operands[0], inst.operands[1], inst.operands[4]);
}

void Lifter::iabs(const Instruction& inst) {
    const std::string result = temporary();
    emit("abs.s32 " + result + ", " + read(inst.operands[1]).text);
    write(inst.operands[0], value_of(result));
}

void Lifter::imnmx(const Instruction& inst) {
    const unsigned first = inst.operand_count - 3u; // behind two predicates on sm_90 and sm_100
    const Value a = read(inst.operands[first]), b = read(inst.operands[first + 1]);
    const bool is_unsigned = inst.has("U32") || inst.has("U16x2"), is_packed = inst.has("U16x2") || inst.has("S16x2");
    if (inst.has("RELU") && is_unsigned) refuse_here();
    const std::string type = std::string(is_unsigned ? ".u" : ".s") + (is_packed ? "16x2 " : "32 ");
    const std::string left = is_packed ? in_register(a) : a.text, right = is_packed ? in_register(b) : b.text;
    const auto gives_predicate = [&](unsigned i) {
        return has_operand(inst, inst.form->operands[i]) && inst.operands[i].index != true_predicate;
    };
    const bool has_predicates = first == 3 && (gives_predicate(1) || gives_predicate(2));
    if (has_predicates && (!is_packed || inst.has("RELU"))) refuse_here("a predicate beside the result");
    const std::string result = extreme(inst, (inst.has("RELU") ? ".relu" : "") + type, left, right);
    // Of halves, the lower one first: whether the result is a's.
    std::array<std::string, 2> is_first;
    for (unsigned half = 0; has_predicates && half < 2; ++half) {
        is_first[half] = predicate_temporary();
        const std::string of_result = half == 0 ? half_of(result) : upper_half_of(result),
                          of_a = half == 0 ? half_of(left) : upper_half_of(left);
        emit("setp.eq.b16 " + is_first[half] + ", " + of_result + ", " + of_a);
    }
    write(inst.operands[0], value_of(result));
    for (unsigned half = 0; has_predicates && half < 2; ++half)
        if (gives_predicate(1 + half)) write_predicate(inst.operands[1 + half], is_first[half]);
}

void Lifter::vimnmx3(const Instruction& inst) {
    const Value a = read(inst.operands[1]), b = read(inst.operands[2]), c = read(inst.operands[3]);
    const bool is_unsigned = inst.has("U32") || inst.has("U16x2"), is_packed = inst.has("U16x2") || inst.has("S16x2");
    if (inst.has("RELU") && is_unsigned) refuse_here();
    const std::string type = std::string(is_unsigned ? ".u" : ".s") + (is_packed ? "16x2 " : "32 ");
    // Zero instead of less, also of the first two, leaves what zero instead of a smaller end does.
    write_extreme(inst, (inst.has("RELU") ? ".relu" : "") + type, in_register(a), in_register(b), in_register(c));
}

void Lifter::viaddmnmx(const Instruction& inst) {
    const Value a = read(inst.operands[1]), b = read(inst.operands[2]), c = read(inst.operands[3]);
    const std::string sum = temporary();
    if (inst.has("U16x2") || inst.has("S16x2")) {
        if (inst.operands[2].negated || (inst.has("RELU") && inst.has("U16x2"))) refuse_here();
        emit("add.u16x2 " + sum + ", " + in_register(a) + ", " + in_register(b));
        return write_extreme(inst,
                             inst.has("U16x2")  ? ".u16x2 "
                             : inst.has("RELU") ? ".relu.s16x2 "
                                                : ".s16x2 ",
                             sum, in_register(c));
    }
    emit("add.s32 " + sum + ", " + a.text + ", " + b.text);
    if (inst.has("RELU") && inst.has("U32")) refuse_here();
    write_extreme(inst, inst.has("U32") ? ".u32 " : inst.has("RELU") ? ".relu.s32 " : ".s32 ", sum, c.text);
}

void Lifter::vabsdiff(const Instruction& inst) {
    if (inst.operands[1].index != true_predicate) refuse_here();
    const Value a = read(inst.operands[2]), b = read(inst.operands[3]), c = read(inst.operands[4]);
    const std::string result = temporary();
    emit(std::string("sad") + (inst.has("U32") ? ".u32 " : ".s32 ") + result + ", " + a.text + ", " + b.text + ", " +
         c.text);
    write(inst.operands[0], value_of(result));
}

/// Of bytes: packed, or their sum and c.
void Lifter::vabsdiff4(const Instruction& inst) {
    const Value a = read(inst.operands[1]), b = read(inst.operands[2]), c = read(inst.operands[3]);
    const std::string result = temporary(), type = inst.has("U8") ? ".u32" : ".s32";
    emit("vabsdiff4.u32" + type + type + (inst.has("ACC") ? ".add " : " ") + result + ", " + in_register(a) + ", " +
         in_register(b) + ", " + in_register(c));
    write(inst.operands[0], value_of(result));
}

/// min or max of two or three operands, as the predicate, the last operand, says.
std::string Lifter::extreme(const Instruction& inst, const std::string& words, const std::string& a,
                            const std::string& b, const std::string& c) {
    const Condition is_minimum = condition(inst.operands[inst.operand_count - 1u]);
    const auto one = [&](const char* opcode) {
        std::string result = temporary();
        emit(opcode + words + result + ", " + a + ", " + b);
        if (c.empty()) return result;
        const std::string of_three = temporary();
        emit(opcode + words + of_three + ", " + result + ", " + c);
        return of_three;
    };
    if (is_minimum.name.empty()) return one(is_minimum.value ? "min" : "max");
    const std::string low = one("min"), high = one("max"), result = temporary();
    emit("selp.b32 " + result + ", " + low + ", " + high + ", " + as_register(is_minimum));
    return result;
}

void Lifter::write_extreme(const Instruction& inst, const std::string& words, const std::string& a,
                           const std::string& b, const std::string& c) {
    write(inst.operands[0], value_of(extreme(inst, words, a, b, c)));
}

} // namespace ptarmigan::sass
