// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/graph/branch_levels.h"

namespace ptarmigan::translator {

using Level = Shape::Level;

Shape FunctionGraph::shape_at(BlockId block, ValueId value) const {
    const SsaValue& info = values[value];
    Shape shape = info.shape;
    if (info.block == no_block || shape.level == Level::unknown) return shape;
    std::uint32_t use = forest.loop_of[block];
    for (std::uint32_t loop = forest.loop_of[info.block]; loop != no_loop; loop = forest.loops[loop].parent) {
        if (forest.inside(use, loop)) break;
        if (forest.loops[loop].divergent_exit) return {Level::varying};
        if (forest.loops[loop].cta_divergent_exit && shape.level == Level::cta_uniform)
            shape.level = Level::step_uniform;
    }
    return shape;
}

bool has_choice(const FunctionGraph& graph, BlockId block) {
    return graph.blocks[block].terminator.condition != no_value;
}

Level condition_level(const FunctionGraph& graph, BlockId block) {
    return graph.shape_at(block, graph.blocks[block].terminator.condition).level;
}

bool is_divergent_branch(const FunctionGraph& graph, BlockId block) {
    return has_choice(graph, block) && condition_level(graph, block) > Level::step_uniform;
}

bool is_cta_divergent_branch(const FunctionGraph& graph, BlockId block) {
    return has_choice(graph, block) && condition_level(graph, block) > Level::cta_uniform;
}

} // namespace ptarmigan::translator
