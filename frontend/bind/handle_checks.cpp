// SPDX-License-Identifier: Apache-2.0
// Textures, samplers and surfaces as operands (manual 5.3 and 9.7.10.1): which kind of variable stands where, in the
// two texturing modes, and from when on a register with a handle will do.
#include "frontend/bind/body_binder.h"

#include "frontend/isa/directives.h"

#include <algorithm>

namespace ptarmigan::ptx {

namespace {

bool is_opaque(ScalarType type) {
    return type_class(type) == TypeClass::opaque;
}

/// Words of txq that ask a sampler; `.force_unnormalized_coords` does so in both texturing modes.
bool asks_sampler(const HeadMatch& match, bool independent) {
    const auto end = match.modifiers.begin() + match.modifier_count;
    return std::any_of(match.modifiers.begin(), end, [&](Modifier m) {
        const std::string_view word = spelling(m);
        return word == "force_unnormalized_coords" ||
               (independent && (word == "filter_mode" || word.starts_with("addr_mode_")));
    });
}

bool has_sampler(FormId form) {
    const auto patterns = FormTable::get().pattern(form).operands;
    return std::any_of(patterns.begin(), patterns.end(), [](const OperandPattern& p) {
        return p.form == OperandPattern::Form::bracket_next && p.role == Role::b;
    });
}

} // namespace

/// The kind of variable that the operand of a texture or surface instruction names.
ScalarType BodyBinder::handle_type(const OperandPattern& pattern, const HeadMatch& match) const {
    const FormInfo& info = form_info(match.form);
    const bool independent = context_.module.target.texmode_independent;
    if (info.chapter == "surface") return ScalarType::surfref;
    if (info.opcode == "txq") return asks_sampler(match, independent) ? ScalarType::samplerref : ScalarType::texref;
    // With one handle for both, ptxas takes a second texture in the sampler's place.
    return pattern.role == Role::b && independent ? ScalarType::samplerref : ScalarType::texref;
}

void BodyBinder::check_handle(const OperandSyntax& syntax, const Symbol& symbol, const OperandPattern& pattern,
                              const HeadMatch& match) {
    const FormInfo& info = form_info(match.form);
    const bool speaks_of_handles = info.chapter == "texture" || info.chapter == "surface";
    if (speaks_of_handles && symbol.kind == Symbol::Kind::reg) check_handle_register(syntax, symbol);
    const bool takes_handles = speaks_of_handles && info.opcode != "istypep";
    const Variable* variable = nullptr;
    if (symbol.kind == Symbol::Kind::module_variable) variable = &context_.module.variables[symbol.index];
    if (symbol.kind == Symbol::Kind::body_variable) variable = &body_.variables[symbol.index];
    if (!takes_handles) {
        const bool accesses = any(info.effects, Effects::load | Effects::store | Effects::atomic);
        if (variable != nullptr && is_opaque(variable->type) && accesses)
            fail(syntax.location,
                 quoted(syntax.name) + " is a ." + std::string(spelling(variable->type)) + ", no memory to access");
        return;
    }
    const bool independent = context_.module.target.texmode_independent;
    const bool samples = info.opcode == "tex" || info.opcode == "tld4";
    if (samples && independent && !has_sampler(match.form))
        fail(syntax.location, "in .texmode_independent a sampler stands behind the texture");
    if (samples && !independent && has_sampler(match.form)) gate_handle(syntax, "a handle behind the texture");
    const ScalarType wanted = handle_type(pattern, match);
    // The parameters of entries may be handles too; a number among them must be loaded first.
    if (variable != nullptr && variable->type != wanted)
        fail(syntax.location, quoted(syntax.name) + " is no ." + std::string(spelling(wanted)));
    if (variable != nullptr && !variable->dimensions.empty())
        fail(syntax.location, quoted(syntax.name) + " is an array, and not one ." + std::string(spelling(wanted)));
    if (variable != nullptr) return;
    gate_handle(syntax, samples && independent ? "a sampler in a register" : "a handle in a register");
}

/// Modules with addresses of 32 bits too have handles of 64.
void BodyBinder::check_handle_register(const OperandSyntax& syntax, const Symbol& symbol) {
    const ScalarType type = symbol.type != ScalarType::none ? symbol.type : body_.registers[symbol.index].type;
    if (bit_size(type) != 64 || is_float(type))
        fail(syntax.location, "register " + quoted(syntax.name) + " is a ." + std::string(spelling(type)) +
                                  " and can't hold a handle: integers of 64 bits can");
}

void BodyBinder::gate_handle(const OperandSyntax& syntax, std::string_view what) {
    const std::string broken = broken_directive(what, context_.module.version, context_.module.target);
    if (!broken.empty()) fail(syntax.location, broken);
}

} // namespace ptarmigan::ptx
