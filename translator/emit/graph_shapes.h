// SPDX-License-Identifier: Apache-2.0
// The shapes of a graph's values for the width and form that are asked for, while those are being chosen.
#pragma once

#include "translator/analysis/graph/function_graph.h"
#include "translator/emit/kernel_unit.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace ptarmigan::translator {

/// compute_shapes() when it has to be. Questions about a whole warp are asked of narrow steps' kernels again and again,
/// so the shapes of other widths are kept until the graph changes.
class GraphShapes {
public:
    GraphShapes(const KernelUnit& unit, FunctionGraph& graph) : unit_(unit), graph_(graph) {}

    /// The graph has them afterwards.
    void set(unsigned width, DivergenceForm form);
    /// Of the unit's width.
    void set(DivergenceForm form) { set(unit_.width, form); }
    /// The graph has changed.
    void forget();

private:
    /// What compute_shapes() finds out.
    struct Shapes {
        std::vector<std::pair<Shape, bool>> values; ///< and SsaValue::lane_zero
        std::vector<std::pair<bool, bool>> loops;   ///< exit flags
        std::vector<std::shared_ptr<LaneOffsets>> offsets;
    };
    void swap(Shapes& shapes);

    const KernelUnit& unit_;
    FunctionGraph& graph_;
    using ShapedFor = std::pair<unsigned, DivergenceForm>;
    std::optional<ShapedFor> shaped_for_;      ///< width and form that the graph's shapes are for
    std::map<ShapedFor, Shapes> other_shapes_; ///< of the same graph
};

} // namespace ptarmigan::translator
