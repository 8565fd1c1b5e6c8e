// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/kernel_usage.h"

#include "runtime/device/device_profile.h"

#include "frontend/ptx/provided_functions.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace ptarmigan::runtime {
namespace {

/// Adds up the variables of one space, in order, each at its alignment.
class SpaceLayout {
public:
    void add(const BodyUsage::Block& block) {
        const std::uint64_t alignment = std::max<std::uint32_t>(block.alignment, 1);
        size_ = (size_ + alignment - 1) / alignment * alignment + block.size;
    }
    std::uint64_t size() const { return size_; }

private:
    std::uint64_t size_ = 0;
};

BodyUsage::Block block_of(const ptx::Variable& variable) {
    return {variable.size, variable.alignment};
}

/// What the operands of a body mention.
class MentionList {
public:
    MentionList(const ptx::Module& module, std::vector<BodyUsage::Mention>& mentions)
        : module_(module), mentions_(mentions) {}

    /// `is_call`: a function among the operands is called.
    void add(const ptx::Operand& operand, bool is_call) {
        using Kind = ptx::Operand::Kind;
        if (operand.kind == Kind::function) add({true, !is_call, operand.index});
        const bool is_variable = operand.kind == Kind::variable ||
                                 (operand.kind == Kind::address && operand.base == ptx::Operand::Base::variable);
        if (is_variable && operand.scope == ptx::VariableScope::module &&
            module_.variables[operand.index].space == ptx::StateSpace::shared)
            add({false, false, operand.index});
    }

private:
    void add(const BodyUsage::Mention& mention) {
        const std::uint64_t key = std::uint64_t{mention.id} << 1 | (mention.is_function ? 1 : 0);
        if (seen_.insert(key).second) mentions_.push_back(mention);
    }

    const ptx::Module& module_;
    std::vector<BodyUsage::Mention>& mentions_;
    std::unordered_set<std::uint64_t> seen_;
};

/// Follows a kernel's body and those of the functions that it mentions, where it mentions them. Not by recursion: a
/// chain of calls may be long.
class UsageWalk {
public:
    UsageWalk(const ptx::Module& module, const FindBodyUsage& find) : module_(module), find_(find) {}

    void walk(ptx::FunctionId kernel) {
        for (enter({true, false, kernel}); !places_.empty();) {
            Place& place = places_.back();
            if (place.next == place.body->mentions.size()) {
                places_.pop_back();
                continue;
            }
            const BodyUsage::Mention mention = place.body->mentions[place.next++];
            if (mention.is_function)
                enter(mention);
            else if (seen_variables_.insert(mention.id).second)
                shared.add(block_of(module_.variables[mention.id]));
        }
    }

    SpaceLayout shared, local;
    std::uint32_t registers = 0, statements = 0;
    bool has_unresolved = false, has_question = false;

private:
    struct Place {
        const BodyUsage* body;
        std::size_t next;
    };

    void enter(const BodyUsage::Mention& mention) {
        const ptx::FunctionId id = mention.id;
        has_unresolved |= is_unresolved(module_.functions[id]);
        has_question |= asks_driver(module_.functions[id]);
        if (module_.functions[id].is_declaration || !seen_functions_.insert(id).second) return;
        const BodyUsage& body = find_(id);
        registers = std::max(registers, body.registers);
        statements += body.statements;
        for (const BodyUsage::Block& block : body.shared) shared.add(block);
        for (const BodyUsage::Block& block : body.local) local.add(block);
        places_.push_back({&body, 0});
    }

    const ptx::Module& module_;
    const FindBodyUsage& find_;
    std::vector<Place> places_;
    std::set<ptx::FunctionId> seen_functions_;
    std::set<ptx::VariableId> seen_variables_;
};

/// The one of the functions that nothing defines which ptxas names: it looks through a body, then level by level
/// through the functions that this mentions, the last one first.
std::optional<UnresolvedFunction> first_unresolved(const ptx::Module& module, ptx::FunctionId kernel,
                                                   const FindBodyUsage& find) {
    std::unordered_set<ptx::FunctionId> seen = {kernel};
    std::vector<ptx::FunctionId> open = {kernel};
    for (std::size_t next = 0; next < open.size(); ++next) {
        if (module.functions[open[next]].is_declaration) continue;
        const std::vector<BodyUsage::Mention>& mentions = find(open[next]).mentions;
        for (const BodyUsage::Mention& mention : mentions)
            if (mention.is_function && is_unresolved(module.functions[mention.id]))
                return UnresolvedFunction{mention.id, mention.by_address};
        for (auto mention = mentions.rbegin(); mention != mentions.rend(); ++mention)
            if (mention->is_function && seen.insert(mention->id).second) open.push_back(mention->id);
    }
    return {};
}

std::string hexadecimal(std::uint64_t number) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
    return text;
}

