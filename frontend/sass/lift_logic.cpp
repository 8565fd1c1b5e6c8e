// SPDX-License-Identifier: Apache-2.0
// Rules of moves, logic, shifts, bits, predicates and special registers.
#include "frontend/sass/lifter.h"
#include "frontend/sass/special_registers.h"

#include <algorithm>

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

} // namespace

void Lifter::nothing(const Instruction&) {}

void Lifter::mov(const Instruction& inst) {
    if (inst.form->id == FormId::mov && inst.operands[2].value != 15) refuse_here("MOV of some lanes");
    if (inst.has("64")) return write_wide(inst.operands[0], read_wide(inst.operands[1]));
    write(inst.operands[0], read(inst.operands[1]));
}

void Lifter::r2ur(const Instruction& inst) {
    // The predicate (whether all lanes have one value) is asked for where the value goes nowhere; it may be false then.
    if (const auto lone = lone_lane_in_loop(); lone && inst.operands[0].index != true_predicate) {
        // Which lanes have another value than the one that is taken, and go round once more: none, each takes its own.
        // .OR: or had another one in the instruction before.
        emit("mov.pred %lone, " + as_register(guard_condition()));
        write(inst.operands[1], read(inst.operands[2]));
        if (!inst.has("OR")) write_predicate(inst.operands[0], false);
        return;
    }
    if (inst.has("OR")) refuse_here();
    if (inst.operands[0].index != true_predicate) {
        // Only a way that is not gone here may ask for it.
        if (!is_guard_of_division(inst)) refuse_here();
        write_predicate(inst.operands[0], true);
    }
    const Value source = read(inst.operands[2]);
    if (!is_by_hand_ || source.constant) {
        write(inst.operands[1], source);
        return;
    }
    // The register is the warp's: it gets what the first lane has whose guard is true.
    const std::string here = lanes_here(), lanes = is_unguarded(inst) ? here : temporary();
    const std::string below = temporary(), lowest = temporary(), first = temporary(), result = temporary(),
                      some = predicate_temporary();
    if (!is_unguarded(inst)) {
        emit("vote.sync.ballot.b32 " + lanes + ", " + as_register(guard_condition()) + ", " + here);
    }
    emit("sub.s32 " + below + ", 0, " + lanes);
    emit("and.b32 " + lowest + ", " + lanes + ", " + below);
    emit("bfind.u32 " + first + ", " + lowest);
    emit("shfl.sync.idx.b32 " + result + ", " + in_register(source) + ", " + first + ", 0x1f, " + here);
    if (is_unguarded(inst)) {
        write(inst.operands[1], value_of(result));
        return;
    }
    const std::string kept = temporary();
    const Value old = read_index(index_of(inst.operands[1]));
    emit("setp.ne.s32 " + some + ", " + lanes + ", 0");
    emit("selp.b32 " + kept + ", " + result + ", " + in_register(old) + ", " + some);
    write_all(index_of(inst.operands[1]), value_of(kept));
}

void Lifter::sel(const Instruction& inst) {
    const Value a = read(inst.operands[1]), b = read(inst.operands[2]);
    Condition choice = condition(inst.operands[3]);
    if (choice.name.empty()) {
        write(inst.operands[0], choice.value ? a : b);
        return;
    }
    const std::string result = temporary();
    emit("selp.b32 " + result + ", " + (choice.negated ? b : a).text + ", " + (choice.negated ? a : b).text + ", " +
         choice.name);
    write(inst.operands[0], value_of(result));
}

