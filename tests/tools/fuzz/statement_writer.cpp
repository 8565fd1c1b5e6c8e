// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/fuzz/statement_writer.h"

#include "frontend/bind/register_types.h"
#include "frontend/isa/list_sizes.h"
#include "frontend/isa/special_registers.h"
#include "frontend/isa/video_selectors.h"
#include "frontend/isa/word_rules.h"
#include "tests/support/instruction_head.h"

#include <algorithm>
#include <charconv>

namespace fuzz {
namespace {

std::string hexadecimal(std::uint64_t bits, unsigned digits) {
    static constexpr char digit[] = "0123456789abcdef";
    std::string text;
    for (unsigned i = digits; i-- > 0;) text += digit[bits >> 4 * i & 15];
    return text;
}

std::int64_t number(std::string_view text) {
    std::int64_t n = 0;
    std::from_chars(text.data(), text.data() + text.size(), n);
    return n;
}

} // namespace

bool Head::has(std::string_view word) const {
    const std::string_view words(text);
    for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if (at > 0 && words[at - 1] == '.' && (end == words.size() || words[end] == '.')) return true;
    }
    return false;
}

ScalarType operand_type(const OperandPattern& operand, const HeadMatch& match) {
    const Constraint& c = operand.constraint;
    ScalarType type = c.slot >= 0 ? match.types[static_cast<std::size_t>(c.slot)] : c.literal;
    if (c.kind == Constraint::Kind::any && c.literal == ScalarType::none) type = match.types[0];
    if (c.kind == Constraint::Kind::wide) type = with_bits(type, 2 * bit_size(type));
    if (c.kind == Constraint::Kind::half) type = with_bits(type, bit_size(type) / 2);
    return type;
}

std::optional<Head> StatementWriter::head(FormId form, const std::function<bool(const Head&)>& accept) {
    const FormPattern& pattern = FormTable::get().pattern(form);
    for (unsigned attempt = 0; attempt < 12; ++attempt) {
        Head head{std::string(pattern.info->opcode), {}};
        for (const WordSlot& slot : pattern.slots) {
            const unsigned choice = random_.below(static_cast<unsigned>(slot.choices.size()));
            if (slot.optional && !one_in(slot.type_index >= 0 || slot.literal || slot.is_space ? 2 : 3)) continue;
            head.text += "." + std::string(spelling(slot.choices[choice]));
        }
        const InstructionSyntax syntax = ptarmigan::test::syntax_of(head.text);
        if (!broken_word_rule(syntax.opcode, syntax.words, version_, target_).empty()) continue;
        for (const HeadMatch& match : matcher_.heads(syntax)) {
            if (match.form != form) continue;
            head.match = match;
            if (bit_size(match.types[0]) * match.vector_size > (target_.sm >= 100 ? 256u : 128u)) break;
            if (!accept || accept(head)) return head;
            break;
        }
    }
    return std::nullopt;
}

std::optional<std::string> StatementWriter::statement(const Head& head, const Given& given) {
    using Form = OperandPattern::Form;
    destinations_.clear();
    failed_ = has_selector_ = has_register_ = false;
    std::string text = head.text;
    bool first = true, in_bracket = false;
    for (const OperandPattern& pattern : FormTable::get().pattern(head.match.form).operands) {
        if (pattern.form == Form::hidden) continue;
        if (in_bracket && pattern.form != Form::bracket_next) {
            text += ']';
            in_bracket = false;
        }
        const auto chosen = given.find(pattern.role);
        const detail::Tie tie = detail::tie_of(pattern, head.match);
        if (pattern.optional && tie == detail::Tie::absent) continue;
        if (pattern.optional && tie == detail::Tie::free) {
            const bool merges = pattern.role == Role::c && given.empty() && pattern.constraint.kind != Constraint::Kind::pred;
            if (merges ? !has_selector_ : chosen != given.end() ? chosen->second.empty() : !one_in(2)) continue;
        }
        const std::string written = chosen != given.end() ? chosen->second : operand(pattern, head);
        if (failed_) return std::nullopt;
        if (written.empty()) continue;
        text += pattern.form == Form::pair_second ? "|" : first ? " " : ", ";
        if (pattern.form == Form::bracket_first) {
            text += '[';
            in_bracket = true;
        }
        text += written;
        first = false;
    }
    if (in_bracket) text += ']';
    return text + ';';
}

