// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/ptx_beside.h"

#include "frontend/isa/instruction_form.h"
#include "runtime/base/log.h"
#include "runtime/module/fatbin.h"
#include "runtime/module/kernel_usage.h"
#include "runtime/module/module_source.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

namespace ptarmigan::runtime {
namespace {

bool has_memory(const ptx::Variable& variable) {
    return variable.space == ptx::StateSpace::global || variable.space == ptx::StateSpace::constant;
}

bool is_reference(const ptx::Variable& variable) {
    return variable.type == ptx::ScalarType::texref || variable.type == ptx::ScalarType::surfref ||
           variable.type == ptx::ScalarType::samplerref;
}

/// Whether `variable` begins with the bytes that `home` has from `offset` on; both end in zeros.
bool has_same_bytes(const ptx::Variable& variable, const ptx::Variable& home, std::uint64_t offset) {
    const auto byte = [](const ptx::Variable& of, std::uint64_t at) { return at < of.init.size() ? of.init[at] : 0; };
    const std::uint64_t given =
        std::max<std::uint64_t>(variable.init.size(), home.init.size() > offset ? home.init.size() - offset : 0);
    for (std::uint64_t at = 0; at < std::min(given, variable.size); ++at)
        if (byte(variable, at) != byte(home, offset + at)) return false;
    return true;
}

/// Where the machine code has a variable of the PTX; none where it has its own, as nobody else sees it: it is not among
/// the machine code's, or is a table or a literal, whose names are numbers. Else false: they are two and should be one.
bool find_home(const ptx::Variable& variable, const ModuleSource& machine_code, std::optional<LentVariable>& lent) {
    const std::vector<sass::VariableAlias>& aliases = machine_code.machine_code()->aliases();
    const auto alias =
        std::find_if(aliases.begin(), aliases.end(), [&](const auto& one) { return one.name == variable.name; });
    if (alias == aliases.end()) return !variable.managed;
    const auto home = machine_code.module().find_variable(alias->variable);
    if (!home) return false;
    const bool is_own = variable.linkage == ptx::Linkage::internal && !variable.init.empty();
    const bool has_same_values = !variable.relocations.empty() ||
                                 has_same_bytes(variable, machine_code.module().variables[*home], alias->offset);
    if (alias->size != variable.size || alias->is_managed != variable.managed || (is_own && !has_same_values))
        return is_own;
    lent = LentVariable{*home, alias->offset};
    return true;
}

/// What a kernel of PTX does, with the functions that it calls.
struct KernelDeeds {
    bool writes = false;          ///< memory that outlives a block, or calls what may do so
    bool takes_addresses = false; ///< of functions, or calls through registers: machine code has other numbers for them
};

/// Functions without a body here that leave nothing but lines of text.
bool only_prints(const ptx::Function& function) {
    return function.name == "vprintf" || function.name == "__assertfail";
}

class DeedsWalk {
public:
    explicit DeedsWalk(ptx::ModuleLoader& loader) : loader_(loader) {}

    KernelDeeds walk(ptx::FunctionId kernel) {
        open_ = {kernel};
        seen_ = {kernel};
        while (!open_.empty()) {
            const ptx::FunctionId id = open_.back();
            open_.pop_back();
            const ptx::Body& body = loader_.body(id);
            for (const ptx::Instruction& instruction : body.instructions) look_at(instruction);
            for (const ptx::Operand& operand : body.operand_pool)
                deeds_.takes_addresses |= operand.kind == ptx::Operand::Kind::function;
        }
        return deeds_;
    }

private:
    void look_at(const ptx::Instruction& instruction) {
        using ptx::Effects, ptx::StateSpace;
        const Effects effects = ptx::form_info(instruction.form).effects;
        const bool ends_with_block = instruction.space == StateSpace::local || instruction.space == StateSpace::param ||
                                     instruction.space == StateSpace::shared;
        deeds_.writes |= ptx::any(effects, Effects::async) ||
                         (ptx::any(effects, Effects::store | Effects::atomic) && !ends_with_block);
        const bool is_call = ptx::any(effects, Effects::call);
        bool has_callee = false;
        for (const ptx::Operand& operand : std::span(instruction.operands).first(instruction.operand_count)) {
            if (operand.kind != ptx::Operand::Kind::function) continue;
            has_callee = true;
            if (is_call)
                enter(operand.index);
            else
                deeds_.takes_addresses = true;
        }
        deeds_.takes_addresses |= is_call && !has_callee;
    }

