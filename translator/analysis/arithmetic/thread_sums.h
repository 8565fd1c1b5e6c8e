// SPDX-License-Identifier: Apache-2.0
// Addresses and conditions thread by thread: what a linear sum is in each thread of the CTA, and which threads may come
// to a block.
#pragma once

#include "translator/analysis/arithmetic/linear_sums.h"
#include "translator/analysis/arithmetic/thread_bits.h"
#include "translator/analysis/graph/dominators.h"

#include <map>

namespace ptarmigan::translator {

/// A number for each thread of the CTA, and multiples of what is not known.
struct ThreadSum {
    std::vector<std::int64_t> numbers;               ///< by thread
    std::map<LinearSum::Term, std::int64_t> uniform; ///< the same in all threads of the CTA
    std::map<LinearSum::Term, std::int64_t> varying;
};

/// Who comes to a place: each condition on the way there is either decided for every thread, or a fact.
struct ThreadSet {
    std::vector<bool> threads;    ///< that may
    std::vector<LinearSum> facts; ///< not negative in those that do
};

/// On demand. As linear_sums.h says, integers are taken not to wrap. Needs shapes; the graph must stay as it is.
class ThreadSums {
public:
    ThreadSums(const FunctionGraph& graph, const BlockShape& block);

    ThreadSum of(const LinearSum& sum);
    /// Which threads execute this instruction of `block`.
    ThreadSet executing(BlockId block, const ptx::Instruction& inst);
    const LinearSums& sums() const { return sums_; }
    /// The .shared variable whose address a value is, an index into FunctionGraph::shared; none if it is not one's.
    std::optional<std::uint32_t> shared_variable(ValueId value) const;
    std::size_t threads() const { return bits_.threads(); }

private:
    const ThreadSet& in_block(BlockId block);
    void restrict(ThreadSet& set, ValueId condition, bool holds, unsigned depth);
    void add_facts(ThreadSet& set, const ptx::Instruction& comparison, bool holds) const;

    const FunctionGraph& graph_;
    LinearSums sums_;
    ThreadBitsTable bits_;
    DominatorTree tree_;
    std::map<BlockId, ThreadSet> blocks_;
};

} // namespace ptarmigan::translator