std::string StatementWriter::pick(const std::vector<std::string>& names, bool is_destination) {
    if (names.empty()) {
        failed_ = true;
        return {};
    }
    std::string name = names[random_.below(static_cast<unsigned>(names.size()))];
    if (!is_destination) {
        has_register_ = true;
        return name;
    }
    for (unsigned i = 0; i < 20 && std::find(destinations_.begin(), destinations_.end(), name) != destinations_.end(); ++i)
        name = names[random_.below(static_cast<unsigned>(names.size()))];
    if (std::find(destinations_.begin(), destinations_.end(), name) != destinations_.end()) failed_ = true;
    destinations_.push_back(name);
    return name;
}

std::string StatementWriter::any_register(ScalarType type) {
    const auto names = registers_->that_fit(type, false, false);
    return names[random_.below(static_cast<unsigned>(names.size()))];
}

std::string StatementWriter::operand(const OperandPattern& operand, const Head& head) {
    using Kind = Constraint::Kind;
    const Constraint& c = operand.constraint;
    const ScalarType type = operand_type(operand, head.match);
    switch (c.kind) {
    case Kind::pred: {
        const std::string name = pick(registers_->that_fit(ScalarType::pred, false, false), operand.is_destination);
        return operand.may_invert && one_in(2) ? "!" + name : name;
    }
    case Kind::imm: return constant(ScalarType::u8, c.values);
    case Kind::pack: {
        const unsigned count = bit_size(type) > 16 && one_in(3) ? 4 : 2;
        return list(operand, with_bits(ScalarType::b32, bit_size(type) / count), false, count);
    }
    case Kind::list: return list(operand, type, false, std::max(1u, required_elements(head.match, operand, 0)));
    case Kind::vec: {
        const bool wider = !c.tight && type != ScalarType::f16 && type != ScalarType::bf16 && type_class(type) != TypeClass::packed;
        if (head.match.vector_size > 1) return list(operand, type, wider, head.match.vector_size);
        return value(operand, type, wider, head);
    }
    case Kind::wider: return value(operand, type, true, head);
    case Kind::any:
    case Kind::type:
    case Kind::wide:
    case Kind::half: return value(operand, type, false, head);
    default: failed_ = true; return {};
    }
}

std::string StatementWriter::list(const OperandPattern& operand, ScalarType type, bool wider, unsigned count) {
    // All of one type.
    const std::vector<std::string> all = registers_->that_fit(type, wider, operand.constraint.untyped);
    std::vector<std::string> names = all;
    std::erase_if(names, [&](const std::string& name) {
        return operand.is_destination && static_cast<unsigned>(std::count_if(all.begin(), all.end(), [&](const std::string& n) { return n[1] == name[1]; })) < count;
    });
    if (names.empty()) {
        failed_ = true;
        return {};
    }
    const char prefix = names[random_.below(static_cast<unsigned>(names.size()))][1];
    std::erase_if(names, [&](const std::string& name) { return name[1] != prefix; });
    std::string text = "{";
    for (unsigned i = 0; i < count; ++i) text += (i ? ", " : "") + pick(names, operand.is_destination);
    return text + "}";
}

std::string StatementWriter::value(const OperandPattern& operand, ScalarType type, bool wider, const Head& head) {
    const Constraint& c = operand.constraint;
    if (c.or_predicate && one_in(2)) {
        const std::string name = any_register(ScalarType::pred);
        return operand.may_invert && one_in(2) ? "!" + name : name;
    }
    const std::string_view opcode = form_info(head.match.form).opcode;
    const bool may_be_special = opcode == "mov" || (opcode == "cvt" && !head.has("pack") && is_integer(head.match.types[0]) && is_integer(head.match.types[1]));
    if (!operand.is_destination && !c.untyped && c.values != "none" && one_in(4)) {
        if (std::string text = one_in(6) && may_be_special ? special_register(type) : constant(type, c.values); !text.empty()) return text;
    }
    std::string text = pick(registers_->that_fit(type, wider, c.untyped), operand.is_destination);
    if (c.selector != SelectorRule::none && one_in(2)) {
        text += "." + selector(c.selector);
        has_selector_ = has_selector_ || operand.is_destination;
    }
    return text;
}

