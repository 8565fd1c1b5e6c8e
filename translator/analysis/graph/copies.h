// SPDX-License-Identifier: Apache-2.0
// Code that is made twice, or more often.
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <unordered_map>

namespace ptarmigan::translator {

/// Copies of instructions, with values of their own for what is in `names`.
class Copies {
public:
    explicit Copies(FunctionGraph& graph) : graph_(graph) {}

    ValueId name(ValueId value) const {
        const auto found = names_.find(value);
        return found == names_.end() ? value : found->second;
    }
    /// `value` is `other` in the copies.
    void rename(ValueId value, ValueId other) { names_[value] = other; }
    /// A value of `block` that stands for `value` in the copies.
    ValueId add(ValueId value, BlockId block);
    GraphInstruction copy(const GraphInstruction& instruction);

private:
    FunctionGraph& graph_;
    std::unordered_map<ValueId, ValueId> names_;
};

} // namespace ptarmigan::translator
