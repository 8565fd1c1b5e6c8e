// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/kernel_usage.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace ptarmigan::runtime {
namespace {

/// Adds up the variables of one space, in order, each at its alignment.
class SpaceLayout {
public:
    void add(const ptx::Variable &variable) {
        const std::uint64_t alignment = std::max<std::uint32_t>(variable.alignment, 1);
        size_ = (size_ + alignment - 1) / alignment * alignment + variable.size;
    }
    std::uint64_t size() const { return size_; }

private:
    std::uint64_t size_ = 0;
};

/// Follows a kernel's body and those of the functions that it mentions.
class UsageWalk {
public:
    explicit UsageWalk(ptx::ModuleLoader &loader) : loader_(loader) {}

    void visit(ptx::FunctionId id) {
        const ptx::Function &function = loader_.module().functions[id];
        if (function.is_declaration || !seen_functions_.insert(id).second)
            return;
        const ptx::Body &body = loader_.body(id);
        registers =
            std::max<std::uint32_t>(registers, static_cast<std::uint32_t>(body.registers.size()));
        for (const ptx::Variable &variable : body.variables) {
            if (variable.space == ptx::StateSpace::shared)
                shared.add(variable);
            if (variable.space == ptx::StateSpace::local)
                local.add(variable);
        }
        for (const ptx::Instruction &instruction : body.instructions)
            for (unsigned i = 0; i < instruction.operand_count; ++i)
                visit(instruction.operands[i]);
        for (const ptx::Operand &operand : body.operand_pool)
            visit(operand);
    }

    SpaceLayout shared, local;
    std::uint32_t registers = 0;

private:
    void visit(const ptx::Operand &operand) {
        using Kind = ptx::Operand::Kind;
        if (operand.kind == Kind::function)
            visit(operand.index);
        const bool is_variable =
            operand.kind == Kind::variable ||
            (operand.kind == Kind::address && operand.base == ptx::Operand::Base::variable);
        if (!is_variable || operand.scope != ptx::VariableScope::module)
            return;
        const ptx::Variable &variable = loader_.module().variables[operand.index];
        if (variable.space == ptx::StateSpace::shared &&
            seen_variables_.insert(operand.index).second)
            shared.add(variable);
    }

    ptx::ModuleLoader &loader_;
    std::set<ptx::FunctionId> seen_functions_;
    std::set<ptx::VariableId> seen_variables_;
};

std::string hexadecimal(std::uint64_t number) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
    return text;
}

std::string excess(const std::string &what, std::uint64_t bytes, std::uint64_t limit) {
    return bytes <= limit ? ""
                          : "ptxas error   : " + what + " (" + hexadecimal(bytes) + " bytes, " +
                                hexadecimal(limit) + " max)";
}

} // namespace

KernelUsage usage_of(ptx::ModuleLoader &loader, ptx::FunctionId kernel) {
    UsageWalk walk(loader);
    walk.visit(kernel);
    return {walk.shared.size(), walk.local.size(), walk.registers};
}

std::uint64_t constant_bytes(const ptx::Module &module) {
    SpaceLayout layout;
    for (const ptx::Variable &variable : module.variables)
        if (variable.space == ptx::StateSpace::constant)
            layout.add(variable);
    return layout.size();
}

std::string excess_of(const KernelUsage &usage, const std::string &kernel) {
    return excess("Entry function '" + kernel + "' uses too much shared data", usage.shared, max_static_shared);
}

std::string excess_of_constants(const ptx::Module &module) {
    return excess("File uses too much global constant data", constant_bytes(module), max_constants);
}

} // namespace ptarmigan::runtime
