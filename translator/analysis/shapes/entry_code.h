// SPDX-License-Identifier: Apache-2.0
// What can be computed where a kernel begins: parameters, the threads' numbers and pure arithmetic on them, outside of
// loops or as it is in their first round. Tests that choose among versions of a kernel are made of it.
#pragma once

#include "translator/analysis/graph/copies.h"
#include "translator/analysis/graph/graph_queries.h"

#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace ptarmigan::translator {

class EntryCode {
public:
    /// `definitions`: by value. Both stay as they are meanwhile.
    EntryCode(const FunctionGraph& graph, const std::vector<const GraphInstruction*>& definitions)
        : graph_(graph), definitions_(definitions) {}

    /// A phi of a loop is `value` where the loop begins.
    void begin_with(ValueId phi, ValueId value) { firsts_[phi] = value; }

    /// What `block` computes is there already.
    void has(BlockId block) { known_ = block; }

    /// Adds what these operands are computed from. False, and nothing is added, if that can't be at the entry or would
    /// be too much.
    bool need(std::initializer_list<const ptx::Operand*> operands);
    /// The numbers of the CTA's threads are known distances from those of the first one, and nothing else differs: it
    /// can be computed once for the CTA.
    bool is_of_cta() const;
    /// Appends it to `code`, by names of its own in `block`. With `for_cta`, of thread 0.
    void copy(std::vector<GraphInstruction>& code, Copies& names, BlockId block, bool for_cta) const;
    /// Names in it for `value`, which was needed: to be asked behind copy().
    ValueId name(const Copies& names, ValueId value) const;

private:
    bool need(const ptx::Operand& operand);
    bool need(ValueId value);
    /// Where two ways meet that one branch has parted: a choice.
    bool need_choice(ValueId phi);

    const FunctionGraph& graph_;
    const std::vector<const GraphInstruction*>& definitions_;
    std::unordered_map<ValueId, ValueId> firsts_;
    BlockId known_ = no_block;
    std::vector<const GraphInstruction*> needed_; ///< each behind what it reads
    std::deque<GraphInstruction> choices_;
    std::unordered_map<ValueId, const GraphInstruction*> choice_of_; ///< by phi
    std::unordered_set<const GraphInstruction*> is_needed_;
};

} // namespace ptarmigan::translator
