// SPDX-License-Identifier: Apache-2.0
// An instruction that was bound before, as a mould for others with the same words and operands that
// look alike: a text of millions of instructions has some thousand such shapes, and what was
// checked once holds for all of one shape.
#pragma once

#include "frontend/parse/syntax.h"
#include "frontend/ptx/module.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace ptarmigan::ptx {

/// What binding depends on: of each node its kind and signs; of a register its type, of a variable
/// its space; of a constant its kind, not its value. Instructions with other operands (labels,
/// special registers, components, calls) have no shape.
struct Shape {
    static constexpr std::size_t max_nodes = 12;
    using Key = std::array<std::uint64_t, max_nodes / 4>;

    std::size_t nodes = 0; ///< 0: the instruction has no shape
    Key key{};
    std::array<std::uint32_t, max_nodes> index{}; ///< by node: the register or variable that it names
    std::uint32_t guard = no_id;                  ///< the predicate register
};

class BoundShape {
public:
    /// `instruction` has been bound from `syntax`, whose node `nodes[i]` became its operand i (-1:
    /// none); the elements of its vectors are `pool` from `first` on. Not usable() if the parts of
    /// another such instruction can't be told.
    BoundShape(const Shape& shape, const std::vector<OperandSyntax>& syntax, std::span<const std::int32_t> nodes,
               const Instruction& instruction, const std::vector<Operand>& pool, std::size_t first);

    bool usable() const { return usable_; }
    const Shape::Key& key() const { return key_; }
    /// The operands that are the carry flag (it may come in and go out): bit i for operand i.
    std::uint32_t carry_operands() const { return carry_operands_; }
    /// Appends the instruction that has `shape` with the names and constants of `syntax`. Its
    /// place, guard and carry flag are the caller's.
    Instruction& append(const Shape& shape, const std::vector<OperandSyntax>& syntax, Body& body) const;

private:
    /// What of an operand the mould does not hold.
    struct Part {
        bool is_element;
        std::uint8_t operand; ///< of mould_ or elements_
        std::uint8_t node;
    };
    bool add_parts(std::size_t operand, std::size_t node, const std::vector<OperandSyntax>& syntax);
    bool add_part(bool is_element, std::size_t operand, std::size_t node, const OperandSyntax& syntax);
    bool makes(const Shape& shape, const std::vector<OperandSyntax>& syntax, const Instruction& instruction,
               std::size_t first) const;

    bool usable_ = false;
    std::uint32_t carry_operands_ = 0;
    Shape::Key key_;
    Instruction mould_;
    std::vector<Operand> elements_; ///< of vectors, whose `first` counts from 0 in mould_
    std::vector<Part> parts_;
};

/// The shapes met so far, by the number of the head (FormMatcher::Head).
class ShapeMemory {
public:
    /// Null if nothing of that shape was bound before. Valid until the next add().
    const BoundShape* find(std::uint32_t head, const Shape::Key& key) const {
        if (head >= by_head_.size()) return nullptr;
        for (const BoundShape& shape : by_head_[head])
            if (shape.key() == key) return &shape;
        return nullptr;
    }
    void add(std::uint32_t head, BoundShape shape);

private:
    std::vector<std::vector<BoundShape>> by_head_;
};

} // namespace ptarmigan::ptx
