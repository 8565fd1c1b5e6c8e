// SPDX-License-Identifier: Apache-2.0
// The fixpoint: shapes are raised until transfer functions, joins under divergence and loop exits agree. Everything
// starts at the bottom, so what is never found to differ between lanes stays uniform.
#include "translator/analysis/shapes/shapes.h"

#include "translator/analysis/graph/branch_levels.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/plans/plan_linearization.h"
#include "translator/analysis/plans/region_graph.h"
#include "translator/analysis/shapes/shape_rules.h"

#include <algorithm>

namespace ptarmigan::translator {

using Level = Shape::Level;

namespace {

class ShapeAnalysis {
public:
    explicit ShapeAnalysis(ShapeContext& context)
        : context_(context), graph_(context.graph), rules_(context), region_(region_graph(graph_, whole_graph(graph_))),
          structured_(region_.reducible && !context.invariant_only), tree_(region_.tree),
          step_conflict_(graph_.blocks.size(), false), cta_conflict_(step_conflict_), step_divergent_(step_conflict_),
          cta_divergent_(step_conflict_) {}

    void run() {
        for (SsaValue& value : graph_.values) {
            value.shape = {};
            if (value.is_constant || value.is_undefined) value.shape = uniform_shape(Level::cta_uniform);
        }
        for (LoopInfo& loop : graph_.forest.loops) loop.divergent_exit = loop.cta_divergent_exit = false;
        // Shapes and flags only ever rise, so this ends.
        bool changed;
        do {
            changed = false;
            while (propagate()) changed = true;
            changed |= update_divergence();
            if (!changed) changed = raise_unknown();
        } while (changed);
    }

private:
    bool raise(ValueId value, const Shape& to) {
        Shape& shape = graph_.values[value].shape;
        Shape next = rules_.limit(join(shape, to));
        // Copies are folded whatever the types of their registers: integers in a sequence may get into a float's phi.
        if (next.is_affine() && ptx::type_class(graph_.values[value].type) == ptx::TypeClass::floating)
            next = varying_shape();
        if (next == shape) return false;
        shape = next;
        return true;
    }
    bool propagate();
    Shape phi_shape(BlockId block, const Phi& phi) const;
    bool guard_is_safe(const Shape& shape, BlockId block) const;
    bool update_divergence();
    bool raise_unknown();

