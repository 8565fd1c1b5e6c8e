// SPDX-License-Identifier: Apache-2.0
#include "frontend/bind/declaration_checks.h"

#include "frontend/isa/directives.h"

#include <algorithm>

namespace ptarmigan::ptx {

namespace {

/// Bytes of parameters that an entry may have from sm_70 on; it was 4352 before.
constexpr std::uint64_t max_parameter_bytes = 32764;
constexpr std::uint64_t max_small_parameter_bytes = 4352;
constexpr std::uint32_t max_parameter_alignment = 128; ///< of a .func

bool is_opaque(ScalarType type) {
    return type == ScalarType::texref || type == ScalarType::surfref || type == ScalarType::samplerref;
}

} // namespace

void DeclarationChecks::gate(SourceLocation at, std::string_view directive) {
    const std::string broken = broken_directive(directive, module_.version, module_.target);
    if (!broken.empty()) error(at, broken);
}

void DeclarationChecks::header(SourceLocation version, SourceLocation target) {
    if (const std::string broken = broken_version(module_.version); !broken.empty()) return error(version, broken);
    if (const std::string broken = broken_target(module_.target, module_.version); !broken.empty())
        error(target, broken);
}

void DeclarationChecks::linkage_of(SourceLocation at, Linkage linkage) {
    if (linkage == Linkage::weak) gate(at, "weak");
    if (linkage == Linkage::common) gate(at, "common");
}

void DeclarationChecks::type_of(const VariableSyntax& syntax) {
    if (syntax.type == ScalarType::b128) gate(syntax.location, "b128");
    if (syntax.type == ScalarType::f16x2) gate(syntax.location, "f16x2");
    if (syntax.type == ScalarType::samplerref && !module_.target.texmode_independent)
        error(syntax.location, ".samplerref variables need '.target ..., texmode_independent'");
}

void DeclarationChecks::opaque_from_1_5(SourceLocation at) {
    if (module_.version < Version{1, 5}) error(at, "textures, surfaces and samplers need .version 1.5 or later");
}

void DeclarationChecks::old_texture(const VariableSyntax& syntax) {
    const bool is_number = syntax.type == ScalarType::u32 || syntax.type == ScalarType::u64;
    const bool is_array = std::any_of(syntax.declarators.begin(), syntax.declarators.end(),
                                      [](const DeclaratorSyntax& d) { return d.dimension_count != 0; });
    if (!is_number || syntax.vector_size > 1 || is_array) error(syntax.location, "a .tex variable is one .u32 or .u64");
}

void DeclarationChecks::attributes_of(const VariableSyntax& syntax) {
    if (syntax.managed) gate(syntax.location, "managed");
    if (syntax.unified) gate(syntax.location, "unified");
    if ((syntax.managed || syntax.unified) && syntax.space != StateSpace::global)
        error(syntax.location, ".attribute is for .global variables");
}

void DeclarationChecks::in_body(const VariableSyntax& syntax) {
    type_of(syntax);
    attributes_of(syntax);
}

void DeclarationChecks::variables(const VariableSyntax& syntax, Linkage linkage) {
    const SourceLocation at = syntax.location;
    linkage_of(at, linkage);
    type_of(syntax);
    const bool is_global = syntax.space == StateSpace::global;
    if (linkage == Linkage::common && !is_global) error(at, ".common is for .global variables");
    if (is_opaque(syntax.type) && !is_global && syntax.space != StateSpace::tex)
        error(at, "textures, surfaces and samplers are .global variables");
    attributes_of(syntax);
    for (const DeclaratorSyntax& d : syntax.declarators) {
        if (!d.has_initializer) continue;
        if (!is_global && syntax.space != StateSpace::constant)
            error(d.location, "only .global and .const variables have initial values");
        else if (linkage == Linkage::external)
            error(d.location, "'" + std::string(d.name) + "' is .extern and can't have an initial value");
    }
}

void DeclarationChecks::function(const FunctionSyntax& syntax, const Function& function) {
    linkage_of(syntax.location, function.linkage);
    if (function.linkage == Linkage::common) error(syntax.location, ".common is for .global variables");
    if (function.linkage == Linkage::external && syntax.has_body)
        error(syntax.location, "'" + function.name + "' is .extern and can't have a body");
    if (syntax.unified) gate(syntax.location, "unified");
    if (syntax.noreturn) {
        gate(syntax.location, "noreturn");
        if (!function.returns.empty()) error(syntax.location, "a .noreturn function returns nothing");
    }
    parameters(syntax, function);
    limits(syntax);
}

void DeclarationChecks::parameters(const FunctionSyntax& syntax, const Function& function) {
    std::uint64_t bytes = 0;
    for (const VariableSyntax& parameter : syntax.parameters) {
        type_of(parameter);
        if (is_opaque(parameter.type)) opaque_from_1_5(parameter.location);
    }
    for (const std::vector<Variable>* list : {&function.returns, &function.parameters})
        for (const Variable& v : *list) {
            if (v.dimensions.size() > 1) error(v.location, "a parameter is an array of one dimension at most");
            if (function.is_entry) continue;
            if (v.is_pointer) error(v.location, ".ptr is for the parameters of an entry");
            if (v.alignment > max_parameter_alignment)
                error(v.location, "a parameter of a .func is aligned to 128 bytes at most");
        }
    const auto in_memory = [](const Variable& v) { return v.space == StateSpace::param; };
    const bool passes_memory = std::any_of(function.returns.begin(), function.returns.end(), in_memory) ||
                               std::any_of(function.parameters.begin(), function.parameters.end(), in_memory);
    if (!function.is_entry && passes_memory && module_.target.sm < 20)
        error(syntax.location, ".param parameters of functions need .target sm_20 or higher");
    for (const Variable& result : function.returns)
        if (result.unsized) error(result.location, "a result needs a size");
    for (const Variable& parameter : function.parameters) {
        bytes = (bytes + parameter.alignment - 1) / parameter.alignment * parameter.alignment + parameter.size;
        if (parameter.space != StateSpace::param && parameter.space != StateSpace::reg)
            error(parameter.location, "a parameter is a .param variable or a register");
        const bool is_wide = parameter.vector_size > 1 || parameter.type == ScalarType::f16x2;
        if (parameter.space == StateSpace::param && is_wide && parameter.dimensions.empty())
            error(parameter.location, "a .param variable of this type must be an array");
        if (parameter.is_pointer && parameter.pointee_space == StateSpace::param)
            error(parameter.location, "a .ptr points to .const, .global, .local or .shared");
        if (parameter.is_pointer) gate(parameter.location, "a parameter with .ptr");
        if (!parameter.unsized) continue;
        gate(parameter.location, "a parameter without a size");
        if (&parameter != &function.parameters.back())
            error(parameter.location, "only the last parameter may be without a size");
    }
    if (function.is_entry && bytes > max_parameter_bytes)
        error(syntax.location, "'" + function.name + "' has " + std::to_string(bytes) + " bytes of parameters, " +
                                   std::to_string(max_parameter_bytes) + " is the most");
    else if (function.is_entry && bytes > max_small_parameter_bytes)
        gate(syntax.location, "a parameter list of more than 4352 bytes");
    if (function.returns.size() > 1 && std::any_of(function.returns.begin(), function.returns.end(), in_memory))
        error(syntax.location, "several results are returned in registers only");
}

void DeclarationChecks::alias(SourceLocation at, const Function& alias, const Function& aliasee) {
    const auto differ = [&](const char* what) {
        error(at, "Mismatch in prototype of alias '" + alias.name + "' and aliasee '" + aliasee.name + "'. " + what +
                      " differ(s)");
    };
    const auto compare = [&](const std::vector<Variable>& a, const std::vector<Variable>& b) {
        if (a.size() != b.size()) differ("number of parameters");
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
            if (a[i].space != b[i].space) differ("parameter state space");
            if (a[i].type != b[i].type || a[i].vector_size != b[i].vector_size || a[i].dimensions != b[i].dimensions)
                differ("parameter types");
            if (a[i].alignment != b[i].alignment) differ("parameter alignment");
        }
    };
    if (aliasee.is_entry) return error(at, "'" + aliasee.name + "' is an entry and can't have an alias");
    if (aliasee.linkage == Linkage::weak) error(at, "'" + aliasee.name + "' is .weak and can't have an alias");
    compare(alias.returns, aliasee.returns);
    compare(alias.parameters, aliasee.parameters);
    if (alias.noreturn != aliasee.noreturn) differ(".noreturn directive");
}

