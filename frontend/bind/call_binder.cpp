// SPDX-License-Identifier: Apache-2.0
// Calls: the callee decides what the lists of results and arguments may hold, so it is bound first.
#include "frontend/bind/body_binder.h"
#include "frontend/bind/register_types.h"

#include <algorithm>

namespace ptarmigan::ptx {

namespace {
/// ".b32", ".b8[16]".
std::string type_text(const Variable& variable) {
    std::string text = "." + std::string(spelling(variable.type));
    for (const std::uint64_t length : variable.dimensions)
        text += "[" + (length == 0 ? "" : std::to_string(length)) + "]";
    return text;
}

bool same_sizes(const std::vector<Variable>& a, const std::vector<Variable>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Variable& x, const Variable& y) {
        return x.size == y.size && x.alignment == y.alignment;
    });
}
} // namespace

void BodyBinder::bind_call(const OperandNodes& nodes, Instruction& out) {
    const auto patterns = FormTable::get().pattern(out.form).operands;
    Signature signature;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
        if (nodes[i] < 0) continue;
        const OperandSyntax& syntax = node(static_cast<std::size_t>(nodes[i]));
        const Constraint::Kind kind = patterns[i].constraint.kind;
        if (kind == Constraint::Kind::function) bind_function(syntax, out.operands[i]);
        if (kind == Constraint::Kind::prototype) bind_named_list(syntax, kind, out.operands[i]);
        if (kind == Constraint::Kind::prototype && signature.known)
            fail(syntax.location, "only a call through a register has a list of targets or a prototype");
        if (kind == Constraint::Kind::function || kind == Constraint::Kind::prototype)
            apply_callee(out.operands[i], syntax.location, signature);
    }
    if (!signature.known) fail(out.location, "a call through a register needs a .callprototype or .calltargets");
    bool has_results = false, has_arguments = false;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
        if (nodes[i] < 0 || patterns[i].form != OperandPattern::Form::parens) continue;
        const bool results = patterns[i].is_destination;
        (results ? has_results : has_arguments) = true;
        bind_call_list(static_cast<std::size_t>(nodes[i]), results ? *signature.returns : *signature.parameters,
                       results, out.operands[i]);
    }
    if ((!has_results && !signature.returns->empty()) ||
        (!has_arguments && !signature.parameters->empty() && !signature.parameters->back().unsized))
        fail(out.location, !has_results && !signature.returns->empty()
                               ? "this call leaves out the results, " + std::to_string(signature.returns->size()) +
                                     " in parentheses before the function's name"
                               : "this call leaves out the arguments, " + std::to_string(signature.parameters->size()) +
                                     " in parentheses");
}

void BodyBinder::apply_callee(const Operand& callee, SourceLocation at, Signature& signature) {
    const Function* function = nullptr;
    if (callee.kind == Operand::Kind::function) function = &context_.module.functions[callee.index];
    if (callee.kind == Operand::Kind::call_targets) {
        const std::vector<FunctionId>& targets = body_.call_targets[callee.index];
        function = &context_.module.functions[targets.front()];
        for (const FunctionId id : targets) {
            const Function& other = context_.module.functions[id];
            if (!same_sizes(other.returns, function->returns) || !same_sizes(other.parameters, function->parameters))
                fail(at, "the possible callees " + quoted(function->name) + " and " + quoted(other.name) +
                             " differ in their parameters");
        }
    }
    if (function != nullptr) {
        // One that stands in a list is taken, as by ptxas: which it is, the register says.
        if (function->is_entry && callee.kind == Operand::Kind::function)
            fail(at, quoted(function->name) + " is an entry and can't be called");
        signature = {true, &function->returns, &function->parameters};
    } else if (callee.kind == Operand::Kind::prototype) {
        const Prototype& prototype = body_.prototypes[callee.index];
        signature = {true, &prototype.returns, &prototype.parameters};
    }
}

