// SPDX-License-Identifier: Apache-2.0
// Control flow clean-ups of build_graph: what verify_graph demands of the shape of the graph.
#pragma once

#include "translator/analysis/graph/function_graph.h"

namespace ptarmigan::translator {

/// Recomputes all predecessor lists from the successor lists (phis must not exist yet).
void link_predecessors(FunctionGraph& graph);

/// Before SSA: removes unreachable blocks, jumps over empty blocks, merges chains, then gives loops a unique preheader
/// and latch, splits critical edges and edges behind barriers, and frees the entry of predecessors.
void canonicalize(FunctionGraph& graph);

/// With phis: removes one edge (its position among the successors), and the phi operands that go with it.
void remove_edge(FunctionGraph& graph, BlockId from, unsigned successor);

/// With phis: gives the loops of a graph whose edges are split a unique preheader and latch each, which those lack that
/// were entered in several places before edges were removed. Returns true if anything changed: phis may be left then
/// that have one value only, and blocks out of order.
bool restore_loop_edges(FunctionGraph& graph);

/// With phis: where some of the edges to a block come from a branch that the others don't come from, and bring one
/// value to a phi to which the others bring another, they meet in a block of their own before. So lanes that the branch
/// has parted meet where they have one value, and the phi is none of theirs. Returns true if anything changed: blocks
/// may be out of order then.
bool split_joins(FunctionGraph& graph);

/// With phis: appends blocks to their only predecessor where that ends in a jump and the canonical form allows it.
/// Returns true if anything changed.
bool merge_chains(FunctionGraph& graph);

/// Drops unreachable blocks and numbers the rest in reverse post order; entry first, exit block last.
void renumber_blocks(FunctionGraph& graph);

} // namespace ptarmigan::translator
