// SPDX-License-Identifier: Apache-2.0
// Scopes, declarations and labels of a body.
#include "frontend/bind/body_binder.h"

#include "frontend/bind/declaration_checks.h"
#include "frontend/bind/static_variables.h"

#include "frontend/bind/legacy_target.h"
#include "frontend/isa/directives.h"
#include "frontend/isa/special_registers.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace ptarmigan::ptx {

namespace {
constexpr unsigned max_searches = 30;
constexpr std::size_t max_names_searched = 10000;
constexpr std::uint64_t max_range = 1u << 31; ///< registers in one declaration: those used are made
constexpr std::size_t max_kept = 1u << 16;    ///< elements of BindingMemory's vectors

/// The elements of `grown` in memory of their size; `grown` goes back to `memory`.
template <typename T> void fit(std::vector<T>& grown, std::vector<T>& memory) {
    std::vector<T> fitting(std::make_move_iterator(grown.begin()), std::make_move_iterator(grown.end()));
    grown.clear();
    if (grown.capacity() <= max_kept) memory = std::move(grown);
    grown = std::move(fitting);
}
} // namespace

/// What is wrong with an instruction of several lines is said of its first, as ptxas does, so that its operand's line
/// stands in the text.
SourceLocation BodyBinder::place_of(SourceLocation at, std::string& text) const {
    if (statement_.line == 0 || at.line <= statement_.line) return at;
    text += " (in line " + std::to_string(at.line) + ", column " + std::to_string(at.column) + ")";
    return statement_;
}

void BodyBinder::fail(SourceLocation at, std::string text) {
    const SourceLocation place = place_of(at, text);
    diagnostics_.error(place, std::move(text));
    throw Recover{};
}

void BodyBinder::fail_there(SourceLocation at, std::string text) {
    diagnostics_.error(at, std::move(text));
    throw Recover{};
}

void BodyBinder::warn(SourceLocation at, std::string text) {
    const SourceLocation place = place_of(at, text);
    diagnostics_.warning(place, std::move(text));
    warned_ = true;
}

void BodyBinder::fail_unknown(SourceLocation at, std::string_view name) {
    gave_up_on_name_ = true;
    if (parser_->lost_declaration || context_.misread.contains(name) || !unknown_names_.insert(name).second)
        throw Recover{};
    const std::string quoted = "'" + std::string(name.substr(0, 80)) + "'";
    if (context_.names.contains(name)) fail_there(at, quoted + " is declared further down: move that above its use");
    if (find_special_register(name).found)
        fail_there(at, "special registers are read by mov and cvt only: put " + quoted + " into a register first");
    fail_there(at, "unknown symbol " + quoted + (may_search() ? meant_by(name) : std::string()));
}

/// A search takes milliseconds where there are thousands of names.
bool BodyBinder::may_search() const {
    return !diagnostics_.is_full() && context_.searches++ < max_searches;
}

std::string BodyBinder::meant_by(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
        if (const std::string range = scope->range_meant_by(name); !range.empty()) return range;
    NearestSpelling nearest(name);
    for (const Scope& scope : scopes_) scope.offer_names(nearest);
    std::size_t left = max_names_searched;
    for (const auto& [known, symbol] : context_.names) {
        if (left-- == 0) break;
        nearest.offer(known);
    }
    if (name.starts_with('%')) offer_special_registers(nearest);
    return nearest.question();
}

Body BodyBinder::bind(FunctionId function) {
    StatementParser parser(context_.text, diagnostics_, context_.bodies[function]);
    parser_ = &parser;
    body_.instructions = std::move(memory_.instructions);
    body_.registers = std::move(memory_.registers);
    function_ = &context_.module.functions[function];
    body_start_ = context_.bodies[function].offset;
    if (const auto found = context_.static_variables.find(function); found != context_.static_variables.end())
        static_variables_ = found->second;
    open_scope();
    try {
        declare_parameters(*function_);
    } catch (const Recover&) {
    }
    load_register_parameters();
    statements();
    store_register_results(no_id, false); // the end of a body is a ret
    while (!scopes_.empty()) close_scope();
    check_cta_groups();
    fit(body_.instructions, memory_.instructions);
    fit(body_.registers, memory_.registers);
    return std::move(body_);
}