void BodyBinder::bind_call_list(std::size_t index, const std::vector<Variable>& formals, bool is_destination,
                                Operand& out) {
    const OperandSyntax& syntax = node(index);
    const bool variadic = !formals.empty() && formals.back().unsized;
    if (variadic ? syntax.children + 1 < formals.size() : syntax.children != formals.size())
        fail(syntax.location, "this call has " + std::to_string(syntax.children) +
                                  (is_destination ? " results, the function has " : " arguments, the function takes ") +
                                  std::to_string(formals.size()));
    std::vector<Operand> elements;
    const std::size_t end = index + syntax.extent;
    for (std::size_t child = index + 1; child < end; child += node(child).extent) {
        const std::size_t number = std::min(elements.size(), formals.size() - 1);
        elements.emplace_back();
        bind_argument(node(child), formals[number], is_destination, elements.back());
    }
    out.kind = Operand::Kind::list;
    out.first = static_cast<std::uint32_t>(body_.operand_pool.size());
    out.count = static_cast<std::uint32_t>(elements.size());
    body_.operand_pool.insert(body_.operand_pool.end(), elements.begin(), elements.end());
}

void BodyBinder::bind_argument(const OperandSyntax& syntax, const Variable& formal, bool is_destination, Operand& out) {
    const Symbol symbol = syntax.kind == OperandSyntax::Kind::name ? find(syntax.name) : Symbol{};
    if (symbol.kind == Symbol::Kind::body_variable && body_.variables[symbol.index].space == StateSpace::param) {
        const Variable& actual = body_.variables[symbol.index];
        if (is_own_parameter(symbol.index) || is_own_result(symbol.index))
            fail(syntax.location, quoted(syntax.name) + " is a parameter of this function and can't be an argument: "
                                                        "copy it to a .param variable");
        const bool alike =
            actual.dimensions.empty() == formal.dimensions.empty() && (actual.size == formal.size || formal.unsized) &&
            register_fits(actual.type, formal.type == ScalarType::pred ? ScalarType::b8 : formal.type, false);
        if (!alike)
            fail(syntax.location, quoted(syntax.name) + " is " + type_text(actual) + ", parameter " +
                                      quoted(formal.name) + " is " + type_text(formal));
        if (actual.alignment != formal.alignment)
            fail(syntax.location, quoted(syntax.name) + " has another alignment than parameter " + quoted(formal.name));
        out.kind = Operand::Kind::variable;
        out.scope = VariableScope::body;
        out.type = formal.type;
        out.index = symbol.index;
        return;
    }
    if (symbol.kind == Symbol::Kind::reg && symbol.vector_size > 1 && syntax.component.empty() &&
        formal.space == StateSpace::reg && formal.vector_size == symbol.vector_size &&
        register_fits(body_.registers[symbol.index].type, formal.type, false))
        throw Preparation{Preparation::Kind::argument, node_of(syntax), false, &formal, is_destination};
    if (formal.type == ScalarType::pred && syntax.name != "_") {
        const bool is_predicate =
            symbol.kind == Symbol::Kind::reg && body_.registers[symbol.index].type == ScalarType::pred;
        if (!is_predicate || syntax.inverted || !syntax.component.empty())
            fail(syntax.location, "parameter " + quoted(formal.name) + " needs a predicate register");
        throw Preparation{Preparation::Kind::argument, node_of(syntax), false, &formal, is_destination};
    }
    if (symbol.kind == Symbol::Kind::module_variable || symbol.kind == Symbol::Kind::body_variable ||
        symbol.kind == Symbol::Kind::function)
        fail(syntax.location, quoted(syntax.name) + " can't be an argument: mov puts its address into a register");
    if (!formal.dimensions.empty())
        fail(syntax.location, "parameter " + quoted(formal.name) + " needs a .param variable");
    const TypeClass formal_class = type_class(formal.type);
    if (syntax.kind == OperandSyntax::Kind::constant && !syntax.constant.is_integer() &&
        (formal_class == TypeClass::unsigned_int || formal_class == TypeClass::signed_int))
        fail(syntax.location,
             "parameter " + quoted(formal.name) + " is " + type_text(formal) + " and takes no floating-point constant");
    Want want;
    want.kind = Constraint::Kind::any;
    want.is_destination = is_destination;
    want.may_sink = true;
    want.type = formal.type;
    want.is_element = true;
    bind_value(syntax, want, out);
}

} // namespace ptarmigan::ptx
