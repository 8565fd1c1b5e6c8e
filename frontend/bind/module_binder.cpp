// SPDX-License-Identifier: Apache-2.0
#include "frontend/bind/module_binder.h"

#include "frontend/bind/declaration_checks.h"
#include "frontend/bind/static_variables.h"
#include "frontend/isa/directives.h"
#include "frontend/isa/special_registers.h"

#include "frontend/parse/module_parser.h"
#include "frontend/parse/statement_parser.h"
#include "frontend/ptx/device_library.h"

#include <algorithm>
#include <charconv>

namespace ptarmigan::ptx {

namespace {

/// A declaration whose size is beyond this is a slip or an attack: the address space of a device is
/// 57 bits at most.
constexpr std::uint64_t max_variable_size = std::uint64_t{1} << 40;

constexpr std::size_t max_per_thread = 4096;    ///< are searched one by one
constexpr std::size_t text_per_function = 2048; ///< bytes, a guess: what it is too much is never touched

class ModuleBinder {
public:
    ModuleBinder(ModuleContext& context, Diagnostics& diagnostics)
        : context_(context), module_(context.module), diagnostics_(diagnostics), parser_(context.text, diagnostics),
          checks_(context.module, diagnostics) {}

    void bind() {
        const bool has_header = parser_.header(module_.version, module_.target, module_.address_size);
        module_.version_location = parser_.version_location;
        if (!has_header) return;
        checks_.header(parser_.version_location, parser_.location);
        const std::size_t likely_functions = context_.text.size() / text_per_function;
        module_.functions.reserve(likely_functions);
        context_.bodies.reserve(likely_functions);
        context_.names.reserve(likely_functions);
        for (;;) {
            switch (parser_.next()) {
            case ModuleParser::Kind::variables: variables(); break;
            case ModuleParser::Kind::function: function(); break;
            case ModuleParser::Kind::alias: alias(); break;
            case ModuleParser::Kind::file: file(); break;
            case ModuleParser::Kind::end:
                context_.misread = std::move(parser_.misread);
                return name_static_variables(context_);
            }
        }
    }

private:
    void error(SourceLocation at, std::string text) { diagnostics_.error(at, std::move(text)); }

    Symbol find(std::string_view name) const {
        const auto found = context_.names.find(name);
        return found == context_.names.end() ? Symbol{} : found->second;
    }

    void variables() {
        VariableSyntax& syntax = parser_.variables;
        if (syntax.space == StateSpace::tex && module_.version < Version{1, 5}) {
            checks_.old_texture(syntax);
            syntax.space = StateSpace::global; // the old way to write `.global .texref`
            syntax.type = ScalarType::texref;
        } else if (type_class(syntax.type) == TypeClass::opaque) {
            checks_.opaque_from_1_5(syntax.location);
        }
        if ((syntax.space == StateSpace::reg || syntax.space == StateSpace::local) && module_.version < Version{3, 0})
            return per_thread(syntax);
        if (syntax.space == StateSpace::reg || syntax.space == StateSpace::param || syntax.space == StateSpace::local ||
            syntax.space == StateSpace::sreg || syntax.space == StateSpace::tex) {
            const std::string space(spelling_of(syntax.space));
            return error(syntax.location, "." + space + " variables at module scope are not supported");
        }
        checks_.variables(syntax, parser_.linkage);
        if (syntax.bank != 0) return error(syntax.location, "constant banks are not supported");
        for (const DeclaratorSyntax& declarator : syntax.declarators) {
            Variable variable = make_variable(syntax, declarator, diagnostics_);
            variable.linkage = parser_.linkage;
            if (!declarator.is_range) {
                if (declarator.has_initializer)
                    bind_initializer(
                        syntax, declarator, context_, [this](std::string_view name) { return find(name); },
                        diagnostics_, variable);
                if (variable.unsized && !declarator.has_initializer && variable.linkage != Linkage::external)
                    error(declarator.location, "'" + variable.name + "' needs a size: it is not .extern");
                declare(declarator.name, std::move(variable));
                continue;
            }
            if (declarator.range > max_range_variables ||
                (context_.range_variables += declarator.range) > max_range_variables) {
                error(declarator.location, "too many variables declared as ranges");
                continue;
            }
            for (std::uint64_t i = 0; i < declarator.range; ++i) {
                variable.name = range_name(declarator.name, i);
                range_names_.push_back(std::make_unique<std::string>(variable.name));
                declare(*range_names_.back(), variable);
            }
        }
    }