void DeclarationChecks::limits(const FunctionSyntax& syntax) {
    const auto find = [&](std::string_view name) {
        return std::find_if(syntax.limits.begin(), syntax.limits.end(),
                            [&](const LimitSyntax& limit) { return limit.name == name; });
    };
    const auto has = [&](std::string_view name) { return find(name) != syntax.limits.end(); };
    for (const LimitSyntax& limit : syntax.limits) {
        gate(limit.location, limit.name);
        const bool counts = limit.name != "abi_preserve" && limit.name != "abi_preserve_control" &&
                            limit.name != "reqnctapercluster" && limit.name != "maxclusterrank";
        const auto zero = std::find(limit.values.begin(), limit.values.end(), 0u);
        if (counts && zero != limit.values.end())
            error(limit.location, "'." + std::string(limit.name) + "' takes numbers above 0");
        if (limit.name == "maxnctapersm" && module_.version >= Version{2, 1})
            error(limit.location, "'.maxnctapersm' ended with PTX 2.0: write .minnctapersm");
        if (limit.name.starts_with("abi_preserve") && syntax.is_entry)
            error(limit.location, "'." + std::string(limit.name) + "' is for .func");
    }
    for (const auto& [one, other] : {std::pair{"maxntid", "reqntid"}, std::pair{"maxclusterrank", "reqnctapercluster"}})
        if (has(one) && has(other))
            error(std::max(find(one), find(other))->location, // where both are known
                  "." + std::string(one) + " and ." + other + " exclude each other");
    if (has("blocksareclusters") && !(has("reqntid") && has("reqnctapercluster")))
        error(find("blocksareclusters")->location, ".blocksareclusters needs .reqntid and .reqnctapercluster");
}

} // namespace ptarmigan::ptx
