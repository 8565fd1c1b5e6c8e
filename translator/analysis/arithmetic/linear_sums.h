// SPDX-License-Identifier: Apache-2.0
// Values as sums of constants and multiples of other values. Integers are taken not to wrap, so what follows from these
// is for hints and for speed, never for what a program computes.
#pragma once

#include "translator/analysis/graph/function_graph.h"

#include <compare>
#include <map>
#include <optional>

namespace ptarmigan::translator {

struct LinearSum {
    /// A value, a component of a special register, or the product inside the mad that computes a value.
    struct Term {
        enum class Kind : std::uint8_t { value, special, product } kind = Kind::value;
        std::uint32_t id = 0; ///< ValueId or ptx::SpecialRegister
        std::uint8_t component = 0;
        auto operator<=>(const Term&) const = default;
    };
    std::int64_t constant = 0;
    std::map<Term, std::int64_t> terms; ///< factors, none of them 0

    /// This plus `factor` times `other`.
    LinearSum plus(const LinearSum& other, std::int64_t factor = 1) const;
};

class LinearSums {
public:
    explicit LinearSums(const FunctionGraph& graph);

    struct Definition {
        const GraphInstruction* instruction = nullptr;
        const Phi* phi = nullptr;
    };
    const Definition& definition(ValueId value) const { return definitions_[value]; }
    bool is_inside(ValueId value, std::uint32_t loop) const;

    /// In `loop`: over values that it leaves alone and its header's phis; none if `value` is something else. With
    /// no_loop never none: what is no sum is a term of its own.
    std::optional<LinearSum> of(ValueId value, std::uint32_t loop) const;
    std::optional<LinearSum> of(const ptx::Operand& operand, std::uint32_t loop) const;

private:
    std::optional<LinearSum> value_of(ValueId value, std::uint32_t loop, unsigned& steps_left) const;
    std::optional<LinearSum> operand_of(const ptx::Operand& operand, std::uint32_t loop, unsigned& steps_left) const;
    std::optional<LinearSum> result_of(const ptx::Instruction& inst, ValueId value, std::uint32_t loop,
                                       unsigned& steps_left) const;

    const FunctionGraph& graph_;
    std::vector<Definition> definitions_;
};

} // namespace ptarmigan::translator