    void per_thread(const VariableSyntax& syntax) {
        VariableSyntax common = syntax;
        common.declarators.clear();
        for (const DeclaratorSyntax& d : syntax.declarators) {
            if (context_.per_thread.size() >= max_per_thread)
                return error(d.location, "too many variables of threads at module scope");
            if (context_.names.count(d.name) != 0 || context_.find_per_thread(d.name) != nullptr)
                error(d.location, "'" + std::string(d.name) + "' is already declared");
            if (d.has_initializer) error(d.location, "only .global and .const variables have initial values");
            context_.per_thread.push_back({common, d});
            Variable variable = make_variable(syntax, d, diagnostics_);
            if (d.is_range) variable.name += "<" + std::to_string(d.range) + ">";
            module_.thread_variables.push_back(std::move(variable));
        }
    }

    static std::string_view spelling_of(StateSpace space) {
        switch (space) {
        case StateSpace::reg: return "reg";
        case StateSpace::param: return "param";
        case StateSpace::local: return "local";
        case StateSpace::tex: return "tex";
        default: return "sreg";
        }
    }

    /// An array whose size one of them leaves open is the same as one with any.
    static bool same_type(const Variable& a, const Variable& b) {
        return a.type == b.type && a.vector_size == b.vector_size &&
               (a.unsized || b.unsized || a.dimensions == b.dimensions);
    }

    /// Registers, labels and variables of a body may have the name of a special register.
    void refuse_special_register(std::string_view name, SourceLocation at) {
        if (name.starts_with('%') && find_special_register(name).found)
            error(at, "'" + std::string(name) + "' is a special register");
    }

    void declare(std::string_view name, Variable variable) {
        refuse_special_register(name, variable.location);
        const auto id = static_cast<std::uint32_t>(module_.variables.size());
        const auto [place, is_new] = context_.names.emplace(name, Symbol{Symbol::Kind::module_variable, 1, id, 0});
        if (is_new) {
            module_.variables.push_back(std::move(variable));
            return;
        }
        if (place->second.kind == Symbol::Kind::module_variable) {
            Variable& earlier = module_.variables[place->second.index];
            if (!same_type(earlier, variable))
                return error(variable.location, "'" + variable.name + "' was declared with another type");
            if (variable.linkage == Linkage::external) return; // a declaration behind the definition
            if (earlier.linkage == Linkage::external && variable.linkage != Linkage::internal) {
                earlier = std::move(variable);
                return;
            }
        }
        error(variable.location, "'" + variable.name + "' is already declared");
    }

    void function() {
        const FunctionSyntax& syntax = parser_.function;
        Function function;
        function.name = syntax.name;
        function.is_entry = syntax.is_entry;
        function.is_declaration = !syntax.has_body;
        function.noreturn = syntax.noreturn;
        function.linkage = parser_.linkage;
        function.location = syntax.location;
        function.returns.reserve(syntax.returns.size());
        for (const VariableSyntax& v : syntax.returns) function.returns.push_back(parameter(v));
        function.parameters.reserve(syntax.parameters.size());
        for (const VariableSyntax& v : syntax.parameters) function.parameters.push_back(parameter(v));
        for (const LimitSyntax& limit : syntax.limits) apply_limit(limit, function);
        if (syntax.is_entry) check_entry(function);
        if (syntax.is_entry && module_.version < Version{1, 4}) old_parameters(syntax, function);
        refuse_special_register(syntax.name, syntax.location);
        checks_.function(syntax, function);

        const auto id = static_cast<std::uint32_t>(module_.functions.size());
        const auto [place, is_new] = context_.names.emplace(syntax.name, Symbol{Symbol::Kind::function, 1, id, 0});
        if (!syntax.is_closed) context_.unclosed = place->second.index;
        if (is_new) {
            module_.functions.push_back(std::move(function));
            context_.bodies.push_back(syntax.body);
            return static_variables(syntax, id);
        }
        if (place->second.kind != Symbol::Kind::function)
            return error(syntax.location, "'" + function.name + "' is already declared");
        Function& earlier = module_.functions[place->second.index];
        if (!same_signature(earlier, function))
            return error(syntax.location, "'" + function.name + "' was declared with other parameters");
        if (function.linkage == Linkage::internal && earlier.linkage != Linkage::external)
            function.linkage = earlier.linkage; // as ptxas: the first declaration says who sees the function
        const bool is_from_library = earlier.is_declaration && is_device_library_function(function.name);
        if (function.linkage != earlier.linkage && !is_from_library)
            return error(syntax.location, "'" + function.name + "' was declared " + described(earlier.linkage));
        if (function.is_declaration && earlier.is_declaration) return;
        if (!earlier.is_declaration) return error(syntax.location, "'" + function.name + "' is already defined");
        earlier = std::move(function);
        context_.bodies[place->second.index] = syntax.body;
        static_variables(syntax, place->second.index);
    }

