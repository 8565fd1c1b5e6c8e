// SPDX-License-Identifier: Apache-2.0
// Rules of conversions between numbers.
#include "frontend/sass/lifter.h"

namespace ptarmigan::sass {

using Kind = Operand::Kind;

namespace {

/// Rounding to an integer, by the words that stand in the row.
std::string to_integer(const Instruction& inst) {
    return inst.has("TRUNC") ? ".rzi" : inst.has("FLOOR") ? ".rmi" : inst.has("CEIL") ? ".rpi" : ".rni";
}

/// Of I2I and I2IP.
std::string narrow_type(const Instruction& inst) {
    for (const char* type : {"U8", "S8", "U16", "U2", "S2", "U4", "S4"})
        if (inst.has((std::string(type) + ".S32.SAT").c_str()))
            return (type[0] == 'U' ? ".u" : ".s") + std::string(type + 1);
    return ".s16";
}

} // namespace

/// The nearest value of a narrower type.
void Lifter::i2i(const Instruction& inst) {
    const std::string result = temporary();
    emit("cvt.sat" + narrow_type(inst) + ".s32 " + result + ", " + in_register(read(inst.operands[1])));
    write(inst.operands[0], value_of(result));
}

/// Two such values side by side, and above less than halves the lower bits of the third operand.
void Lifter::i2ip(const Instruction& inst) {
    const std::string type = narrow_type(inst), result = temporary();
    const bool is_half = type.ends_with("16");
    if (inst.code.bits(72, 2) != (type.ends_with('4') ? 2u : type.ends_with('2') ? 3u : 0u)) refuse_here();
    const Operand& above = inst.operands[3];
    if (is_half && (above.kind != Kind::reg || above.index != zero_register)) refuse_here();
    emit("cvt.pack.sat" + type + (is_half ? ".s32 " : ".s32.b32 ") + result + ", " +
         in_register(read(inst.operands[1])) + ", " + in_register(read(inst.operands[2])) +
         (is_half ? std::string() : ", " + in_register(read(above))));
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

/// To a half in the lower 16 bits.
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

} // namespace ptarmigan::sass
