// SPDX-License-Identifier: Apache-2.0
// Transfer functions of the shape analysis: the shape of a result from the shapes of the operands, by the row's rule.
#pragma once

#include "translator/analysis/arithmetic/thread_bits.h"
#include "translator/analysis/arithmetic/value_ranges.h"
#include "translator/analysis/shapes/lane_shapes.h"

namespace ptarmigan::translator {

/// What does not change while compute_shapes() iterates.
struct ShapeContext {
    FunctionGraph& graph;
    BlockShape block;
    unsigned width = 1;
    bool invariant_only = false; ///< lanes interleave freely (program counters): only what never changes keeps a shape
    bool single_step = false;    ///< the CTA is one step: what is uniform in the step is so in the CTA
    std::vector<Interval> ranges;
};

class ShapeRules {
public:
    explicit ShapeRules(ShapeContext& context);

    /// Shape of one result of an instruction of `block`; unknown while an operand is unknown.
    Shape result(BlockId block, const GraphInstruction& instruction, unsigned definition);
    /// Applies what holds for every result: one lane per step has no varying values, and so on.
    Shape limit(Shape shape) const;

private:
    Shape of(const ptx::Operand& operand) const;
    Shape of_special(const ptx::Operand& operand) const;
    Shape of_variable(const ptx::Operand& operand);
    Shape unguarded(const ptx::Instruction& inst);
    Shape of_lane_zero(const ptx::Instruction& inst, const Shape& shape);
    Shape by_algebra(const ptx::Instruction& inst);
    std::optional<Shape> by_threads(const ptx::Instruction& inst);
    Shape shape_of_bits(const ThreadBits& known, unsigned bits);
    Shape elementwise(const ptx::Instruction& inst) const;
    Shape copy(const ptx::Instruction& inst);
    Shape memory(const ptx::Instruction& inst) const;
    Shape product(const ptx::Instruction& inst, unsigned a, unsigned b, unsigned bits);
    Shape wide_product(const ptx::Instruction& inst);
    Shape widened(const ptx::Operand& source, const Shape& shape, ValueId result, unsigned bits);
    Shape shifted(const ptx::Instruction& inst, unsigned bits);
    Shape selected(const ptx::Instruction& inst) const;
    Shape shuffled(const ptx::Instruction& inst);
    bool whole_register(const ptx::Operand& operand) const;
    std::optional<std::int64_t> constant(const ptx::Operand& operand) const;
    bool cannot_wrap(const ptx::Operand& source, const Shape& shape) const;
    Shape coordinate(unsigned component);
    ShapeArithmetic arithmetic(unsigned bits) { return ShapeArithmetic(table_, bits); }

    ShapeContext& context_;
    const FunctionGraph& graph_;
    LaneOffsetTable table_;
    ThreadBitsTable threads_;
    std::array<Shape, 3> coordinates_; ///< of %tid
    Shape lane_;                       ///< of %laneid
    BlockId block_ = no_block;         ///< of the instruction at hand
    bool is_tested_ = false;           ///< and it relies on a test, see lane_agreement.h
};

} // namespace ptarmigan::translator