void Lifter::lop3(const Instruction& inst) {
    const Operand &p = inst.operands[0], &d = inst.operands[1];
    const Value a = read_plain(inst.operands[2]), b = read_plain(inst.operands[3]), c = read_plain(inst.operands[4]);
    const auto table = unsigned(inst.operands[5].value);
    // A constant input leaves a smaller table; the usual ones have names that later stages know.
    const auto bit = [&](unsigned x, unsigned y, unsigned z) { return table >> (4 * x + 2 * y + z) & 1u; };
    std::string result = temporary();
    const bool without_c = c.constant && (*c.constant == 0 || *c.constant == ~0u);
    const unsigned z = c.constant && *c.constant == ~0u ? 1 : 0;
    const unsigned of_two = bit(0, 0, z) | bit(0, 1, z) << 1 | bit(1, 0, z) << 2 | bit(1, 1, z) << 3;
    Value value;
    if (without_c && of_two == 8)
        emit("and.b32 " + result + ", " + a.text + ", " + b.text);
    else if (without_c && of_two == 14)
        emit("or.b32 " + result + ", " + a.text + ", " + b.text);
    else if (without_c && of_two == 6)
        emit("xor.b32 " + result + ", " + a.text + ", " + b.text);
    else if (without_c && of_two == 5) // ~b
        emit("not.b32 " + result + ", " + b.text);
    else if (without_c && of_two == 3)
        emit("not.b32 " + result + ", " + a.text);
    else
        emit("lop3.b32 " + result + ", " + a.text + ", " + b.text + ", " + c.text + ", " + hexadecimal(table));
    value = value_of(result);
    if (p.index != true_predicate) {
        const std::string nonzero = predicate_temporary();
        emit("setp.ne.s32 " + nonzero + ", " + result + ", 0");
        const Condition with = condition(inst.operands[6]);
        std::string combined = nonzero;
        if (!with.name.empty() || with.value != inst.has("PAND")) {
            combined = predicate_temporary();
            emit((inst.has("PAND") ? "and.pred " : "or.pred ") + combined + ", " + nonzero + ", " + as_register(with));
        }
        write(d, value);
        write_predicate(p, combined);
        return;
    }
    write(d, value);
}

void Lifter::plop3(const Instruction& inst) {
    const Condition sources[] = {condition(inst.operands[2]), condition(inst.operands[3]), condition(inst.operands[4])};
    std::string names[3];
    for (unsigned i = 0; i < 3; ++i) names[i] = as_register(sources[i]);
    std::string results[2];
    for (unsigned which = 0; which < 2; ++which) {
        if (inst.operands[which].index == true_predicate) continue;
        auto table = unsigned(inst.operands[5 + which].value);
        // Constant inputs leave a table of fewer.
        const auto entry = [&](unsigned i) { return table >> i & 1u; };
        std::string result;
        for (unsigned i = 0; i < 8; ++i) { // a sum of products over inputs that are no constants
            if (entry(i) == 0) continue;
            bool possible = true;
            std::string product;
            for (unsigned k = 0; k < 3; ++k) {
                const bool wanted = (i >> (2 - k) & 1u) != 0;
                if (sources[k].name.empty()) {
                    if (sources[k].value != wanted) possible = false;
                    continue;
                }
                std::string factor = names[k];
                if (!wanted) {
                    factor = predicate_temporary();
                    emit("not.pred " + factor + ", " + names[k]);
                }
                if (product.empty()) {
                    product = factor;
                    continue;
                }
                const std::string both = predicate_temporary();
                emit("and.pred " + both + ", " + product + ", " + factor);
                product = both;
            }
            if (!possible) continue;
            if (product.empty()) product = "%ptrue";
            if (result.empty()) {
                result = product;
                continue;
            }
            const std::string sum = predicate_temporary();
            emit("or.pred " + sum + ", " + result + ", " + product);
            result = sum;
        }
        results[which] = predicate_temporary();
        emit("mov.pred " + results[which] + ", " + (result.empty() ? "%pfalse" : result));
    }
    for (unsigned which = 0; which < 2; ++which)
        if (!results[which].empty()) write_predicate(inst.operands[which], results[which]);
}

/// Logic of signs: the table of LOP3, of which the upper bit is taken.
void Lifter::plop3_sign(const Instruction& inst) {
    const std::string a = in_register(read(inst.operands[2])), b = in_register(read(inst.operands[3])),
                      c = in_register(read(inst.operands[4]));
    std::string results[2];
    for (unsigned which = 0; which < 2; ++which) {
        if (inst.operands[which].index == true_predicate) continue;
        const std::string bits = temporary();
        results[which] = predicate_temporary();
        emit("lop3.b32 " + bits + ", " + a + ", " + b + ", " + c + ", " +
             hexadecimal(std::uint64_t(inst.operands[5 + which].value)));
        emit("setp.lt.s32 " + results[which] + ", " + bits + ", 0");
    }
    for (unsigned which = 0; which < 2; ++which)
        if (!results[which].empty()) write_predicate(inst.operands[which], results[which]);
}

void Lifter::prmt(const Instruction& inst) {
    const Value a = read(inst.operands[1]), selector = read(inst.operands[2]), c = read(inst.operands[3]);
    std::string opcode = "prmt.b32";
    for (const char* mode : {"F4E", "B4E", "RC8", "ECL", "ECR", "RC16"})
        if (inst.has(mode)) {
            opcode += '.';
            for (const char* letter = mode; *letter != 0; ++letter)
                opcode += *letter >= 'A' ? char(*letter + 32) : *letter;
        }
    const std::string result = temporary();
    emit(opcode + " " + result + ", " + a.text + ", " + c.text + ", " + selector.text);
    write(inst.operands[0], value_of(result));
}

