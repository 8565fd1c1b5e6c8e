// SPDX-License-Identifier: Apache-2.0
// `a[3]`, `a[%r]`, `a[%r+1]` as operands: the address of an element of an array (manual section 6.4.2). As in
// ptxas the unit is the scalar type, also of arrays of vectors and of more dimensions, and bounds are not checked.
#include "frontend/bind/body_binder.h"

#include "frontend/bind/register_types.h"

#include <algorithm>
#include <bit>

namespace ptarmigan::ptx {

namespace {

/// ptxas takes elements of arrays as the address of plain loads and stores, not of atomics,
/// prefetches or copies.
bool loads_or_stores(const HeadMatch& head) {
    const FormPattern& pattern = FormTable::get().pattern(head.form);
    const bool has_address =
        std::any_of(pattern.operands.begin(), pattern.operands.end(),
                    [](const OperandPattern& operand) { return operand.form == OperandPattern::Form::bracket_first; });
    const Effects effects = pattern.info->effects;
    return has_address && any(effects, Effects::load | Effects::store) &&
           !any(effects, Effects::atomic | Effects::async | Effects::convergent);
}

Operand register_operand(RegisterId id, ScalarType type) {
    Operand operand;
    operand.kind = Operand::Kind::reg;
    operand.index = id;
    operand.type = type;
    return operand;
}

Operand constant_operand(std::uint64_t bits, ScalarType type) {
    Operand operand;
    operand.kind = Operand::Kind::imm;
    operand.value = bits;
    operand.type = type;
    return operand;
}

} // namespace

RegisterId BodyBinder::compute(std::string_view opcode, std::initializer_list<std::string_view> words, ScalarType type,
                               std::initializer_list<Operand> sources) {
    const RegisterId result = add_registers("%element", type, 1);
    Instruction& out = append(opcode, words);
    out.operands[0] = register_operand(result, type);
    std::copy(sources.begin(), sources.end(), out.operands.begin() + 1);
    return result;
}

std::string_view BodyBinder::hidden_name(RegisterId id) {
    hidden_names_.push_back(std::make_unique<std::string>("element " + std::to_string(id)));
    const std::string_view name = *hidden_names_.back();
    scopes_.back().declare(name, {Symbol::Kind::reg, 1, id, 0});
    return name;
}

/// `@%is_explicit_cluster`: the special register that is a predicate is read into a register first.
void BodyBinder::resolve_special_guard() {
    InstructionSyntax& instruction = parser_->instruction;
    const SpecialRegisterName special = find_special_register(instruction.guard);
    if (!special.found || find(instruction.guard).kind != Symbol::Kind::none) return;
    if (special_register_info(special.id).type != ScalarType::pred) return; // bind_guard() says so
    const RegisterId value = compute("mov", {"pred"}, ScalarType::pred, {Operand{}});
    OperandSyntax name;
    name.name = instruction.guard;
    name.location = instruction.guard_location;
    Want want;
    want.type = ScalarType::pred;
    bind_special(name, want, body_.instructions.back().operands[1]);
    body_.instructions.back().operands[1].type = ScalarType::pred;
    instruction.guard = hidden_name(value);
}

const Variable& BodyBinder::array_of(const OperandSyntax& node) {
    const Symbol symbol = find(node.name);
    const Variable* variable = nullptr;
    if (symbol.kind == Symbol::Kind::module_variable) variable = &context_.module.variables[symbol.index];
    if (symbol.kind == Symbol::Kind::body_variable) variable = &body_.variables[symbol.index];
    if (variable == nullptr || variable->dimensions.empty())
        fail(node.location, quoted(node.name) + " is not an array");
    return *variable;
}

/// The register or special register inside the brackets, appended as a value of 32 bits.
Operand BodyBinder::index_value(const OperandSyntax& node) {
    const Symbol symbol = find(node.index);
    const SpecialRegisterName special =
        symbol.kind == Symbol::Kind::none ? find_special_register(node.index) : SpecialRegisterName{};
    if (symbol.kind == Symbol::Kind::none && !special.found) fail_unknown(node.location, node.index);
    ScalarType type = ScalarType::none;
    if (special.found) type = special_register_info(special.id).type;
    if (symbol.kind == Symbol::Kind::reg && symbol.vector_size == 1) type = body_.registers[symbol.index].type;
    const TypeClass kind = type_class(type);
    if ((kind != TypeClass::bits && kind != TypeClass::signed_int && kind != TypeClass::unsigned_int) ||
        bit_size(type) > 64)
        fail(node.location, quoted(node.index) + " can't be an array index");
    const bool extends_sign = kind == TypeClass::signed_int && bit_size(type) < 32;
    const ScalarType source = with_bits(extends_sign ? ScalarType::s32 : ScalarType::u32, bit_size(type));
    RegisterId value = symbol.index;
    if (special.found) {
        value = compute("mov", {spelling(source)}, source, {Operand{}});
        OperandSyntax name;
        name.name = node.index;
        name.location = node.location;
        Want want;
        want.type = source;
        bind_special(name, want, body_.instructions.back().operands[1]);
        body_.instructions.back().operands[1].type = source;
    }
    const ScalarType wide = extends_sign ? ScalarType::s32 : ScalarType::u32;
    if (bit_size(source) != 32)
        value = compute("cvt", {spelling(wide), spelling(source)}, wide, {register_operand(value, source)});
    return register_operand(value, ScalarType::u32);
}

/// ptxas computes (index + constant) * size in 32 bits, with registers of any size: a narrower one is
/// extended by its own sign, of a wider one only the low half counts. The product is added to a shared or
/// parameter address in 32 bits, to others in 64 without a sign.
std::string_view BodyBinder::element_address(const OperandSyntax& node, const Variable& array, bool generic,
                                             unsigned bits) {
    const StateSpace space = array.space;
    const unsigned element_size = byte_size(array.type);
    Operand offset = index_value(node);
    if (node.constant.bits != 0)
        offset.index = compute("add", {"u32"}, ScalarType::u32,
                               {offset, constant_operand(node.constant.bits & 0xffffffffu, ScalarType::u32)});
    if (element_size > 1)
        offset.index = compute("shl", {"b32"}, ScalarType::b32,
                               {register_operand(offset.index, ScalarType::b32),
                                constant_operand(std::countr_zero(element_size), ScalarType::u32)});
    const bool in_window = space == StateSpace::shared || space == StateSpace::param;
    const bool narrow = in_window || context_.module.address_size == 32;
    const ScalarType type = narrow ? ScalarType::u32 : ScalarType::u64;
    Operand base;
    const Symbol symbol = find(node.name);
    base.kind = Operand::Kind::variable;
    base.scope = symbol.kind == Symbol::Kind::body_variable ? VariableScope::body : VariableScope::module;
    base.index = symbol.index;
    base.type = type;
    base = register_operand(compute("mov", {spelling(type)}, type, {base}), type);
    if (!narrow) offset = register_operand(compute("cvt", {"u64", "u32"}, ScalarType::u64, {offset}), type);
    offset.type = type;
    Operand sum = register_operand(compute("add", {spelling(type)}, type, {base, offset}), type);
    if (narrow && bits == 64)
        sum = register_operand(compute("cvt", {"u64", "u32"}, ScalarType::u64, {sum}), ScalarType::u64);
    if (bits == 16) // the low ones, as of the address of a variable
        sum = register_operand(compute("cvt", {"u16", spelling(sum.type)}, ScalarType::u16, {sum}), ScalarType::u16);
    if (generic && space != StateSpace::global) {
        const std::string_view word = spelling(space);
        sum.index = compute("cvta", {word, spelling(sum.type)}, sum.type, {sum});
    }
    return hidden_name(sum.index);
}

void BodyBinder::resolve_array_elements() {
    InstructionSyntax& instruction = parser_->instruction;
    const std::vector<HeadMatch>& heads = matcher_.heads(instruction);
    const bool is_memory_operand = std::any_of(heads.begin(), heads.end(), loads_or_stores);
    for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
        OperandSyntax& node = instruction.operands[i];
        if (!node.has_index) continue;
        const Variable& array = array_of(node);
        node.has_index = false;
        if (node.index.empty()) {
            node.constant.bits *= byte_size(array.type);
            node.has_offset = true;
        } else {
            index_by_register(node, array, heads, is_memory_operand);
        }
        if (!is_memory_operand) continue;
        OperandSyntax bracket;
        bracket.kind = OperandSyntax::Kind::bracket;
        bracket.location = node.location;
        bracket.extent = 2;
        bracket.children = 1;
        instruction.operands.insert(instruction.operands.begin() + static_cast<std::ptrdiff_t>(i++), bracket);
    }
}

