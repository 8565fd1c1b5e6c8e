// SPDX-License-Identifier: Apache-2.0
// Rules of floating-point instructions and conversions.
#include "frontend/sass/lifter.h"

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

std::string rounding(const Instruction& inst) {
    return inst.has("RM") ? ".rm" : inst.has("RP") ? ".rp" : inst.has("RZ") ? ".rz" : ".rn";
}

bool is_zero_register(const Operand& operand) {
    return operand.kind == Kind::reg && operand.index == zero_register;
}

} // namespace

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

namespace {

/// Rounding to an integer, by the words that stand in the row.
std::string to_integer(const Instruction& inst) {
    return inst.has("TRUNC") ? ".rzi" : inst.has("FLOOR") ? ".rmi" : inst.has("CEIL") ? ".rpi" : ".rni";
}

/// Of I2I and I2IP.
std::string narrow_type(const Instruction& inst) {
    return inst.has("U8.S32.SAT") ? ".u8" : inst.has("S8.S32.SAT") ? ".s8" : inst.has("U16.S32.SAT") ? ".u16" : ".s16";
}

} // namespace

/// The nearest value of a narrower type.
void Lifter::i2i(const Instruction& inst) {
    const std::string result = temporary();
    emit("cvt.sat" + narrow_type(inst) + ".s32 " + result + ", " + in_register(read(inst.operands[1])));
    write(inst.operands[0], value_of(result));
}

/// Two such values side by side, and above bytes the lower half of the third operand.
void Lifter::i2ip(const Instruction& inst) {
    const std::string type = narrow_type(inst), result = temporary();
    const bool is_byte = type.ends_with('8');
    const Operand& above = inst.operands[3];
    if (!is_byte && (above.kind != Kind::reg || above.index != zero_register)) refuse_here();
    emit("cvt.pack.sat" + type + (is_byte ? ".s32.b32 " : ".s32 ") + result + ", " +
         in_register(read(inst.operands[1])) + ", " + in_register(read(inst.operands[2])) +
         (is_byte ? ", " + in_register(read(above)) : std::string()));
    write(inst.operands[0], value_of(result));
}

/// I2IP of two floats that are rounded before: ptxas makes it of cvt.rni.s32.f32 and cvt.pack.
void Lifter::f2ip(const Instruction& inst) {
    if (!inst.has("NTZ")) refuse_here();
    const auto whole = [&](const Operand& operand) {
        const std::string result = temporary();
        emit("cvt" + to_integer(inst) + ".s32.f32 " + result + ", " + read_float(operand));
        return result;
    };
    const std::string high = whole(inst.operands[1]), low = whole(inst.operands[2]), result = temporary();
    emit(std::string("cvt.pack.sat.") + (inst.has("U8.F32") ? "u8" : "s8") + ".s32.b32 " + result + ", " + high + ", " +
         low + ", " + in_register(read(inst.operands[3])));
    write(inst.operands[0], value_of(result));
}

/// Float to integer. The f32 forms of PTX's cvt have .NTZ in machine code, the others never.
void Lifter::f2i(const Instruction& inst) {
    const bool from_double = inst.has("F64"), from_bfloat = inst.has("BF16");
    const bool from_half = from_bfloat || inst.has("F16");
    if (from_half ? inst.has("FTZ") : inst.operands[1].part != 0) refuse_here();
    const auto size = unsigned(inst.code.bits(75, 2));
    const bool is_signed = inst.code.bit(72), to_wide = size == 3;
    if (from_bfloat && (size == 0 || inst.architecture < 90)) refuse_here();
    if (inst.has("NTZ") == (inst.form->id != FormId::f2i && inst.form->id != FormId::uf2i)) refuse_here();
    // Results of 8 and 16 bits fill the register as PTX's do.
    const std::string type = std::string(is_signed ? ".s" : ".u") + std::to_string(8u << size);
    const std::string source = from_double ? read_double(inst.operands[1])
                               : from_half ? read_half(inst.operands[1])
                                           : read_float(inst.operands[1]);
    const std::string result = to_wide ? wide_temporary() : temporary();
    if (from_bfloat && size == 1) { // whose PTX form takes no wider register
        const std::string narrow = "%h" + std::to_string(halves_++);
        emit("cvt" + to_integer(inst) + (inst.has("FTZ") ? ".ftz" : "") + type + ".bf16 " + narrow + ", " + source);
        emit(std::string(is_signed ? "cvt.s32.s16 " : "cvt.u32.u16 ") + result + ", " + narrow);
        write(inst.operands[0], value_of(result));
        return;
    }
    emit("cvt" + to_integer(inst) + (inst.has("FTZ") ? ".ftz" : "") + type +
         (from_double   ? ".f64 "
          : from_bfloat ? ".bf16 "
          : from_half   ? ".f16 "
                        : ".f32 ") +
         result + ", " + source);
    if (to_wide)
        write_pair(inst.operands[0], name_wide(result));
    else
        write(inst.operands[0], value_of(result));
}

