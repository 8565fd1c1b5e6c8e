// SPDX-License-Identifier: Apache-2.0
// Registers -> values: pruned SSA form by dominance frontiers.
#pragma once

#include "translator/analysis/build/flatten.h"

namespace ptarmigan::translator {

/// Needs canonical control flow. Fills graph.values and phis; operands, guards and conditions name values afterwards.
void build_ssa(FlatFunction& flat);

/// Removes what simplification has no use for: copies, constants, trivial phis, foldable branches, dead code.
/// `shape` gives the values of %ntid and the like. Leaves the graph canonical, with dense value and block numbers.
void simplify(FunctionGraph& graph, const BlockShape& shape);

/// Makes sums of `or`s that add. Behind simplify().
void write_ors_as_sums(FunctionGraph& graph);

/// Makes one value of what is computed again from the same operands. Behind simplify(), which is needed again where it
/// is true.
bool join_equal_values(FunctionGraph& graph);
/// Makes 64-bit phis of those of two halves. Likewise.
bool join_halves(FunctionGraph& graph);
/// Makes 64-bit sums of those of two halves and a carry. Likewise.
bool join_half_sums(FunctionGraph& graph);

/// Makes branches around loads and stores under one predicate. Likewise.
bool branch_at_guards(FunctionGraph& graph);

/// Takes what is computed of parameters alone out of loops. Needs graph.forest; before close_loops().
void hoist_parameters(FunctionGraph& graph);

/// Makes `div` and `rem` of the divisions of 32-bit numbers that ptxas has written out: shapes, ranges and versions for
/// lanes that share a quotient know those, and nothing of a reciprocal's bits. Behind simplify(), which is needed again
/// where it is true.
bool restore_divisions(FunctionGraph& graph);
/// Likewise `rcp.rn.f32` and `sqrt.rn.f32` of the two ways that ptxas makes of them.
bool restore_roots(FunctionGraph& graph);

/// Makes 32-bit numbers of 64-bit ones of which only the upper half counts. Behind simplify().
void narrow_upper_halves(FunctionGraph& graph);
/// Likewise where only the lower half counts.
void narrow_lower_halves(FunctionGraph& graph);

/// Makes constants and products of approximations of constants, as ptxas does. Behind simplify(), which finds the
/// constants.
void fold_approximations(FunctionGraph& graph);

/// Makes a reciprocal and a product of approximate divisions whose quotient is added to something.
void split_divisions(FunctionGraph& graph);

/// Makes fused multiply-adds of products and sums without a rounding modifier where ptxas does. Behind simplify(), for
/// copies hide products; the products stay behind without uses.
void contract_products(FunctionGraph& graph);

/// The result (bits of the destination's type) of a pure instruction from the bits of its sources, in operand order and
/// each at its operand's type. Nothing if the form is not one of those that are folded, or the result is undefined.
std::optional<std::uint64_t> fold_constant(const ptx::Instruction& inst, const std::vector<std::uint64_t>& sources);
/// Value of a special register that is the same for all threads of all launches with this block shape.
std::optional<std::uint64_t> constant_special(const ptx::Operand& operand, const BlockShape& shape);

} // namespace ptarmigan::translator
