// SPDX-License-Identifier: Apache-2.0
// The module scope: declarations to Module, names to indices, places of the bodies for later.
#pragma once

#include "frontend/bind/symbols.h"
#include "frontend/parse/lexer.h"
#include "frontend/parse/syntax.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace ptarmigan::ptx {

/// A .reg or .local variable at module scope, which modules before PTX 3.0 may have: each thread has its own.
struct PerThreadVariable {
    VariableSyntax syntax;
    DeclaratorSyntax declarator;
};

/// Variables that lie side by side in Module::variables.
struct VariableRange {
    VariableId first = 0, end = 0;
};

/// Everything that binding a body needs to know of the rest of the text.
struct ModuleContext {
    std::string_view text;
    Module module;
    ModuleNames names;
    /// Variables that declarations of ranges (`x<4>`) made so far, in bodies too: a few bytes of text must not take
    /// gigabytes. Bodies are bound on several threads.
    mutable std::atomic<std::uint64_t> range_variables = 0;
    mutable std::atomic<std::uint64_t> initialized_bytes = 0; ///< likewise: `a[1000000000] = {1}`
    /// Searches for what may have been meant: of a text with thousands of errors only the first few get one.
    mutable std::atomic<unsigned> searches = 0;
    std::vector<PerThreadVariable> per_thread;
    /// The declaration of a name, null if it is none of them.
    const PerThreadVariable* find_per_thread(std::string_view name) const;
    std::unordered_set<std::string_view> misread; ///< ModuleParser::misread
    FunctionId unclosed = no_id;      ///< the function in whose body the text ends: for the caller to report
    std::vector<TextPosition> bodies; ///< per function, behind the `{`; meaningful if it is defined
    std::unordered_map<FunctionId, VariableRange> static_variables; ///< that bodies declare, in order
    bool is_static(VariableId id) const;
    std::vector<std::unique_ptr<std::string>> range_names; ///< of `.global .u32 x<4>`: keys that the text lacks
};

/// Of a module; each takes some 250 bytes.
inline constexpr std::uint64_t max_range_variables = 1u << 19;

/// Parses and binds all declarations of `context.text` into the rest of `context`. Errors go to
/// `diagnostics`.
void bind_module(ModuleContext& context, Diagnostics& diagnostics);

/// A variable without its initialiser.
Variable make_variable(const VariableSyntax& syntax, const DeclaratorSyntax& declarator, Diagnostics& diagnostics);
/// False for the types that only instructions have: .bf16, .tf32, packed ones but for .f16x2.
bool is_declarable(ScalarType type);
/// Name number `number` of a declarator `name<count>`.
std::string range_name(std::string_view prefix, std::uint64_t number);

/// What a name in an initialiser stands for; Kind::none if it is unknown.
using NameLookup = std::function<Symbol(std::string_view)>;

/// Turns the initialiser of a declarator into bytes and relocations of `variable`.
void bind_initializer(const VariableSyntax& syntax, const DeclaratorSyntax& declarator, const ModuleContext& context,
                      const NameLookup& find, Diagnostics& diagnostics, Variable& variable);

} // namespace ptarmigan::ptx
