// SPDX-License-Identifier: Apache-2.0
// Places .shared variables: module scope first, then those of bodies, in declaration order; unsized arrays last,
// together.
#include "translator/analysis/build/flatten.h"
#include "translator/analysis/build/late_targets.h"
#include "translator/analysis/graph/form_queries.h"

#include <algorithm>
#include <set>

namespace ptarmigan::translator {
namespace {

using ptx::FunctionId;
using ptx::Operand;
using ptx::VariableId;
using Key = std::pair<FunctionId, VariableId>;

/// Walks everything that a kernel can run and notes the shared variables it names.
class Reach {
public:
    explicit Reach(ptx::ModuleLoader& loader) : loader_(loader), module_(loader.module()) {}

    void run(FunctionId kernel) {
        visit(kernel);
        while (!work_.empty()) {
            FunctionId function = work_.back();
            work_.pop_back();
            scan(function);
        }
    }
    std::set<FunctionId> functions;
    std::set<VariableId> module_variables;

private:
    void visit(FunctionId function) {
        function = resolve_alias(module_, function);
        if (!module_.functions[function].is_declaration && functions.insert(function).second) work_.push_back(function);
    }
    /// A call through a pointer may reach any function of the module.
    void visit_all() {
        if (std::exchange(all_visited_, true)) return;
        for (FunctionId f = 0; f < module_.functions.size(); ++f)
            if (!module_.functions[f].is_entry) visit(f);
    }
    /// So many of them that looking through each body here would keep them all.
    void add_late_functions() {
        if (std::exchange(late_added_, true)) return;
        const SharedUsers& users = shared_users(loader_);
        module_variables.insert(users.module_variables.begin(), users.module_variables.end());
        functions.insert(users.functions.begin(), users.functions.end());
    }
    void see(const Operand& operand) {
        if (operand.kind == Operand::Kind::function) visit(operand.index);
        bool variable = operand.kind == Operand::Kind::variable ||
                        (operand.kind == Operand::Kind::address && operand.base == Operand::Base::variable);
        if (variable && operand.scope == ptx::VariableScope::module &&
            module_.variables[operand.index].space == ptx::StateSpace::shared)
            module_variables.insert(operand.index);
    }
    void scan(FunctionId function) {
        const ptx::Body& body = loader_.body(function);
        for (const ptx::Instruction& inst : body.instructions) {
            if (is_call(inst) && inst[ptx::Role::f].kind != Operand::Kind::function) {
                if (is_late_call(module_, call_candidates(module_, body, inst)))
                    add_late_functions();
                else
                    visit_all();
            }
            for (unsigned i = 0; i < inst.operand_count; ++i) see(inst.operands[i]);
        }
        for (const Operand& operand : body.operand_pool) see(operand);
    }

    ptx::ModuleLoader& loader_;
    const ptx::Module& module_;
    std::vector<FunctionId> work_;
    bool all_visited_ = false, late_added_ = false;
};

} // namespace

SharedLayout shared_layout(ptx::ModuleLoader& loader, FunctionId kernel) {
    Reach reach(loader);
    reach.run(kernel);
    SharedLayout layout;
    std::uint64_t size = 0;
    std::uint32_t dynamic_alignment = 1;
    std::vector<Key> dynamic;
    auto place = [&](FunctionId function, VariableId id, const ptx::Variable& variable) {
        std::uint32_t alignment = std::max(1u, variable.alignment);
        if (variable.size == 0) {
            dynamic_alignment = std::max(dynamic_alignment, alignment);
            dynamic.push_back({function, id});
            return;
        }
        size = (size + alignment - 1) / alignment * alignment;
        layout.slots.push_back({function, id, std::uint32_t(size)});
        size += variable.size;
        if (size > 0x7fffffffu)
            throw UnsupportedError(loader.module().name + ": error: shared variables do not fit the address space");
    };
    for (VariableId id : reach.module_variables) place(ptx::no_id, id, loader.module().variables[id]);
    for (FunctionId function : reach.functions) {
        const auto& variables = loader.body(function).variables;
        for (VariableId id = 0; id < variables.size(); ++id)
            if (variables[id].space == ptx::StateSpace::shared) place(function, id, variables[id]);
    }
    layout.static_size = std::uint32_t(size);
    layout.dynamic_offset = std::uint32_t((size + dynamic_alignment - 1) / dynamic_alignment * dynamic_alignment);
    for (auto [function, id] : dynamic) layout.slots.push_back({function, id, layout.dynamic_offset});
    std::sort(layout.slots.begin(), layout.slots.end());
    return layout;
}

std::optional<std::uint32_t> SharedLayout::offset_of(FunctionId function, VariableId variable) const {
    auto found = std::lower_bound(slots.begin(), slots.end(), Slot{function, variable});
    if (found == slots.end() || found->function != function || found->variable != variable) return std::nullopt;
    return found->offset;
}

} // namespace ptarmigan::translator
