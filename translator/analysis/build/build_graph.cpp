// SPDX-License-Identifier: Apache-2.0
// The list of steps from a bound body to a canonical SSA graph.
#include "translator/analysis/build/build_graph.h"

#include "translator/analysis/build/build_ssa.h"
#include "translator/analysis/build/callee_graph.h"
#include "translator/analysis/build/canonical_cfg.h"
#include "translator/analysis/build/close_loops.h"
#include "translator/analysis/build/flatten.h"
#include "translator/analysis/build/interleave_locals.h"
#include "translator/analysis/build/late_accumulators.h"
#include "translator/analysis/build/product_groups.h"
#include "translator/analysis/build/unroll_rounds.h"
#include "translator/analysis/graph/dominators.h"
#include "translator/analysis/graph/form_queries.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

/// What is called for real: calls in code that turned out to be dead are none.
void find_calls(FunctionGraph& graph) {
    graph.real_calls.clear();
    graph.has_indirect_call = false;
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions) {
            if (!is_call(instruction.inst)) continue;
            const ptx::Operand& callee = instruction.inst[ptx::Role::f];
            if (callee.kind != ptx::Operand::Kind::function) {
                graph.has_indirect_call = true;
                continue;
            }
            auto& calls = graph.real_calls;
            const bool is_known = std::find(calls.begin(), calls.end(), callee.index) != calls.end();
            if (!graph.module->functions[callee.index].is_declaration && !is_known) calls.push_back(callee.index);
        }
}

/// What machine code keeps in several registers, or computes several times. Not in PTX, where it would change which
/// products and sums fuse.
void join_what_was_parted(FunctionGraph& graph, const BlockShape& shape) {
    for (unsigned round = 0; round < 3; ++round) {
        const bool has_joined = join_halves(graph), has_sums = join_half_sums(graph);
        const bool has_equal = join_equal_values(graph);
        if (!has_joined && !has_sums && !has_equal) break;
        simplify(graph, shape);
    }
    if (branch_at_guards(graph)) simplify(graph, shape);
}

} // namespace

FunctionGraph build_graph(ptx::ModuleLoader& loader, ptx::FunctionId function, const GraphOptions& options) {
    const ptx::FunctionId kernel =
        options.kernel == ptx::no_id ? resolve_alias(loader.module(), function) : options.kernel;
    return build_callee_graph(loader, function, options, shared_layout(loader, kernel));
}

FunctionGraph build_callee_graph(ptx::ModuleLoader& loader, ptx::FunctionId function, const GraphOptions& options,
                                 const SharedLayout& layout) {
    function = resolve_alias(loader.module(), function);
    FlatFunction flat = flatten(loader, function, options, layout);
    place_stack(flat);
    resolve_locals(flat);
    promote_parameters(flat);
    if (options.late_copies) name_awaited_registers(flat);
    canonicalize(flat.graph);
    build_ssa(flat);
    interleave_locals(flat.graph);
    simplify(flat.graph, options.shape);
    if (loader.module().target.debug) join_what_was_parted(flat.graph, options.shape);
    while (restore_divisions(flat.graph) || restore_roots(flat.graph)) simplify(flat.graph, options.shape);
    if (options.late_copies) spoil_unfenced_registers(flat.graph);
    find_calls(flat.graph);
    write_ors_as_sums(flat.graph);
    narrow_upper_halves(flat.graph);
    narrow_lower_halves(flat.graph);
    if (!loader.module().target.debug) { // which ptxas compiles as it stands
        fold_approximations(flat.graph);
        split_divisions(flat.graph);
        contract_products(flat.graph);
    }
    gather_products(flat.graph);
    FunctionGraph graph = std::move(flat.graph);
    find_loops_again(graph);
    while (options.unrolls && unroll_rounds(graph)) {
        simplify(graph, options.shape);
        find_loops_again(graph);
    }
    if (loader.module().target.debug) hoist_parameters(graph);
    close_loops(graph);
    return graph;
}

} // namespace ptarmigan::translator
