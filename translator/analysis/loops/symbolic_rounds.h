// SPDX-License-Identifier: Apache-2.0
// What a straight line of instructions computes, as terms that are equal only if the values are.
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <map>
#include <optional>
#include <vector>

namespace ptarmigan::translator {

/// A number modulo 2^bits: a constant and multiples of unknown numbers.
struct Term {
    unsigned bits = 0;
    std::uint64_t constant = 0;
    std::map<std::uint32_t, std::uint64_t> unknowns; ///< factors, none of them 0
    bool operator==(const Term&) const = default;

    Term plus(const Term& other, std::uint64_t factor = 1) const;
    /// How far it is from `other`, if that is a constant.
    std::optional<std::uint64_t> distance_from(const Term& other) const;
    std::uint64_t factor_of(std::uint32_t unknown) const;
};

class SymbolicRounds {
public:
    explicit SymbolicRounds(const FunctionGraph& graph);

    using Values = std::map<ValueId, Term>; ///< those of a round; others are what they are outside
    /// Adds the results of the instructions of a block; false if one does something that is not modelled: writes, reads
    /// what others may be about to write, depends on more than its operands.
    bool run(BlockId block, Values& values);
    /// In `values`, or outside of all loops as far as it is arithmetic.
    Term of(ValueId value, const Values& values = {});

    Term number(std::uint64_t value, unsigned bits) const;
    /// An unknown number of its own.
    std::uint32_t fresh() { return next_++; }
    Term unknown(std::uint32_t unknown, unsigned bits) const;
    /// The unknown that is the 32-bit number's sign extension.
    std::uint32_t extension_of(const Term& narrow);
    /// From now on sign extensions of `index` plus 0 to `most` are that of `index` plus the constant: nothing wraps.
    void never_wraps(const Term& index, std::uint64_t most) {
        index_ = index;
        most_ahead_ = most;
    }

private:
    using Key = std::vector<std::uint64_t>;
    std::optional<Term> operand(const ptx::Operand& operand, const Values& values, unsigned bits);
    std::optional<Term> arithmetic(const ptx::Instruction& inst, const Values& values);
    Term widened(const Term& narrow);
    bool opaque(const GraphInstruction& instruction, Values& values);
    std::optional<Key> key_of(const ptx::Instruction& inst, const Values& values);
    void add(Key& key, const Term& term) const;
    std::uint32_t unknown_for(Key key);
    unsigned bits_of(ValueId value) const;

    const FunctionGraph& graph_;
    std::vector<const GraphInstruction*> definitions_;
    std::map<Key, std::uint32_t> known_;
    std::optional<Term> index_;
    std::uint64_t most_ahead_ = 0;
    std::uint32_t next_ = 0;
    unsigned depth_ = 0;
};

} // namespace ptarmigan::translator