void Lifter::i2f(const Instruction& inst) {
    const bool to_double = inst.has("F64"), to_bfloat = inst.has("BF16"), to_half = to_bfloat || inst.has("F16");
    if (to_bfloat && inst.architecture < 90) refuse_here();
    const auto size = unsigned(inst.code.bits(84, 2));
    const bool is_signed = inst.code.bit(74);
    std::string source;
    if (size == 3) {
        source = wide_text(read_pair(inst.operands[1]));
    } else {
        source = read_plain(inst.operands[1]).text;
        if (size >= 2 && inst.operands[1].part != 0) refuse_here();
        if (size < 2) { // a part of the register
            const unsigned part = inst.operands[1].part;
            if (size == 1 && part > 1) refuse_here();
            const std::string cut = temporary();
            emit(std::string(is_signed ? "bfe.s32 " : "bfe.u32 ") + cut + ", " + source + ", " +
                 std::to_string((8u << size) * part) + ", " + std::to_string(8u << size));
            source = cut;
        }
    }
    if (to_half) {
        const std::string half = "%h" + std::to_string(halves_++), both = temporary();
        emit("cvt" + rounding(inst) + (to_bfloat ? ".bf16" : ".f16") + (is_signed ? ".s" : ".u") +
             (size == 3 ? "64 " : "32 ") + half + ", " + source);
        emit("cvt.u32.u16 " + both + ", " + half);
        write(inst.operands[0], value_of(both));
        return;
    }
    const std::string result = to_double ? wide_temporary() : temporary();
    emit("cvt" + rounding(inst) + (to_double ? ".f64" : ".f32") + (is_signed ? ".s" : ".u") +
         (size == 3 ? "64 " : "32 ") + result + ", " + source);
    if (to_double)
        write_pair(inst.operands[0], name_wide(result));
    else
        write(inst.operands[0], value_of(result));
}

void Lifter::frnd(const Instruction& inst) {
    if (inst.form->id == FormId::frnd64) {
        const std::string result = wide_temporary();
        emit("cvt" + to_integer(inst) + ".f64.f64 " + result + ", " + read_double(inst.operands[1]));
        write_pair(inst.operands[0], name_wide(result));
        return;
    }
    const bool is_bfloat = inst.has("BF16");
    if (inst.has("F16") || is_bfloat) {
        if (inst.has("FTZ") || inst.code.bits(84, 3) != (is_bfloat ? 4 : 1)) refuse_here();
        if (is_bfloat && inst.architecture < 90) refuse_here(); // PTX has it there
        const std::string half = "%h" + std::to_string(halves_++), both = temporary();
        emit("cvt" + to_integer(inst) + (is_bfloat ? ".bf16.bf16 " : ".f16.f16 ") + half + ", " +
             read_half(inst.operands[1]));
        emit("cvt.u32.u16 " + both + ", " + half);
        write(inst.operands[0], value_of(both));
        return;
    }
    if (inst.operands[1].part != 0 || inst.code.bits(84, 3) != 2) refuse_here();
    const std::string result = temporary();
    emit("cvt" + to_integer(inst) + (inst.has("FTZ") ? ".ftz" : "") + ".f32.f32 " + result + ", " +
         read_float(inst.operands[1]));
    write(inst.operands[0], value_of(result));
}

/// As conversions to 64 bits negate what they read, or take its absolute value: a NaN stays as it is.
std::string Lifter::signed_but_nans(const Operand& source, const std::string& wide) {
    if (!source.negated && !source.absolute) return wide;
    const std::string changed = wide_temporary(), result = wide_temporary(), is_nan = predicate_temporary();
    emit((source.absolute ? "and.b64 " : "xor.b64 ") + changed + ", " + wide +
         (source.absolute ? ", 0x7fffffffffffffff" : ", 0x8000000000000000"));
    if (source.absolute && source.negated) emit("or.b64 " + changed + ", " + changed + ", 0x8000000000000000");
    emit("setp.nan.f64 " + is_nan + ", " + wide + ", " + wide);
    emit("selp.b64 " + result + ", " + wide + ", " + changed + ", " + is_nan);
    return result;
}

