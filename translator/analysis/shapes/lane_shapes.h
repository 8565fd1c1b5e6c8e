// SPDX-License-Identifier: Apache-2.0
// Arithmetic on shapes: how lane offsets and strides behave under the operations that keep a value affine.
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <map>
#include <optional>

namespace ptarmigan::translator {

/// Keeps one copy of each vector of lane offsets, so that equal ones have equal addresses. The copies belong to the
/// graph.
class LaneOffsetTable {
public:
    LaneOffsetTable(FunctionGraph& graph, unsigned width) : graph_(graph), width_(width) {}
    unsigned width() const { return width_; }
    const LaneOffsets* intern(LaneOffsets offsets);
    const LaneOffsets* zeros() { return intern(LaneOffsets(width_, 0)); }
    const LaneOffsets* iota();

private:
    FunctionGraph& graph_;
    unsigned width_;
    std::map<LaneOffsets, const LaneOffsets*> table_;
};

/// Operations for values of `bits` bits: offsets are kept as numbers with sign, modulo 2^bits.
class ShapeArithmetic {
public:
    ShapeArithmetic(LaneOffsetTable& table, unsigned bits) : table_(table), bits_(bits) {}

    Shape add(const Shape& a, const Shape& b);
    Shape negate(const Shape& a);
    Shape scale(const Shape& a, std::int64_t factor);
    /// Times a uniform run-time number.
    Shape multiply_uniform(const Shape& a);
    /// Offsets modulo 2^bits of this width; used after truncation.
    Shape wrap(const Shape& a);

private:
    std::int64_t wrap(std::int64_t value) const;
    Shape finish(Shape shape, const LaneOffsets& offsets);
    LaneOffsetTable& table_;
    unsigned bits_;
};

inline Shape varying_shape() {
    return {Shape::Level::varying};
}
inline Shape uniform_shape(Shape::Level level = Shape::Level::step_uniform) {
    return {level};
}
bool all_zero(const LaneOffsets& offsets);
/// Least upper bound: shapes that differ in more than their level are varying together.
Shape join(const Shape& a, const Shape& b);
/// The less precise of two uniform levels.
inline Shape::Level worse(Shape::Level a, Shape::Level b) {
    return a < b ? b : a;
}

} // namespace ptarmigan::translator