/// A funnel of two registers, c above a, shifted by b. A shift is 32 (or 64 of the 64-bit types) at most, or with .W
/// the amount's lower bits.
void Lifter::shf(const Instruction& inst) {
    const Operand& d = inst.operands[0];
    const Value a = read(inst.operands[1]), amount = read(inst.operands[2]), c = read(inst.operands[3]);
    const bool is_left = inst.has("L"), is_high = inst.has("HI"), wraps = inst.has("W");
    const bool is_wide = inst.has("U64") || inst.has("S64"), is_signed = inst.has("S32") || inst.has("S64");
    const std::uint32_t limit = is_wide ? 64 : 32;
    std::optional<std::uint32_t> by = amount.constant;
    if (by) by = wraps ? *by % limit : std::min(*by, limit);
    std::string shift = by ? std::to_string(*by) : amount.text;
    if (!by && wraps) {
        shift = temporary();
        emit("and.b32 " + shift + ", " + amount.text + ", " + std::to_string(limit - 1));
    } else if (!by) {
        shift = temporary();
        emit("min.u32 " + shift + ", " + amount.text + ", " + std::to_string(limit));
    }
    const std::string result = temporary();
    if (is_left && !is_high) {
        emit("shl.b32 " + result + ", " + a.text + ", " + shift);
        write(d, value_of(result));
        return;
    }
    if (!is_left && is_high) {
        emit((is_signed ? "shr.s32 " : "shr.u32 ") + result + ", " + c.text + ", " + shift);
        Value value = value_of(result);
        if (is_signed && by && *by == 31) value.sign_of = c.number;
        write(d, value);
        return;
    }
    // Rotations, and words of a longer number. Halves of one value stay together.
    const bool is_whole = a.wide >= 0 && a.wide == c.wide && !a.is_high && c.is_high;
    if (!is_wide && !is_whole) {
        emit((is_left ? "shf.l.clamp.b32 " : "shf.r.clamp.b32 ") + result + ", " + in_register(a) + ", " +
             in_register(c) + ", " + shift);
        write(d, value_of(result));
        return;
    }
    const std::string wide = wide_temporary();
    emit((is_left     ? "shl.b64 "
          : is_signed ? "shr.s64 "
                      : "shr.u64 ") +
         wide + ", " + wide_text(join(a, c)) + ", " + shift);
    const int whole = name_wide(wide);
    write(d, is_high ? high_half(whole) : low_half(whole));
}

void Lifter::sgxt(const Instruction& inst) {
    const Value a = read(inst.operands[1]), width = read(inst.operands[2]);
    const std::string result = temporary();
    if (inst.has("W") || !width.constant || *width.constant == 0 || *width.constant > 32) {
        emit(std::string("szext.") + (inst.has("W") ? "wrap" : "clamp") + (inst.has("U32") ? ".u32 " : ".s32 ") +
             result + ", " + a.text + ", " + width.text);
        write(inst.operands[0], value_of(result));
        return;
    }
    emit((inst.has("U32") ? "bfe.u32 " : "bfe.s32 ") + result + ", " + a.text + ", 0, " +
         std::to_string(*width.constant));
    write(inst.operands[0], value_of(result));
}

void Lifter::bmsk(const Instruction& inst) {
    const Value position = read(inst.operands[1]), width = read(inst.operands[2]);
    const std::string result = temporary();
    emit(std::string("bmsk.") + (inst.has("W") ? "wrap" : "clamp") + ".b32 " + result + ", " + position.text + ", " +
         width.text);
    write(inst.operands[0], value_of(result));
}

void Lifter::flo(const Instruction& inst) {
    if (inst.operands[1].index != true_predicate) refuse_here();
    if (const auto alone = lone_masks_.find(read(inst.operands[2]).number);
        alone != lone_masks_.end() && inst.has("U32") && !inst.has("SH")) {
        const Value lane = value_of(alone->second);
        lone_lanes_.insert(lane.number);
        write(inst.operands[0], lane);
        return;
    }
    const std::string result = temporary();
    emit(std::string("bfind") + (inst.has("SH") ? ".shiftamt" : "") + (inst.has("U32") ? ".u32 " : ".s32 ") + result +
         ", " + read(inst.operands[2]).text);
    write(inst.operands[0], value_of(result));
}