std::string StatementWriter::selector(SelectorRule rule) {
    while (true) {
        std::string text(1, one_in(2) ? 'b' : 'h');
        for (unsigned i = 1 + random_.below(4); i != 0; --i) text += static_cast<char>('0' + random_.below(8));
        if (find_video_selector(rule, text)) return text;
    }
}

/// Those whose value follows from the launch alone.
std::string StatementWriter::special_register(ScalarType type) {
    static constexpr const char* names[] = {"%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ctaid.x", "%nctaid.x", "%laneid",
                                            "%lanemask_lt", "%lanemask_ge", "%clusterid.x", "%cluster_nctarank"};
    if (type != ScalarType::u32 && type != ScalarType::s32 && type != ScalarType::b32) return {};
    return names[random_.below(std::size(names))];
}

std::string StatementWriter::constant(ScalarType type, std::string_view allowed) {
    if (!allowed.empty() && allowed != "real" && allowed != "single" && allowed != "integer") {
        // "0..15", "4|8|16", "*16"
        unsigned alternatives = 1 + static_cast<unsigned>(std::count(allowed.begin(), allowed.end(), '|'));
        for (unsigned skip = random_.below(alternatives); skip != 0; --skip) allowed.remove_prefix(allowed.find('|') + 1);
        allowed = allowed.substr(0, allowed.find('|'));
        if (allowed.starts_with('*')) return std::to_string(number(allowed.substr(1)) * (1 + random_.below(4)));
        const std::size_t dots = allowed.find("..");
        if (dots == std::string_view::npos) return std::string(allowed);
        const std::int64_t low = number(allowed.substr(0, dots)), high = number(allowed.substr(dots + 2));
        return std::to_string(low + random_.below(static_cast<unsigned>(high - low + 1)));
    }
    const bool wants_real = allowed == "real" || allowed == "single";
    if (type == ScalarType::f32 || (type == ScalarType::b32 && wants_real)) {
        static constexpr std::uint32_t edges[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x00000001,
                                                  0x007fffff, 0x00800000, 0x7f7fffff, 0x3f000000, 0x4f000000, 0xcf000000, 0x477fe000, 0x33800000};
        return "0f" + hexadecimal(one_in(3) ? random_.bits() & 0xffffffff : edges[random_.below(std::size(edges))], 8);
    }
    if (type == ScalarType::f64) {
        static constexpr std::uint64_t edges[] = {0, 1ull << 63, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000, 0xfff0000000000000,
                                                  1, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0x43e0000000000000, 0xc1e0000000000000};
        return "0d" + hexadecimal(one_in(3) ? random_.bits() : edges[random_.below(std::size(edges))], 16);
    }
    const TypeClass kind = type_class(type);
    if (wants_real || (kind != TypeClass::bits && !is_integer(type)) || bit_size(type) > 64) return {};
    const unsigned bits = bit_size(type);
    const std::uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
    std::uint64_t chosen = 0;
    switch (random_.below(6)) {
    case 0: chosen = random_.bits(); break;
    case 1: chosen = 1ull << random_.below(bits); break;
    case 2: chosen = (1ull << random_.below(bits)) - 1; break;
    case 3: chosen = ~0ull << random_.below(bits); break;
    default: chosen = random_.below(40); break;
    }
    chosen &= mask;
    if (!is_signed(type)) return one_in(2) || bits > 32 ? "0x" + hexadecimal(chosen, bits / 4) : std::to_string(chosen);
    const std::uint64_t sign = 1ull << (bits - 1);
    if (chosen == sign) return bits == 64 ? "0x8000000000000000" : "-" + std::to_string(sign);
    return chosen & sign ? "-" + std::to_string((~chosen + 1) & mask) : std::to_string(chosen);
}

} // namespace fuzz
