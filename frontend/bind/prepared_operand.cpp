// SPDX-License-Identifier: Apache-2.0
// Operands that ptxas takes and no later stage needs to know: a register plus a constant as a
// value, addresses in registers of 8 and 16 bits, vector registers and predicates as arguments of calls. The
// binder meets one while it binds an instruction, gives that up, appends what makes the operand,
// and binds the instruction again with its name.
#include "frontend/bind/body_binder.h"

#include "frontend/bind/register_types.h"

namespace ptarmigan::ptx {

namespace {
Operand value_of(RegisterId id, ScalarType type) {
    Operand operand;
    operand.kind = Operand::Kind::reg;
    operand.index = id;
    operand.type = type;
    return operand;
}
} // namespace

/// The node of the instruction at hand that `syntax` is, if it stands by itself or in brackets.
std::size_t BodyBinder::node_of(const OperandSyntax& syntax) const {
    const std::vector<OperandSyntax>& nodes = parser_->instruction.operands;
    const bool is_node = !nodes.empty() && &syntax >= nodes.data() && &syntax < nodes.data() + nodes.size();
    return is_node ? static_cast<std::size_t>(&syntax - nodes.data()) : no_id;
}

void BodyBinder::prepare(const Preparation& what) {
    switch (what.kind) {
    case Preparation::Kind::sum: return prepare_sum(what.node);
    case Preparation::Kind::address: return prepare_address(what.node, what.wide);
    case Preparation::Kind::argument: return prepare_argument(what.node, *what.formal, what.is_result);
    }
}

/// `%r2+4` as a value: an integer addition in the register's size, whatever the instruction makes
/// of the sum.
void BodyBinder::prepare_sum(std::size_t index) {
    OperandSyntax& node = parser_->instruction.operands[index];
    const Symbol symbol = find(node.name);
    const ScalarType type = body_.registers[symbol.index].type;
    const ScalarType integer = with_bits(ScalarType::s32, bit_size(type));
    Operand constant;
    constant.kind = Operand::Kind::imm;
    constant.type = integer;
    constant.value =
        bit_size(type) == 64 ? node.constant.bits : node.constant.bits & ((std::uint64_t{1} << bit_size(type)) - 1);
    const RegisterId sum = compute("add", {spelling(integer)}, integer, {value_of(symbol.index, integer), constant});
    node.name = hidden_name(sum);
    node.has_offset = false;
    node.constant = {};
}

/// An address in a register of 8 or 16 bits is extended by the register's sign to 32 bits, and
/// without one to 64.
void BodyBinder::prepare_address(std::size_t index, bool wide) {
    OperandSyntax& node = parser_->instruction.operands[index];
    const ScalarType type = body_.registers[find(node.name).index].type;
    const bool has_sign = is_signed(type);
    const ScalarType from = with_bits(has_sign ? ScalarType::s32 : ScalarType::u32, bit_size(type));
    const ScalarType to = has_sign ? ScalarType::s32 : ScalarType::u32;
    RegisterId address = compute("cvt", {spelling(to), spelling(from)}, to, {value_of(find(node.name).index, from)});
    if (wide) address = compute("cvt", {"u64", "u32"}, ScalarType::u64, {value_of(address, ScalarType::u32)});
    warn(node.location,
         "register " + quoted(node.name) + " has " + std::to_string(bit_size(type)) + " bits: the address is extended");
    node.name = hidden_name(address);
}

/// A vector register or a predicate goes through a `.param` variable of its own; results are read back
/// behind the call.
void BodyBinder::prepare_argument(std::size_t index, const Variable& formal, bool is_result) {
    OperandSyntax& node = parser_->instruction.operands[index];
    const Symbol symbol = find(node.name);
    const auto id = static_cast<std::uint32_t>(body_.variables.size());
    Variable& variable = body_.variables.emplace_back(formal);
    hidden_names_.push_back(std::make_unique<std::string>("%argument" + std::to_string(id)));
    const std::string_view name = *hidden_names_.back();
    variable.name = name;
    variable.space = StateSpace::param;
    if (formal.type == ScalarType::pred) variable.type = ScalarType::b8;
    scopes_.back().declare(name, {Symbol::Kind::body_variable, 1, id, 0});
    if (is_result)
        results_of_call_.push_back({id, symbol.index});
    else
        move_parameter(false, id, symbol.index, no_id, false);
    node.name = name;
}

void BodyBinder::load_results_of_call() {
    const RegisterId guard = body_.instructions.back().guard;
    const bool negated = body_.instructions.back().guard_negated;
    for (const auto& [variable, first] : results_of_call_) move_parameter(true, variable, first, guard, negated);
    results_of_call_.clear();
}

} // namespace ptarmigan::ptx