void Lifter::brev(const Instruction& inst) {
    const std::string result = temporary();
    emit("brev.b32 " + result + ", " + read(inst.operands[1]).text);
    write(inst.operands[0], value_of(result));
}

void Lifter::popc(const Instruction& inst) {
    if (lone_masks_.count(read(inst.operands[1]).number) != 0) {
        write(inst.operands[0], constant(1));
        return;
    }
    const std::string result = temporary();
    emit("popc.b32 " + result + ", " + read(inst.operands[1]).text);
    write(inst.operands[0], value_of(result));
}

/// d = a with the bits of `mask` taken from the predicates, of one byte.
void Lifter::p2r(const Instruction& inst) {
    const Value a = read(inst.operands[2]);
    const auto mask = std::uint32_t(inst.operands[3].value);
    const unsigned first = inst.has("B1") ? 8 : inst.has("B2") ? 16 : inst.has("B3") ? 24 : 0; // of the byte
    if ((mask & ~0xffu) != 0) refuse_here();
    std::string result = temporary();
    emit("and.b32 " + result + ", " + a.text + ", " + hexadecimal(~(mask << first)));
    if ((mask & 0x80u) != 0)
        emit("or.b32 " + result + ", " + result + ", " + hexadecimal(0x80u << first)); // the true one
    for (unsigned i = 0; i < 7; ++i) {
        if ((mask >> i & 1u) == 0) continue;
        const std::string bit = temporary(), sum = temporary();
        emit("selp.b32 " + bit + ", " + hexadecimal(1u << (first + i)) + (inst.guard_uniform ? ", 0, %up" : ", 0, %p") +
             std::to_string(i));
        emit("or.b32 " + sum + ", " + result + ", " + bit);
        result = sum;
    }
    write(inst.operands[0], value_of(result));
}

void Lifter::r2p(const Instruction& inst) {
    const Value a = read(inst.operands[1]);
    const auto mask = std::uint32_t(inst.operands[2].value);
    const unsigned byte = inst.has("B1") ? 1 : inst.has("B2") ? 2 : inst.has("B3") ? 3 : 0;
    if ((mask & ~0xffu) != 0) refuse_here(); // the eighth is the true one
    for (unsigned i = 0; i < 7; ++i) {
        if ((mask >> i & 1u) == 0) continue;
        const std::string bit = temporary(), is_set = predicate_temporary();
        emit("and.b32 " + bit + ", " + a.text + ", " + hexadecimal(1u << (8 * byte + i)));
        emit("setp.ne.s32 " + is_set + ", " + bit + ", 0");
        Operand p;
        p.kind = inst.guard_uniform ? Kind::uniform_predicate : Kind::predicate;
        p.index = std::uint8_t(i);
        write_predicate(p, is_set);
    }
}

void Lifter::s2r(const Instruction& inst) {
    const auto number = unsigned(inst.operands[1].value);
    if (number == shared_window_high_number) {
        write(inst.operands[0], shared_window_high());
        return;
    }
    if (number == cluster_rank_number) {
        if (!has_ranks_) {
            write(inst.operands[0], constant(0));
            return;
        }
        const std::string rank = temporary();
        emit("mov.u32 " + rank + ", %cluster_ctarank");
        write(inst.operands[0], value_of(rank));
        return;
    }
    const std::string_view source = number == lowest_stack_number && stack_ == Stack::growing
                                        ? std::string_view("%stack_lowest")
                                        : special_register_in_ptx(number);
    if (source.empty()) refuse_here(special_register_name(number));
    if (source == "0") {
        write(inst.operands[0], constant(0));
        return;
    }
    const std::string result = temporary();
    emit("mov.u32 " + result + ", " + std::string(source));
    write(inst.operands[0], value_of(result));
}

void Lifter::cs2r(const Instruction& inst) {
    const auto number = unsigned(inst.operands[1].value);
    if (inst.has("32")) {
        s2r(inst);
        return;
    }
    const std::string result = wide_temporary();
    if (number == 255)
        emit("mov.b64 " + result + ", 0");
    else if (number == 80)
        emit("mov.u64 " + result + ", %clock64");
    else if (number == 82)
        emit("mov.u64 " + result + ", %globaltimer");
    else
        refuse_here(special_register_name(number));
    write_pair(inst.operands[0], name_wide(result));
}

} // namespace ptarmigan::sass
