// SPDX-License-Identifier: Apache-2.0
// Parameters and results in registers (`.func (.reg .u32 r) f(.reg .u32 a)`, manual section 7.1): the body loads the
// ones from parameter memory when it begins and stores the others when it returns, so that no later stage needs two
// ways to pass a value. Callers give registers and constants either way. A predicate is a byte there, zero or one.
#include "frontend/bind/body_binder.h"

#include "frontend/isa/words.h"

#include <algorithm>

namespace ptarmigan::ptx {

namespace {
std::string_view untyped(unsigned bits) {
    return bits == 8 ? "b8" : bits == 16 ? "b16" : bits == 32 ? "b32" : bits == 64 ? "b64" : "b128";
}
} // namespace

Instruction& BodyBinder::append(std::string_view opcode, const std::vector<std::string_view>& words) {
    InstructionSyntax syntax;
    syntax.opcode = opcode;
    syntax.words = words;
    const HeadMatch& head = matcher_.heads(syntax).front(); // what is appended is in the table
    Instruction& out = body_.instructions.emplace_back();
    out.form = head.form;
    out.location = parser_->location;
    out.space = head.space;
    out.vector_size = head.vector_size;
    out.types = head.types;
    out.modifiers = head.modifiers;
    out.modifier_count = head.modifier_count;
    out.operand_count = static_cast<std::uint8_t>(form_info(head.form).operands.size());
    return out;
}

/// `ld.param` of parameter `id` into its registers, or `st.param` of result `id` from them.
void BodyBinder::move_parameter(bool loads, std::uint32_t id, RegisterId first, RegisterId guard, bool negated) {
    if (body_.registers[first].type != ScalarType::pred) return move_value(loads, id, first, guard, negated);
    if (!loads) {
        Operand one, zero, condition;
        one.kind = zero.kind = Operand::Kind::imm;
        one.type = zero.type = ScalarType::u16;
        one.value = 1;
        condition.kind = Operand::Kind::reg;
        condition.type = ScalarType::pred;
        condition.index = first;
        return move_value(loads, id, compute("selp", {"u16"}, ScalarType::u16, {one, zero, condition}), guard, negated);
    }
    Operand value, result;
    value.kind = result.kind = Operand::Kind::reg;
    value.type = ScalarType::u16;
    value.index = add_registers("%element", ScalarType::u16, 1);
    move_value(loads, id, value.index, guard, negated);
    Instruction& test = append("setp", {"ne", "u16"});
    result.type = ScalarType::pred;
    result.index = first;
    test[Role::p] = result;
    test[Role::a] = value;
    value = {};
    value.kind = Operand::Kind::imm;
    value.type = ScalarType::u16;
    test[Role::b] = value;
    test.guard = guard;
    test.guard_negated = negated;
}

void BodyBinder::move_value(bool loads, std::uint32_t id, RegisterId first, RegisterId guard, bool negated) {
    const Variable& variable = body_.variables[id];
    std::vector<std::string_view> words{"param"};
    if (variable.vector_size > 1) words.push_back(variable.vector_size == 2 ? "v2" : "v4");
    const std::string_view type = untyped(std::max(bit_size(variable.type), 8u));
    words.push_back(type);
    Instruction& out = append(loads ? "ld" : "st", words);
    Operand& address = out.operands[loads ? 1 : 0];
    address.kind = Operand::Kind::address;
    address.base = Operand::Base::variable;
    address.scope = VariableScope::body;
    address.index = id;
    Operand value;
    value.kind = Operand::Kind::reg;
    value.type = out.types[0];
    value.index = first;
    if (variable.vector_size > 1) {
        const auto elements = static_cast<std::uint32_t>(body_.operand_pool.size());
        for (unsigned i = 0; i < variable.vector_size; ++i, ++value.index) body_.operand_pool.push_back(value);
        value.index = no_id;
        value.first = elements;
        value.kind = Operand::Kind::vector;
        value.count = variable.vector_size;
    }
    out.operands[loads ? 0 : 1] = value;
    out.guard = guard;
    out.guard_negated = negated;
}

void BodyBinder::load_register_parameters() {
    RegisterId next = 0;
    std::uint32_t id = 0;
    for (const Variable& result : function_->returns) {
        if (result.space == StateSpace::reg) next += result.vector_size;
        ++id;
    }
    for (const Variable& parameter : function_->parameters) {
        if (parameter.space == StateSpace::reg) {
            move_parameter(true, id, next, no_id, false);
            next += parameter.vector_size;
        }
        ++id;
    }
}

void BodyBinder::store_register_results(RegisterId guard, bool guard_negated) {
    RegisterId next = 0;
    for (std::uint32_t id = 0; id < function_->returns.size(); ++id) {
        const Variable& result = function_->returns[id];
        if (result.space != StateSpace::reg) continue;
        move_parameter(false, id, next, guard, guard_negated);
        next += result.vector_size;
    }
}

/// What a ret with the guard of the instruction at hand has to do first.
void BodyBinder::before_return() {
    Instruction guarded;
    if (!parser_->instruction.guard.empty()) bind_guard(guarded);
    store_register_results(guarded.guard, guarded.guard_negated);
}

} // namespace ptarmigan::ptx
