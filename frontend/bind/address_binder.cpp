// SPDX-License-Identifier: Apache-2.0
// Memory operands: the state space of the address, its register or variable.
#include "frontend/bind/body_binder.h"
#include "frontend/bind/register_types.h"

#include <algorithm>

namespace ptarmigan::ptx {

namespace {

/// Forms with two memory operands name a space for each, and HeadMatch::space is only the first.
bool has_one_address(FormId form) {
    const auto patterns = FormTable::get().pattern(form).operands;
    return 1 == std::count_if(patterns.begin(), patterns.end(),
                              [](const OperandPattern& p) { return p.form == OperandPattern::Form::bracket_first; });
}

/// The space that the operand's address is in, none where nothing says so. Copies name two, that of
/// the destination first; their mbarriers are in shared memory.
StateSpace space_of_operand(const OperandPattern& pattern, const HeadMatch& match) {
    const FormPattern& form = FormTable::get().pattern(match.form);
    if (form.info->opcode == "mbarrier") return StateSpace::shared;
    if (has_one_address(match.form)) return match.space;
    if (match.space == StateSpace::generic) return StateSpace::none;
    if (pattern.role == Role::mbar) return StateSpace::shared;
    return &pattern == form.operands.data() ? match.space : match.source_space;
}

/// A tensor map is named where it is, in constant memory or among the parameters.
bool takes_any_window(FormId form) {
    return form_info(form).syntax.find("tensormap") != std::string_view::npos;
}

/// Forms of the copy engine's chapters, and createpolicy, whose addresses ptxas 13.0 takes in 32 bits whatever their
/// space. Its machine code extends them with zeros. Where only shared memory is meant (cp.async.mbarrier.arrive, as the
/// toolkit's cuda::ptx writes it, and st.bulk) and no space is written they are a place in shared memory.
bool takes_narrow_address(FormId form) {
    const std::string_view syntax = form_info(form).syntax;
    for (const std::string_view beginning : {"cp.async.", "cp.reduce.async.", "st.async", "st.bulk", "red.async",
                                             "tensormap.", "createpolicy.", "prefetch{.ss}.tensormap"})
        if (syntax.substr(0, beginning.size()) == beginning) return true;
    return false;
}

/// `[a, c]`: an address that stands with coordinates.
bool has_coordinates(const OperandPattern& pattern, FormId form) {
    const auto patterns = FormTable::get().pattern(form).operands;
    return &pattern != &patterns.back() && (&pattern)[1].form == OperandPattern::Form::bracket_next;
}

} // namespace

/// .global and generic addresses have the module's address size; the other windows fit in 32 bits.
void BodyBinder::require_wide_address(SourceLocation at, StateSpace space, const std::string& subject) {
    if (context_.module.address_size == 64 && (space == StateSpace::global || space == StateSpace::generic))
        fail(at, subject + ", but " + (space == StateSpace::global ? ".global" : "generic") +
                     " addresses have 64 bits (.address_size 64)");
}

/// A variable is accessed in its own space, or generically; the parameters of the function itself
/// are read only.
void BodyBinder::check_space(const OperandSyntax& syntax, const Symbol& symbol, const HeadMatch& match,
                             StateSpace space) {
    const bool in_body = symbol.kind == Symbol::Kind::body_variable;
    const Variable& variable = in_body ? body_.variables[symbol.index] : context_.module.variables[symbol.index];
    if (space == StateSpace::generic && !takes_any_window(match.form) &&
        (variable.space == StateSpace::constant || variable.space == StateSpace::param))
        fail(syntax.location, quoted(syntax.name) + " is in ." + std::string(spelling(variable.space)) +
                                  ": write that behind " + quoted(form_info(match.form).opcode) +
                                  ", or make a generic address of it with cvta");
    if (space == StateSpace::none || space == StateSpace::generic) return;
    if (variable.space != space)
        fail(syntax.location,
             quoted(syntax.name) + " is in ." + std::string(spelling(variable.space)) + ", the instruction accesses ." +
                 std::string(spelling(space)) +
                 (variable.space == StateSpace::param ? ": load the parameter's value first, with ld.param" : ""));
    const Effects effects = form_info(match.form).effects;
    if (in_body && is_own_parameter(symbol.index) && any(effects, Effects::store | Effects::atomic))
        fail(syntax.location, quoted(syntax.name) + " is an input parameter and can't be written");
    if (in_body && is_own_result(symbol.index) && any(effects, Effects::load))
        fail(syntax.location, quoted(syntax.name) + " is this function's result and can't be read");
}

/// `[a].unified` promises a unified address (manual 9.7.9.8).
void BodyBinder::check_unified(const OperandSyntax& bracket, const OperandSyntax& address, const HeadMatch& match) {
    if (bracket.component.empty()) return;
    if (bracket.component != "unified")
        fail(bracket.location, "an address has no component ." + std::string(bracket.component.substr(0, 20)));
    // ptxas takes it wherever another operand stands in front and makes the same machine code of it.
    const std::string_view opcode = form_info(match.form).opcode;
    const bool is_first = &bracket == parser_->instruction.operands.data() || opcode == "st" || opcode == "red";
    const bool is_global =
        match.space == StateSpace::global || match.space == StateSpace::generic || match.space == StateSpace::none;
    if (is_first || !is_global || find(address.name).kind != Symbol::Kind::reg)
        fail(bracket.location,
             ".unified is for a .global or generic address in a register that is not the first operand");
}

void BodyBinder::bind_address(const OperandSyntax& syntax, const OperandPattern& pattern, const HeadMatch& match,
                              Operand& out) {
    out.kind = Operand::Kind::address;
    if (syntax.has_offset && has_coordinates(pattern, match.form))
        fail(syntax.location, "an address with coordinates takes no offset");
    if (syntax.kind == OperandSyntax::Kind::constant) {
        if (!syntax.constant.is_integer()) fail(syntax.location, "an address must be an integer");
        const bool any_space = match.space == StateSpace::none && form_info(match.form).opcode != "prefetchu";
        if (match.space != StateSpace::local && !any_space)
            fail(syntax.location, "only .local memory has constant addresses");
        out.value = syntax.constant.bits;
        return;
    }
    if (syntax.kind != OperandSyntax::Kind::name) fail(syntax.location, "an address is needed here");
    out.value = syntax.has_offset ? syntax.constant.bits : 0;
    const Symbol symbol = find(syntax.name);
    check_handle(syntax, symbol, pattern, match);
    switch (symbol.kind) {
    case Symbol::Kind::reg: {
        OperandSyntax plain = syntax;
        plain.has_offset = false;
        Operand base;
        bind_register(plain, symbol, {}, base);
        const unsigned bits = bit_size(base.type);
        if ((bits == 8 || bits == 16) && !is_float(base.type) && symbol.vector_size == 1 && node_of(syntax) != no_id) {
            const StateSpace space = space_of_operand(pattern, match);
            const bool in_window =
                space == StateSpace::shared || space == StateSpace::local || space == StateSpace::constant;
            throw Preparation{Preparation::Kind::address, node_of(syntax),
                              context_.module.address_size == 64 && !in_window};
        }
        if ((bits != 32 && bits != 64) || is_float(base.type))
            fail(syntax.location, "register " + quoted(syntax.name) + " is a ." + std::string(spelling(base.type)) +
                                      " and can't hold an address: integers of 32 or 64 bits can");
        if (bits == 32 && has_one_address(match.form) && !takes_narrow_address(match.form))
            require_wide_address(syntax.location, match.space,
                                 "register " + quoted(syntax.name) + " has 32 bits (." +
                                     std::string(spelling(base.type)) + ")");
        out.base = Operand::Base::reg;
        out.index = base.index;
        out.type = base.type;
        return;
    }
    case Symbol::Kind::module_variable:
    case Symbol::Kind::body_variable:
        check_space(syntax, symbol, match, space_of_operand(pattern, match));
        out.base = Operand::Base::variable;
        out.scope = symbol.kind == Symbol::Kind::body_variable ? VariableScope::body : VariableScope::module;
        out.index = symbol.index;
        return;
    case Symbol::Kind::none: fail_unknown(syntax.location, syntax.name);
    default: fail(syntax.location, quoted(syntax.name) + " is not an address");
    }
}

} // namespace ptarmigan::ptx
