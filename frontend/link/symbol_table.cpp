// SPDX-License-Identifier: Apache-2.0
#include "frontend/link/symbol_table.h"

#include <algorithm>

namespace ptarmigan::ptx {

std::string quoted(std::string_view name) {
    return "'" + std::string(name) + "'";
}

namespace {

std::uint64_t parameter_bytes(const Function& entry) {
    return parameter_layout(entry).size;
}

/// Integers of a size are all alike to nvlink, and alignments are not compared; floats and arrays
/// are types of their own. Registers and .param variables of a type are alike.
bool same_parameter(const Variable& a, const Variable& b) {
    return a.size == b.size && a.vector_size == b.vector_size && is_float(a.type) == is_float(b.type) &&
           byte_size(a.type) == byte_size(b.type) && a.dimensions.empty() == b.dimensions.empty();
}

bool same_parameters(const std::vector<Variable>& a, const std::vector<Variable>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_parameter);
}

Strength strength(Linkage linkage, bool defined) {
    if (!defined || linkage == Linkage::external) return Strength::none;
    if (linkage == Linkage::weak) return Strength::weak;
    return linkage == Linkage::common ? Strength::common : Strength::strong;
}

} // namespace

void SymbolTable::add(LinkUnit& unit) {
    Module& module = unit.module();
    // ptxas hands on what stands last first, functions before variables.
    for (auto id = static_cast<FunctionId>(module.functions.size()); id-- != 0;) {
        const Function& f = module.functions[id];
        const bool defined = !f.is_declaration || !f.alias_of.empty();
        if (f.linkage == Linkage::internal && defined) continue;
        merge(f.name, {&unit, true, id, strength(f.linkage, defined)});
    }
    for (VariableId id = 0; id < module.variables.size(); ++id) {
        const Variable& v = module.variables[id];
        if (v.linkage == Linkage::internal) continue;
        merge(v.name, {&unit, false, id, strength(v.linkage, true)});
    }
}

void SymbolTable::merge(const std::string& name, const Mention& mention) {
    const auto [place, is_new] = symbols_.try_emplace(name);
    GlobalSymbol& symbol = place->second;
    if (is_new) {
        symbol.first = mention;
        names_.push_back(&place->first);
    } else if (symbol.first.is_function != mention.is_function) {
        mismatch("Memory space", name, mention, symbol.first);
    } else if (mention.is_function) {
        compare_functions(name, symbol, mention);
    } else {
        compare_variables(name, symbol, mention);
    }
    if (!mention.is_function) {
        const Variable& v = mention.variable();
        symbol.alignment = std::max(symbol.alignment, v.alignment);
        if (symbol.sized.unit == nullptr && !v.unsized) symbol.sized = mention;
    }
    define(name, symbol, mention);
}

void SymbolTable::mismatch(const char* what, const std::string& name, const Mention& mention, const Mention& first) {
    errors_.push_back(std::string(what) + " doesn't match for " + quoted(name) + " in " + quoted(mention.unit->name()) +
                      ", first specified in " + quoted(first.unit->name()));
}

void SymbolTable::compare_variables(const std::string& name, const GlobalSymbol& symbol, const Mention& mention) {
    const Variable& first = symbol.first.variable();
    const Variable& v = mention.variable();
    if (v.space != first.space) mismatch("Memory space", name, mention, symbol.first);
    if (v.managed != first.managed) mismatch("Managed attribute", name, mention, symbol.first);
    if (v.unsized || symbol.sized.unit == nullptr) return;
    const Variable& sized = symbol.sized.variable();
    const bool both_common = v.linkage == Linkage::common && sized.linkage == Linkage::common;
    if (v.size != sized.size && !both_common) mismatch("Size", name, mention, symbol.sized);
}

void SymbolTable::compare_functions(const std::string& name, const GlobalSymbol& symbol, const Mention& mention) {
    const Function& first = symbol.first.function();
    const Function& f = mention.function();
    if (f.is_entry && first.is_entry) {
        if (parameter_bytes(f) != parameter_bytes(first))
            errors_.push_back("Duplicate weak parameter bank for " + quoted(name) + " is not the same size");
        return;
    }
    if (f.is_entry == first.is_entry && same_parameters(f.returns, first.returns) &&
        same_parameters(f.parameters, first.parameters))
        return;
    const bool defined_before = symbol.definition.unit != nullptr;
    const Mention& definer = defined_before                       ? symbol.definition
                             : mention.strength != Strength::none ? mention
                                                                  : symbol.first;
    errors_.push_back("Prototype doesn't match for " + quoted(name) + " in " + quoted(mention.unit->name()) +
                      ", first defined in " + quoted(definer.unit->name()));
}

void SymbolTable::define(const std::string& name, GlobalSymbol& symbol, const Mention& mention) {
    if (mention.strength == Strength::none) return;
    Mention& definition = symbol.definition;
    if (mention.strength == Strength::strong && definition.strength == Strength::strong)
        return errors_.push_back("Multiple definition of " + quoted(name) + " in " + quoted(mention.unit->name()) +
                                 ", first defined in " + quoted(definition.unit->name()));
    const bool larger_common = mention.strength == Strength::common && definition.strength == Strength::common &&
                               mention.variable().size > definition.variable().size;
    if (mention.strength > definition.strength || larger_common) definition = mention;
}

} // namespace ptarmigan::ptx