void Lifter::f2f64(const Instruction& inst) {
    const auto to = unsigned(inst.code.bits(75, 3)), from = unsigned(inst.code.bits(84, 3));
    const bool to_bfloat = to == 4 && cubin_.architecture >= 90; // PTX has it there
    Operand plain = inst.operands[1];
    plain.negated = plain.absolute = false;
    const bool from_bfloat = from == 4 && cubin_.architecture >= 90;
    if (to == 3 && (from == 2 || ((from == 1 || from_bfloat) && !inst.has("FTZ")))) {
        const std::string result = wide_temporary();
        emit(std::string("cvt") + (inst.has("FTZ") ? ".ftz" : "") + ".f64" +
             (from == 2   ? ".f32 "
              : from == 1 ? ".f16 "
                          : ".bf16 ") +
             result + ", " + (from == 2 ? read_float(plain) : read_half(plain)));
        write_pair(inst.operands[0], name_wide(signed_but_nans(inst.operands[1], result)));
    } else if (to == 2 && from == 3) {
        const std::string result = temporary();
        emit("cvt" + rounding(inst) + (inst.has("FTZ") ? ".ftz" : "") + ".f32.f64 " + result + ", " +
             read_double(inst.operands[1]));
        write(inst.operands[0], value_of(result));
    } else if ((to == 1 || to_bfloat) && from == 3 && !inst.has("FTZ")) {
        const std::string half = "%h" + std::to_string(halves_++), both = temporary();
        emit("cvt" + rounding(inst) + (to_bfloat ? ".bf16" : ".f16") + ".f64 " + half + ", " +
             read_double(inst.operands[1]));
        emit("cvt.u32.u16 " + both + ", " + half);
        write(inst.operands[0], value_of(both));
    } else {
        refuse_here();
    }
}

void Lifter::f2fp(const Instruction& inst) {
    const std::string words = std::string(inst.has("RZ") ? ".rz" : ".rn") + (inst.has("RELU") ? ".relu" : "") +
                              (inst.has("SATFINITE") ? ".satfinite" : "");
    const std::string result = temporary(), half = "%h" + std::to_string(halves_++);
    if (inst.has("E4M3") || inst.has("E5M2")) return f2fp_of_bytes(inst, words, result, half);
    if (inst.has("H1") || (inst.form->id == FormId::f2fp_hopper && !inst.has("F32"))) refuse_here();
    const std::string type = inst.has("BF16") ? ".bf16" : ".f16";
    if (inst.has("PACK_B")) { // one number, whose lower bits are zero
        if (inst.has("SATFINITE") || !is_zero_register(inst.operands[1]) || !is_zero_register(inst.operands[3]))
            refuse_here();
        emit("cvt" + words + ".tf32.f32 " + result + ", " + read_float(inst.operands[2]));
    } else if (inst.has("TF32")) {
        refuse_here();
    } else if (inst.has("MERGE_C")) { // one number, beside the upper half of c
        if (!is_zero_register(inst.operands[1]) || !is_zero_register(inst.operands[3])) refuse_here();
        emit("cvt" + words + type + ".f32 " + half + ", " + read_float(inst.operands[2]));
        emit("cvt.u32.u16 " + result + ", " + half);
    } else {
        const std::string a = read_float(inst.operands[1]), b = read_float(inst.operands[2]);
        emit("cvt" + words + type + "x2.f32 " + result + ", " + a + ", " + b);
    }
    write(inst.operands[0], value_of(result));
}

/// Two numbers of 8 bits, from two f32 or a pair of f16 (beside the upper half of c), or to such a pair.
void Lifter::f2fp_of_bytes(const Instruction& inst, const std::string& words, const std::string& result,
                           const std::string& half) {
    const std::string bytes = inst.has("E4M3") ? ".e4m3x2" : ".e5m2x2";
    const bool to_bytes = inst.code.bit(87);
    const bool upper_half = inst.code.bit(88);
    if (inst.code.bit(72) || inst.has("RZ") || to_bytes == inst.has("UNPACK_B") || (to_bytes && upper_half))
        refuse_here();
    if (!to_bytes) {
        if (!inst.has("F16") || inst.has("SATFINITE") || !is_zero_register(inst.operands[1]) ||
            !is_zero_register(inst.operands[3]))
            refuse_here();
        std::string pair = in_register(read_plain(inst.operands[2]));
        if (upper_half) {
            const std::string shifted = temporary();
            emit("shr.u32 " + shifted + ", " + pair + ", 16");
            pair = shifted;
        }
        emit("cvt.u16.u32 " + half + ", " + pair);
        emit("cvt" + words + ".f16x2" + bytes + " " + result + ", " + half);
    } else {
        if ((inst.has("E4M3") && inst.has("E5M2")) || !inst.has("SATFINITE") || !is_zero_register(inst.operands[3]))
            refuse_here();
        if (inst.has("PACK_AB_MERGE_C") && inst.has("F32")) {
            const std::string a = read_float(inst.operands[1]), b = read_float(inst.operands[2]);
            emit("cvt" + words + bytes + ".f32 " + half + ", " + a + ", " + b);
        } else if (inst.has("UNPACK_B_MERGE_C") && inst.has("F16") && is_zero_register(inst.operands[1])) {
            emit("cvt" + words + bytes + ".f16x2 " + half + ", " + in_register(read_plain(inst.operands[2])));
        } else {
            refuse_here();
        }
        emit("cvt.u32.u16 " + result + ", " + half);
    }
    write(inst.operands[0], value_of(result));
}

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

