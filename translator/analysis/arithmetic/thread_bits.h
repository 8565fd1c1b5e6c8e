// SPDX-License-Identifier: Apache-2.0
// What is known of values at compile time, thread by thread: the block shape fixes %tid, so index arithmetic such as
// tid / 16 * 20 + (tid ^ 3) % 16 can simply be computed for every thread of the CTA. Shapes that no rule finds by
// algebra follow from the numbers.
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <optional>

namespace ptarmigan::translator {

/// The low bits of a value in each thread of the CTA, and what is known of those above.
struct ThreadBits {
    unsigned low = 0;                ///< bits known; the register's width: all of them
    bool upper_uniform = true;       ///< the bits above are the same in all lanes of a step
    std::vector<std::uint64_t> bits; ///< by thread; empty: all zero
    std::vector<ValueId> assumed;    ///< values that must be uniform in a step for this to hold

    std::uint64_t of(std::size_t thread) const { return bits.empty() ? 0 : bits[thread]; }
};

/// Computes ThreadBits on demand and keeps them. One object serves one graph and block shape.
class ThreadBitsTable {
public:
    /// Threads times instructions that may be evaluated: a few milliseconds.
    static constexpr std::size_t usual_budget = 1 << 17;
    ThreadBitsTable(const FunctionGraph& graph, const BlockShape& block, std::size_t budget = usual_budget);

    /// What is known of the only result of a pure instruction without guard; null if nothing.
    const ThreadBits* of_result(const ptx::Instruction& inst);
    /// The same of a special register's component; none if it is not known.
    std::optional<ThreadBits> of_special(const ptx::Operand& operand) const;
    std::size_t threads() const { return threads_; }

private:
    using Known = std::optional<ThreadBits>;
    struct Term {
        ThreadBits known;
        std::optional<std::uint64_t> constant; ///< the same number in all threads
    };

    void index_definitions();
    const ThreadBits* of_value(ValueId value);
    std::optional<Term> source(const ptx::Operand& operand);
    Known evaluate(const ptx::Instruction& inst);
    Known fold(const ptx::Instruction& inst, const std::vector<Term>& terms, unsigned bits);
    Known partial(const ptx::Instruction& inst, const std::vector<Term>& terms, unsigned bits);
    Known product(const Term& a, const Term& b, unsigned bits);
    Known sum(const Term& a, const Term& b, unsigned bits, bool subtract);
    Known shifted_right(const ptx::Instruction& inst, const Term& a, const Term& by);
    Known masked(const Term& a, std::uint64_t mask, unsigned bits);
    Known extended(const Term& a, unsigned bits);
    bool spend();

    const FunctionGraph& graph_;
    const BlockShape& block_;
    std::size_t threads_;
    std::size_t budget_;
    std::vector<const GraphInstruction*> definition_;
    enum class State : std::uint8_t { unseen, open, done };
    std::vector<State> state_;
    std::vector<Known> values_;
};

} // namespace ptarmigan::translator
