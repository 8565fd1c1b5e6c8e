// SPDX-License-Identifier: Apache-2.0
// Optimistic: phis start from what is known of some of their sources and are corrected until nothing changes.
#include "translator/analysis/arithmetic/residues.h"

#include "translator/analysis/graph/graph_queries.h"

namespace ptarmigan::translator {

using ptx::FormId;
using ptx::Operand;
using ptx::Role;
using Root = Residue::Root;

ResidueAnalysis::ResidueAnalysis(const FunctionGraph& graph, const DominatorTree& tree, unsigned size)
    : graph_(graph), tree_(tree), size_(size), residues_(graph.values.size()) {
    for (ValueId v = 0; v < graph.values.size(); ++v)
        if (graph.values[v].is_constant) residues_[v] = known(graph.values[v].constant);
    // Each phi changes twice at most (to something, then to itself), so this ends.
    for (bool changed = true; changed;) {
        changed = false;
        for (BlockId block : tree.order()) {
            for (const Phi& phi : graph.blocks[block].phis) changed |= visit(phi);
            for (const GraphInstruction& instruction : graph.blocks[block].instructions) changed |= visit(instruction);
        }
    }
}

bool ResidueAnalysis::update(ValueId value, Residue residue) {
    if (graph_.values[value].is_constant || residues_[value] == residue) return false;
    residues_[value] = residue;
    return true;
}

/// A value that a phi carries around a loop may be computed from an older one of its root than the one that is there
/// now, unless the root is defined above the phi.
bool ResidueAnalysis::visit(const Phi& phi) {
    const Residue before = residues_[phi.result];
    if (before == opaque(phi.result)) return false;
    Residue merged;
    for (ValueId incoming : phi.incoming) merged = join(merged, residues_[incoming], phi.result);
    if (merged.root == Root::value && merged.id != phi.result) {
        BlockId home = graph_.values[merged.id].block, here = graph_.values[phi.result].block;
        if (home == here || home == no_block || !tree_.dominates(home, here)) merged = opaque(phi.result);
    }
    if (before.root != Root::pending && !(before == merged)) merged = opaque(phi.result);
    return update(phi.result, merged);
}

bool ResidueAnalysis::visit(const GraphInstruction& instruction) {
    if (visit_parameter_load(instruction)) return false;
    bool changed = false;
    FewValues results = definitions(graph_, instruction);
    for (std::size_t i = 0; i < results.size(); ++i) {
        Residue residue = results.size() == 1 ? result(instruction.inst, results[i]) : opaque(results[i]);
        if (i < instruction.previous.size()) residue = join(residue, residues_[instruction.previous[i]], results[i]);
        changed |= update(results[i], residue);
    }
    return changed;
}

/// ld.param of an entry: its results are bytes of the parameter block, of which the first says all. True if it was one.
bool ResidueAnalysis::visit_parameter_load(const GraphInstruction& instruction) {
    const ptx::Instruction& inst = instruction.inst;
    const Operand& address = inst[Role::a];
    if (!loads_kernel_parameter(graph_, inst) || inst.guard != ptx::no_id || ptx::byte_size(inst.type()) == 0)
        return false;
    const ptx::Function& entry = graph_.module->functions[graph_.function];
    std::uint64_t offset = ptx::parameter_layout(entry).offsets.at(address.index) + address.value;
    const Operand& d = inst[Role::d];
    bool is_vector = d.kind == Operand::Kind::vector;
    for (unsigned i = 0; i < (is_vector ? d.count : 1); ++i) {
        const Operand& target = is_vector ? graph_.pool.at(d.first + i) : d;
        std::uint64_t place = offset + std::uint64_t(i) * ptx::byte_size(inst.type());
        if (target.kind == Operand::Kind::reg) update(target.index, {Root::parameter, std::uint32_t(place), 0});
    }
    return true;
}

Residue ResidueAnalysis::join(Residue a, Residue b, ValueId self) const {
    if (a.root == Root::pending) return b;
    if (b.root == Root::pending || a == b) return a;
    return opaque(self);
}

Residue ResidueAnalysis::add(Residue a, Residue b, ValueId self) const {
    if (a.root == Root::pending || b.root == Root::pending) return {};
    if (a.root != Root::none) std::swap(a, b);
    if (a.root != Root::none) return opaque(self);
    b.offset = (a.offset + b.offset) & (size_ - 1);
    return b;
}

Residue ResidueAnalysis::negate(Residue a, ValueId self) const {
    if (a.root == Root::none) return known(0u - a.offset);
    return a.root == Root::pending ? a : opaque(self);
}

Residue ResidueAnalysis::multiply(Residue a, Residue b, ValueId self) const {
    if (a.root == Root::pending || b.root == Root::pending) return {};
    if (a.root != Root::none) std::swap(a, b);
    if (a.root != Root::none) return opaque(self);
    if (a.offset == 0) return known(0);
    if (a.offset == 1) return b;
    return b.root == Root::none ? known(std::uint64_t(a.offset) * b.offset) : opaque(self);
}

Residue ResidueAnalysis::bitwise(FormId form, Residue a, Residue b, ValueId self) const {
    if (a.root == Root::pending || b.root == Root::pending) return {};
    if (a.root != Root::none) std::swap(a, b);
    if (a.root != Root::none) return opaque(self);
    bool both = b.root == Root::none;
    std::uint32_t ones = size_ - 1;
    if (form == FormId::and_bits) {
        if (a.offset == 0 || both) return known(a.offset & b.offset);
        return a.offset == ones ? b : opaque(self);
    }
    if (a.offset == 0) return b;
    if (!both) return opaque(self);
    return known(form == FormId::or_bits ? a.offset | b.offset : a.offset ^ b.offset);
}

/// The address of a variable: local, shared and parameter windows begin at multiples of 64, module variables at
/// multiples of their alignment.
Residue ResidueAnalysis::variable(const Operand& operand, ValueId self) const {
    switch (operand.scope) {
    case ptx::VariableScope::shared: return known(graph_.shared.at(operand.index).offset + operand.value);
    case ptx::VariableScope::module:
        if (graph_.module->variables.at(operand.index).alignment % size_ == 0) return known(operand.value);
        break;
    case ptx::VariableScope::frame:
        // The frames of functions that are called for real follow each other at multiples of 16.
        if (graph_.is_entry) return known(graph_.locals.at(operand.index).local_offset + operand.value);
        if (size_ <= 16) return known(graph_.locals.at(operand.index).local_offset + operand.value);
        break;
    case ptx::VariableScope::parameter: {
        if (graph_.is_entry) {
            const ptx::Function& entry = graph_.module->functions[graph_.function];
            if (size_ <= 16) return known(ptx::parameter_layout(entry).offsets.at(operand.index) + operand.value);
            break;
        }
        std::size_t returns = graph_.return_offsets.size();
        std::uint32_t place = operand.index < returns ? graph_.return_offsets[operand.index]
                                                      : graph_.parameter_offsets.at(operand.index - returns);
        if (size_ <= 16) return known(place + operand.value);
        break;
    }
    case ptx::VariableScope::body: break;
    }
    return opaque(self);
}

Residue ResidueAnalysis::of(const Operand& operand) const {
    // Opaque with no value of its own: an id that no value has.
    const ValueId nobody = no_value;
    switch (operand.kind) {
    case Operand::Kind::imm: return known(operand.value);
    case Operand::Kind::reg: return residues_[operand.index];
    case Operand::Kind::variable: return variable(operand, nobody);
    case Operand::Kind::address:
        if (operand.base == Operand::Base::none) return known(operand.value);
        if (operand.base == Operand::Base::variable) return variable(operand, nobody);
        return add(residues_[operand.index], known(operand.value), nobody);
    default: return opaque(nobody);
    }
}

Residue ResidueAnalysis::result(const ptx::Instruction& inst, ValueId value) const {
    const auto& o = inst.operands;
    auto source = [&](unsigned index) {
        Residue residue = of(o[index]);
        bool foreign = residue.root == Root::value && residue.id == no_value;
        return foreign || o[index].negated ? opaque(value) : residue;
    };
    switch (inst.form) {
    case FormId::mov:
    case FormId::cvta:
    case FormId::cvta_to:
    case FormId::cvt_same_16:
    case FormId::cvt_same_32:
    case FormId::cvt_same_64:
    case FormId::cvt_narrow_8:
    case FormId::cvt_narrow_16:
    case FormId::cvt_narrow_32:
    case FormId::cvt_widen_16:
    case FormId::cvt_widen_32:
    case FormId::cvt_widen_64: return source(1);
    case FormId::add_int: return add(source(1), source(2), value);
    case FormId::sub_int: return add(source(1), negate(source(2), value), value);
    case FormId::neg_int: return negate(source(1), value);
    case FormId::mul_lo:
    case FormId::mul_wide: return multiply(source(1), source(2), value);
    case FormId::mad_lo:
    case FormId::mad_wide: return add(multiply(source(1), source(2), value), source(3), value);
    case FormId::and_bits:
    case FormId::or_bits:
    case FormId::xor_bits: return bitwise(inst.form, source(1), source(2), value);
    case FormId::shl: {
        // The amount modulo `size_` is not enough: it must be a constant.
        const Operand& amount = o[2];
        bool constant = amount.kind == Operand::Kind::imm ||
                        (amount.kind == Operand::Kind::reg && graph_.values[amount.index].is_constant);
        if (!constant) return opaque(value);
        std::uint64_t by = amount.kind == Operand::Kind::imm ? amount.value : graph_.values[amount.index].constant;
        return multiply(source(1), known(by < 32 ? 1u << by : 0), value);
    }
    case FormId::selp: return join(source(1), source(2), value);
    case FormId::min_int:
    case FormId::max_int: return join(source(1), source(2), value);
    default: return opaque(value);
    }
}

} // namespace ptarmigan::translator