    void static_variables(const FunctionSyntax& syntax, FunctionId id) {
        if (syntax.has_body) bind_static_variables(context_, id, syntax.body_end, diagnostics_.source());
    }

    /// Before PTX 1.4 an entry has no list: the .param variables of its body, inner scopes included, are its
    /// parameters.
    void old_parameters(const FunctionSyntax& syntax, Function& function) {
        if (!syntax.parameters.empty())
            error(syntax.location, "parameter lists of entries need .version 1.4 or later: before, parameters are "
                                   ".param variables of the body");
        function.parameters_in_body = true;
        function.parameters.clear();
        if (!syntax.has_body) return;
        Diagnostics unheard(diagnostics_.source(), 0); // what is wrong is said when the body is bound
        StatementParser parser(context_.text, unheard, syntax.body);
        for (auto kind = parser.next(); kind != StatementParser::Kind::end && !unheard.is_hopeless();
             kind = parser.next()) {
            if (kind != StatementParser::Kind::variables || parser.variables.space != StateSpace::param) continue;
            for (const DeclaratorSyntax& declarator : parser.variables.declarators)
                function.parameters.push_back(make_variable(parser.variables, declarator, unheard));
        }
    }

    void check_entry(const Function& entry) {
        if (!entry.returns.empty()) error(entry.location, "an entry returns nothing");
        if (entry.noreturn) error(entry.location, ".noreturn is for .func");
        for (const Variable& p : entry.parameters) {
            if (p.space != StateSpace::param) error(p.location, "the parameters of an entry are .param variables");
            if (p.unsized) error(p.location, "the parameters of an entry need a size");
        }
    }

    static bool same_shape(const std::vector<Variable>& a, const std::vector<Variable>& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Variable& x, const Variable& y) {
            return x.size == y.size && x.alignment == y.alignment && x.space == y.space && x.type == y.type &&
                   x.vector_size == y.vector_size && x.unsized == y.unsized &&
                   x.dimensions.empty() == y.dimensions.empty();
        });
    }
    static std::string described(Linkage linkage) {
        switch (linkage) {
        case Linkage::external: return "as .extern";
        case Linkage::visible: return "as .visible";
        case Linkage::weak: return "as .weak";
        case Linkage::common: return "as .common";
        default: return "without linkage";
        }
    }
    static bool same_signature(const Function& a, const Function& b) {
        return a.is_entry == b.is_entry && a.noreturn == b.noreturn && same_shape(a.returns, b.returns) &&
               ((a.parameters_in_body && (a.is_declaration || b.is_declaration)) ||
                same_shape(a.parameters, b.parameters));
    }

    Variable parameter(const VariableSyntax& syntax) {
        return make_variable(syntax, syntax.declarators.front(), diagnostics_);
    }

    void apply_limit(const LimitSyntax& limit, Function& function) {
        EntryLimits& limits = function.limits;
        auto triple = [&](std::array<std::uint32_t, 3>& out) {
            if (limit.values.empty() || limit.values.size() > 3)
                return error(limit.location, "'." + std::string(limit.name) + "' takes one to three numbers");
            out = {1, 1, 1};
            for (std::size_t i = 0; i < limit.values.size(); ++i) out[i] = static_cast<std::uint32_t>(limit.values[i]);
        };
        auto one = [&](std::uint32_t& out) {
            if (limit.values.size() != 1)
                return error(limit.location, "'." + std::string(limit.name) + "' takes one number");
            out = static_cast<std::uint32_t>(limit.values[0]);
        };
        if (!function.is_entry && !limit.name.starts_with("abi_preserve"))
            return error(limit.location, "'." + std::string(limit.name) + "' is not for .func");
        std::uint32_t unused = 0;
        if (limit.name == "maxntid")
            triple(limits.max_ntid);
        else if (limit.name == "reqntid")
            triple(limits.required_ntid);
        else if (limit.name == "reqnctapercluster")
            triple(limits.required_cluster);
        else if (limit.name == "explicitcluster")
            limits.explicit_cluster = true;
        else if (limit.name == "maxclusterrank")
            one(limits.max_cluster_rank);
        else if (limit.name == "maxnreg")
            one(limits.max_registers);
        else if (limit.name == "minnctapersm")
            one(limits.min_ctas_per_sm);
        else if (limit.name == "blocksareclusters")
            limits.blocks_are_clusters = true;
        else if (limit.name == "maxnctapersm" || limit.name == "abi_preserve" || limit.name == "abi_preserve_control")
            one(unused);
        else
            error(limit.location,
                  "unknown directive '." + std::string(limit.name) + "' on a function" + nearest_directive(limit.name));
    }

