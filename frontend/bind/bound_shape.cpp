// SPDX-License-Identifier: Apache-2.0
#include "frontend/bind/bound_shape.h"

#include "frontend/bind/constant_bits.h"
#include "frontend/isa/form_pattern.h"

#include <algorithm>
#include <string>

namespace ptarmigan::ptx {

namespace {

constexpr std::size_t max_shapes = 64; ///< of a head: they are searched one by one

bool same(const Operand& a, const Operand& b) {
    return a.kind == b.kind && a.base == b.base && a.scope == b.scope && a.negated == b.negated && a.type == b.type &&
           a.component == b.component && a.index == b.index && a.first == b.first && a.count == b.count &&
           a.value == b.value;
}

void fill(Operand& operand, const OperandSyntax& node, std::uint32_t index) {
    if (node.kind == OperandSyntax::Kind::constant) {
        std::string why; // an error would have been one for the mould too: it depends on kind and type
        operand.value = constant_bits(node.constant, operand.type, why).value_or(0);
        return;
    }
    operand.index = index;
    if (operand.kind != Operand::Kind::reg) operand.value = node.has_offset ? node.constant.bits : 0;
}

} // namespace

BoundShape::BoundShape(const Shape& shape, const std::vector<OperandSyntax>& syntax,
                       std::span<const std::int32_t> nodes, const Instruction& instruction,
                       const std::vector<Operand>& pool, std::size_t first)
    : key_(shape.key), mould_(instruction), elements_(pool.begin() + static_cast<std::ptrdiff_t>(first), pool.end()) {
    const auto patterns = FormTable::get().pattern(instruction.form).operands;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
        if (mould_.operands[i].kind == Operand::Kind::vector)
            mould_.operands[i].first -= static_cast<std::uint32_t>(first);
        const bool is_carry = mould_.operands[i].kind == Operand::Kind::reg; // of what is hidden
        if (patterns[i].form == OperandPattern::Form::hidden && is_carry) carry_operands_ |= 1u << i;
        if (nodes[i] < 0) continue;
        // Which constants a row allows is looked up anew for each.
        if (!patterns[i].constraint.values.empty() || !add_parts(i, static_cast<std::size_t>(nodes[i]), syntax)) return;
    }
    usable_ = makes(shape, syntax, instruction, first);
}

bool BoundShape::add_parts(std::size_t operand, std::size_t node, const std::vector<OperandSyntax>& syntax) {
    const Operand& bound = mould_.operands[operand];
    if (bound.kind != Operand::Kind::vector) {
        if (syntax[node].kind == OperandSyntax::Kind::braces) ++node; // `{x}` is x
        return add_part(false, operand, node, syntax[node]);
    }
    if (syntax[node].kind != OperandSyntax::Kind::braces || syntax[node].extent != bound.count + 1u) return false;
    for (std::uint32_t i = 0; i < bound.count; ++i)
        if (!add_part(true, bound.first + i, node + 1 + i, syntax[node + 1 + i])) return false;
    return true;
}

bool BoundShape::add_part(bool is_element, std::size_t operand, std::size_t node, const OperandSyntax& syntax) {
    const Operand& bound = is_element ? elements_[operand] : mould_.operands[operand];
    switch (bound.kind) {
    case Operand::Kind::sink: return true;
    case Operand::Kind::imm:
        if (syntax.kind != OperandSyntax::Kind::constant) return false;
        break;
    case Operand::Kind::reg:
    case Operand::Kind::address:
    case Operand::Kind::variable:
        if (syntax.kind != OperandSyntax::Kind::name) return false;
        break;
    default: return false;
    }
    parts_.push_back({is_element, static_cast<std::uint8_t>(operand), static_cast<std::uint8_t>(node)});
    return true;
}

/// The proof: the mould gives the instruction that it was made of.
bool BoundShape::makes(const Shape& shape, const std::vector<OperandSyntax>& syntax, const Instruction& instruction,
                       std::size_t first) const {
    Body body;
    Instruction& made = append(shape, syntax, body);
    for (std::size_t i = 0; i < Instruction::max_operands; ++i)
        if (carry_operands_ >> i & 1) made.operands[i] = instruction.operands[i];
    for (Operand& operand : made.operands)
        if (operand.kind == Operand::Kind::vector) operand.first += static_cast<std::uint32_t>(first);
    return std::equal(made.operands.begin(), made.operands.end(), instruction.operands.begin(), same) &&
           std::equal(body.operand_pool.begin(), body.operand_pool.end(), elements_.begin(), elements_.end(), same);
}

Instruction& BoundShape::append(const Shape& shape, const std::vector<OperandSyntax>& syntax, Body& body) const {
    Instruction& out = body.instructions.emplace_back(mould_);
    Operand* elements = nullptr;
    if (!elements_.empty()) {
        const auto first = static_cast<std::uint32_t>(body.operand_pool.size());
        body.operand_pool.insert(body.operand_pool.end(), elements_.begin(), elements_.end());
        elements = body.operand_pool.data() + first;
        for (std::size_t i = 0; i < out.operand_count; ++i)
            if (out.operands[i].kind == Operand::Kind::vector) out.operands[i].first += first;
    }
    for (const Part& part : parts_)
        fill(part.is_element ? elements[part.operand] : out.operands[part.operand], syntax[part.node],
             shape.index[part.node]);
    return out;
}

void ShapeMemory::add(std::uint32_t head, BoundShape shape) {
    if (!shape.usable()) return;
    if (head >= by_head_.size()) by_head_.resize(head + 1);
    if (by_head_[head].size() < max_shapes) by_head_[head].push_back(std::move(shape));
}

} // namespace ptarmigan::ptx