    ShapeContext& context_;
    FunctionGraph& graph_;
    ShapeRules rules_;
    RegionGraph region_;
    bool structured_;
    const DominatorTree& tree_;
    std::vector<bool> step_conflict_, cta_conflict_, step_divergent_, cta_divergent_;
};

/// A guard is a flag that is made anew each time its instruction runs: a phi may only carry one made before it.
bool ShapeAnalysis::guard_is_safe(const Shape& shape, BlockId block) const {
    if (!shape.is_affine() || shape.guard == no_value) return true;
    BlockId home = graph_.values[shape.guard].block;
    return home != block && tree_.dominates(home, block);
}

Shape ShapeAnalysis::phi_shape(BlockId block, const Phi& phi) const {
    Shape all;
    ValueId only = no_value;
    bool differ = false;
    for (std::size_t i = 0; i < phi.incoming.size(); ++i) {
        ValueId value = phi.incoming[i];
        if (value == phi.result || graph_.values[value].is_undefined) {
            differ = differ || graph_.values[value].is_undefined;
            continue;
        }
        differ = differ || (only != no_value && only != value);
        only = value;
        // The phi at a loop's exit is where a value leaves the loop.
        BlockId from = graph_.blocks[block].predecessors[i];
        bool leaves = !graph_.forest.inside(graph_.forest.loop_of[block], graph_.forest.loop_of[from]);
        all = join(all, graph_.shape_at(leaves ? block : from, value));
    }
    if (all.level == Level::unknown) return only == no_value ? uniform_shape(Level::cta_uniform) : all;
    if (!structured_) return differ ? varying_shape() : all;
    if (differ && step_conflict_[block]) return varying_shape();
    if (differ && cta_conflict_[block] && all.level == Level::cta_uniform) all.level = Level::step_uniform;
    return guard_is_safe(all, block) ? all : varying_shape();
}

bool ShapeAnalysis::propagate() {
    bool changed = false;
    for (BlockId id : tree_.order()) {
        const Block& block = graph_.blocks[id];
        for (const Phi& phi : block.phis) changed |= raise(phi.result, phi_shape(id, phi));
        for (const GraphInstruction& instruction : block.instructions) {
            unsigned index = 0;
            for_each_register(const_cast<const FunctionGraph&>(graph_), instruction,
                              [&](const ptx::Operand& operand, bool definition) {
                                  if (definition)
                                      changed |= raise(operand.index, rules_.result(id, instruction, index++));
                              });
        }
    }
    return changed;
}

bool ShapeAnalysis::update_divergence() {
    if (!structured_) return false; // joins are varying anyway, and all else never changes
    bool changed = false;
    for (BlockId id : tree_.order()) {
        if (!has_choice(graph_, id)) continue;
        Level level = condition_level(graph_, id);
        bool cta = level != Level::cta_uniform && level != Level::unknown;
        bool step = cta && level != Level::step_uniform;
        if (cta && !cta_divergent_[id]) cta_divergent_[id] = changed = true;
        if (step && !step_divergent_[id]) step_divergent_[id] = changed = true;
    }
    if (!changed) return false;
    auto mark = [&](const PendingFlow& flow, std::vector<bool>& conflict, bool LoopInfo::*flag) {
        for (BlockId id = 0; id < conflict.size(); ++id)
            if (flow.conflict[id]) conflict[id] = true;
        for (std::size_t l = 0; l < graph_.forest.loops.size(); ++l)
            if (flow.divergent_exit[l]) graph_.forest.loops[l].*flag = true;
    };
    const bool step_parts = std::find(step_divergent_.begin(), step_divergent_.end(), true) != step_divergent_.end();
    if (step_parts) mark(simulate(region_, step_divergent_), step_conflict_, &LoopInfo::divergent_exit);
    mark(simulate(region_, cta_divergent_), cta_conflict_, &LoopInfo::cta_divergent_exit);
    return true;
}

/// Values that are computed from each other only stay at the bottom. Such a cycle starts with an undefined value, which
/// is as good as any number; what depends on it is looked at again.
bool ShapeAnalysis::raise_unknown() {
    bool changed = false;
    for (BlockId id : tree_.order())
        for (const Phi& phi : graph_.blocks[id].phis) {
            const bool starts = std::any_of(phi.incoming.begin(), phi.incoming.end(),
                                            [&](ValueId value) { return graph_.values[value].is_undefined; });
            if (starts && graph_.values[phi.result].shape.level == Level::unknown)
                changed |= raise(phi.result, uniform_shape(Level::cta_uniform));
        }
    if (changed) return true;
    for (SsaValue& value : graph_.values) {
        if (value.shape.level != Level::unknown) continue;
        value.shape = rules_.limit(varying_shape());
        changed = true;
    }
    return changed;
}

} // namespace

void compute_shapes(FunctionGraph& graph, const BlockShape& block, unsigned lane_width, const CompileOptions& options,
                    DivergenceForm form) {
    graph.offset_storage.clear();
    ShapeContext context{graph, block, lane_width};
    std::uint64_t threads = std::uint64_t(block.ntid[0]) * block.ntid[1] * block.ntid[2];
    context.single_step = threads <= lane_width;
    context.invariant_only = lane_width > 1 && (form == DivergenceForm::program_counters || !graph.forest.reducible);
    context.ranges = value_ranges(graph, block, options.small_grid);
    ShapeAnalysis(context).run();
}

} // namespace ptarmigan::translator
