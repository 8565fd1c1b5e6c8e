// SPDX-License-Identifier: Apache-2.0
// Instructions that look like one bound before: names are looked up, all else is copied.
#include "frontend/bind/body_binder.h"

namespace ptarmigan::ptx {

namespace {

/// A node as 16 bits: what it is, six bits that say more, and its signs.
enum NodeCode : unsigned {
    sink_node = 1 << 6,
    register_node = 2 << 6,        ///< and its type
    module_variable_node = 3 << 6, ///< and its space
    body_variable_node = 4 << 6,   ///< likewise
    parameter_node = 5 << 6,       ///< of the function itself, and its space
    result_node = 8 << 6,          ///< likewise
    constant_node = 6 << 6,        ///< and its kind
    bracket_node = 7 << 6,         ///< and the number of its children
    braces_node = 8 << 6,          ///< likewise
    inverted_sign = 1 << 12,
    minus_sign = 1 << 13,
    pair_sign = 1 << 14,
    offset_sign = 1 << 15,
};
constexpr unsigned max_detail = 63;

unsigned signs_of(const OperandSyntax& node) {
    return (node.inverted ? inverted_sign : 0u) | (node.minus ? minus_sign : 0u) |
           (node.pair_follows ? pair_sign : 0u) | (node.has_offset ? offset_sign : 0u);
}

} // namespace

/// Whether a variable of the body is a parameter of the function itself, which can't be written;
/// its results can.
bool BodyBinder::is_own_parameter(VariableId id) const {
    const std::size_t first = function_->returns.size();
    return id >= first && id < first + function_->parameters.size();
}

/// Whether it is a result of the function itself, which can only be written.
bool BodyBinder::is_own_result(VariableId id) const {
    return id < function_->returns.size();
}

/// False if the node, and so the instruction, has no shape.
bool BodyBinder::add_node(const OperandSyntax& node, bool in_bracket, Shape& shape) {
    if (!node.component.empty() || node.has_index) return false;
    unsigned code = signs_of(node);
    std::uint32_t index = no_id;
    switch (node.kind) {
    case OperandSyntax::Kind::name: {
        if (node.name == "_") {
            code |= sink_node;
            break;
        }
        const Symbol symbol = find(node.name);
        index = symbol.index;
        if (symbol.kind == Symbol::Kind::reg && symbol.vector_size == 1) {
            const ScalarType type = symbol.type != ScalarType::none ? symbol.type : body_.registers[index].type;
            code |= register_node | static_cast<unsigned>(type);
            break;
        }
        const bool in_module = symbol.kind == Symbol::Kind::module_variable;
        if (!in_module && symbol.kind != Symbol::Kind::body_variable) return false;
        const Variable& variable = in_module ? context_.module.variables[index] : body_.variables[index];
        if (type_class(variable.type) == TypeClass::opaque) return false;
        code |= in_module                 ? module_variable_node
                : is_own_parameter(index) ? parameter_node
                : is_own_result(index)    ? result_node
                                          : body_variable_node;
        code |= static_cast<unsigned>(variable.space);
        break;
    }
    case OperandSyntax::Kind::constant:
        if (in_bracket) return false;
        code |= constant_node | static_cast<unsigned>(node.constant.kind);
        break;
    case OperandSyntax::Kind::bracket:
    case OperandSyntax::Kind::braces:
        if (node.children > max_detail) return false;
        code |= (node.kind == OperandSyntax::Kind::bracket ? bracket_node : braces_node) | node.children;
        break;
    case OperandSyntax::Kind::parens: return false;
    }
    shape.index[shape.nodes] = index;
    shape.key[shape.nodes / 4] |= std::uint64_t{code} << 16 * (shape.nodes % 4);
    ++shape.nodes;
    return true;
}

Shape BodyBinder::shape_of_instruction() {
    const InstructionSyntax& syntax = parser_->instruction;
    const std::vector<OperandSyntax>& nodes = syntax.operands;
    Shape shape;
    if (nodes.size() > Shape::max_nodes) return shape;
    if (!syntax.guard.empty()) {
        const Symbol guard = find(syntax.guard);
        if (guard.kind != Symbol::Kind::reg || guard.vector_size != 1 ||
            body_.registers[guard.index].type != ScalarType::pred)
            return shape;
        shape.guard = guard.index;
    }
    std::size_t bracket_end = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i].kind == OperandSyntax::Kind::bracket) bracket_end = i + nodes[i].extent;
        if (add_node(nodes[i], i < bracket_end, shape)) continue;
        shape.nodes = 0;
        break;
    }
    return shape;
}

void BodyBinder::bind_alike(const BoundShape& known, const Shape& shape) {
    const InstructionSyntax& syntax = parser_->instruction;
    Instruction& out = known.append(shape, syntax.operands, body_);
    out.location = syntax.location;
    out.guard = shape.guard;
    out.guard_negated = shape.guard != no_id && syntax.guard_negated;
    for (std::size_t i = 0; i < Instruction::max_operands; ++i)
        if (known.carry_operands() >> i & 1) out.operands[i].index = carry_flag();
}

} // namespace ptarmigan::ptx
