// SPDX-License-Identifier: Apache-2.0
// Braced operands and vector registers: how many elements, and of which types.
#include "frontend/bind/body_binder.h"
#include "frontend/bind/register_types.h"

namespace ptarmigan::ptx {

void BodyBinder::bind_vector_register(const OperandSyntax& syntax, const Symbol& symbol, const Want& want,
                                      Operand& out) {
    if (symbol.kind == Symbol::Kind::none) fail_unknown(syntax.location, syntax.name);
    if (symbol.kind != Symbol::Kind::reg) fail(syntax.location, quoted(syntax.name) + " is not a register");
    out.kind = Operand::Kind::vector;
    out.first = static_cast<std::uint32_t>(body_.operand_pool.size());
    out.count = symbol.vector_size;
    for (std::uint32_t i = 0; i < symbol.vector_size; ++i) {
        Operand element;
        element.kind = Operand::Kind::reg;
        element.index = symbol.index + i;
        const ScalarType have = body_.registers[element.index].type;
        element.type = want.type == ScalarType::none ? have : want.type;
        if (element.type != have && !fits(have, want))
            fail(syntax.location, "vector " + quoted(syntax.name) + " has elements of another type");
        body_.operand_pool.push_back(element);
    }
}

/// `%tid` where a vector of four is read.
bool BodyBinder::bind_special_vector(const OperandSyntax& syntax, const Want& want, Operand& out) {
    if (!is_special_vector(syntax.name) || !syntax.component.empty()) return false;
    out.kind = Operand::Kind::vector;
    std::vector<Operand> elements(4);
    OperandSyntax element = syntax;
    for (std::size_t i = 0; i < 4; ++i) {
        element.component = std::string_view("xyzw").substr(i, 1);
        elements[i].type = want.type;
        bind_special(element, want, elements[i]);
    }
    out.first = static_cast<std::uint32_t>(body_.operand_pool.size());
    out.count = 4;
    body_.operand_pool.insert(body_.operand_pool.end(), elements.begin(), elements.end());
    return true;
}

/// Registers of one vector are of one size and class; constants and `_` go with any.
void BodyBinder::require_alike(const std::vector<Operand>& elements, SourceLocation at) {
    ScalarType first = ScalarType::none;
    for (const Operand& element : elements) {
        if (element.kind != Operand::Kind::reg) continue;
        const ScalarType type = body_.registers[element.index].type;
        if (first == ScalarType::none) first = type;
        if (!register_fits(type, first, false)) fail(at, "the registers of a vector must be of one type");
    }
}

/// What a braced list has among its elements.
BodyBinder::ElementKinds BodyBinder::element_kinds(std::size_t index) const {
    ElementKinds kinds;
    const std::size_t end = index + node(index).extent;
    for (std::size_t child = index + 1; child < end; child += node(child).extent) {
        const OperandSyntax& element = node(child);
        if (element.kind != OperandSyntax::Kind::constant)
            kinds.names = true;
        else if (element.constant.is_integer())
            kinds.integers = true;
        else
            (element.constant.kind == Constant::Kind::bits32 ? kinds.singles : kinds.reals) = true;
    }
    return kinds;
}

/// A braced list, or the name of a vector register, with exactly `count` elements (0: any number).
void BodyBinder::bind_elements(std::size_t index, const Want& want, unsigned count, Operand& out) {
    const OperandSyntax& syntax = node(index);
    out.type = want.type;
    if (syntax.kind == OperandSyntax::Kind::name) {
        const Symbol symbol = find(syntax.name);
        Want element = want;
        element.in_vector = true;
        if (symbol.kind != Symbol::Kind::none || !bind_special_vector(syntax, want, out))
            bind_vector_register(syntax, symbol, element, out);
    } else {
        std::vector<Operand> elements;
        const std::size_t end = index + syntax.extent;
        const ElementKinds kinds = element_kinds(index);
        if (kinds.integers && (kinds.reals || kinds.singles) && want.first_element == ScalarType::none)
            fail(syntax.location, "integers and floating-point constants do not go into one vector");
        for (std::size_t child = index + 1; child < end; child += node(child).extent) {
            Want element = want;
            element.kind = want.kind == Constraint::Kind::vec ? Constraint::Kind::wider : want.kind;
            element.may_sink = true;
            const bool are_words = kinds.singles && !kinds.reals && element.type == ScalarType::b32;
            if (!kinds.names && want.element_rule == ElementRule::fragment && element.type != ScalarType::f64 &&
                element.type != ScalarType::s32 && !are_words)
                fail(syntax.location, "a vector of constants alone is none of ." + std::string(spelling(element.type)) +
                                          " here: one must be a register");
            if (kinds.names && element.type == ScalarType::f64) element.element_rule = ElementRule::converted;
            // Without registers the constants say what type the vector has, and then it must fit.
            element.is_element = kinds.names ||
                                 (want.element_rule == ElementRule::fragment && !kinds.reals && !kinds.singles) ||
                                 (want.element_rule == ElementRule::bits && is_float(want.type));
            element.in_vector = want.in_vector || want.kind == Constraint::Kind::vec;
            if (elements.empty() && want.first_element != ScalarType::none) element.type = want.first_element;
            elements.emplace_back();
            bind_value(node(child), element, elements.back());
        }
        if (want.first_element == ScalarType::none) require_alike(elements, syntax.location);
        out.kind = Operand::Kind::vector;
        out.first = static_cast<std::uint32_t>(body_.operand_pool.size());
        out.count = static_cast<std::uint32_t>(elements.size());
        body_.operand_pool.insert(body_.operand_pool.end(), elements.begin(), elements.end());
    }
    if (count != 0 && out.count != count)
        fail(syntax.location,
             "a vector of " + std::to_string(count) + " elements is needed here, not of " + std::to_string(out.count));
}

/// pack(.t): the elements share the bits of .t. list(.t): each of `size` elements (0: any number)
/// is a .t.
void BodyBinder::bind_list(std::size_t index, const Want& want, unsigned size, Operand& out) {
    const OperandSyntax& syntax = node(index);
    Want element = want;
    element.kind = Constraint::Kind::type;
    if (want.kind == Constraint::Kind::pack) {
        const std::uint32_t count =
            syntax.kind == OperandSyntax::Kind::name ? find(syntax.name).vector_size : syntax.children;
        const bool divides = count == 2 || count == 4 || count == 8;
        element.type = divides ? with_bits(ScalarType::b8, bit_size(want.type) / count) : ScalarType::none;
        if (element.type == ScalarType::none)
            fail(syntax.location, "a ." + std::string(spelling(want.type)) + " has no parts of this number");
    }
    bind_elements(index, element, size, out);
    out.type = want.type;
}

} // namespace ptarmigan::ptx