/// All tcgen05 of a function work on one CTA, or all on pairs (manual 9.7.16.5).
void BodyBinder::check_cta_groups() {
    if (context_.module.target.sm < 100) return;
    bool one = false, pairs = false;
    for (const Instruction& inst : body_.instructions) {
        if (form_info(inst.form).chapter != "tensor_memory") continue;
        one |= inst.has(Modifier::cta_group_1);
        pairs |= inst.has(Modifier::cta_group_2);
        if (!one || !pairs) continue;
        diagnostics_.error(inst.location,
                           "the function uses .cta_group::1 and .cta_group::2: all its tcgen05 must have the same one");
        return;
    }
}

void BodyBinder::declare_parameters(const Function& function) {
    for (const std::vector<Variable>* list : {&function.returns, &function.parameters}) {
        for (const Variable& variable : *list) {
            const auto id = static_cast<std::uint32_t>(body_.variables.size());
            body_.variables.push_back(variable);
            Symbol symbol{Symbol::Kind::body_variable, 1, id, 0};
            if (variable.space == StateSpace::reg) {
                body_.variables.back().space = StateSpace::param;
                body_.variables.back().name += ".memory"; // the name itself is the register's
                symbol = {Symbol::Kind::reg, variable.vector_size,
                          add_registers(variable.name, variable.type, variable.vector_size), 0};
            }
            if (function.parameters_in_body) continue; // their declarations name them
            if (variable.name != "_" && !scopes_.back().declare(variable.name, symbol))
                diagnostics_.error(variable.location, "'" + variable.name + "' is already declared");
        }
    }
}

void BodyBinder::statements() {
    for (;;) {
        const StatementParser::Kind kind = parser_->next();
        if (kind == StatementParser::Kind::end) return;
        try {
            statement(kind);
        } catch (const Recover&) { // the statement is used up
            if (diagnostics_.is_hopeless()) return;
            parser_->lost_declaration |= kind == StatementParser::Kind::variables;
        }
    }
}

void BodyBinder::statement(StatementParser::Kind kind) {
    using Kind = StatementParser::Kind;
    statement_ = kind == Kind::instruction ? parser_->instruction.location : SourceLocation{};
    switch (kind) {
    case Kind::instruction:
        if (parser_->instruction.has_indices) resolve_array_elements();
        if (parser_->instruction.guard.starts_with("%is_")) resolve_special_guard();
        if (parser_->instruction.opcode == "ret") before_return();
        instruction_with_preparations();
        if (context_.module.target.sm < 20) imply_flush_to_zero(body_.instructions.back(), context_.module.version);
        statement_ = {};
        return;
    case Kind::label: return declare_label();
    case Kind::open_scope: return open_scope();
    case Kind::close_scope: return close_scope();
    case Kind::variables: return declare_variables();
    case Kind::branch_targets: return branch_targets();
    case Kind::call_targets: return call_targets();
    case Kind::prototype: return prototype();
    case Kind::source_line:
        body_.source_lines.push_back(
            {static_cast<std::uint32_t>(body_.instructions.size()), parser_->file, parser_->line, parser_->column});
        return;
    case Kind::end: return;
    }
}

void BodyBinder::close_scope() {
    Scope scope = std::move(scopes_.back());
    scopes_.pop_back();
    resolve_labels(scope, scopes_.empty() ? nullptr : &scopes_.back());
}

