// SPDX-License-Identifier: Apache-2.0
#include "tests/support/module_comparison.h"

#include <tuple>
#include <vector>

namespace ptarmigan::test {
namespace {

using namespace ptarmigan::ptx;

/// Registers declared behind the first use of the hidden carry register get other numbers once
/// printed.
class RegisterMap {
public:
    bool corresponds(RegisterId a, RegisterId b) {
        if (a == no_id || b == no_id) return a == b;
        return agree(there_, a, b) && agree(back_, b, a);
    }

private:
    static bool agree(std::vector<RegisterId>& map, RegisterId from, RegisterId to) {
        if (map.size() <= from) map.resize(from + 1, no_id);
        if (map[from] == no_id) map[from] = to;
        return map[from] == to;
    }
    std::vector<RegisterId> there_, back_;
};

bool same(const Operand& a, const Operand& b, RegisterMap& registers) {
    const bool is_register = a.kind == Operand::Kind::reg ||
                             (a.kind == Operand::Kind::address && a.base == Operand::Base::reg);
    const bool same_index =
        is_register ? registers.corresponds(a.index, b.index) : a.index == b.index;
    return a.kind == b.kind && a.base == b.base && a.scope == b.scope && a.negated == b.negated &&
           a.type == b.type && a.component == b.component && same_index && a.first == b.first &&
           a.count == b.count && a.value == b.value;
}

std::string difference(const Instruction& a, const Instruction& b, RegisterMap& registers) {
    if (a.form != b.form) return "form";
    if (a.types != b.types) return "types";
    if (a.space != b.space) return "state space";
    if (a.vector_size != b.vector_size) return "vector size";
    if (a.modifier_count != b.modifier_count || a.modifiers != b.modifiers) return "modifiers";
    if (!registers.corresponds(a.guard, b.guard) || a.guard_negated != b.guard_negated)
        return "guard";
    for (unsigned i = 0; i < a.operand_count; ++i)
        if (!same(a.operands[i], b.operands[i], registers))
            return "operand " + std::to_string(i + 1);
    return "";
}

bool same(const Relocation& a, const Relocation& b) {
    const auto fields = [](const Relocation& r) {
        return std::tie(r.offset, r.size, r.byte, r.generic, r.is_function, r.symbol, r.addend);
    };
    return fields(a) == fields(b);
}

bool same(const Variable& a, const Variable& b) {
    const auto fields = [](const Variable& v) {
        return std::tie(v.space, v.type, v.vector_size, v.alignment, v.size, v.unsized,
                        v.is_pointer, v.pointee_space, v.pointee_alignment, v.init, v.linkage,
                        v.managed);
    };
    if (fields(a) != fields(b) || a.relocations.size() != b.relocations.size()) return false;
    for (std::size_t i = 0; i < a.relocations.size(); ++i)
        if (!same(a.relocations[i], b.relocations[i])) return false;
    return true;
}

bool same(const std::vector<Variable>& a, const std::vector<Variable>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!same(a[i], b[i])) return false;
    return true;
}

bool same(const EntryLimits& a, const EntryLimits& b) {
    const auto fields = [](const EntryLimits& l) {
        return std::tie(l.max_ntid, l.required_ntid, l.required_cluster, l.explicit_cluster,
                        l.max_cluster_rank, l.max_registers, l.min_ctas_per_sm,
                        l.blocks_are_clusters);
    };
    return fields(a) == fields(b);
}

std::string difference(const Function& a, const Function& b) {
    if (a.name != b.name) return "name";
    if (a.is_entry != b.is_entry || a.is_declaration != b.is_declaration) return "kind";
    if (a.noreturn != b.noreturn || a.linkage != b.linkage) return "linkage or attributes";
    if (!same(a.returns, b.returns) || !same(a.parameters, b.parameters)) return "parameters";
    if (!same(a.limits, b.limits)) return "launch limits";
    return a.alias_of == b.alias_of ? "" : "alias";
}

} // namespace

std::string difference(const Body& a, const Body& b) {
    if (a.instructions.size() != b.instructions.size()) return "number of instructions";
    if (a.registers.size() != b.registers.size()) return "number of registers";
    if (!same(a.variables, b.variables)) return "variables";
    if (a.branch_targets != b.branch_targets) return "branch targets";
    if (a.call_targets != b.call_targets) return "call targets";
    if (a.source_lines.size() != b.source_lines.size()) return "source lines";
    RegisterMap registers;
    for (std::size_t i = 0; i < a.instructions.size(); ++i) {
        const std::string what = difference(a.instructions[i], b.instructions[i], registers);
        if (!what.empty())
            return what + " of the instruction at line " +
                   std::to_string(a.instructions[i].location.line);
    }
    if (a.operand_pool.size() != b.operand_pool.size()) return "lists";
    for (std::size_t i = 0; i < a.operand_pool.size(); ++i)
        if (!same(a.operand_pool[i], b.operand_pool[i], registers)) return "element of a list";
    if (a.labels.size() != b.labels.size()) return "number of labels";
    for (std::size_t i = 0; i < a.labels.size(); ++i)
        if (a.labels[i].instruction != b.labels[i].instruction)
            return "place of label " + a.labels[i].name;
    return "";
}

std::string difference(ModuleLoader& first, ModuleLoader& second) {
    const Module &a = first.module(), &b = second.module();
    if (a.version != b.version || a.target.sm != b.target.sm ||
        a.target.suffix != b.target.suffix || a.address_size != b.address_size)
        return "head of the module";
    if (a.variables.size() != b.variables.size()) return "number of variables";
    for (std::size_t i = 0; i < a.variables.size(); ++i)
        if (a.variables[i].name != b.variables[i].name || !same(a.variables[i], b.variables[i]))
            return "variable " + a.variables[i].name;
    if (a.functions.size() != b.functions.size()) return "number of functions";
    for (FunctionId f = 0; f < a.functions.size(); ++f) {
        std::string what = difference(a.functions[f], b.functions[f]);
        if (what.empty() && !a.functions[f].is_declaration)
            what = difference(first.body(f), second.body(f));
        if (!what.empty()) return what + " in function " + a.functions[f].name;
    }
    return "";
}

std::string round_trip_fault(ModuleLoader& loader) {
    const std::string text = print(loader);
    const auto again =
        ModuleLoader::load(text, "printed.ptx", {.bind_all_bodies = true, .max_errors = 5});
    if (!again->ok()) return "the printed text has errors:\n" + again->diagnostics().render_all();
    const std::string what = difference(loader, *again);
    if (!what.empty()) return "the printed text differs: " + what;
    return print(*again) == text ? "" : "printing twice gives two texts";
}

} // namespace ptarmigan::test