/// Makes the name of a register with the address of the node.
void BodyBinder::index_by_register(OperandSyntax& node, const Variable& array, const std::vector<HeadMatch>& heads,
                                   bool is_memory_operand) {
    const bool is_value = parser_->instruction.opcode == "mov" || parser_->instruction.opcode == "cvta";
    if (heads.empty() || (!is_memory_operand && !is_value))
        fail(node.location, "an element of an array stands in loads, stores, mov and cvta only");
    const HeadMatch& head = heads.front();
    if (is_value) {
        const unsigned bits = bit_size(head.types[0]);
        if (is_float(head.types[0]) || bits < 16 || bits > 64)
            fail(node.location, "the address of an element is an integer of 16 to 64 bits");
        if (bits == 32) require_wide_address(node.location, array.space, "this operand has 32 bits");
        node.name = element_address(node, array, false, bits);
        return;
    }
    if (type_class(array.type) == TypeClass::opaque) fail(node.location, quoted(node.name) + " is no memory to access");
    OperandSyntax variable;
    variable.name = node.name;
    variable.location = node.location;
    check_space(variable, find(node.name), head, head.space);
    const bool generic = head.space == StateSpace::generic;
    node.name = element_address(node, array, generic, generic ? context_.module.address_size : 32);
}

} // namespace ptarmigan::ptx
