// SPDX-License-Identifier: Apache-2.0
#include "translator/emit/graph_shapes.h"

#include "translator/analysis/shapes/shapes.h"

namespace ptarmigan::translator {

void GraphShapes::set(unsigned width, DivergenceForm form) {
    const ShapedFor wanted{width, form};
    if (shaped_for_ == wanted) return;
    if (shaped_for_) swap(other_shapes_[*shaped_for_]);
    if (const auto kept = other_shapes_.find(wanted); kept != other_shapes_.end()) {
        swap(kept->second);
        other_shapes_.erase(kept);
    } else {
        compute_shapes(graph_, unit_.shape, width, unit_.options, form);
    }
    shaped_for_ = wanted;
}

void GraphShapes::forget() {
    shaped_for_.reset();
    other_shapes_.clear();
}

void GraphShapes::swap(Shapes& shapes) {
    shapes.values.resize(graph_.values.size());
    shapes.loops.resize(graph_.forest.loops.size());
    for (std::size_t i = 0; i < shapes.values.size(); ++i) {
        std::swap(graph_.values[i].shape, shapes.values[i].first);
        std::swap(graph_.values[i].lane_zero, shapes.values[i].second);
    }
    for (std::size_t i = 0; i < shapes.loops.size(); ++i) {
        std::swap(graph_.forest.loops[i].divergent_exit, shapes.loops[i].first);
        std::swap(graph_.forest.loops[i].cta_divergent_exit, shapes.loops[i].second);
    }
    shapes.offsets.swap(graph_.offset_storage);
}

} // namespace ptarmigan::translator