void BodyBinder::resolve_labels(Scope& scope, Scope* outer) {
    for (const Scope::LabelUse& use : scope.label_uses) {
        const Symbol symbol = scope.find_label(use.name);
        if (symbol.kind == Symbol::Kind::label) {
            if (use.in_target_list)
                body_.branch_targets[use.where][use.element] = symbol.index;
            else
                body_.instructions[use.where].operands[use.element].index = symbol.index;
        } else if (symbol.kind == Symbol::Kind::none && outer != nullptr) {
            outer->label_uses.push_back(use);
        } else if (!parser_->misread) {
            NearestSpelling nearest(use.name);
            if (may_search()) scope.offer_names(nearest, Symbol::Kind::label);
            diagnostics_.error(use.location, "label '" + std::string(use.name.substr(0, 80)) + "' is not defined here" +
                                                 nearest.question());
        }
    }
}

/// Whether a key of ModuleContext::names, a view into the text unless it is a number of a range, stands above this
/// body.
bool BodyBinder::is_declared_above(std::string_view key) const {
    const std::string_view text = context_.text;
    const bool in_text =
        std::less_equal<>()(text.data(), key.data()) && std::less<>()(key.data(), text.data() + text.size());
    return !in_text || static_cast<std::size_t>(key.data() - text.data()) < body_start_;
}

Symbol BodyBinder::find(std::string_view name) {
    const NumberedName numbered(name);
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
        const Symbol* range;
        if (const RegisterId made = scope->made_register(numbered, range); made != no_id)
            return {Symbol::Kind::reg, range->vector_size, made, range->count, range->type};
        RegisterId* id = nullptr;
        Symbol symbol = scope->find(numbered, id);
        if (symbol.kind == Symbol::Kind::none) continue;
        if (id != nullptr && *id == no_id) symbol.index = *id = add_registers(name, symbol.type, symbol.vector_size);
        return symbol;
    }
    const auto found = context_.names.find(name);
    if (found != context_.names.end() && is_declared_above(found->first)) return found->second;
    const PerThreadVariable* per_thread = context_.find_per_thread(name);
    return per_thread == nullptr ? Symbol{} : declare_per_thread(*per_thread, name);
}

/// A variable of the thread from module scope, in an old module. In an entry it is like one of its own; a .func would
/// have to share it with its callers, and ptxas has no ABI then either: the translator refuses it.
Symbol BodyBinder::declare_per_thread(const PerThreadVariable& variable, std::string_view name) {
    const VariableSyntax& syntax = variable.syntax;
    Symbol symbol{Symbol::Kind::body_variable, 1, static_cast<std::uint32_t>(body_.variables.size()), 0};
    if (syntax.space == StateSpace::reg) {
        check_register_type(syntax);
        symbol = {Symbol::Kind::reg, syntax.vector_size, add_registers(name, syntax.type, syntax.vector_size), 0};
        for (unsigned i = 0; i < syntax.vector_size; ++i) body_.thread_registers.push_back(symbol.index + i);
    } else {
        body_.thread_locals.push_back(symbol.index);
        body_.variables.push_back(make_variable(syntax, variable.declarator, diagnostics_));
        body_.variables.back().name = name;
    }
    scopes_.front().declare(name, symbol);
    return symbol;
}

bool BodyBinder::is_vector_register(std::string_view name) {
    if (!has_vector_registers_) return false;
    const Symbol symbol = find(name);
    return symbol.kind == Symbol::Kind::reg && symbol.vector_size > 1;
}

void BodyBinder::declare(std::string_view name, const Symbol& symbol, SourceLocation at) {
    if (scopes_.back().has(name) || !scopes_.back().declare(name, symbol))
        fail(at, "'" + std::string(name) + "' is already declared in this scope");
}

std::uint32_t BodyBinder::add_registers(std::string_view name, ScalarType type, unsigned vector_size) {
    const auto first = static_cast<std::uint32_t>(body_.registers.size());
    if (vector_size == 1) {
        body_.registers.push_back({std::string(name), type});
        return first;
    }
    has_vector_registers_ = true;
    for (unsigned i = 0; i < vector_size; ++i)
        body_.registers.push_back({std::string(name) + "." + "xyzw"[i & 3], type});
    return first;
}

