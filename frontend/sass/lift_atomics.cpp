// SPDX-License-Identifier: Apache-2.0
// Rules of atomic operations; the loops that machine code makes of some in shared memory: lift_shared_loop.cpp.
#include "frontend/sass/combined_atomics.h"
#include "frontend/sass/lifter.h"

#include <optional>

namespace ptarmigan::sass {
namespace {

struct AtomicType {
    const char *type, *bits;
    unsigned bytes;
};
AtomicType atomic_type(const Instruction& inst) {
    if (inst.has("S32")) return {".s32", ".b32", 4};
    if (inst.has("128")) return {".b128", ".b128", 16};
    if (inst.has("64")) return {".u64", ".b64", 8};
    if (inst.has("S64")) return {".s64", ".b64", 8};
    if (inst.has("F32.FTZ.RN")) return {".f32", "", 4};
    if (inst.has("F64.RN")) return {".f64", "", 8};
    if (inst.has("F16x2.RN")) return {".noftz.f16x2", "", 4};
    if (inst.has("BF16x2.RN")) return {".noftz.bf16x2", "", 4};
    return {".u32", ".b32", 4};
}

std::string operation_words(const Instruction& inst, const AtomicType& type) {
    static constexpr const char* words[][2] = {{"ADD", ".add"}, {"MIN", ".min"}, {"MAX", ".max"},
                                               {"INC", ".inc"}, {"DEC", ".dec"}, {"AND", ".and"},
                                               {"OR", ".or"},   {"XOR", ".xor"}, {"EXCH", ".exch"}};
    for (const auto& word : words) {
        if (!inst.has(word[0])) continue;
        const std::string operation = word[1];
        const bool is_bits = operation == ".and" || operation == ".or" || operation == ".xor" || operation == ".exch";
        if (is_bits && type.bits[0] == 0) throw Unliftable("a logic operation of floats");
        // Addition wraps: there is no add.s64, and s32 is the same.
        const bool is_sum = operation == ".add" && type.bits[0] != 0;
        if (type.bytes == 16 && operation != ".exch") throw Unliftable("a sum of 128 bits");
        return operation + (is_bits ? type.bits : is_sum ? (type.bytes == 8 ? ".u64" : ".u32") : type.type);
    }
    throw Unliftable("an atomic operation that is not known");
}

/// Several floats, one operation for each, in consecutive registers.
struct VectorType {
    const char* words;
    unsigned registers;
    bool is_of_halves; ///< two, each of which PTX has in a register of 16 bits
};
std::optional<VectorType> vector_type(const Instruction& inst) {
    if (inst.has("F32x2.FTZ.RN")) return VectorType{".v2.f32 ", 2, false};
    if (inst.has("F32x4.FTZ.RN")) return VectorType{".v4.f32 ", 4, false};
    if (inst.has("F16x4.RN")) return VectorType{".noftz.v2.f16x2 ", 2, false};
    if (inst.has("F16x8.RN")) return VectorType{".noftz.v4.f16x2 ", 4, false};
    if (inst.has("BF16x4.RN")) return VectorType{".noftz.v2.bf16x2 ", 2, false};
    if (inst.has("BF16x8.RN")) return VectorType{".noftz.v4.bf16x2 ", 4, false};
    if (inst.has("ADD")) return {};
    if (inst.has("F16x2.RN")) return VectorType{".noftz.v2.f16 ", 1, true};
    if (inst.has("BF16x2.RN")) return VectorType{".noftz.v2.bf16 ", 1, true};
    return {};
}

std::string atomic_order(const Instruction& inst) {
    if (inst.architecture < 80) switch (inst.code.bits(77, 4)) {
        case 8:
        case 9: return ".relaxed.cta";
        case 10: return ".relaxed.gpu";
        case 11: return ".relaxed.sys";
        default: throw Unliftable("an order of memory that is not known");
        }
    switch (inst.code.bits(77, 4)) {
    case 0: return ".relaxed.gpu"; // of code that ptxas did not write: atomic all the same
    case 5: return ".relaxed.cta";
    case 7: return ".relaxed.gpu";
    case 10: return ".relaxed.sys";
    default: throw Unliftable("an order of memory that is not known");
    }
}

} // namespace

/// The floats of a vector operation between braces.
std::string Lifter::vector_operands(const Operand& first, unsigned registers, bool is_of_halves) {
    if (!is_of_halves) return fragment(first, registers);
    const std::string both = word_at(index_of(first));
    const std::string low = half_of(both);
    return "{" + low + ", " + upper_half_of(both) + "}";
}

/// Four registers as one value, and back.
std::string Lifter::read_quad(const Operand& first) {
    const unsigned index = index_of(first);
    const bool is_zero = index == zero_register;
    const std::string low = wide_text(pair_at(index)), high = wide_text(pair_at(is_zero ? index : index + 2));
    const std::string quad = "%o" + std::to_string(quads_++);
    emit("mov.b128 " + quad + ", {" + low + ", " + high + "}");
    return quad;
}

void Lifter::write_quad(const Operand& first, const std::string& quad) {
    if (index_of(first) == zero_register) return;
    const std::string low = wide_temporary(), high = wide_temporary();
    emit("mov.b128 {" + low + ", " + high + "}, " + quad);
    write_pair(first, name_wide(low));
    Operand upper = first;
    upper.index = std::uint8_t(upper.index + 2);
    write_pair(upper, name_wide(high));
}

void Lifter::atomic(const Instruction& inst) {
    const std::string space = inst.form->mnemonic == "ATOM" ? "" : ".global";
    const std::string where = address(inst.operands[2], space);
    if (const auto vector = vector_type(inst); vector) {
        const char* operation = inst.has("MIN") ? ".min" : inst.has("MAX") ? ".max" : ".add";
        const std::string terms = vector_operands(inst.operands[3], vector->registers, vector->is_of_halves);
        std::vector<std::string> results = result_temporaries(vector->registers);
        std::string list;
        for (const std::string& result : results) list += (list.empty() ? "{" : ", ") + result;
        const std::string low = "%h" + std::to_string(halves_), high = "%h" + std::to_string(halves_ + 1);
        if (vector->is_of_halves) {
            halves_ += 2;
            list = "{" + low + ", " + high;
        }
        emit_guarded("atom" + atomic_order(inst) + space + operation + vector->words + list + "}, " + where + ", " +
                     terms);
        if (vector->is_of_halves) emit("mov.b32 " + results[0] + ", {" + low + ", " + high + "}");
        write_results(inst.operands[1], results);
        done_by_hardware(inst);
        return;
    }
    const AtomicType type = atomic_type(inst);
    const unsigned source = index_of(inst.operands[3]);
    const std::string opcode = "atom" + atomic_order(inst) + space + operation_words(inst, type);
    if (type.bytes == 16) {
        const std::string term = read_quad(inst.operands[3]), result = "%o" + std::to_string(quads_++);
        emit_guarded(opcode + " " + result + ", " + where + ", " + term);
        write_quad(inst.operands[1], result);
    } else if (type.bytes == 8) {
        const std::string result = wide_temporary(), term = wide_text(pair_at(source));
        const std::string sum = opcode + " " + result + ", " + where + ", " + term;
        if (space.empty() && inst.has("F64.RN") && keeps_nan_of_term(inst)) {
            const std::string is_nan = predicate_temporary(), quiet = wide_temporary();
            emit("isspacep.shared " + is_nan + ", " + where.substr(1, where.find_first_of("+-]") - 1));
            emit("setp.nan.and.f64 " + is_nan + ", " + term + ", " + term + ", " + is_nan);
            emit("or.b64 " + quiet + ", " + term + ", 0x8000000000000");
            emit("@" + with_guard(inst, {.name = is_nan, .negated = true}) + " " + sum);
            emit("@" + with_guard(inst, {.name = is_nan}) + " atom.exch.b64 " + result + ", " + where + ", " + quiet);
        } else {
            emit_guarded(sum);
        }
        write_pair(inst.operands[1], name_wide(result));
    } else {
        const std::string result = temporary();
        emit_guarded(opcode + " " + result + ", " + where + ", " + atomic_operand(type.bits[0] != 0, source));
        write(inst.operands[1], value_of(result));
    }
    done_by_hardware(inst);
}

/// Whether the loop for shared memory that follows the sum of doubles by a generic address, and is left out, adds the
/// term to the old value: of two NaNs DADD keeps the second, PTX's operation the old value.
bool Lifter::keeps_nan_of_term(const Instruction& inst) const {
    const std::size_t first = inst.address / 16 + 1, end = std::min(code_.size(), first + combination_limit);
    const Operand* old = nullptr;
    for (std::size_t i = first; i < end; ++i) {
        const Instruction& next = code_[i];
        if (!next.form) return false; // nothing comes here, or the kernel were refused
        if (next.form->id == FormId::lds && next.has("64")) old = &next.operands[0];
        if (next.form->id == FormId::dadd && old != nullptr)
            return next.operands[1].kind == Operand::Kind::reg && next.operands[1].index == old->index;
        if (next.form->mnemonic == "ATOM" && !next.has("CAS")) return false;
    }
    return false;
}

/// Whether there is an instruction for the operation in the space of the address: code for where there is none is
/// left out (always_branches). Here there is one for all spaces.
void Lifter::done_by_hardware(const Instruction& inst) {
    if (inst.operands[0].index != true_predicate) write_predicate(inst.operands[0], true);
}

/// A zero that is seen to be one makes a loop that waits by atomicAdd(p, 0) known as such.
std::string Lifter::atomic_operand(bool is_integer, unsigned index) {
    const Value value = read_index(index);
    return is_integer && value.constant ? value.text : in_register(value);
}

std::string Lifter::in_register(const Value& value) {
    if (!value.constant) return value.text;
    const std::string copy = temporary();
    emit("mov.b32 " + copy + ", " + value.text);
    return copy;
}

void Lifter::reduction(const Instruction& inst) {
    const std::string where = address(inst.operands[0], ""); // of generic addresses, too
    if (const auto vector = vector_type(inst); vector) {
        const char* operation = inst.has("MIN") ? ".min" : inst.has("MAX") ? ".max" : ".add";
        emit_guarded("red" + atomic_order(inst) + operation + vector->words + where + ", " +
                     vector_operands(inst.operands[1], vector->registers, vector->is_of_halves));
        return;
    }
    const AtomicType type = atomic_type(inst);
    const unsigned source = index_of(inst.operands[1]);
    emit_guarded("red" + atomic_order(inst) + operation_words(inst, type) + " " + where + ", " +
                 (type.bytes == 8 ? wide_text(pair_at(source)) : atomic_operand(type.bits[0] != 0, source)));
}

void Lifter::compare_and_swap(const Instruction& inst) {
    const bool is_wide = inst.has("64");
    const std::string space = inst.form->id == FormId::atomg_cas ? ".global" : "";
    Operand place = inst.operands[2];
    place.wide = true; // there is no room to say so
    const std::string where = address(place, space);
    const unsigned compared = index_of(inst.operands[3]), swapped = index_of(inst.operands[4]);
    const std::string size = inst.has("128") ? ".b128 " : is_wide ? ".b64 " : ".b32 ";
    const std::string opcode = "atom" + atomic_order(inst) + space + ".cas" + size;
    if (inst.has("128")) {
        const std::string expected = read_quad(inst.operands[3]), fresh = read_quad(inst.operands[4]),
                          result = "%o" + std::to_string(quads_++);
        emit_guarded(opcode + result + ", " + where + ", " + expected + ", " + fresh);
        write_quad(inst.operands[1], result);
    } else if (is_wide) {
        const std::string result = wide_temporary();
        emit_guarded(opcode + result + ", " + where + ", " + wide_text(pair_at(compared)) + ", " +
                     wide_text(pair_at(swapped)));
        write_pair(inst.operands[1], name_wide(result));
    } else {
        const std::string result = temporary();
        emit_guarded(opcode + result + ", " + where + ", " + in_register(read_index(compared)) + ", " +
                     in_register(read_index(swapped)));
        write(inst.operands[1], value_of(result));
    }
    done_by_hardware(inst);
}

void Lifter::atomic_shared(const Instruction& inst) {
    const AtomicType type = atomic_type(inst);
    const std::string where = address(inst.operands[1], ".shared");
    const unsigned source = index_of(inst.operands[2]);
    const std::string opcode = "atom.shared" + operation_words(inst, type);
    if (type.bytes == 16) {
        const std::string term = read_quad(inst.operands[2]), result = "%o" + std::to_string(quads_++);
        emit_guarded(opcode + " " + result + ", " + where + ", " + term);
        write_quad(inst.operands[0], result);
    } else if (type.bytes == 8) {
        const std::string result = wide_temporary();
        emit_guarded(opcode + " " + result + ", " + where + ", " + wide_text(pair_at(source)));
        write_pair(inst.operands[0], name_wide(result));
    } else {
        const std::string result = temporary();
        emit_guarded(opcode + " " + result + ", " + where + ", " + atomic_operand(type.bits[0] != 0, source));
        write(inst.operands[0], value_of(result));
    }
}

/// CAS gives the old value, CAST whether it was the expected one.
void Lifter::compare_and_swap_shared(const Instruction& inst) {
    const bool is_wide = inst.has("64"), tests = inst.has("CAST") || inst.has("CAST.SPIN");
    const std::string where = address(inst.operands[1], ".shared");
    if (inst.has("128")) {
        if (tests) refuse_here();
        const std::string quad = read_quad(inst.operands[2]), swapped = read_quad(inst.operands[3]),
                          result = "%o" + std::to_string(quads_++);
        emit_guarded("atom.shared.cas.b128 " + result + ", " + where + ", " + quad + ", " + swapped);
        return write_quad(inst.operands[0], result);
    }
    const unsigned compared = index_of(inst.operands[2]), swapped = index_of(inst.operands[3]);
    const std::string expected = is_wide ? wide_text(pair_at(compared)) : in_register(read_index(compared));
    const std::string fresh = is_wide ? wide_text(pair_at(swapped)) : in_register(read_index(swapped));
    const std::string old = is_wide ? wide_temporary() : temporary();
    emit_guarded("atom.shared.cas" + std::string(is_wide ? ".b64 " : ".b32 ") + old + ", " + where + ", " + expected +
                 ", " + fresh);
    if (tests) {
        const std::string same = predicate_temporary(), result = temporary();
        emit("setp.eq" + std::string(is_wide ? ".s64 " : ".s32 ") + same + ", " + old + ", " + expected);
        if (inst.operands[0].kind == Operand::Kind::predicate) return write_predicate(inst.operands[0], same);
        emit("selp.b32 " + result + ", 1, 0, " + same);
        if (is_wide)
            write_pair(inst.operands[0], join(value_of(result), constant(0)));
        else
            write(inst.operands[0], value_of(result));
    } else if (is_wide) {
        write_pair(inst.operands[0], name_wide(old));
    } else {
        write(inst.operands[0], value_of(old));
    }
}

void Lifter::count_shared(const Instruction& inst) {
    const std::string where = address(inst.operands[1], ".shared"), result = temporary();
    emit_guarded("atom.shared.add.u32 " + result + ", " + where + ", 1");
    write(inst.operands[0], value_of(result));
}

} // namespace ptarmigan::sass