    void enter(ptx::FunctionId id) {
        const ptx::Function& function = loader_.module().functions[id];
        if (function.is_declaration)
            deeds_.writes |= !only_prints(function);
        else if (seen_.insert(id).second)
            open_.push_back(id);
    }

    ptx::ModuleLoader& loader_;
    KernelDeeds deeds_;
    std::vector<ptx::FunctionId> open_;
    std::set<ptx::FunctionId> seen_;
};

/// Threads of a block as the limits have them: 0 where they say nothing.
std::uint64_t threads_of(const std::array<std::uint32_t, 3>& extents) {
    std::uint64_t threads = extents[0];
    for (const std::uint32_t extent : {extents[1], extents[2]}) threads *= std::max<std::uint32_t>(extent, 1);
    return threads;
}

/// Code that was compiled for other blocks, tiles or clusters has other limits or other shared memory: a launch that
/// was computed for the machine code would be wrong for it.
bool is_for_same_launches(const ptx::EntryLimits& a, const ptx::EntryLimits& b) {
    return threads_of(a.max_ntid) == threads_of(b.max_ntid) &&
           threads_of(a.required_ntid) == threads_of(b.required_ntid) &&
           threads_of(a.required_cluster) == threads_of(b.required_cluster);
}

/// Variables lie in another order in machine code, with other gaps.
constexpr std::uint32_t largest_gaps = 128;

std::string obstacle_of(const Kernel& kernel, Kernel& other, const KernelFacts& facts, const KernelFacts& other_facts) {
    const ptx::ParameterLayout &own = kernel.parameters(), &its = other.parameters();
    bool is_alike = own.offsets == its.offsets;
    for (std::size_t i = 0; is_alike && i < own.offsets.size(); ++i)
        is_alike = kernel.function().parameters[i].size == other.function().parameters[i].size;
    if (!is_alike) return "it has other parameters";
    if (!is_for_same_launches(kernel.function().limits, other.function().limits)) return "it is for other blocks";
    const auto [least, most] = std::minmax(facts.static_shared, other_facts.static_shared);
    if (most - least > largest_gaps) return "it has other shared memory";
    ModuleSource& source = other.source();
    const std::lock_guard lock(source.loader_mutex());
    const KernelDeeds deeds = DeedsWalk(source.loader()).walk(*source.module().find_function(other.name()));
    if (deeds.takes_addresses) return "it calls functions by their addresses";
    return deeds.writes ? "" : "it does nothing";
}

} // namespace

void PtxBeside::load(const ModuleSource& machine_code) {
    std::string text = unpack_ptx(packed_->entry);
    const TextUse use = packed_->is_newer ? TextUse::substitute : TextUse::program;
    packed_ = nullptr;
    std::shared_ptr<ModuleSource> source;
    if (ModuleSource::load(std::move(text), machine_code.name(), source, obstacle_, BodyCheck::at_first_use, use) !=
        Status::success)
        return;
    obstacle_.clear();
    const std::vector<ptx::Variable>& variables = source->module().variables;
    lent_.resize(variables.size());
    for (std::size_t id = 0; id < variables.size() && obstacle_.empty(); ++id) {
        const ptx::Variable& variable = variables[id];
        const bool has_functions = std::any_of(variable.relocations.begin(), variable.relocations.end(),
                                               [](const auto& relocation) { return relocation.is_function; });
        if (is_reference(variable)) obstacle_ = "it has texture references";
        if (!has_memory(variable) || has_functions) continue; // who uses tables of functions takes addresses
        if (!find_home(variable, machine_code, lent_[id])) obstacle_ = "its variable " + variable.name + " is another";
    }
    source_ = std::move(source);
}

Kernel* PtxBeside::stand_in(const Kernel& kernel, const KernelFacts& facts, std::string& obstacle) {
    std::call_once(once_, [&] {
        if (packed_) load(kernel.source());
    });
    if (!source_ || !obstacle_.empty()) {
        obstacle = obstacle_;
        return nullptr;
    }
    Kernel* other = source_->find_kernel(kernel.name());
    const KernelFacts* other_facts = nullptr;
    if (other == nullptr) return nullptr;
    if (other->facts(other_facts) != Status::success) {
        obstacle = error_detail();
        return nullptr;
    }
    try {
        obstacle = obstacle_of(kernel, *other, facts, *other_facts);
    } catch (const std::exception& error) { // a body that does not bind
        obstacle = error.what();
    }
    return obstacle.empty() ? other : nullptr;
}

} // namespace ptarmigan::runtime