std::string excess(const std::string& what, std::uint64_t bytes, std::uint64_t limit) {
    return bytes <= limit
               ? ""
               : "ptxas error   : " + what + " (" + hexadecimal(bytes) + " bytes, " + hexadecimal(limit) + " max)";
}

} // namespace

BodyUsage usage_of_body(const ptx::Module& module, const ptx::Body& body) {
    BodyUsage usage;
    usage.registers = static_cast<std::uint32_t>(body.registers.size());
    usage.statements = static_cast<std::uint32_t>(body.instructions.size());
    for (const ptx::Variable& variable : body.variables) {
        if (variable.space == ptx::StateSpace::shared) usage.shared.push_back(block_of(variable));
        if (variable.space == ptx::StateSpace::local) usage.local.push_back(block_of(variable));
    }
    MentionList mentions(module, usage.mentions);
    for (const ptx::Instruction& instruction : body.instructions) {
        const bool is_call = ptx::any(ptx::form_info(instruction.form).effects, ptx::Effects::call);
        for (unsigned i = 0; i < instruction.operand_count; ++i) mentions.add(instruction.operands[i], is_call);
    }
    for (const ptx::Operand& operand : body.operand_pool) mentions.add(operand, false);
    return usage;
}

KernelUsage usage_of(const ptx::Module& module, ptx::FunctionId kernel, const FindBodyUsage& find) {
    UsageWalk walk(module, find);
    walk.walk(kernel);
    return {walk.shared.size(), walk.local.size(),
            walk.registers,     walk.statements,
            walk.has_question,  walk.has_unresolved ? first_unresolved(module, kernel, find) : std::nullopt};
}

KernelUsage usage_of(ptx::ModuleLoader& loader, ptx::FunctionId kernel) {
    std::unordered_map<ptx::FunctionId, BodyUsage> bodies; // its elements stay where they are
    return usage_of(loader.module(), kernel, [&](ptx::FunctionId id) -> const BodyUsage& {
        const auto [place, is_new] = bodies.try_emplace(id);
        if (is_new) place->second = usage_of_body(loader.module(), loader.body(id));
        return place->second;
    });
}

bool asks_driver(const ptx::Function& function) {
    if (!function.is_declaration) return false;
    const auto which = ptx::device_runtime_function(function.name);
    return which && !ptx::fits_cooperative_grids(*which);
}

bool is_unresolved(const ptx::Function& function) {
    return function.is_declaration && function.alias_of.empty() && !ptx::is_provided_function(function.name);
}

std::string unresolved_function_line(const ptx::Module& module, const UnresolvedFunction& function) {
    const std::string& name = module.functions[function.id].name;
    return function.by_address ? "ptxas fatal   : Cannot take address of function '" + name + "' " // with the blank
                               : "ptxas fatal   : Unresolved extern function '" + name + "'";
}

std::uint64_t constant_bytes(const ptx::Module& module) {
    SpaceLayout layout;
    for (const ptx::Variable& variable : module.variables)
        if (variable.space == ptx::StateSpace::constant) layout.add(block_of(variable));
    return layout.size();
}

int max_static_shared() {
    return device_limits().shared_optin;
}

std::string excess_of(const KernelUsage& usage, const std::string& kernel) {
    return excess("Entry function '" + kernel + "' uses too much shared data", usage.shared, max_static_shared());
}

std::string excess_of_constants(const ptx::Module& module) {
    return excess("File uses too much global constant data", constant_bytes(module), max_constants);
}

} // namespace ptarmigan::runtime
