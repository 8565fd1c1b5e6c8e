// SPDX-License-Identifier: Apache-2.0
// How far an address moves from one round of its loop to the next.
#pragma once

#include "translator/analysis/function_graph.h"

#include <map>
#include <optional>

namespace ptarmigan::translator {

class LoopStrides {
public:
    explicit LoopStrides(const FunctionGraph& graph);

    /// What `value` gains by a round of `loop`; none if that is not a constant that is seen to be one. Integers are taken not
    /// to wrap, so this is for hints, never for what a program computes.
    std::optional<std::int64_t> of(ValueId value, std::uint32_t loop) const;
    /// True if `value` is computed from something that `loop` loads in the same round.
    bool depends_on_load(ValueId value, std::uint32_t loop) const;

private:
    /// A constant and multiples of values that the loop leaves alone or that are its header's phis.
    struct Sum {
        std::int64_t constant = 0;
        std::map<ValueId, std::int64_t> terms;
    };
    struct Definition {
        const GraphInstruction* instruction = nullptr;
        const Phi* phi = nullptr;
    };

    bool is_invariant(ValueId value, std::uint32_t loop) const;
    std::optional<Sum> sum_of(ValueId value, std::uint32_t loop, unsigned depth) const;
    std::optional<Sum> sum_of(const ptx::Operand& operand, std::uint32_t loop, unsigned depth) const;
    std::optional<Sum> result_of(const ptx::Instruction& inst, std::uint32_t loop, unsigned depth) const;
    static std::optional<Sum> product(const std::optional<Sum>& a, const std::optional<Sum>& b);
    static std::optional<Sum> total(const std::optional<Sum>& a, const std::optional<Sum>& b, std::int64_t factor = 1);

    const FunctionGraph& graph_;
    std::vector<Definition> definitions_;
};

} // namespace ptarmigan::translator
