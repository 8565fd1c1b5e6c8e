// SPDX-License-Identifier: Apache-2.0
// Operands: names to registers, variables and labels, constants to bits, all at the type that the
// row asks for.
#include "frontend/bind/body_binder.h"
#include "frontend/bind/constant_bits.h"
#include "frontend/isa/list_sizes.h"
#include "frontend/isa/special_registers.h"

#include <algorithm>
#include <charconv>

namespace ptarmigan::ptx {

namespace {

ScalarType with_bits(ScalarType type, unsigned bits) {
    const TypeClass wanted = type_class(type);
    for (unsigned i = 0; i <= static_cast<unsigned>(ScalarType::f64); ++i) {
        const auto candidate = static_cast<ScalarType>(i);
        if (type_class(candidate) == wanted && bit_size(candidate) == bits &&
            candidate != ScalarType::tf32 && candidate != ScalarType::bf16)
            return candidate;
    }
    return ScalarType::none;
}

ScalarType bits_type(unsigned bits) {
    return with_bits(ScalarType::b8, bits);
}

/// Forms with two memory operands name a space for each, and HeadMatch::space is only the first.
bool has_one_address(FormId form) {
    const auto patterns = FormTable::get().pattern(form).operands;
    return 1 == std::count_if(patterns.begin(), patterns.end(), [](const OperandPattern& p) {
               return p.form == OperandPattern::Form::bracket_first;
           });
}

/// The type of the registers that hold a matrix fragment of a type.
ScalarType packed_in_register(ScalarType type) {
    if (type == ScalarType::f16 || type == ScalarType::bf16) return ScalarType::f16x2;
    return bit_size(type) < 32 ? ScalarType::b32 : type;
}

int component_number(std::string_view text) {
    constexpr std::string_view first = "xyzw", second = "rgba";
    if (text.size() != 1) return -1;
    const std::size_t at = first.find(text[0]);
    if (at != std::string_view::npos) return static_cast<int>(at);
    const std::size_t other = second.find(text[0]);
    return other == std::string_view::npos ? -1 : static_cast<int>(other);
}

/// Whether a constant is one of those that a row allows; see instruction_table.def.
bool among(std::string_view values, const Constant& constant) {
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

std::string quoted(std::string_view text) {
    return "'" + std::string(text.substr(0, 80)) + "'";
}

/// Elements that a braced operand must have, 0 for any number. Coordinates may be more than the geometry
/// has: 1, 2 or 4 places.
unsigned required_elements(const HeadMatch& match, const OperandPattern& pattern,
                           const OperandSyntax& syntax) {
    const unsigned size = list_size(match, pattern.role);
    const std::string_view chapter = form_info(match.form).chapter;
    const bool coordinates =
        !pattern.is_destination && (chapter == "texture" || chapter == "surface");
    const unsigned have = syntax.kind == OperandSyntax::Kind::braces ? syntax.children : size;
    return coordinates && have > size && (have == 2 || have == 4) ? have : size;
}

} // namespace

bool register_fits(ScalarType have, ScalarType want, bool wider) {
    if (have == want) return true;
    TypeClass h = type_class(have);
    const TypeClass w = type_class(want);
    if (h == TypeClass::pred || w == TypeClass::pred) return false;
    const unsigned have_bits = bit_size(have), want_bits = bit_size(want);
    // Formats without a register type of their own live in untyped registers of just their size.
    const bool untyped_only = w == TypeClass::packed || want == ScalarType::bf16 ||
                              want == ScalarType::tf32 || (is_float(want) && want_bits == 8);
    if (untyped_only) return h == TypeClass::bits && have_bits == want_bits;
    if (wider ? have_bits < want_bits : have_bits != want_bits) return false;
    if (h == TypeClass::packed)
        h = TypeClass::unsigned_int; // .reg .f16x2 goes where an integer goes
    if (h == TypeClass::bits || w == TypeClass::bits) return true;
    return h != TypeClass::floating && is_integer(want);
}

BodyBinder::Want BodyBinder::want_of(const OperandPattern& pattern, const HeadMatch& match) const {
    using Kind = Constraint::Kind;
    const Constraint& c = pattern.constraint;
    Want want;
    want.kind = c.kind;
    want.is_destination = pattern.is_destination;
    want.type =
        c.slot >= 0 && c.slot < 6 ? match.types[static_cast<std::size_t>(c.slot)] : c.literal;
    want.values = c.values;
    if (c.fragment) want.type = packed_in_register(want.type);
    if (c.kind == Kind::any && c.literal == ScalarType::none) want.type = match.types[0];
    if (c.kind == Kind::wide) want.type = with_bits(want.type, 2 * bit_size(want.type));
    if (c.kind == Kind::half) want.type = with_bits(want.type, bit_size(want.type) / 2);
    // Half-precision elements are as wide as they are.
    want.wider = c.kind == Kind::wider ||
                 (c.kind == Kind::vec && want.type != ScalarType::f16 && want.type != ScalarType::bf16);
    const FormPattern& form = FormTable::get().pattern(match.form);
    const bool pair =
        form.operands.size() > 1 && form.operands[1].form == OperandPattern::Form::pair_second;
    want.may_sink = pair || any(form.info->effects,
                                Effects::atomic | Effects::store | Effects::async | Effects::call);
    return want;
}

void BodyBinder::bind_operand(const OperandPattern& pattern, const HeadMatch& match,
                              std::size_t index, Operand& out) {
    using Kind = Constraint::Kind;
    const OperandSyntax& syntax = node(index);
    const Want want = want_of(pattern, match);
    const bool wants_list = want.kind == Kind::pack || want.kind == Kind::list ||
                            (want.kind == Kind::vec && match.vector_size > 1);
    if (syntax.kind == OperandSyntax::Kind::braces && !wants_list)
        return bind_operand(pattern, match, index + 1, out); // `{x}` is x
    switch (want.kind) {
    case Kind::address: return bind_address(syntax, match, out);
    case Kind::tensor_address:
        bind_address(syntax, match, out);
        if (out.base != Operand::Base::reg || bit_size(out.type) != 32)
            fail(syntax.location, "addresses in tensor memory are 32-bit registers");
        return;
    case Kind::label: return bind_label(syntax, out);
    case Kind::function: return bind_function(syntax, out);
    case Kind::targets:
    case Kind::prototype: return bind_named_list(syntax, want.kind, out);
    case Kind::pack: return bind_list(index, want, 0, out);
    case Kind::list: return bind_list(index, want, required_elements(match, pattern, syntax), out);
    case Kind::vec:
        if (match.vector_size > 1) return bind_elements(index, want, match.vector_size, out);
        return bind_value(syntax, want, out);
    default: return bind_value(syntax, want, out);
    }
}

void BodyBinder::bind_value(const OperandSyntax& syntax, const Want& want, Operand& out) {
    out.type = want.type;
    out.negated = syntax.inverted || syntax.minus;
    if (syntax.kind == OperandSyntax::Kind::constant) return bind_constant(syntax, want, out);
    if (syntax.kind != OperandSyntax::Kind::name)
        fail(syntax.location, "a register or a constant is needed here");
    if (want.kind == Constraint::Kind::imm) fail(syntax.location, "a constant is needed here");
    bind_name(syntax, want, out);
}

void BodyBinder::bind_constant(const OperandSyntax& syntax, const Want& want, Operand& out) {
    if (want.is_destination) fail(syntax.location, "a constant can't be written");
    ScalarType type = want.type;
    if (want.kind == Constraint::Kind::imm && type == ScalarType::none) type = ScalarType::s64;
    if (type == ScalarType::none) type = ScalarType::b64;
    std::string why;
    const auto bits = constant_bits(syntax.constant, type, why);
    if (!bits) fail(syntax.location, why);
    if (!want.values.empty() && !among(want.values, syntax.constant))
        fail(syntax.location, want.values == "none"
                                  ? std::string("a register is needed here")
                                  : "this constant must be " + std::string(want.values));
    if (type_class(type) == TypeClass::packed)
        fail(syntax.location, "a ." + std::string(spelling(type)) + " can't be a constant");
    out.kind = Operand::Kind::imm;
    out.type = type;
    out.value = *bits;
}

void BodyBinder::bind_name(const OperandSyntax& syntax, const Want& want, Operand& out) {
    if (syntax.name == "_" && !syntax.has_offset) {
        if (!want.is_destination || !want.may_sink)
            fail(syntax.location, "'_' can't stand for this operand");
        out.kind = Operand::Kind::sink;
        return;
    }
    const Symbol symbol = find(syntax.name);
    if (symbol.kind == Symbol::Kind::reg) return bind_register(syntax, symbol, want, out);
    if (symbol.kind == Symbol::Kind::none && bind_special(syntax, want, out)) return;
    const bool is_variable =
        symbol.kind == Symbol::Kind::module_variable || symbol.kind == Symbol::Kind::body_variable;
    if (!is_variable && symbol.kind != Symbol::Kind::function) {
        if (symbol.kind == Symbol::Kind::none) fail_unknown(syntax.location, syntax.name);
        fail(syntax.location, quoted(syntax.name) + " can't be an operand here");
    }
    if (want.is_destination) fail(syntax.location, quoted(syntax.name) + " is not a register");
    if (want.kind != Constraint::Kind::any ||
        (bit_size(want.type) != 32 && bit_size(want.type) != 64))
        fail(syntax.location,
             "the address of " + quoted(syntax.name) + " can't be an operand here");
    if (is_float(want.type)) fail(syntax.location, "an address is no floating-point value");
    if (is_variable && bit_size(want.type) == 32) {
        const StateSpace space = symbol.kind == Symbol::Kind::module_variable
                                     ? context_.module.variables[symbol.index].space
                                     : body_.variables[symbol.index].space;
        require_wide_address(syntax.location, space);
    }
    out.kind = is_variable ? Operand::Kind::variable : Operand::Kind::function;
    out.scope =
        symbol.kind == Symbol::Kind::body_variable ? VariableScope::body : VariableScope::module;
    out.index = symbol.index;
    out.value = syntax.has_offset ? syntax.constant.bits : 0;
}

void BodyBinder::bind_register(const OperandSyntax& syntax, const Symbol& symbol, const Want& want,
                               Operand& out) {
    if (syntax.has_offset) fail(syntax.location, "a register with an offset needs brackets");
    std::uint32_t index = symbol.index;
    if (symbol.vector_size > 1) {
        const int component = component_number(syntax.component);
        if (component < 0 || component >= symbol.vector_size)
            fail(syntax.location, quoted(syntax.name) + " is a vector; name one of its components");
        index += static_cast<std::uint32_t>(component);
    } else if (!syntax.component.empty()) {
        fail(syntax.location,
             quoted(syntax.name) + " has no component ." + std::string(syntax.component));
    }
    const ScalarType have = body_.registers[index].type;
    if (want.type != ScalarType::none && !register_fits(have, want.type, want.wider))
        fail(syntax.location, "register " + quoted(syntax.name) + " has type ." +
                                  std::string(spelling(have)) + " where ." +
                                  std::string(spelling(want.type)) + " is needed");
    out.kind = Operand::Kind::reg;
    out.index = index;
    if (want.type == ScalarType::none) out.type = have;
}

bool BodyBinder::bind_special(const OperandSyntax& syntax, const Want& want, Operand& out) {
    const SpecialRegisterName name = find_special_register(syntax.name);
    if (!name.found) return false;
    const SpecialRegisterInfo& info = special_register_info(name.id);
    if (want.is_destination) fail(syntax.location, quoted(syntax.name) + " can't be written");
    int component = name.number;
    if (info.layout == SpecialRegisterInfo::Layout::vector) {
        component = component_number(syntax.component);
        if (component < 0)
            fail(syntax.location, quoted(syntax.name) + " needs a component: .x, .y or .z");
    } else if (!syntax.component.empty()) {
        fail(syntax.location, quoted(syntax.name) + " has no components");
    }
    const std::string_view opcode =
        FormTable::get().pattern(body_.instructions.back().form).info->opcode;
    if (opcode != "mov" && opcode != "cvt")
        fail(syntax.location, "special registers are read by mov and cvt only");
    const bool half_of_gridid = name.id == SpecialRegister::gridid && bit_size(want.type) == 32;
    const bool narrow = opcode == "mov" && is_integer(want.type) &&
                        bit_size(want.type) == 16; // PTX 1.x had 16-bit %tid
    if (is_float(want.type) ||
        (!register_fits(info.type, want.type, false) && !half_of_gridid && !narrow))
        fail(syntax.location, quoted(syntax.name) + " has type ." +
                                  std::string(spelling(info.type)) + " where ." +
                                  std::string(spelling(want.type)) + " is needed");
    const Module& module = context_.module;
    if (module.version < Version{info.ptx_major, info.ptx_minor} || module.target.sm < info.min_sm)
        fail(syntax.location, quoted(syntax.name) + " needs .version " +
                                  std::to_string(info.ptx_major) + "." +
                                  std::to_string(info.ptx_minor) + " and .target sm_" +
                                  std::to_string(info.min_sm) + " or later");
    out.kind = Operand::Kind::special;
    out.index = static_cast<std::uint32_t>(name.id);
    out.component = static_cast<std::uint8_t>(component);
    return true;
}

/// .global and generic addresses have the module's address size; the other windows fit in 32 bits.
void BodyBinder::require_wide_address(SourceLocation at, StateSpace space) {
    if (context_.module.address_size == 64 &&
        (space == StateSpace::global || space == StateSpace::generic))
        fail(at, "this address has 64 bits");
}

/// A variable is accessed in its own space, or generically; the parameters of the function itself
/// are read only.
void BodyBinder::check_space(const OperandSyntax& syntax, const Symbol& symbol,
                             const HeadMatch& match) {
    const bool in_body = symbol.kind == Symbol::Kind::body_variable;
    const Variable& variable =
        in_body ? body_.variables[symbol.index] : context_.module.variables[symbol.index];
    if (match.space == StateSpace::none || match.space == StateSpace::generic ||
        !has_one_address(match.form))
        return;
    if (variable.space != match.space)
        fail(syntax.location,
             quoted(syntax.name) + " is in ." + std::string(spelling(variable.space)) +
                 ", the instruction accesses ." + std::string(spelling(match.space)));
    const Function& function = *function_;
    const std::size_t first = function.returns.size(), last = first + function.parameters.size();
    const Effects effects = form_info(match.form).effects;
    if (in_body && symbol.index >= first && symbol.index < last &&
        any(effects, Effects::store | Effects::atomic))
        fail(syntax.location, quoted(syntax.name) + " is an input parameter and can't be written");
}

void BodyBinder::bind_address(const OperandSyntax& syntax, const HeadMatch& match, Operand& out) {
    out.kind = Operand::Kind::address;
    if (syntax.kind == OperandSyntax::Kind::constant) {
        if (!syntax.constant.is_integer()) fail(syntax.location, "an address must be an integer");
        if (match.space != StateSpace::local && match.space != StateSpace::none)
            fail(syntax.location, "only .local memory has constant addresses");
        out.value = syntax.constant.bits;
        return;
    }
    if (syntax.kind != OperandSyntax::Kind::name)
        fail(syntax.location, "an address is needed here");
    out.value = syntax.has_offset ? syntax.constant.bits : 0;
    const Symbol symbol = find(syntax.name);
    switch (symbol.kind) {
    case Symbol::Kind::reg: {
        OperandSyntax plain = syntax;
        plain.has_offset = false;
        Operand base;
        bind_register(plain, symbol, {}, base);
        const unsigned bits = bit_size(base.type);
        if ((bits != 32 && bits != 64) || is_float(base.type))
            fail(syntax.location, "register " + quoted(syntax.name) + " can't hold an address");
        if (bits == 32 && has_one_address(match.form))
            require_wide_address(syntax.location, match.space);
        out.base = Operand::Base::reg;
        out.index = base.index;
        out.type = base.type;
        return;
    }
    case Symbol::Kind::module_variable:
    case Symbol::Kind::body_variable:
        check_space(syntax, symbol, match);
        out.base = Operand::Base::variable;
        out.scope = symbol.kind == Symbol::Kind::body_variable ? VariableScope::body
                                                               : VariableScope::module;
        out.index = symbol.index;
        return;
    case Symbol::Kind::none: fail_unknown(syntax.location, syntax.name);
    default: fail(syntax.location, quoted(syntax.name) + " is not an address");
    }
}

void BodyBinder::bind_vector_register(const OperandSyntax& syntax, const Symbol& symbol,
                                      const Want& want, Operand& out) {
    out.kind = Operand::Kind::vector;
    out.first = static_cast<std::uint32_t>(body_.operand_pool.size());
    out.count = symbol.vector_size;
    for (std::uint32_t i = 0; i < symbol.vector_size; ++i) {
        Operand element;
        element.kind = Operand::Kind::reg;
        element.index = symbol.index + i;
        const ScalarType have = body_.registers[element.index].type;
        element.type = want.type == ScalarType::none ? have : want.type;
        if (!register_fits(have, element.type, want.wider))
            fail(syntax.location,
                 "vector " + quoted(syntax.name) + " has elements of another type");
        body_.operand_pool.push_back(element);
    }
}

/// Registers of one vector are of one size and class; constants and `_` go with any.
void BodyBinder::require_alike(const std::vector<Operand>& elements, SourceLocation at) {
    ScalarType first = ScalarType::none;
    for (const Operand& element : elements) {
        if (element.kind != Operand::Kind::reg) continue;
        const ScalarType type = body_.registers[element.index].type;
        if (first == ScalarType::none) first = type;
        if (!register_fits(type, first, false))
            fail(at, "the registers of a vector must be of one type");
    }
}

/// A braced list, or the name of a vector register, with exactly `count` elements (0: any number).
void BodyBinder::bind_elements(std::size_t index, const Want& want, unsigned count, Operand& out) {
    const OperandSyntax& syntax = node(index);
    out.type = want.type;
    if (syntax.kind == OperandSyntax::Kind::name) {
        bind_vector_register(syntax, find(syntax.name), want, out);
    } else {
        std::vector<Operand> elements;
        const std::size_t end = index + syntax.extent;
        for (std::size_t child = index + 1; child < end; child += node(child).extent) {
            Want element = want;
            element.kind = want.kind == Constraint::Kind::vec ? Constraint::Kind::wider : want.kind;
            element.may_sink = true;
            elements.emplace_back();
            bind_value(node(child), element, elements.back());
        }
        require_alike(elements, syntax.location);
        out.kind = Operand::Kind::vector;
        out.first = static_cast<std::uint32_t>(body_.operand_pool.size());
        out.count = static_cast<std::uint32_t>(elements.size());
        body_.operand_pool.insert(body_.operand_pool.end(), elements.begin(), elements.end());
    }
    if (count != 0 && out.count != count)
        fail(syntax.location, "a vector of " + std::to_string(count) + " elements is needed here");
}

/// pack(.t): the elements share the bits of .t. list(.t): each of `size` elements (0: any number) is
/// a .t.
void BodyBinder::bind_list(std::size_t index, const Want& want, unsigned size, Operand& out) {
    const OperandSyntax& syntax = node(index);
    Want element = want;
    element.kind = Constraint::Kind::type;
    if (want.kind == Constraint::Kind::pack) {
        const std::uint32_t count = syntax.kind == OperandSyntax::Kind::name
                                        ? find(syntax.name).vector_size
                                        : syntax.children;
        const bool divides = count == 2 || count == 4 || count == 8;
        element.type = divides ? bits_type(bit_size(want.type) / count) : ScalarType::none;
        if (element.type == ScalarType::none)
            fail(syntax.location,
                 "a ." + std::string(spelling(want.type)) + " has no parts of this number");
    }
    bind_elements(index, element, size, out);
    out.type = want.type;
}

void BodyBinder::bind_label(const OperandSyntax& syntax, Operand& out) {
    if (syntax.has_offset || !syntax.component.empty())
        fail(syntax.location, "a label is needed here");
    out.kind = Operand::Kind::label;
    const auto where = static_cast<std::uint32_t>(body_.instructions.size() - 1);
    scopes_.back().label_uses.push_back(
        {syntax.name, syntax.location, false, where, operand_index_});
}

void BodyBinder::bind_function(const OperandSyntax& syntax, Operand& out) {
    const Symbol symbol = find(syntax.name);
    if (symbol.kind == Symbol::Kind::function) {
        out.kind = Operand::Kind::function;
        out.index = symbol.index;
        return;
    }
    if (symbol.kind == Symbol::Kind::none) fail_unknown(syntax.location, syntax.name);
    if (symbol.kind != Symbol::Kind::reg)
        fail(syntax.location, quoted(syntax.name) + " is not a function");
    Want want;
    want.type = context_.module.address_size == 64 ? ScalarType::b64 : ScalarType::b32;
    out.type = want.type;
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
                      : " is not a .callprototype or .calltargets declared above"));
}

} // namespace ptarmigan::ptx
