// SPDX-License-Identifier: Apache-2.0
// Rules of floating-point instructions; conversions are in lift_conversion.cpp, halves in lift_half.cpp.
#include "frontend/sass/lifter.h"

namespace ptarmigan::sass {

using Kind = Operand::Kind;

void Lifter::fsel(const Instruction& inst) {
    if (inst.has("FTZ")) refuse_here();
    // A choice changes nothing but the sign, of a NaN neither.
    const auto chosen = [&](const Operand& operand) {
        Operand plain = operand;
        plain.absolute = plain.negated = false;
        std::string text = read_float(plain);
        if (read_plain(operand).constant) return read_float(operand);
        const auto apply = [&](const char* opcode, const char* bits) {
            const std::string changed = temporary();
            emit(std::string(opcode) + changed + ", " + text + bits);
            text = changed;
        };
        if (operand.absolute) apply("and.b32 ", ", 0x7fffffff");
        if (operand.negated) apply("xor.b32 ", ", 0x80000000");
        return text;
    };
    const std::string a = chosen(inst.operands[1]), b = chosen(inst.operands[2]);
    const Condition choice = condition(inst.operands[3]);
    const std::string result = temporary();
    if (choice.name.empty())
        emit("mov.b32 " + result + ", " + (choice.value ? a : b));
    else
        emit("selp.f32 " + result + ", " + (choice.negated ? b : a) + ", " + (choice.negated ? a : b) + ", " +
             choice.name);
    write(inst.operands[0], value_of(result));
}

/// An operand of .XORSIGN, which is absolute, as PTX's .xorsign.abs takes it.
void Lifter::use_signs_of_absolutes(Operand& operand, std::uint32_t signs) {
    const bool is_positive =
        operand.kind == Kind::immediate && (std::uint32_t(operand.value) & signs) == 0 && !operand.absolute;
    if ((!operand.absolute && !is_positive) || operand.negated) refuse_here();
    operand.absolute = false;
}

void Lifter::fmnmx(const Instruction& inst) {
    std::string words = std::string(inst.has("FTZ") ? ".ftz" : "") + (inst.has("NAN") ? ".NaN" : "");
    Operand left = inst.operands[1], right = inst.operands[2];
    if (inst.has("XORSIGN")) { // as ptxas writes PTX's .xorsign.abs
        use_signs_of_absolutes(left, 0x80000000);
        use_signs_of_absolutes(right, 0x80000000);
        words += ".xorsign.abs";
    }
    const std::string a = read_float(left), b = read_float(right);
    write_extreme(inst, words + ".f32 ", a, b);
}

void Lifter::fmnmx3(const Instruction& inst) {
    const std::string words = std::string(inst.has("FTZ") ? ".ftz" : "") + (inst.has("NAN") ? ".NaN" : "");
    write_extreme(inst, words + ".f32 ", read_float(inst.operands[1]), read_float(inst.operands[2]),
                  read_float(inst.operands[3]));
}

/// 1.0 where the comparison holds.
void Lifter::fset(const Instruction& inst) {
    const std::string a = read_float(inst.operands[1]), b = read_float(inst.operands[2]), word = compare_word(inst);
    std::string holds = inst.has("T") ? "%ptrue" : "%pfalse";
    if (!word.empty()) {
        holds = predicate_temporary();
        emit("setp." + word + (inst.has("FTZ") ? ".ftz.f32 " : ".f32 ") + holds + ", " + a + ", " + b);
    }
    const std::string combined = predicate_temporary(), result = temporary();
    emit(std::string(inst.has("OR")    ? "or.pred "
                     : inst.has("XOR") ? "xor.pred "
                                       : "and.pred ") +
         combined + ", " + holds + ", " + as_register(condition(inst.operands[3])));
    emit("selp.b32 " + result + ", 0x3f800000, 0, " + combined);
    write(inst.operands[0], value_of(result));
}

void Lifter::fsetp(const Instruction& inst) {
    const std::string a = read_float(inst.operands[2]), b = read_float(inst.operands[3]), word = compare_word(inst);
    std::string result = inst.has("T") ? "%ptrue" : "%pfalse";
    if (!word.empty()) {
        result = predicate_temporary();
        emit("setp." + word + (inst.has("FTZ") ? ".ftz.f32 " : ".f32 ") + result + ", " + a + ", " + b);
    }
    combine(inst, result, inst.operands[0], inst.operands[1], inst.operands[4]);
}

void Lifter::dsetp(const Instruction& inst) {
    const std::string a = read_double(inst.operands[2]), b = read_double(inst.operands[3]), word = compare_word(inst);
    std::string result;
    if (word.empty()) { // MIN, MAX: whether a is the extreme, and whether both are NaN
        const Operand &with = inst.operands[4], &both = inst.operands[1];
        if (with.index != true_predicate || with.negated) refuse_here("a condition");
        const std::string extreme = wide_temporary(), bits = wide_temporary(), is_first = predicate_temporary(),
                          is_number = predicate_temporary(), no_numbers = predicate_temporary(),
                          takes_first = predicate_temporary(), first_nan = predicate_temporary(),
                          second_nan = predicate_temporary();
        emit(std::string(inst.has("MIN") ? "min" : "max") + ".f64 " + extreme + ", " + a + ", " + b);
        emit("mov.b64 " + bits + ", " + a);
        emit("setp.eq.s64 " + is_first + ", " + extreme + ", " + bits);
        emit("setp.num.f64 " + is_number + ", " + a + ", " + a);
        emit("and.pred " + takes_first + ", " + is_first + ", " + is_number);
        emit("not.pred " + first_nan + ", " + is_number);
        emit("setp.nan.f64 " + second_nan + ", " + b + ", " + b);
        emit("and.pred " + no_numbers + ", " + first_nan + ", " + second_nan);
        write_predicate(inst.operands[0], takes_first);
        write_predicate(both, no_numbers);
        return;
    } else {
        result = predicate_temporary();
        emit("setp." + word + ".f64 " + result + ", " + a + ", " + b);
    }
    combine(inst, result, inst.operands[0], inst.operands[1], inst.operands[4]);
}

/// A product times a power of two, rounded once: ptxas makes it of two multiplications that it may join.
void Lifter::multiply_scaled(const Instruction& inst, const char* scale) {
    const bool flushes = inst.has("FTZ");
    const auto wide = [&](const Operand& operand) {
        const std::string result = wide_temporary();
        emit(std::string("cvt") + (flushes ? ".ftz" : "") + ".f64.f32 " + result + ", " + read_float(operand));
        return result;
    };
    const std::string a = wide(inst.operands[1]), b = wide(inst.operands[2]), result = temporary();
    emit("mul.rn.f64 " + a + ", " + a + ", " + b); // exact, of 48 bits
    emit("mul.rn.f64 " + a + ", " + a + ", " + scale);
    emit("cvt" + rounding(inst) + (flushes ? ".ftz" : "") + (inst.has("SAT") ? ".sat" : "") + ".f32.f64 " + result +
         ", " + a);
    write(inst.operands[0], value_of(result));
}

void Lifter::fmul(const Instruction& inst) {
    if (inst.has("FMZ")) refuse_here();
    constexpr std::pair<const char*, const char*> scales[] = {
        {"D8", "0d3FC0000000000000"}, {"D4", "0d3FD0000000000000"}, {"D2", "0d3FE0000000000000"},
        {"M2", "0d4000000000000000"}, {"M4", "0d4010000000000000"}, {"M8", "0d4020000000000000"}};
    for (const auto& [name, scale] : scales)
        if (inst.has(name)) return multiply_scaled(inst, scale);
    const std::string a = read_float(inst.operands[1]), b = read_float(inst.operands[2]), result = temporary();
    emit("mul" + rounding(inst) + (inst.has("FTZ") ? ".ftz" : "") + (inst.has("SAT") ? ".sat" : "") + ".f32 " + result +
         ", " + a + ", " + b);
    const Value value = value_of(result);
    // A sine's argument in turns: PTX's sin has the multiplication inside.
    std::string sine_argument;
    if (inst.has("RZ") && !inst.has("SAT") && inst.operands[2].kind == Kind::immediate &&
        std::uint32_t(inst.operands[2].value) == 0x3e22f983u) {
        sine_argument = temporary();
        emit("mov.b32 " + sine_argument + ", " + a);
        sine_arguments_[value.number] = (inst.has("FTZ") ? "z" : "n") + sine_argument;
    }
    // A cube's coordinate, divided by the largest of the three.
    for (const unsigned divisor : {2u, 1u}) {
        const Operand& operand = inst.operands[divisor];
        if (operand.kind != Kind::reg || operand.absolute || inst.has("SAT") || rounding(inst) != ".rn") continue;
        const unsigned number = read_index(operand.index).number;
        if (reciprocals_.count(number) == 0) continue;
        const std::string factor = temporary();
        emit((operand.negated ? "neg.f32 " : "mov.b32 ") + factor + ", " + (divisor == 2 ? a : b));
        reciprocal_products_[value.number] = {number, factor};
        break;
    }
    write(inst.operands[0], value);
    if (!sine_argument.empty()) keep_sine_argument(index_of(inst.operands[0]), sine_argument, inst.has("FTZ"));
}

/// For MUFU in other blocks, or under the same guard.
void Lifter::keep_sine_argument(unsigned index, const std::string& argument, bool flushes) {
    if (index == zero_register) return;
    emit_guarded("mov.b32 %sine" + std::to_string(index) + ", " + argument);
    if (is_unguarded(*current_))
        pairs_.set((flushes ? flushed_sine_bits : sine_bits) + index);
    else
        guarded_sines_[index] = {predicate_index(current_->guard, current_->guard_uniform), current_->guard_negated,
                                 flushes};
}

void Lifter::forget_sine_argument(unsigned index) {
    pairs_.reset(sine_bits + index);
    pairs_.reset(flushed_sine_bits + index);
    guarded_sines_.erase(index);
}

std::optional<std::pair<std::string, bool>> Lifter::sine_argument(const Operand& turns) {
    if (const auto found = sine_arguments_.find(read_plain(turns).number); found != sine_arguments_.end())
        return std::pair(found->second.substr(1), found->second[0] == 'z');
    if (turns.kind != Kind::reg && turns.kind != Kind::uniform) return {};
    const unsigned index = index_of(turns);
    if (index == zero_register) return {};
    const std::string argument = "%sine" + std::to_string(index);
    for (const bool flushes : {false, true})
        if (pairs_[(flushes ? flushed_sine_bits : sine_bits) + index]) return std::pair(argument, flushes);
    const auto found = guarded_sines_.find(index);
    const bool is_same_guard = found != guarded_sines_.end() && !is_unguarded(*current_) &&
                               found->second.guard == predicate_index(current_->guard, current_->guard_uniform) &&
                               found->second.negated == current_->guard_negated;
    return is_same_guard ? std::optional(std::pair(argument, found->second.flushes)) : std::nullopt;
}

void Lifter::fadd(const Instruction& inst) {
    const std::string a = read_float(inst.operands[1]), b = read_float(inst.operands[2]), result = temporary();
    emit("add" + rounding(inst) + (inst.has("FTZ") ? ".ftz" : "") + (inst.has("SAT") ? ".sat" : "") + ".f32 " + result +
         ", " + a + ", " + b);
    const Value value = value_of(result);
    const Operand &x = inst.operands[1], &y = inst.operands[2];
    const bool is_move = x.kind == Kind::reg && !x.absolute && y.kind == Kind::reg && y.index == zero_register &&
                         y.negated && !inst.has("SAT"); // x + -0, which changes the sign at most
    if (is_move) {
        const auto [divisor, factor] = cube_coordinate(read_index(x.index));
        if (divisor != 0) {
            const std::string moved = temporary();
            emit((x.negated ? "neg.f32 " : "mov.b32 ") + moved + ", " + factor);
            reciprocal_products_[value.number] = {divisor, moved};
        }
    }
    write(inst.operands[0], value);
}

/// What a cube's coordinate was before it was divided, and the number of the reciprocal; 0: it was not divided here.
std::pair<unsigned, std::string> Lifter::cube_coordinate(const Value& value) const {
    if (reciprocals_.count(value.number) != 0) return {value.number, "0f3F800000"};
    const auto found = reciprocal_products_.find(value.number);
    return found == reciprocal_products_.end() ? std::pair<unsigned, std::string>{} : found->second;
}

void Lifter::ffma(const Instruction& inst) {
    if (inst.has("FMZ")) refuse_here();
    const std::string a = read_float(inst.operands[1]), b = read_float(inst.operands[2]),
                      c = read_float(inst.operands[3]), result = temporary();
    emit("fma" + rounding(inst) + (inst.has("FTZ") ? ".ftz" : "") + (inst.has("SAT") ? ".sat" : "") + ".f32 " + result +
         ", " + a + ", " + b + ", " + c);
    write(inst.operands[0], value_of(result));
}

/// Whether a division needs its slow way, which is right for all operands; the fast one is where exponents are
/// moderate: then no step of it leaves the normal numbers.
void Lifter::fchk(const Instruction& inst) {
    if (known_checks_.count(inst.address) != 0) { // the slow way is `div`, which knows all numbers
        for (unsigned i = 1; i < 3; ++i)
            emit(std::string("mov.b32 %fchk_") + (i == 1 ? "a" : "b") + std::to_string(inst.operands[0].index) + ", " +
                 read_float(inst.operands[i]));
        write_predicate(inst.operands[0], true);
        return;
    }
    std::string slow;
    for (unsigned i = 1; i < 3; ++i) {
        const std::string value = in_register(read_plain(inst.operands[i])), exponent = temporary(),
                          above = temporary(), outside = predicate_temporary();
        emit("bfe.u32 " + exponent + ", " + value + ", 23, 8");
        emit("sub.s32 " + above + ", " + exponent + ", 80");
        emit("setp.ge.u32 " + outside + ", " + above + ", 94");
        if (slow.empty()) {
            slow = outside;
            continue;
        }
        const std::string either = predicate_temporary();
        emit("or.pred " + either + ", " + slow + ", " + outside);
        slow = either;
    }
    write_predicate(inst.operands[0], slow);
}

void Lifter::mufu(const Instruction& inst) {
    const Operand& d = inst.operands[0];
    if (inst.has("F16") || inst.has("BF16")) {
        const bool bfloat = inst.has("BF16");
        const char* words = inst.has("TANH")            ? (bfloat ? "tanh.approx.bf16 " : "tanh.approx.f16 ")
                            : inst.has("EX2") && bfloat ? "ex2.approx.ftz.bf16 "
                            : inst.has("EX2")           ? "ex2.approx.f16 "
                                                        : nullptr;
        if (words == nullptr) refuse_here();
        const std::string half = "%h" + std::to_string(halves_++), both = temporary();
        emit(words + half + ", " + read_half(inst.operands[1]));
        emit("cvt.u32.u16 " + both + ", " + half);
        write(d, value_of(both));
        return;
    }
    if (inst.operands[1].part != 0) refuse_here();
    if (inst.has("RCP64H") || inst.has("RSQ64H")) { // of the upper half; the lower one is zero
        if (inst.operands[1].negated || inst.operands[1].absolute) refuse_here();
        const Value high = read(inst.operands[1]);
        const std::string result = wide_temporary();
        emit((inst.has("RCP64H") ? "rcp.approx.ftz.f64 " : "rsqrt.approx.ftz.f64 ") + result + ", " +
             wide_text(join(constant(0), high)));
        write(d, value_of(high_half(name_wide(result)).text));
        return;
    }
    const std::string result = temporary();
    if (inst.has("SIN") || inst.has("COS")) {
        if (inst.operands[1].negated || inst.operands[1].absolute) refuse_here();
        const auto argument = sine_argument(inst.operands[1]);
        if (!argument) refuse_here("an argument that no multiplication by 1/2pi made");
        emit((inst.has("SIN") ? "sin.approx" : "cos.approx") + std::string(argument->second ? ".ftz.f32 " : ".f32 ") +
             result + ", " + argument->first);
        write(d, value_of(result));
        return;
    }
    const std::string a = read_float(inst.operands[1]);
    const char* opcode = inst.has("EX2")    ? "ex2.approx.ftz.f32 "
                         : inst.has("LG2")  ? "lg2.approx.ftz.f32 "
                         : inst.has("RCP")  ? "rcp.approx.ftz.f32 "
                         : inst.has("RSQ")  ? "rsqrt.approx.ftz.f32 "
                         : inst.has("SQRT") ? "sqrt.approx.ftz.f32 "
                         : inst.has("TANH") ? "tanh.approx.f32 "
                                            : nullptr;
    if (opcode == nullptr) refuse_here();
    emit(opcode + result + ", " + a);
    const Value value = value_of(result);
    if (inst.has("RCP")) reciprocals_.insert(value.number);
    write(d, value);
}

void Lifter::dmul(const Instruction& inst) {
    const std::string a = read_double(inst.operands[1]), b = read_double(inst.operands[2]), result = wide_temporary();
    emit("mul" + rounding(inst) + ".f64 " + result + ", " + a + ", " + b);
    write_pair(inst.operands[0], name_wide(result));
}

void Lifter::dadd(const Instruction& inst) {
    const std::string a = read_double(inst.operands[1]), b = read_double(inst.operands[2]), result = wide_temporary();
    emit("add" + rounding(inst) + ".f64 " + result + ", " + a + ", " + b);
    write_pair(inst.operands[0], name_wide(result));
}

void Lifter::dfma(const Instruction& inst) {
    const std::string a = read_double(inst.operands[1]), b = read_double(inst.operands[2]),
                      c = read_double(inst.operands[3]), result = wide_temporary();
    emit("fma" + rounding(inst) + ".f64 " + result + ", " + a + ", " + b + ", " + c);
    write_pair(inst.operands[0], name_wide(result));
}

} // namespace ptarmigan::sass
