// SPDX-License-Identifier: Apache-2.0
#include "translator/analysis/build/late_targets.h"

#include "frontend/module_loader.h"
#include "translator/late_call.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

namespace ptarmigan::translator {
namespace {

using ptx::Operand;

bool same_sizes(const std::vector<ptx::Variable>& a, const std::vector<ptx::Variable>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const ptx::Variable& x, const ptx::Variable& y) { return x.size == y.size; });
}

SharedUsers find_shared_users(ptx::ModuleLoader& loader) {
    const ptx::Module& module = loader.module();
    std::set<ptx::VariableId> variables;
    std::set<ptx::FunctionId> functions;
    const auto see = [&](const Operand& operand) {
        const bool is_variable = operand.kind == Operand::Kind::variable ||
                                 (operand.kind == Operand::Kind::address && operand.base == Operand::Base::variable);
        if (is_variable && operand.scope == ptx::VariableScope::module &&
            module.variables[operand.index].space == ptx::StateSpace::shared)
            variables.insert(operand.index);
    };
    loader.check_bodies([&](ptx::FunctionId id, const ptx::Body& body) {
        if (module.functions[id].is_entry) return;
        for (const ptx::Instruction& instruction : body.instructions)
            for (unsigned i = 0; i < instruction.operand_count; ++i) see(instruction.operands[i]);
        for (const Operand& operand : body.operand_pool) see(operand);
        const bool has_own = std::any_of(body.variables.begin(), body.variables.end(),
                                         [](const ptx::Variable& v) { return v.space == ptx::StateSpace::shared; });
        if (has_own) functions.insert(id);
    });
    return {{variables.begin(), variables.end()}, {functions.begin(), functions.end()}};
}

} // namespace

std::vector<ptx::FunctionId> call_candidates(const ptx::Module& module, const ptx::Body& body,
                                             const ptx::Instruction& call) {
    const Operand& hint = call[ptx::Role::t];
    std::vector<ptx::FunctionId> targets;
    if (hint.kind == Operand::Kind::call_targets) targets = body.call_targets.at(hint.index);
    for (ptx::FunctionId id = 0; id < module.functions.size() && hint.kind == Operand::Kind::prototype; ++id) {
        const ptx::Function& function = module.functions[id];
        const ptx::Prototype& prototype = body.prototypes.at(hint.index);
        if (!function.is_entry && same_sizes(function.returns, prototype.returns) &&
            same_sizes(function.parameters, prototype.parameters))
            targets.push_back(id);
    }
    std::erase_if(targets, [&](ptx::FunctionId id) { return module.functions[id].is_declaration; });
    return targets;
}

bool is_late_call(const ptx::Module& module, const std::vector<ptx::FunctionId>& candidates) {
    return candidates.size() >= least_late_candidates &&
           std::all_of(candidates.begin(), candidates.end(), [&](ptx::FunctionId id) {
               return module.functions[id].returns.empty() && module.functions[id].parameters.empty();
           });
}

const SharedUsers& shared_users(ptx::ModuleLoader& loader) {
    // Never destroyed: background threads may be compiling.
    static auto& mutex = *new std::mutex;
    static auto& known = *new std::map<std::pair<std::size_t, std::size_t>, std::unique_ptr<const SharedUsers>>;
    const std::string_view text = loader.text();
    const std::pair key{std::hash<std::string_view>()(text), text.size()};
    {
        const std::lock_guard lock(mutex);
        if (const auto found = known.find(key); found != known.end()) return *found->second;
    }
    auto users = std::make_unique<const SharedUsers>(find_shared_users(loader));
    const std::lock_guard lock(mutex);
    return *known.try_emplace(key, std::move(users)).first->second;
}

} // namespace ptarmigan::translator
