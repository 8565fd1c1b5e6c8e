// SPDX-License-Identifier: Apache-2.0
// Statements of registers, constants and what lanes and warps tell each other.
#include "tests/tools/fuzz/builder.h"

#include "frontend/isa/form_pattern.h"

#include <algorithm>

namespace fuzz {
namespace {

const FormInfo& info_of(const Head& head) { return form_info(head.match.form); }

ScalarType type_of(const Head& head, Role role) {
    for (const OperandPattern& operand : FormTable::get().pattern(head.match.form).operands)
        if (operand.role == role) return operand_type(operand, head.match);
    return ScalarType::none;
}

bool has_role(const FormInfo& info, Role role) {
    return std::any_of(info.operands.begin(), info.operands.end(), [&](const OperandInfo& operand) { return operand.role == role; });
}

bool rounds(const Head& head) { return head.has("rn") || head.has("rz") || head.has("rm") || head.has("rp"); }

bool computes_floats(const Head& head) {
    const ScalarType type = head.match.types[0];
    return is_float(type) || type == ScalarType::f16x2 || type == ScalarType::bf16x2 || type == ScalarType::f32x2;
}

bool is_wide(const std::string& name) { return name[1] == 'q' || name[1] == 'e'; }

/// A hundred instructions and more on a CPU.
bool is_long(const Head& head) {
    const std::string_view opcode = info_of(head).opcode;
    return head.has("approx") || opcode == "div" || opcode == "rem" || opcode == "rcp" || opcode == "sqrt" || opcode == "fns";
}

/// Which NaN results depends on the order of the operands, which ptxas changes, or on whether it makes a modifier of a move out of neg and abs.
bool may_choose_a_nan(const Head& head) {
    const std::string_view opcode = info_of(head).opcode;
    const ScalarType type = head.match.types[0];
    if (opcode == "min" || opcode == "max" || opcode == "neg" || opcode == "abs") return type == ScalarType::f32 || type == ScalarType::f64;
    return type == ScalarType::f64 && (opcode == "add" || opcode == "sub" || opcode == "mul" || opcode == "fma" || opcode == "mad");
}

} // namespace

/// What ptxas decides or gets wrong is left out of what a GPU runs (the numbers are those of the list in README.md).
bool Builder::wanted_value(const Head& head, bool conditional) const {
    if (!portable()) return true;
    const std::string_view opcode = info_of(head).opcode;
    if ((opcode == "add" || opcode == "sub" || opcode == "mul") && computes_floats(head) && !rounds(head)) return false; // may be contracted
    if (conditional && (opcode == "testp" || (opcode == "set" && (bit_size(head.match.types[0]) == 16 || is_float(head.match.types[0]) ||
                                                                   bit_size(head.match.types[1]) == 16))))
        return false; // 1, 2
    return true;
}

void Builder::settle_nan(const Head& head) {
    const bool is_double = head.match.types[0] == ScalarType::f64;
    const std::string& target = writer_.destinations().at(0);
    line(std::string("setp.nan.") + (is_double ? "f64 %n, " : "f32 %n, ") + target + ", " + target + ";");
    line(std::string("selp.b") + (is_double ? "64 " : "32 ") + target + (is_double ? ", 0x7ff8000000000000, " : ", 0x7fffffff, ") + target + ", %n;");
}

void Builder::value(const Situation& here, Use use) {
    const std::string condition = guard();
    const bool conditional = !condition.empty() || !here.may_convert;
    for (unsigned attempt = 0; attempt < 4; ++attempt) {
        const FormId form = rows_.choose(use, random_);
        const auto head = writer_.head(form, [&](const Head& h) { return wanted_value(h, conditional); });
        if (!head || (is_long(*head) && one_in(2))) continue;
        const std::string_view opcode = info_of(*head).opcode;
        Given given;
        const bool shifts = opcode == "shl" || opcode == "shr";
        if (portable() && shifts && bit_size(head->match.types[0]) == 16 && one_in(4)) given[Role::b] = text_of(random_.below(40)); // 3
        else if (portable() && shifts) given[Role::b] = writer_.any_register(ScalarType::u32);
        const bool is_tf32 = head->match.types[0] == ScalarType::tf32;
        if (portable() && is_tf32) given[Role::d] = "%x0"; // 5
        std::optional<std::string> text = writer_.statement(*head, given);
        if (!text) continue;
        if (portable() && head->has("pack") && is_wide(writer_.destinations().at(0))) continue; // 8
        if (portable() && (opcode == "min" || opcode == "max")) { // ptxas makes a move of the minimum of a value and itself, NaN or not
            const std::size_t comma = text->rfind(", ");
            const std::string last = text->substr(comma + 2, text->size() - comma - 3);
            if (text->find(", " + last + ",") != std::string::npos) continue;
        }
        if (portable() && is_tf32) {
            line(*text);
            line("add.u32 " + word() + ", %x0, %zero;");
            return;
        }
        line(condition + *text);
        if (portable() && may_choose_a_nan(*head)) settle_nan(*head);
        return;
    }
}

/// A chain of sums, differences and products that hand on a carry.
void Builder::carries() {
    const auto add = [&](Use use, const std::string& condition) {
        const auto head = writer_.head(rows_.choose(use, random_));
        if (!head) return;
        if (const auto text = writer_.statement(*head)) line(condition + *text);
    };
    const auto before = text_.size();
    add(Use::carry_first, "");
    if (text_.size() == before) return;
    for (unsigned i = 1 + random_.below(3); i != 0; --i) add(Use::carry_next, guard());
}

// --- between lanes and warps ------------------------------------------------------------------------

void Builder::collective(const Situation& here) {
    const auto head = writer_.head(rows_.choose(Use::collective, random_));
    if (!head) return;
    const FormInfo& info = info_of(*head);
    const bool all_lanes = here.members == "%mask" && full_warps_;
    Given given{{Role::membermask, all_lanes && one_in(3) ? "0xffffffff" : here.members}};
    if (info.opcode == "shfl") { // only from lanes that are there
        given[Role::c] = "0x1f";
        const bool index = head->has("idx"), mirror = head->has("bfly");
        if (all_lanes) {
            given[Role::b] = one_in(2) ? text_of(random_.below(32)) : "%x0";
            if (given[Role::b] == "%x0") line("and.b32 %x0, " + word() + ", 31;");
            const unsigned width = 1u << random_.below(6);
            given[Role::c] = head->has("up") ? text_of((32 - width) << 8) : text_of(((32 - width) << 8) | 0x1f);
        } else if (here.members == "%mask") { // the last warp has eight lanes at least
            if (!index && !mirror && !head->has("up")) return;
            given[Role::b] = text_of(random_.below(8));
            if (head->has("up")) given[Role::c] = "0";
        } else {
            if (!index) return;
            line("brev.b32 %x0, " + here.members + "; clz.b32 %x0, %x0;");
            given[Role::b] = "%x0";
        }
    }
    if (info.opcode == "match" && one_in(2)) { // values that some lanes share
        const bool is_long = head->match.types[0] == ScalarType::b64;
        line("and.b32 %x0, " + word() + ", 3;");
        if (is_long) line("cvt.u64.u32 %a0, %x0;");
        given[Role::a] = is_long ? "%a0" : "%x0";
    }
    if (const auto text = writer_.statement(*head, given)) line(*text);
}

void Builder::barrier() {
    const auto head = writer_.head(rows_.choose(Use::barrier, random_));
    if (!head) return;
    if (head->has("arrive")) return handover();
    const unsigned threads = (program_.block_x * program_.block_y + 31) / 32 * 32;
    Given given{{Role::a, text_of(random_.below(16))}, {Role::b, one_in(2) ? "" : text_of(threads)}};
    if (one_in(4)) {
        line("mov.u32 %x0, " + given[Role::a] + ";");
        given[Role::a] = "%x0";
    }
    if (const auto text = writer_.statement(*head, given)) line(*text);
}

/// Warps of even numbers only arrive, the others wait for all.
void Builder::handover() {
    if (!full_warps_) return;
    const unsigned threads = program_.block_x * program_.block_y;
    Given given{{Role::a, text_of(1 + random_.below(15))}, {Role::b, text_of(threads)}};
    std::string arrive, wait;
    for (unsigned attempt = 0; attempt < 40 && (arrive.empty() || wait.empty()); ++attempt) {
        const auto head = writer_.head(rows_.choose(Use::barrier, random_));
        if (!head || head->has("red")) continue;
        if (const auto text = writer_.statement(*head, given)) (head->has("arrive") ? arrive : wait) = *text;
    }
    if (arrive.empty() || wait.empty()) return;
    line("and.b32 %x0, %t, 32; setp.eq.u32 %n, %x0, 0;");
    line("@%n " + arrive);
    line("@!%n " + wait);
    line("bar.sync 0;");
}

void Builder::cluster() {
    std::string arrive, wait;
    for (unsigned attempt = 0; attempt < 20 && (arrive.empty() || wait.empty()); ++attempt) {
        const FormId form = rows_.choose(Use::cluster, random_);
        const auto head = writer_.head(form);
        if (!head) continue;
        const bool waits = any(form_info(form).effects, Effects::waits);
        if (const auto text = writer_.statement(*head)) (waits ? wait : arrive) = *text;
    }
    if (arrive.empty() || wait.empty()) return;
    line(arrive);
    line(wait);
}

void Builder::fence() {
    if (const auto head = writer_.head(rows_.choose(Use::fence, random_)))
        if (const auto text = writer_.statement(*head)) line(*text);
}

void Builder::hint() {
    const auto head = writer_.head(rows_.choose(Use::hint, random_), [](const Head& h) { return h.match.space != StateSpace::param; });
    if (!head) return;
    Given given;
    if (has_role(info_of(*head), Role::size)) {
        line("and.b32 %x0, " + word() + ", 3968; cvt.u64.u32 %a0, %x0; mov.u64 %a1, %start; add.u64 %a0, %a0, %a1;");
        given[Role::a] = "%a0";
    } else if (type_of(*head, Role::a) == ScalarType::none && info_of(*head).opcode.starts_with("prefetch")) {
        const bool local = head->match.space == StateSpace::local;
        given[Role::a] = address(local ? Region::local : Region::input, 4, false);
    } else if (info_of(*head).opcode == "nanosleep") {
        given[Role::a] = text_of(random_.below(40));
    } else {
        given[Role::a] = text_of(random_.below(16));
    }
    if (const auto text = writer_.statement(*head, given)) line(guard() + *text);
}

void Builder::policy() {
    const auto head = writer_.head(rows_.choose(Use::policy, random_));
    if (!head) return;
    if (const auto text = writer_.statement(*head, {{Role::d, "%policy"}, {Role::fraction, one_in(2) ? "" : "0f3f000000"}})) line(*text);
}

} // namespace fuzz
