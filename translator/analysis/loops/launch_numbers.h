// SPDX-License-Identifier: Apache-2.0
// Integer instructions as numbers that a launch can work out.
#pragma once

#include "translator/analysis/graph/function_graph.h"
#include "translator/launch_work.h"

#include <optional>

namespace ptarmigan::translator {

/// What a form computes is said here once; who derives from it says what values and special registers are, and where
/// numbers are put.
class LaunchNumberMaker {
public:
    using Index = std::optional<std::uint32_t>;

protected:
    explicit LaunchNumberMaker(const FunctionGraph& graph) : graph_(graph) {}
    ~LaunchNumberMaker() = default;

    virtual Index add(const LaunchNumber& number) = 0;
    virtual Index of(ValueId value) = 0;
    virtual Index special(std::uint32_t id, std::uint8_t component) = 0;

    Index constant(std::int64_t value) { return add({.kind = LaunchNumber::Kind::constant, .value = value}); }
    Index combine(LaunchNumber::Kind kind, unsigned bits, Index a, Index b, bool is_signed = true) {
        if (!a || !b) return std::nullopt;
        return add({kind, static_cast<std::uint8_t>(bits), is_signed, *a, *b, 0});
    }
    Index of(const ptx::Operand& operand);
    /// Of a pure instruction with one result; none if the form is not known. Guards are not looked at.
    Index result(const ptx::Instruction& inst);
    /// Element `element` of what a mov takes apart.
    Index unpacked(const ptx::Instruction& inst, unsigned element);
    /// `value`, which `inst` loads, if it is a kernel parameter.
    Index parameter(const ptx::Instruction& inst, ValueId value);

    const FunctionGraph& graph_;

private:
    Index packed(const ptx::Instruction& inst);
    Index compared(const ptx::Instruction& inst);
    Index selected(const ptx::Instruction& inst);
};

} // namespace ptarmigan::translator
