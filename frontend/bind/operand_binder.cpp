// SPDX-License-Identifier: Apache-2.0
// Operands: names to registers, variables and labels, constants to bits, all at the type that the
// row asks for.
#include "frontend/bind/body_binder.h"
#include "frontend/bind/register_types.h"
#include "frontend/isa/list_sizes.h"

#include <algorithm>
#include <charconv>

namespace ptarmigan::ptx {

namespace {

/// Whether a constant is one of those that a row allows; see instruction_table.def.
bool among(std::string_view values, const Constant& constant) {
    if (values == "real") return !constant.is_integer();
    if (values == "integer") return constant.is_integer();
    if (values == "single") return constant.kind == Constant::Kind::bits32;
    if (values == "none" || !constant.is_integer()) return false;
    const std::int64_t value = constant.as_signed();
    auto number = [](std::string_view text) {
        std::int64_t n = 0;
        std::from_chars(text.data(), text.data() + text.size(), n);
        return n;
    };
    while (!values.empty()) {
        const std::string_view one = values.substr(0, values.find('|'));
        values.remove_prefix(std::min(values.size(), one.size() + 1));
        const std::size_t dots = one.find("..");
        if (one.starts_with('*') ? value % number(one.substr(1)) == 0
            : dots != std::string_view::npos
                ? value >= number(one.substr(0, dots)) && value <= number(one.substr(dots + 2))
                : value == number(one))
            return true;
    }
    return false;
}

std::string hexadecimal(std::uint64_t bits) {
    char text[17];
    return {text, std::to_chars(text, text + sizeof text, bits, 16).ptr};
}

} // namespace

/// Elements of vectors may be integers where floating-point ones are wanted, not the other way round.
bool BodyBinder::fits(ScalarType have, const Want& want) {
    if (register_fits(have, want.type, want.wider)) return true;
    if (bit_size(have) != bit_size(want.type)) return false;
    if (want.in_vector && is_float(want.type) && want.type != ScalarType::bf16) return is_integer(have);
    if (!want.any_class) return false;
    return want.type == ScalarType::bf16x2 || (want.type == ScalarType::bf16 && (want.in_vector || !is_float(have)));
}

namespace {

/// The first coordinate is then the index into the array (manual 9.7.10.3).
bool is_texture_array(const HeadMatch& match) {
    if (form_info(match.form).chapter != "texture") return false;
    const auto end = match.modifiers.begin() + match.modifier_count;
    return std::any_of(match.modifiers.begin(), end, [](Modifier m) {
        const std::string_view word = spelling(m);
        return word == "a1d" || word == "a2d" || word == "acube" || word == "a2dms";
    });
}

} // namespace

BodyBinder::Want BodyBinder::want_of(const OperandPattern& pattern, const HeadMatch& match) const {
    using Kind = Constraint::Kind;
    const Constraint& c = pattern.constraint;
    Want want;
    want.kind = c.kind;
    want.is_destination = pattern.is_destination;
    want.type = c.slot >= 0 && c.slot < 6 ? match.types[static_cast<std::size_t>(c.slot)] : c.literal;
    want.values = c.values;
    if (c.fragment) want.type = packed_in_register(want.type);
    if (c.kind == Kind::any && c.literal == ScalarType::none) want.type = match.types[0];
    if (c.kind == Kind::wide) want.type = with_bits(want.type, 2 * bit_size(want.type));
    if (c.kind == Kind::half) want.type = with_bits(want.type, bit_size(want.type) / 2);
    // Half-precision elements are as wide as they are.
    want.wider = c.kind == Kind::wider ||
                 (c.kind == Kind::vec && want.type != ScalarType::f16 && want.type != ScalarType::bf16 &&
                  type_class(want.type) != TypeClass::packed && !c.tight);
    want.any_class = c.any_class;
    want.untyped = c.untyped;
    want.or_predicate = c.or_predicate;
    want.selector = c.selector;
    if (pattern.role == Role::c && is_texture_array(match)) want.first_element = ScalarType::u32;
    const FormPattern& form = FormTable::get().pattern(match.form);
    const bool pair = form.operands.size() > 1 && form.operands[1].form == OperandPattern::Form::pair_second;
    const Effects effects = form.info->effects;
    // Of two results one may be dropped, but not the value of a shuffle nor the predicates of elect and lop3.
    const std::string_view opcode = form.info->opcode;
    const bool second = pattern.form == OperandPattern::Form::pair_second;
    want.may_sink = (second ? opcode != "elect" && opcode != "lop3" : (pair && opcode != "shfl") || opcode == "lop3") ||
                    (any(effects, Effects::atomic | Effects::store | Effects::async | Effects::call) &&
                     !any(effects, Effects::volatile_read) && opcode != "multimem"); // a sum that nobody reads
    want.must_sink = match.result_is_sink;
    const bool selects_scales = pattern.role == Role::ids_a || pattern.role == Role::ids_b; // two numbers
    if ((form.info->chapter == "matrix" || form.info->chapter == "warpgroup_matrix") && !selects_scales)
        want.element_rule = ElementRule::fragment;
    else if (any(effects, Effects::atomic | Effects::async) || match.vector_size == 8)
        want.element_rule = ElementRule::bits;
    return want;
}

void BodyBinder::bind_operand(const OperandPattern& pattern, const HeadMatch& match, std::size_t index, Operand& out) {
    using Kind = Constraint::Kind;
    const OperandSyntax& syntax = node(index);
    const Want want = want_of(pattern, match);
    const bool wants_list =
        want.kind == Kind::pack || want.kind == Kind::list || (want.kind == Kind::vec && match.vector_size > 1);
    if (syntax.kind == OperandSyntax::Kind::braces && !wants_list)
        return bind_operand(pattern, match, index + 1, out); // `{x}` is x
    switch (want.kind) {
    case Kind::address:
        if (index > 0 && node(index - 1).kind == OperandSyntax::Kind::bracket)
            check_unified(node(index - 1), syntax, match);
        return bind_address(syntax, pattern, match, out);
    case Kind::tensor_address:
        bind_address(syntax, pattern, match, out);
        if (out.base != Operand::Base::reg || bit_size(out.type) != 32)
            fail(syntax.location, "addresses in tensor memory are 32-bit registers");
        return;
    case Kind::label: return bind_label(syntax, out);
    case Kind::function: return bind_function(syntax, out);
    case Kind::targets:
    case Kind::prototype: return bind_named_list(syntax, want.kind, out);
    case Kind::pack: return bind_list(index, want, 0, out);
    case Kind::list: {
        Want element = want;
        element.in_vector =
            form_info(match.form).chapter == "texture" && (pattern.role == Role::d || pattern.role == Role::c);
        if (form_info(match.form).chapter == "surface" && pattern.role != Role::b) element.wider = true;
        const unsigned written = syntax.kind == OperandSyntax::Kind::braces ? syntax.children : 0;
        bind_list(index, element, required_elements(match, pattern, written), out);
        if (out.count > 1 && has_spare_elements(match) && pattern.role == Role::b) {
            out.count = 1;
            warn(syntax.location, "this operand is one register: the others are overlooked, as by ptxas");
        }
        return;
    }
    case Kind::vec:
        if (match.vector_size > 1) return bind_elements(index, want, match.vector_size, out);
        return bind_value(syntax, want, out);
    default:
        if (pattern.role == Role::f && form_info(match.form).chapter == "texture")
            return bind_comparison(syntax, want, match, out);
        if (pattern.form == OperandPattern::Form::bracket_next && pattern.role == Role::b &&
            form_info(match.form).chapter == "texture" && syntax.kind == OperandSyntax::Kind::name)
            check_handle(syntax, find(syntax.name), pattern, match);
        return bind_value(syntax, want, out);
    }
}

void BodyBinder::bind_value(const OperandSyntax& syntax, const Want& want, Operand& out) {
    out.type = want.type;
    out.negated = syntax.inverted || syntax.minus;
    if (syntax.kind == OperandSyntax::Kind::constant) return bind_constant(syntax, want, out);
    if (syntax.kind != OperandSyntax::Kind::name) fail(syntax.location, "a register or a constant is needed here");
    if (want.kind == Constraint::Kind::imm) fail(syntax.location, "a constant is needed here");
    bind_name(syntax, want, out);
}

void BodyBinder::bind_constant(const OperandSyntax& syntax, const Want& want, Operand& out) {
    if (want.is_destination) fail(syntax.location, "a constant can't be written");
    if (want.untyped) fail(syntax.location, "a register is needed here");
    ScalarType type = want.type;
    if (want.kind == Constraint::Kind::imm && type == ScalarType::none) type = ScalarType::s64;
    if (type == ScalarType::none) type = ScalarType::b64;
    std::string why;
    const auto bits = want.is_element ? element_bits(syntax.constant, type, want.element_rule, why)
                                      : constant_bits(syntax.constant, type, why);
    if (!bits) fail(syntax.location, why);
    if (!want.values.empty() && !among(want.values, syntax.constant))
        fail(syntax.location, want.values == "none" || want.values == "real" ? std::string("a register is needed here")
                              : want.values == "integer" ? std::string("an integer or a register is needed here")
                              : want.values == "single"
                                  ? std::string("a constant must be written as 0f and eight digits here")
                                  : "this constant must be " + std::string(want.values));
    if (type_class(type) == TypeClass::packed && !(want.is_element && want.element_rule == ElementRule::fragment))
        fail(syntax.location, "a ." + std::string(spelling(type)) + " can't be a constant");
    if (loses_value(syntax.constant, type, *bits))
        warn(syntax.location, "a ." + std::string(spelling(type)) + " is needed: this constant becomes the bits 0x" +
                                  hexadecimal(*bits) + ", as with ptxas");
    out.kind = Operand::Kind::imm;
    out.type = type;
    out.value = *bits;
}

void BodyBinder::bind_name(const OperandSyntax& syntax, const Want& want, Operand& out) {
    if (syntax.name == "_" && !syntax.has_offset) {
        if (!want.is_destination || !want.may_sink) fail(syntax.location, "'_' can't stand for this operand");
        out.kind = Operand::Kind::sink;
        return;
    }
    if (want.is_destination && want.must_sink)
        fail(syntax.location, "there is no result with these modifiers: '_' must stand here");
    const Symbol symbol = find(syntax.name);
    if (symbol.kind == Symbol::Kind::reg) return bind_register(syntax, symbol, want, out);
    if (symbol.kind == Symbol::Kind::none && bind_special(syntax, want, out)) return;
    const bool is_variable = symbol.kind == Symbol::Kind::module_variable || symbol.kind == Symbol::Kind::body_variable;
    if (!is_variable && symbol.kind != Symbol::Kind::function) {
        if (symbol.kind == Symbol::Kind::none) fail_unknown(syntax.location, syntax.name);
        fail(syntax.location, quoted(syntax.name) + " can't be an operand here");
    }
    if (want.is_destination) fail(syntax.location, quoted(syntax.name) + " is not a register");
    if (want.kind != Constraint::Kind::any || (bit_size(want.type) != 32 && bit_size(want.type) != 64 &&
                                               (bit_size(want.type) != 16 || !is_variable))) // 16 bits: the low ones
        fail(syntax.location,
             "the address of " + quoted(syntax.name) + " can't be an operand here: " +
                 (is_parameter(symbol) ? "ld.param reads the parameter" : "mov puts it into a register"));
    if (is_float(want.type) && is_variable) fail(syntax.location, "an address is no floating-point value");
    if (!syntax.component.empty())
        fail(syntax.location,
             quoted(syntax.name) + " has no component ." + std::string(syntax.component.substr(0, 20)));
    check_address(syntax, symbol);
    if (!is_variable && syntax.has_offset) fail(syntax.location, "the address of a function takes no offset");
    if (is_variable && bit_size(want.type) == 32) {
        const StateSpace space = symbol.kind == Symbol::Kind::module_variable
                                     ? context_.module.variables[symbol.index].space
                                     : body_.variables[symbol.index].space;
        require_wide_address(syntax.location, space, "this operand has 32 bits");
    }
    out.kind = is_variable ? Operand::Kind::variable : Operand::Kind::function;
    out.scope = symbol.kind == Symbol::Kind::body_variable ? VariableScope::body : VariableScope::module;
    out.index = symbol.index;
    out.value = syntax.has_offset ? syntax.constant.bits : 0;
}

/// What stands between a name and its address as a value.
void BodyBinder::check_address(const OperandSyntax& syntax, const Symbol& symbol) {
    if (is_parameter(symbol) && !is_own_parameter(symbol.index) && !is_own_result(symbol.index))
        fail(syntax.location, quoted(syntax.name) + " is for the arguments of calls: its address can't be taken");
    const Instruction& instruction = body_.instructions.back();
    if (form_info(instruction.form).opcode != "cvta" || instruction.space == StateSpace::generic) return;
    const StateSpace space = symbol.kind == Symbol::Kind::function ? StateSpace::none
                             : symbol.kind == Symbol::Kind::module_variable
                                 ? context_.module.variables[symbol.index].space
                                 : body_.variables[symbol.index].space;
    const bool back = form_info(instruction.form).syntax.find(".to") != std::string_view::npos;
    if (!back && space != instruction.space)
        fail(syntax.location, quoted(syntax.name) + " is not in ." + std::string(spelling(instruction.space)));
}

bool BodyBinder::is_parameter(const Symbol& symbol) const {
    return symbol.kind == Symbol::Kind::body_variable && body_.variables[symbol.index].space == StateSpace::param;
}

void BodyBinder::bind_register(const OperandSyntax& syntax, const Symbol& symbol, const Want& want, Operand& out) {
    if (syntax.has_offset) {
        const TypeClass kind =
            symbol.vector_size == 1 ? type_class(body_.registers[symbol.index].type) : TypeClass::none;
        const bool integer =
            kind == TypeClass::bits || kind == TypeClass::signed_int || kind == TypeClass::unsigned_int;
        const unsigned bits = integer ? bit_size(body_.registers[symbol.index].type) : 0;
        const std::size_t at = node_of(syntax);
        if (want.is_destination || want.in_vector || at == no_id || !syntax.component.empty() || bits < 16 || bits > 64)
            fail(syntax.location, "a register with an offset needs brackets");
        throw Preparation{Preparation::Kind::sum, at};
    }
    std::uint32_t index = symbol.index;
    if (symbol.vector_size > 1) {
        const int component = component_number(syntax.component);
        if (component < 0 || component >= symbol.vector_size)
            fail(syntax.location, quoted(syntax.name) + " is a vector; name one of its components");
        index += static_cast<std::uint32_t>(component);
    } else if (!syntax.component.empty()) {
        bind_selector(syntax, want, out);
    }
    const ScalarType have = body_.registers[index].type;
    if (have == ScalarType::pred && want.or_predicate) {
        out.kind = Operand::Kind::reg;
        out.index = index;
        out.type = have;
        return;
    }
    if (out.negated && want.or_predicate) fail(syntax.location, "only a predicate can be negated here");
    if (want.type != ScalarType::none && (!fits(have, want) || (want.untyped && type_class(have) != TypeClass::bits)))
        fail(syntax.location, "register " + quoted(syntax.name) + " has type ." + std::string(spelling(have)) +
                                  " where ." + std::string(spelling(want.type)) + " is needed");
    out.kind = Operand::Kind::reg;
    out.index = index;
    if (want.type == ScalarType::none) out.type = have;
}

} // namespace ptarmigan::ptx
