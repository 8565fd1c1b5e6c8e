// SPDX-License-Identifier: Apache-2.0
#include "frontend/bind/static_variables.h"

#include "frontend/parse/byte_blocks.h"
#include "frontend/parse/character_classes.h"
#include "frontend/parse/statement_parser.h"

#include <algorithm>
#include <bit>

namespace ptarmigan::ptx {

namespace {

/// Whether `.global` or `.const` stands at offset `dot`, and not behind an opcode, as a part of an instruction.
bool begins_declaration(std::string_view body, std::size_t dot) {
    if (dot != 0 && is_class(body[dot - 1], identifier_part)) return false;
    const std::string_view rest = body.substr(dot);
    return rest.starts_with(".global") || rest.starts_with(".const");
}

/// False if no statement declares such a variable; comments and strings may deceive it.
bool may_declare(std::string_view body) {
    std::size_t at = 0;
    for (; at + block_size < body.size(); at += block_size) {
        const char* block = body.data() + at;
        std::uint64_t dots = bytes_equal(block, '.') & (bytes_equal(block + 1, 'g') | bytes_equal(block + 1, 'c'));
        for (; dots != 0; dots &= dots - 1)
            if (begins_declaration(body, at + static_cast<std::size_t>(std::countr_zero(dots)))) return true;
    }
    while ((at = body.find('.', at)) != std::string_view::npos)
        if (begins_declaration(body, at++)) return true;
    return false;
}

/// Reads one body's declarations.
class StaticVariables {
public:
    StaticVariables(ModuleContext& context, FunctionId function, const SourceBuffer& source)
        : context_(context), unheard_(source, 0), parser_(context.text, unheard_, context.bodies[function]) {}

    void bind() {
        scopes_.emplace_back();
        for (auto kind = parser_.next(); kind != StatementParser::Kind::end && !unheard_.is_hopeless();
             kind = parser_.next()) {
            if (kind == StatementParser::Kind::open_scope) scopes_.emplace_back();
            if (kind == StatementParser::Kind::close_scope && scopes_.size() > 1) scopes_.pop_back();
            if (kind == StatementParser::Kind::variables && is_static_variable(parser_.variables)) declarations();
        }
    }

private:
    using Names = std::unordered_map<std::string_view, VariableId, TextHash>;

    void declarations() {
        const VariableSyntax& syntax = parser_.variables;
        if (type_class(syntax.type) == TypeClass::opaque) return;
        for (const DeclaratorSyntax& d : syntax.declarators) {
            Variable variable = make_variable(syntax, d, unheard_);
            if (d.has_initializer)
                bind_initializer(
                    syntax, d, context_, [this](std::string_view name) { return find(name); }, unheard_, variable);
            if (!d.is_range) {
                scopes_.back().emplace(d.name, static_cast<VariableId>(context_.module.variables.size()));
                context_.module.variables.push_back(std::move(variable));
                continue;
            }
            if (d.range > max_range_variables || context_.range_variables + d.range > max_range_variables) continue;
            context_.range_variables += d.range;
            for (std::uint64_t i = 0; i < d.range; ++i) {
                variable.name = range_name(d.name, i);
                names_.push_back(std::make_unique<std::string>(variable.name));
                scopes_.back().emplace(*names_.back(), static_cast<VariableId>(context_.module.variables.size()));
                context_.module.variables.push_back(variable);
            }
        }
    }

    Symbol find(std::string_view name) const {
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
            if (const auto found = scope->find(name); found != scope->end())
                return {Symbol::Kind::module_variable, 1, found->second, 0};
        const auto found = context_.names.find(name);
        return found == context_.names.end() ? Symbol{} : found->second;
    }

    ModuleContext& context_;
    Diagnostics unheard_;
    StatementParser parser_;
    std::vector<Names> scopes_;
    std::vector<std::unique_ptr<std::string>> names_; ///< of ranges, in scopes_
};

} // namespace

bool ModuleContext::is_static(VariableId id) const {
    return std::any_of(static_variables.begin(), static_variables.end(),
                       [&](const auto& body) { return body.second.first <= id && id < body.second.end; });
}

bool is_static_variable(const VariableSyntax& syntax) {
    return syntax.space == StateSpace::global || syntax.space == StateSpace::constant;
}

void bind_static_variables(ModuleContext& context, FunctionId function, std::size_t end, const SourceBuffer& source) {
    const std::size_t begin = context.bodies[function].offset;
    if (end < begin || !may_declare(context.text.substr(begin, end - begin))) return;
    const auto first = static_cast<VariableId>(context.module.variables.size());
    StaticVariables(context, function, source).bind();
    const auto last = static_cast<VariableId>(context.module.variables.size());
    if (last != first) context.static_variables[function] = {first, last};
}

void name_static_variables(ModuleContext& context) {
    for (const auto& [function, range] : context.static_variables)
        for (VariableId id = range.first; id < range.end; ++id) {
            std::string& name = context.module.variables[id].name;
            name = "$__" + name.substr(name.starts_with('%') ? 1 : 0) + "__" + std::to_string(id);
            while (context.names.count(name) != 0) name += '$';
        }
}

} // namespace ptarmigan::ptx