void BodyBinder::check_register_type(const VariableSyntax& syntax) {
    if (!is_declarable(syntax.type) || type_class(syntax.type) == TypeClass::opaque || syntax.vector_size > 4)
        fail(syntax.location, "registers can't have this type");
    if (syntax.vector_size > 1 && (syntax.type == ScalarType::pred || syntax.vector_size * bit_size(syntax.type) > 128))
        fail(syntax.location, "a vector register holds up to 128 bits, and no predicates");
}

void BodyBinder::declare_registers() {
    const VariableSyntax& syntax = parser_->variables;
    check_register_type(syntax);
    for (const DeclaratorSyntax& d : syntax.declarators) {
        if (d.dimension_count != 0) fail(d.location, "registers form no arrays");
        if (d.has_initializer) fail(d.location, "registers have no initial values");
        if (!d.is_range) {
            const std::uint32_t index = add_registers(d.name, syntax.type, syntax.vector_size);
            declare(d.name, {Symbol::Kind::reg, syntax.vector_size, index, 0}, d.location);
            continue;
        }
        has_vector_registers_ = has_vector_registers_ || syntax.vector_size > 1;
        const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(d.range, 0xffffffffu));
        const Symbol range{Symbol::Kind::reg, syntax.vector_size, no_id, count, syntax.type};
        if (scopes_.back().declares_number_of(d.name, count) || !scopes_.back().declare_range(d.name, range))
            fail(d.location, "'" + std::string(d.name) + "<>' is already declared in this scope");
        // Behind the declaration, so that uses are no errors of their own.
        if (d.range > max_range) fail(d.location, "too many registers");
    }
}

void BodyBinder::declare_variables() {
    const VariableSyntax& syntax = parser_->variables;
    DeclarationChecks(context_.module, diagnostics_).in_body(syntax);
    if (syntax.space == StateSpace::reg) return declare_registers();
    if (syntax.space == StateSpace::sreg || syntax.space == StateSpace::tex)
        fail(syntax.location, "variables of this state space can't be declared in a body");
    if (type_class(syntax.type) == TypeClass::opaque)
        fail(syntax.location, "textures, surfaces and samplers are declared at module scope");
    if (syntax.space == StateSpace::param && context_.module.version < Version{2, 0}) return declare_old_parameters();
    const bool is_static = is_static_variable(syntax);
    if (is_static && syntax.bank != 0) fail(syntax.location, "constant banks are not supported");
    for (const DeclaratorSyntax& d : syntax.declarators) {
        Variable variable = make_variable(syntax, d, diagnostics_);
        if (variable.unsized && !d.has_initializer) fail(d.location, "an array needs a size here");
        if (d.has_initializer) {
            if (!is_static) fail(d.location, "only .global and .const variables have initial values");
            bind_initializer(
                syntax, d, context_, [this](std::string_view name) { return find(name); }, diagnostics_, variable);
        }
        const std::uint64_t count = d.is_range ? d.range : 1;
        const Symbol symbol = is_static ? static_symbol(count, d) : add_variables(variable, count, d);
        if (!d.is_range)
            declare(d.name, symbol, d.location);
        else if (scopes_.back().declares_number_of(d.name, static_cast<std::uint32_t>(count)) ||
                 !scopes_.back().declare_range(d.name, symbol))
            fail(d.location, "'" + std::string(d.name) + "<>' is already declared in this scope");
    }
}

Symbol BodyBinder::add_variables(const Variable& variable, std::uint64_t count, const DeclaratorSyntax& d) {
    if (d.is_range) {
        context_.range_variables += count;
        if (count > max_range_variables || context_.range_variables > max_range_variables)
            fail(d.location, "too many variables declared as ranges");
    }
    const auto first = static_cast<std::uint32_t>(body_.variables.size());
    for (std::uint64_t i = 0; i < count; ++i) {
        body_.variables.push_back(variable);
        if (d.is_range) body_.variables.back().name = range_name(d.name, i);
    }
    return {Symbol::Kind::body_variable, 1, first, static_cast<std::uint32_t>(count)};
}

