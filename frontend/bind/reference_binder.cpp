// SPDX-License-Identifier: Apache-2.0
// Operands that name something else than a value: special registers, labels, functions, lists of
// targets.
#include "frontend/bind/body_binder.h"
#include "frontend/bind/register_types.h"
#include "frontend/isa/special_registers.h"
#include "frontend/isa/targets.h"
#include "frontend/isa/video_selectors.h"

#include <algorithm>
#include <bit>
#include <span>

namespace ptarmigan::ptx {

namespace {
/// In PTX 1.x; a 16-bit mov still takes the low half.
bool had_16_bits(std::string_view name) {
    return name == "%tid" || name == "%ntid" || name == "%ctaid" || name == "%nctaid" || name == "%gridid";
}
} // namespace

/// Special registers are read by mov and by cvt between integers, which may take their low bits.
void BodyBinder::check_special(const OperandSyntax& syntax, const SpecialRegisterInfo& info, const Want& want) {
    const Instruction& instruction = body_.instructions.back();
    const FormInfo& form = form_info(instruction.form);
    const bool converts = form.opcode == "cvt" && is_integer(instruction.types[0]) &&
                          is_integer(instruction.types[1]) && form.operands.size() == 2;
    if (form.opcode != "mov" && !converts)
        fail(syntax.location, "special registers are read by mov and cvt only, cvt between integers");
    const bool half_of_gridid = info.spelling == "%gridid" && bit_size(want.type) == 32;
    const bool narrow = form.opcode == "mov" && bit_size(want.type) == 16 && had_16_bits(info.spelling);
    if (is_float(want.type) || (!register_fits(info.type, want.type, converts) && !half_of_gridid && !narrow))
        fail(syntax.location, quoted(syntax.name) + " has type ." + std::string(spelling(info.type)) + " where ." +
                                  std::string(spelling(want.type)) + " is needed");
}

bool BodyBinder::bind_special(const OperandSyntax& syntax, const Want& want, Operand& out) {
    const SpecialRegisterName name = find_special_register(syntax.name);
    if (!name.found) return false;
    const SpecialRegisterInfo& info = special_register_info(name.id);
    if (want.is_destination) fail(syntax.location, quoted(syntax.name) + " can't be written");
    int component = name.number;
    if (info.layout == SpecialRegisterInfo::Layout::vector) {
        component = component_number(syntax.component);
        if (component < 0) fail_there(syntax.location, quoted(syntax.name) + " needs a component: .x, .y or .z");
    } else if (!syntax.component.empty()) {
        fail(syntax.location, quoted(syntax.name) + " has no components");
    }
    check_special(syntax, info, want);
    const Module& module = context_.module;
    const std::string missing =
        lacking({info.ptx_major, info.ptx_minor}, std::to_string(info.min_sm), module.version, module.target);
    if (!missing.empty()) fail_there(syntax.location, quoted(syntax.name) + " needs " + missing);
    out.kind = Operand::Kind::special;
    out.index = static_cast<std::uint32_t>(name.id);
    out.component = static_cast<std::uint8_t>(component);
    return true;
}

void BodyBinder::bind_selector(const OperandSyntax& syntax, const Want& want, Operand& out) {
    const auto selector = find_video_selector(want.selector, syntax.component);
    if (!selector)
        fail(syntax.location,
             quoted(syntax.name) + " has no component ." + std::string(syntax.component.substr(0, 20)) + " here");
    out.component = selector->parts;
    out.value = selector->digits;
}

/// The depth that a texture's texels are compared with. ptxas 13.0 knows it by its type: floating-point constants,
/// whose value it takes as an f32, and registers of type .f32 and .b32. Integers it overlooks, as it does all of them
/// with integer coordinates; so `tex ..., 1` compares nothing (read from its machine code).
void BodyBinder::bind_comparison(const OperandSyntax& syntax, const Want& want, const HeadMatch& match, Operand& out) {
    Want depth = want;
    if (syntax.kind == OperandSyntax::Kind::constant && !syntax.constant.is_integer()) depth.type = ScalarType::f32;
    bind_value(syntax, depth, out);
    const ScalarType type = out.kind == Operand::Kind::reg ? body_.registers[out.index].type
                            : syntax.constant.is_integer() ? ScalarType::s32
                                                           : ScalarType::f32;
    const bool integer = is_integer(type);
    const bool integer_coordinates = match.types[1] == ScalarType::s32;
    if (integer_coordinates && is_float(type))
        fail(syntax.location, "there is no depth to compare with where coordinates are integers");
    const bool three = std::any_of(match.modifiers.begin(), match.modifiers.begin() + match.modifier_count,
                                   [](Modifier m) { return spelling(m) == "3d"; });
    if (three && !integer) fail(syntax.location, "there is no depth to compare with in a 3-d texture");
    out.type = ScalarType::b32;
    if (!integer && !integer_coordinates) return;
    warn(syntax.location, "an integer is no depth to compare with and is overlooked, as by ptxas");
    out = {};
}

/// A cp.async may copy less than it writes, never more.
void BodyBinder::check_copied_size(const Instruction& instruction) {
    if (form_info(instruction.form).opcode != "cp") return;
    const Operand& copied = instruction[Role::src_size];
    const Operand& size = instruction[Role::size];
    if (copied.kind == Operand::Kind::imm && size.kind == Operand::Kind::imm && copied.value > size.value)
        fail(instruction.location, std::to_string(copied.value) + " bytes to copy into " + std::to_string(size.value));
}

/// The part of the accesses that a cache policy is for, where a constant says it; ptxas compares it as an f32.
void BodyBinder::check_fraction(const Instruction& instruction) {
    if (form_info(instruction.form).opcode != "createpolicy") return;
    for (const Operand& operand : std::span(instruction.operands).first(instruction.operand_count)) {
        if (&operand == &instruction.operands[0] || operand.kind != Operand::Kind::imm ||
            operand.type != ScalarType::f32)
            continue;
        const float fraction = std::bit_cast<float>(static_cast<std::uint32_t>(operand.value));
        if (!(fraction > 0 && fraction <= 1)) fail(instruction.location, "the fraction must be above 0 and at most 1");
    }
}

/// A scalar video instruction that writes a part takes the rest from its last operand.
void BodyBinder::check_selected_destination(const Instruction& instruction) {
    const Operand& last = instruction.operands[instruction.operand_count - 1u];
    const auto patterns = FormTable::get().pattern(instruction.form).operands;
    if (patterns[0].constraint.selector == SelectorRule::part && instruction.operands[0].component != 0 &&
        last.kind == Operand::Kind::none)
        fail(instruction.location, "a part of the destination is written: what the rest is, a last operand must say");
}

void BodyBinder::bind_label(const OperandSyntax& syntax, Operand& out) {
    if (syntax.has_offset || !syntax.component.empty()) fail(syntax.location, "a label is needed here");
    out.kind = Operand::Kind::label;
    const auto where = static_cast<std::uint32_t>(body_.instructions.size() - 1);
    scopes_.back().label_uses.push_back({syntax.name, syntax.location, false, where, operand_index_});
}

void BodyBinder::bind_function(const OperandSyntax& syntax, Operand& out) {
    const Symbol symbol = find(syntax.name);
    if (symbol.kind == Symbol::Kind::function) {
        out.kind = Operand::Kind::function;
        out.index = symbol.index;
        return;
    }
    if (symbol.kind == Symbol::Kind::none) fail_unknown(syntax.location, syntax.name);
    if (symbol.kind != Symbol::Kind::reg) fail(syntax.location, quoted(syntax.name) + " is not a function");
    Want want;
    out.type = context_.module.address_size == 64 ? ScalarType::u64 : ScalarType::u32;
    // A register of 32 bits is extended with zeros, as ptxas does with a warning.
    const bool narrow = bit_size(body_.registers[symbol.index].type) == 32;
    want.type = narrow ? ScalarType::u32 : out.type;
    bind_register(syntax, symbol, want, out);
}

void BodyBinder::bind_named_list(const OperandSyntax& syntax, Constraint::Kind kind, Operand& out) {
    const Symbol symbol = find(syntax.name);
    out.index = symbol.index;
    if (kind == Constraint::Kind::targets && symbol.kind == Symbol::Kind::branch_targets)
        out.kind = Operand::Kind::target_list;
    else if (kind == Constraint::Kind::prototype && symbol.kind == Symbol::Kind::prototype)
        out.kind = Operand::Kind::prototype;
    else if (kind == Constraint::Kind::prototype && symbol.kind == Symbol::Kind::call_targets)
        out.kind = Operand::Kind::call_targets;
    else
        fail(syntax.location,
             quoted(syntax.name) +
                 (kind == Constraint::Kind::targets
                      ? " is not a .branchtargets list declared above"
                      : " is not a .callprototype or .calltargets declared above (arguments stand in parentheses)"));
}

} // namespace ptarmigan::ptx
