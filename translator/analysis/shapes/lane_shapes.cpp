// SPDX-License-Identifier: Apache-2.0
// Arithmetic on shapes; see shape.h for what the parts of an affine shape mean.
#include "translator/analysis/shapes/lane_shapes.h"

#include <algorithm>
#include <numeric>

namespace ptarmigan::translator {

using Level = Shape::Level;

const LaneOffsets* LaneOffsetTable::intern(LaneOffsets offsets) {
    auto found = table_.find(offsets);
    if (found != table_.end()) return found->second;
    graph_.offset_storage.push_back(std::make_shared<LaneOffsets>(offsets));
    const LaneOffsets* copy = graph_.offset_storage.back().get();
    table_.emplace(std::move(offsets), copy);
    return copy;
}

const LaneOffsets* LaneOffsetTable::iota() {
    LaneOffsets lanes(width_);
    std::iota(lanes.begin(), lanes.end(), 0);
    return intern(std::move(lanes));
}

bool all_zero(const LaneOffsets& offsets) {
    return std::all_of(offsets.begin(), offsets.end(), [](std::int64_t o) { return o == 0; });
}

std::int64_t ShapeArithmetic::wrap(std::int64_t value) const {
    return bits_ >= 64 ? value : std::int64_t(std::uint64_t(value) << (64 - bits_)) >> (64 - bits_);
}

/// Zero offsets without stride and guard are the same in all lanes.
Shape ShapeArithmetic::finish(Shape shape, const LaneOffsets& offsets) {
    if (!shape.steps && shape.guard == no_value && all_zero(offsets)) return uniform_shape();
    shape.level = Level::affine;
    shape.offsets = table_.intern(offsets);
    return shape;
}

Shape ShapeArithmetic::wrap(const Shape& a) {
    if (!a.is_affine()) return a;
    LaneOffsets offsets = *a.offsets;
    for (std::int64_t& o : offsets) o = wrap(o);
    Shape result = a;
    result.guard = no_value; // modulo 2^32 the widened value is what it came from
    result.guard_scale = 1;
    return finish(result, offsets);
}

Shape ShapeArithmetic::add(const Shape& a, const Shape& b) {
    if (a.is_uniform() && b.is_uniform()) return uniform_shape(worse(a.level, b.level));
    if (a.is_affine() && b.is_uniform()) return a;
    if (b.is_affine() && a.is_uniform()) return b;
    if (!a.is_affine() || !b.is_affine()) return varying_shape();
    if (a.steps && b.steps && a.steps != b.steps) return varying_shape();
    Shape result = a;
    if (!a.steps) result.steps = b.steps;
    if (a.guard == no_value) {
        result.guard = b.guard;
        result.guard_scale = b.guard_scale;
    } else if (b.guard != no_value) {
        if (a.guard != b.guard) return varying_shape();
        result.guard_scale = std::int64_t(std::uint64_t(a.guard_scale) + std::uint64_t(b.guard_scale));
        if (result.guard_scale == 0) {
            result.guard = no_value;
            result.guard_scale = 1;
        }
    }
    LaneOffsets offsets = *a.offsets;
    for (std::size_t l = 0; l < offsets.size(); ++l)
        offsets[l] = wrap(std::int64_t(std::uint64_t(offsets[l]) + std::uint64_t((*b.offsets)[l])));
    return finish(result, offsets);
}

Shape ShapeArithmetic::negate(const Shape& a) {
    if (!a.is_affine()) return a;
    Shape result = a; // the stride is negated at run time
    result.guard_scale = std::int64_t(0 - std::uint64_t(a.guard_scale));
    if (a.guard == no_value) result.guard_scale = 1;
    LaneOffsets offsets = *a.offsets;
    for (std::int64_t& o : offsets) o = wrap(std::int64_t(0 - std::uint64_t(o)));
    return finish(result, offsets);
}

Shape ShapeArithmetic::scale(const Shape& a, std::int64_t factor) {
    if (!a.is_affine()) return a;
    Shape result = a; // the stride is multiplied at run time
    if (a.guard != no_value) {
        result.guard_scale = std::int64_t(std::uint64_t(a.guard_scale) * std::uint64_t(factor));
        if (result.guard_scale == 0) {
            result.guard = no_value;
            result.guard_scale = 1;
        }
    }
    LaneOffsets offsets = *a.offsets;
    for (std::int64_t& o : offsets) o = wrap(std::int64_t(std::uint64_t(o) * std::uint64_t(factor)));
    return finish(result, offsets);
}

Shape ShapeArithmetic::multiply_uniform(const Shape& a) {
    if (!a.is_affine()) return a;
    if (a.guard != no_value) return varying_shape();
    Shape result = a;
    if (a.steps) return all_zero(*a.offsets) ? result : varying_shape();
    result.steps = a.offsets;
    result.offsets = table_.zeros();
    return result;
}

/// A number of run-time strides alone, as one that all lanes share is, with a stride of 0.
static bool may_be_uniform(const Shape& shape) {
    return shape.is_affine() && shape.steps && shape.guard == no_value && all_zero(*shape.offsets);
}

Shape join(const Shape& a, const Shape& b) {
    if (a.level == Level::unknown) return b;
    if (b.level == Level::unknown) return a;
    if (a.is_uniform() && b.is_uniform()) return uniform_shape(worse(a.level, b.level));
    if (a.is_uniform() && may_be_uniform(b)) return b;
    if (b.is_uniform() && may_be_uniform(a)) return a;
    return a == b ? a : varying_shape();
}

} // namespace ptarmigan::translator