/// The module binder has found them in the same order.
Symbol BodyBinder::static_symbol(std::uint64_t count, const DeclaratorSyntax& d) {
    const VariableId first = static_variables_.first;
    if (count > static_variables_.end - first) fail(d.location, "too many variables declared as ranges");
    static_variables_.first += static_cast<VariableId>(count);
    return {Symbol::Kind::module_variable, 1, first, static_cast<std::uint32_t>(count)};
}

/// The parameters of an entry before PTX 1.4, which the module binder has found in the same order.
void BodyBinder::declare_old_parameters() {
    const VariableSyntax& syntax = parser_->variables;
    if (context_.module.version >= Version{1, 4})
        fail(syntax.location, ".param variables in a body need .version 2.0 or later");
    if (!function_->is_entry) fail(syntax.location, "before .version 2.0 only entries have .param variables");
    if (syntax.vector_size > 1 || syntax.type == ScalarType::f16x2)
        fail(syntax.location, "a .param variable can't have this type");
    for (const DeclaratorSyntax& d : syntax.declarators) {
        if (d.is_range) fail(d.location, "parameters form no ranges");
        if (d.has_initializer) fail(d.location, "only .global and .const variables have initial values");
        const Variable variable = make_variable(syntax, d, diagnostics_);
        if (variable.unsized) fail(d.location, "an array needs a size here");
        if (old_parameters_ == function_->parameters.size()) throw Recover{}; // an error further up, already reported
        declare(d.name, {Symbol::Kind::body_variable, 1, old_parameters_++, 0}, d.location);
    }
}

void BodyBinder::declare_label() {
    const auto id = static_cast<LabelId>(body_.labels.size());
    body_.labels.push_back(
        {std::string(parser_->label), static_cast<std::uint32_t>(body_.instructions.size()), parser_->location});
    declare(parser_->label, {Symbol::Kind::label, 1, id, 0}, parser_->location);
}

void BodyBinder::branch_targets() {
    const std::string broken = broken_directive("branchtargets", context_.module.version, context_.module.target);
    if (!broken.empty()) fail(parser_->location, broken);
    const auto id = static_cast<std::uint32_t>(body_.branch_targets.size());
    body_.branch_targets.emplace_back(parser_->names.size(), no_id);
    for (std::uint32_t i = 0; i < parser_->names.size(); ++i)
        scopes_.back().label_uses.push_back({parser_->names[i], parser_->location, true, id, i});
    declare(parser_->label, {Symbol::Kind::branch_targets, 1, id, 0}, parser_->location);
}

void BodyBinder::call_targets() {
    const auto id = static_cast<std::uint32_t>(body_.call_targets.size());
    std::vector<FunctionId> functions;
    for (std::string_view name : parser_->names) {
        const Symbol symbol = find(name);
        if (symbol.kind != Symbol::Kind::function)
            fail(parser_->location, "'" + std::string(name) + "' is not a function");
        functions.push_back(symbol.index);
    }
    body_.call_targets.push_back(std::move(functions));
    declare(parser_->label, {Symbol::Kind::call_targets, 1, id, 0}, parser_->location);
}

void BodyBinder::prototype() {
    const auto id = static_cast<std::uint32_t>(body_.prototypes.size());
    Prototype prototype;
    prototype.name = parser_->label;
    prototype.noreturn = parser_->function.noreturn;
    for (const VariableSyntax& v : parser_->function.returns)
        prototype.returns.push_back(make_variable(v, v.declarators.front(), diagnostics_));
    for (const VariableSyntax& v : parser_->function.parameters)
        prototype.parameters.push_back(make_variable(v, v.declarators.front(), diagnostics_));
    if (prototype.noreturn && !prototype.returns.empty())
        fail(parser_->function.location, "a .noreturn function returns nothing");
    body_.prototypes.push_back(std::move(prototype));
    declare(parser_->label, {Symbol::Kind::prototype, 1, id, 0}, parser_->location);
}

} // namespace ptarmigan::ptx
