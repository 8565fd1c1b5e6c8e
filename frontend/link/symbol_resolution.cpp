// SPDX-License-Identifier: Apache-2.0
// A mention is a declaration or definition of a name that other units may see. Mentions are merged
// in the order of the units, variables before functions; the first one is what later ones must fit.
#include "frontend/link/symbol_resolution.h"

#include <algorithm>
#include <unordered_map>

namespace ptarmigan::ptx {

namespace {

constexpr std::uint64_t max_constant_bytes = 0x10000;

enum class Strength : std::uint8_t { none, common, weak, strong };

struct Mention {
    LinkUnit* unit = nullptr;
    bool is_function = false;
    std::uint32_t index = 0;
    Strength strength = Strength::none;

    Variable& variable() const { return unit->module().variables[index]; }
    Function& function() const { return unit->module().functions[index]; }
};

/// What all units say of one name.
struct GlobalSymbol {
    Mention first;
    Mention definition; ///< strength none: no definition so far
    Mention sized;      ///< of variables: the first mention with a size
    std::uint32_t alignment = 1;
};

std::string quoted(std::string_view name) {
    return "'" + std::string(name) + "'";
}

std::uint64_t parameter_bytes(const Function& entry) {
    return parameter_layout(entry).size;
}

/// Integers of a size are all alike to nvlink, and alignments are not compared; floats and arrays
/// are types of their own. Registers and .param variables of a type are alike.
bool same_parameter(const Variable& a, const Variable& b) {
    return a.size == b.size && a.vector_size == b.vector_size &&
           is_float(a.type) == is_float(b.type) && byte_size(a.type) == byte_size(b.type) &&
           a.dimensions.empty() == b.dimensions.empty();
}

bool same_parameters(const std::vector<Variable>& a, const std::vector<Variable>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_parameter);
}

class Resolution {
public:
    Resolution(LinkUnits& units, const std::function<bool(std::string_view)>& is_provided)
        : units_(units), is_provided_(is_provided) {}

    std::vector<std::string> run() {
        for (const auto& unit : units_) collect(*unit);
        if (errors_.empty()) find_undefined();
        if (errors_.empty()) keep_own_symbols();
        if (errors_.empty()) check_constants();
        return std::move(errors_);
    }

private:
    void error(std::string text) { errors_.push_back(std::move(text)); }

    // --- mentions
    void collect(LinkUnit& unit) {
        Module& module = unit.module();
        for (VariableId id = 0; id < module.variables.size(); ++id) {
            const Variable& v = module.variables[id];
            if (v.linkage == Linkage::internal) continue;
            merge(v.name, {&unit, false, id, strength(v.linkage, true)});
        }
        for (FunctionId id = 0; id < module.functions.size(); ++id) {
            const Function& f = module.functions[id];
            const bool defined = !f.is_declaration || !f.alias_of.empty();
            if (!f.alias_of.empty()) check_alias(unit, f);
            if (f.linkage == Linkage::internal && defined) continue;
            merge(f.name, {&unit, true, id, strength(f.linkage, defined)});
        }
    }

    /// Calls from other units see the alias, the body is that of the other function.
    void check_alias(const LinkUnit& unit, const Function& alias) {
        const auto id = unit.module().find_function(alias.alias_of);
        if (!id) return; // the binder has reported it
        const Function& aliasee = unit.module().functions[*id];
        if (!same_parameters(alias.returns, aliasee.returns) ||
            !same_parameters(alias.parameters, aliasee.parameters))
            error("Mismatch in prototype of alias " + quoted(alias.name) + " and aliasee " +
                  quoted(aliasee.name) + " in " + quoted(unit.name()));
    }

    static Strength strength(Linkage linkage, bool defined) {
        if (!defined || linkage == Linkage::external) return Strength::none;
        if (linkage == Linkage::weak) return Strength::weak;
        return linkage == Linkage::common ? Strength::common : Strength::strong;
    }