    void alias() {
        checks_.gate(parser_.location, "alias");
        const auto target = context_.names.find(parser_.aliasee);
        const auto name = context_.names.find(parser_.alias);
        if (target == context_.names.end() || target->second.kind != Symbol::Kind::function)
            return error(parser_.location, "'" + std::string(parser_.aliasee) + "' is not a function");
        if (name == context_.names.end() || name->second.kind != Symbol::Kind::function)
            return error(parser_.location, "'" + std::string(parser_.alias) + "' is not a declared function");
        Function& function = module_.functions[name->second.index];
        if (!function.is_declaration)
            return error(parser_.location, "'" + function.name + "' has a body and can't be an alias");
        checks_.alias(parser_.location, function, module_.functions[target->second.index]);
        function.alias_of = parser_.aliasee;
        name->second.index = target->second.index; // uses go to the function itself
    }

    void file() {
        if (parser_.file_has_stamp) checks_.gate(parser_.location, "a time stamp behind .file");
        if (parser_.file_index > 100000) return error(parser_.location, "file number out of range");
        if (module_.files.size() <= parser_.file_index) module_.files.resize(parser_.file_index + 1);
        module_.files[parser_.file_index] = parser_.file_name;
    }

    ModuleContext& context_;
    Module& module_;
    Diagnostics& diagnostics_;
    ModuleParser parser_;
    DeclarationChecks checks_;
    std::vector<std::unique_ptr<std::string>>& range_names_ = context_.range_names;
};

} // namespace

const PerThreadVariable* ModuleContext::find_per_thread(std::string_view name) const {
    for (const PerThreadVariable& variable : per_thread) {
        const DeclaratorSyntax& d = variable.declarator;
        if (!d.is_range && d.name == name) return &variable;
        if (!d.is_range || !name.starts_with(d.name)) continue;
        const std::string_view digits = name.substr(d.name.size());
        std::uint64_t number = 0;
        const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        if (status == std::errc() && end == digits.data() + digits.size() && number < d.range &&
            std::to_string(number) == digits)
            return &variable;
    }
    return nullptr;
}

bool is_declarable(ScalarType type) {
    if (type == ScalarType::bf16 || type == ScalarType::tf32) return false;
    if (is_float(type)) return bit_size(type) > 8;
    return type_class(type) != TypeClass::packed || type == ScalarType::f16x2;
}

std::string range_name(std::string_view prefix, std::uint64_t number) {
    return std::string(prefix) + std::to_string(number);
}

Variable make_variable(const VariableSyntax& syntax, const DeclaratorSyntax& declarator, Diagnostics& diagnostics) {
    Variable variable;
    variable.name = declarator.name;
    variable.space = syntax.space;
    variable.type = syntax.type;
    variable.vector_size = syntax.vector_size;
    variable.is_pointer = syntax.is_pointer;
    variable.pointee_space = syntax.pointee_space;
    variable.pointee_alignment = syntax.pointee_alignment;
    variable.managed = syntax.managed;
    variable.location = declarator.location;

    std::uint64_t size = byte_size(syntax.type) * std::uint64_t{syntax.vector_size};
    if (syntax.type == ScalarType::pred && syntax.space == StateSpace::reg)
        size = 1; // a parameter: see register_parameters.cpp
    // An .align below that of the type is overlooked, as by ptxas.
    variable.alignment = std::max({syntax.alignment, static_cast<std::uint32_t>(size), 1u});
    if (!is_declarable(syntax.type) || (size == 0 && syntax.space != StateSpace::reg))
        diagnostics.error(declarator.location, "a variable can't have type ." + std::string(spelling(syntax.type)));
    if (syntax.space != StateSpace::reg && syntax.vector_size * bit_size(syntax.type) > 128)
        diagnostics.error(declarator.location, "a vector variable holds up to 128 bits");
    for (std::uint32_t i = 0; i < declarator.dimension_count; ++i) {
        const std::uint64_t count = syntax.dimensions[declarator.first_dimension + i];
        variable.dimensions.push_back(static_cast<std::uint32_t>(count));
        if (count == 0 && i == 0) variable.unsized = true;
        if (count > max_variable_size || (count != 0 && size > max_variable_size / count)) {
            diagnostics.error(declarator.location, "'" + variable.name + "' is too large");
            size = 0;
        }
        size *= count;
    }
    variable.size = size;
    return variable;
}

void bind_module(ModuleContext& context, Diagnostics& diagnostics) {
    ModuleBinder(context, diagnostics).bind();
}

} // namespace ptarmigan::ptx