/// To a half in the lower 16 bits.
/// F2F.BF16.F32 up or down, which PTX has not: the upper half, one more where what is left out leads away from zero.
void Lifter::round_to_bfloat(const Instruction& inst) {
    const std::string whole = temporary(), half = temporary(), rest = temporary(), result = temporary();
    const std::string is_inexact = predicate_temporary(), moves = predicate_temporary(), is_nan = predicate_temporary();
    emit("mov.f32 " + whole + ", " + read_float(inst.operands[1]));
    emit("shr.u32 " + half + ", " + whole + ", 16");
    emit("and.b32 " + rest + ", " + whole + ", 0xffff");
    emit("setp.ne.u32 " + is_inexact + ", " + rest + ", 0");
    emit((inst.has("RP") ? "setp.ge.and.s32 " : "setp.lt.and.s32 ") + moves + ", " + whole + ", 0, " + is_inexact);
    emit("selp.b32 " + rest + ", 1, 0, " + moves);
    emit("add.u32 " + half + ", " + half + ", " + rest);
    emit("setp.nan.f32 " + is_nan + ", " + whole + ", " + whole);
    emit("selp.b32 " + result + ", 0x7fff, " + half + ", " + is_nan);
    write(inst.operands[0], value_of(result));
}

void Lifter::f2f(const Instruction& inst) {
    const auto to = unsigned(inst.code.bits(75, 3)), from = unsigned(inst.code.bits(84, 3));
    constexpr unsigned f16 = 1, f32 = 2, bf16 = 4;
    const Operand& source = inst.operands[1];
    if (from == bf16 && to == f32 && source.kind == Kind::reg && !source.negated && !source.absolute) {
        const std::string half = read_half(source), result = temporary();
        emit(std::string("cvt") + (inst.has("FTZ") ? ".ftz" : "") + ".f32.bf16 " + result + ", " + half);
        // PTX without .ftz is a shift, which keeps NaNs; here they are the one that additions give, too.
        if (!inst.has("FTZ")) emit("add.rn.f32 " + result + ", " + result + ", 0f80000000");
        write(inst.operands[0], value_of(result));
        return;
    }
    if (from == f16 && to == f32 && source.kind == Kind::reg && !inst.has("FTZ")) {
        const std::string result = temporary();
        emit("cvt.f32.f16 " + result + ", " + read_half(source));
        emit("add.rn.f32 " + result + ", " + result + ", 0f80000000"); // one NaN for all, as above
        write(inst.operands[0], value_of(result));
        return;
    }
    if (((from == f16 && to == bf16) || (from == bf16 && to == f16)) && source.kind == Kind::reg && !inst.has("FTZ")) {
        const std::string half = "%h" + std::to_string(halves_++), result = temporary();
        emit("cvt" + rounding(inst) + (to == f16 ? ".f16.bf16 " : ".bf16.f16 ") + half + ", " + read_half(source));
        emit("cvt.u32.u16 " + result + ", " + half);
        write(inst.operands[0], value_of(result));
        return;
    }
    if (from != f32 || (to != f16 && to != bf16) || inst.has("FTZ")) refuse_here();
    if (to == bf16 && (inst.has("RM") || inst.has("RP"))) return round_to_bfloat(inst);
    const std::string half = "%h" + std::to_string(halves_++), result = temporary();
    emit("cvt" + rounding(inst) + (to == f16 ? ".f16" : ".bf16") + ".f32 " + half + ", " +
         read_float(inst.operands[1]));
    emit("cvt.u32.u16 " + result + ", " + half);
    write(inst.operands[0], value_of(result));
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