    void merge(const std::string& name, const Mention& mention) {
        const auto [place, is_new] = symbols_.try_emplace(name);
        GlobalSymbol& symbol = place->second;
        if (is_new) {
            symbol.first = mention;
            order_.push_back(&place->first);
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

    void mismatch(const char* what, const std::string& name, const Mention& mention,
                  const Mention& first) {
        error(std::string(what) + " doesn't match for " + quoted(name) + " in " +
              quoted(mention.unit->name()) + ", first specified in " + quoted(first.unit->name()));
    }

    void compare_variables(const std::string& name, const GlobalSymbol& symbol,
                           const Mention& mention) {
        const Variable& first = symbol.first.variable();
        const Variable& v = mention.variable();
        if (v.space != first.space) mismatch("Memory space", name, mention, symbol.first);
        if (v.managed != first.managed) mismatch("Managed attribute", name, mention, symbol.first);
        if (v.unsized || symbol.sized.unit == nullptr) return;
        const Variable& sized = symbol.sized.variable();
        const bool both_common = v.linkage == Linkage::common && sized.linkage == Linkage::common;
        if (v.size != sized.size && !both_common) mismatch("Size", name, mention, symbol.sized);
    }

    void compare_functions(const std::string& name, const GlobalSymbol& symbol,
                           const Mention& mention) {
        const Function& first = symbol.first.function();
        const Function& f = mention.function();
        if (f.is_entry && first.is_entry) {
            if (parameter_bytes(f) != parameter_bytes(first))
                error("Duplicate weak parameter bank for " + quoted(name) +
                      " is not the same size");
            return;
        }
        if (f.is_entry == first.is_entry && same_parameters(f.returns, first.returns) &&
            same_parameters(f.parameters, first.parameters))
            return;
        const bool defined_before = symbol.definition.unit != nullptr;
        const Mention& definer = defined_before                       ? symbol.definition
                                 : mention.strength != Strength::none ? mention
                                                                      : symbol.first;
        error("Prototype doesn't match for " + quoted(name) + " in " +
              quoted(mention.unit->name()) + ", first defined in " + quoted(definer.unit->name()));
    }

    void define(const std::string& name, GlobalSymbol& symbol, const Mention& mention) {
        if (mention.strength == Strength::none) return;
        Mention& definition = symbol.definition;
        if (mention.strength == Strength::strong && definition.strength == Strength::strong)
            return error("Multiple definition of " + quoted(name) + " in " +
                         quoted(mention.unit->name()) + ", first defined in " +
                         quoted(definition.unit->name()));
        const bool larger_common = mention.strength == Strength::common &&
                                   definition.strength == Strength::common &&
                                   mention.variable().size > definition.variable().size;
        if (mention.strength > definition.strength || larger_common) definition = mention;
    }

    // --- decisions
    void find_undefined() {
        for (const std::string* name : order_) {
            GlobalSymbol& symbol = symbols_.at(*name);
            Mention& chosen = symbol.definition;
            if (chosen.strength == Strength::none) chosen = undefined(*name, symbol);
            if (chosen.unit == nullptr) continue;
            if (chosen.is_function) {
                chosen.unit->kept_functions.insert(chosen.index);
            } else {
                chosen.variable().alignment = symbol.alignment;
                chosen.unit->kept_variables.insert(chosen.index);
            }
        }
    }

    /// What stands for a name that nothing defines: dynamic shared memory, a function of the
    /// runtime, or nothing if no body calls it.
    Mention undefined(const std::string& name, const GlobalSymbol& symbol) {
        if (!symbol.first.is_function) {
            const Variable& v = symbol.first.variable();
            if (v.space == StateSpace::shared && symbol.sized.unit == nullptr) return symbol.first;
            error("Undefined reference to " + quoted(name) + " in " +
                  quoted(symbol.first.unit->name()));
            return {};
        }
        if (is_provided_(name)) return symbol.first;
        for (const auto& unit : units_) {
            if (!is_referenced(*unit, name)) continue;
            error("Undefined reference to " + quoted(name) + " in " + quoted(unit->name()));
            break;
        }
        return {};
    }

    static bool is_referenced(const LinkUnit& unit, const std::string& name) {
        const auto declared = unit.context.names.find(name);
        if (declared == unit.context.names.end()) return false;
        for (const Variable& v : unit.module().variables)
            for (const Relocation& r : v.relocations)
                if (r.is_function && unit.module().functions[r.symbol].name == name) return true;
        return unit.mentions(name);
    }

    /// Symbols without linkage are their unit's own; a name that is taken gets a number.
    void keep_own_symbols() {
        for (std::size_t number = 0; number < units_.size(); ++number) {
            LinkUnit& unit = *units_[number];
            Module& module = unit.module();
            for (VariableId id = 0; id < module.variables.size(); ++id) {
                if (module.variables[id].linkage != Linkage::internal) continue;
                unit.kept_variables.insert(id);
                own_name(unit, number, std::string(module.variables[id].name));
            }
            for (FunctionId id = 0; id < module.functions.size(); ++id) {
                const Function& f = module.functions[id];
                if (f.linkage != Linkage::internal || (f.is_declaration && f.alias_of.empty()))
                    continue;
                unit.kept_functions.insert(id);
                own_name(unit, number, std::string(f.name));
            }
        }
    }

    void own_name(LinkUnit& unit, std::size_t number, const std::string& name) {
        if (symbols_.count(name) == 0 && own_names_.insert(name).second) return;
        try {
            std::string fresh = name + marker() + std::to_string(number);
            rename_symbol(unit, name, std::move(fresh));
        } catch (const RenameConflict&) {
            error("The names of " + quoted(name) + " in " + quoted(unit.name()) +
                  " and of another unit can't be kept apart: rename one of them");
        }
    }

    /// What new names have and no text has: a body could have a variable of a name that is only
    /// new at module scope.
    const std::string& marker() {
        auto occurs = [this](const auto& unit) {
            return unit->source.text().find(marker_) != std::string_view::npos;
        };
        if (marker_.empty())
            for (marker_ = "$unit"; std::any_of(units_.begin(), units_.end(), occurs);)
                marker_ += "_";
        return marker_;
    }

    void check_constants() {
        std::uint64_t bytes = 0;
        for (const auto& unit : units_)
            for (const std::uint32_t id : unit->kept_variables) {
                const Variable& v = unit->module().variables[id];
                if (v.space != StateSpace::constant) continue;
                bytes = (bytes + v.alignment - 1) / v.alignment * v.alignment + v.size;
            }
        if (bytes <= max_constant_bytes) return;
        constexpr char digits[] = "0123456789abcdef";
        std::string text;
        for (std::uint64_t rest = bytes; rest != 0; rest /= 16)
            text.insert(0, 1, digits[rest % 16]);
        error("File uses too much global constant data (0x" + text + " bytes, 0x10000 max)");
    }

    LinkUnits& units_;
    const std::function<bool(std::string_view)>& is_provided_;
    std::unordered_map<std::string, GlobalSymbol> symbols_;
    std::vector<const std::string*> order_; ///< keys of symbols_ by first mention
    std::unordered_set<std::string> own_names_;
    std::string marker_;
    std::vector<std::string> errors_;
};

} // namespace

std::vector<std::string> resolve_symbols(LinkUnits& units,
                                         const std::function<bool(std::string_view)>& is_provided) {
    return Resolution(units, is_provided).run();
}

} // namespace ptarmigan::ptx
