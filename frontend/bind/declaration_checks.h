// SPDX-License-Identifier: Apache-2.0
// What ptxas refuses about declarations that read well: directives of a newer PTX or target, limits
// that contradict each other, linkage and initial values where a state space has none (manual
// chapters 5 and 11).
#pragma once

#include "frontend/bind/module_binder.h"
#include "frontend/parse/syntax.h"
#include "frontend/source/diagnostic.h"

namespace ptarmigan::ptx {

class DeclarationChecks {
public:
    DeclarationChecks(const Module& module, Diagnostics& diagnostics) : module_(module), diagnostics_(diagnostics) {}

    /// `directive` spelled as in isa/directives.def.
    void gate(SourceLocation at, std::string_view directive);
    void header(SourceLocation version, SourceLocation target);
    /// Of a variable at module scope, with all its names.
    void variables(const VariableSyntax& syntax, Linkage linkage);
    /// Of registers and variables that a body declares.
    void in_body(const VariableSyntax& syntax);
    /// Of a function's head, whose parts are bound.
    void function(const FunctionSyntax& syntax, const Function& function);

    /// Calls of the alias go to the aliasee, so their heads must be the same but for names and
    /// linkage.
    void alias(SourceLocation at, const Function& alias, const Function& aliasee);
    /// Textures, surfaces and samplers as types.
    void opaque_from_1_5(SourceLocation at);
    /// `.tex .u32 name`, as before PTX 1.5.
    void old_texture(const VariableSyntax& syntax);

private:
    void type_of(const VariableSyntax& syntax);
    void attributes_of(const VariableSyntax& syntax);
    void linkage_of(SourceLocation at, Linkage linkage);
    void parameters(const FunctionSyntax& syntax, const Function& function);
    void limits(const FunctionSyntax& syntax);
    void error(SourceLocation at, std::string text) { diagnostics_.error(at, std::move(text)); }

    const Module& module_;
    Diagnostics& diagnostics_;
};

} // namespace ptarmigan::ptx
