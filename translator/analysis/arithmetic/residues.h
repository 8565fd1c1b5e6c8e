// SPDX-License-Identifier: Apache-2.0
// Values modulo a small power of two, as far as it follows from arithmetic: `root + offset`.
#pragma once

#include "translator/analysis/graph/dominators.h"

namespace ptarmigan::translator {

/// value = root + offset (modulo the analysis's size). Lanes with equal roots have equal low bits.
struct Residue {
    enum class Root : std::uint8_t {
        pending,   ///< not reached, or undefined: any value will do
        none,      ///< the residue is known
        parameter, ///< the kernel parameter byte at `id`, and what follows it
        value,     ///< SSA value `id`
    };
    Root root = Root::pending;
    std::uint32_t id = 0;
    std::uint32_t offset = 0;
    bool operator==(const Residue&) const = default;
};

/// Residues of all values of a graph modulo `size`, a power of two up to 128.
class ResidueAnalysis {
public:
    ResidueAnalysis(const FunctionGraph& graph, const DominatorTree& tree, unsigned size);
    /// Of a memory operand's address, or of any operand read as a number.
    Residue of(const ptx::Operand& operand) const;

private:
    bool visit(const Phi& phi);
    bool visit(const GraphInstruction& instruction);
    bool visit_parameter_load(const GraphInstruction& instruction);
    bool update(ValueId value, Residue residue);
    Residue result(const ptx::Instruction& inst, ValueId value) const;
    Residue variable(const ptx::Operand& operand, ValueId self) const;
    Residue opaque(ValueId value) const { return {Residue::Root::value, value, 0}; }
    Residue known(std::uint64_t number) const { return {Residue::Root::none, 0, std::uint32_t(number & (size_ - 1))}; }
    Residue add(Residue a, Residue b, ValueId self) const;
    Residue negate(Residue a, ValueId self) const;
    Residue multiply(Residue a, Residue b, ValueId self) const;
    Residue bitwise(ptx::FormId form, Residue a, Residue b, ValueId self) const;
    Residue join(Residue a, Residue b, ValueId self) const;

    const FunctionGraph& graph_;
    const DominatorTree& tree_;
    const unsigned size_;
    std::vector<Residue> residues_;
};

} // namespace ptarmigan::translator
