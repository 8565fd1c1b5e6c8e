// SPDX-License-Identifier: Apache-2.0
// Products of matrices that stand together: what unrolled loops over tiles are made of. Made by one call of the tensor
// core, operands that they share are brought into its layout once, and accumulators stay in it from one product to the
// next.
#pragma once

#include "frontend/ptx/matrix_form.h"
#include "translator/analysis/graph/function_graph.h"
#include "translator/matrix_call.h"

#include <unordered_map>

namespace ptarmigan::translator {

/// Moves products in each block next to each other: they wait for the first instruction that reads a result, or that
/// other warps or other lanes may be told apart by. They touch no memory and are alike wherever all lanes of the block
/// come by.
void gather_products(FunctionGraph& graph);

/// Unguarded products of one form that stand behind each other in a block, or a single one, as abi::MatrixGroup has
/// them.
/// Where chains can be paired so that two differ in B alone, `pairs` is set: matrices B 2 i and 2 i + 1 count as one
/// with twice the columns, and so do accumulators; steps and chains have the numbers of pairs.
struct ProductGroup {
    struct Accumulator {
        std::uint8_t number;
        const ptx::Operand* registers;
    };
    std::vector<const ptx::Instruction*> products;
    std::vector<const ptx::Operand*> a, b; ///< by matrix
    std::vector<Accumulator> given;        ///< C's that come from elsewhere
    std::vector<Accumulator> results;      ///< D's that others than the group's products read
    std::vector<abi::MatrixStep> steps;
    std::vector<abi::MatrixChain> chains;
    unsigned accumulators = 0;
    bool pairs = false;
};

/// All groups of a graph, which must not change any more.
class ProductGroups {
public:
    explicit ProductGroups(const FunctionGraph& graph);
    /// Null: the instruction is in none.
    const ProductGroup* with(const ptx::Instruction& inst) const;
    bool empty() const { return groups_.empty(); }

private:
    std::vector<std::unique_ptr<ProductGroup>> groups_;
    std::unordered_map<const ptx::Instruction*, const ProductGroup*> group_of_;
};

} // namespace ptarmigan::translator
