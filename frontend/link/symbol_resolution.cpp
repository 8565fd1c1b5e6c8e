// SPDX-License-Identifier: Apache-2.0
#include "frontend/link/symbol_resolution.h"

#include "frontend/link/missing_order.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace ptarmigan::ptx {

namespace {

constexpr std::uint64_t max_constant_bytes = 0x10000;

/// A name without a definition, in nvlink's order: by the unit that misses it first, functions before variables, those
/// as they are declared there, functions as missing_order.h says.
struct Undefined {
    std::size_t unit = 0;
    bool is_variable = false;
    std::uint32_t index = 0;
    const std::string* name = nullptr;
    bool operator<(const Undefined& other) const {
        return std::tie(unit, is_variable, index) < std::tie(other.unit, other.is_variable, other.index);
    }
};

class Resolution {
public:
    Resolution(LinkUnits& units, SymbolTable& symbols, const std::function<bool(std::string_view)>& is_provided)
        : units_(units), symbols_(symbols), is_provided_(is_provided) {}

    std::vector<std::string> run() {
        choose_definitions();
        report_undefined();
        if (errors_.empty()) keep_own_symbols();
        if (errors_.empty()) check_constants();
        return std::move(errors_);
    }

private:
    void error(std::string text) { errors_.push_back(std::move(text)); }

    // --- decisions
    void choose_definitions() {
        for (const std::string* name : symbols_.names()) {
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
            undefined_.push_back({number_of(*symbol.first.unit), true, symbol.first.index, &name});
            return {};
        }
        if (is_provided_(name)) return symbol.first;
        for (std::size_t number = 0; number < units_.size(); ++number) {
            if (!is_referenced(*units_[number], name)) continue;
            const auto id = units_[number]->module().find_function(name);
            undefined_.push_back({number, false, id.value_or(0), &name});
            break;
        }
        return {};
    }

    std::size_t number_of(const LinkUnit& unit) const {
        const auto place =
            std::find_if(units_.begin(), units_.end(), [&](const auto& other) { return other.get() == &unit; });
        return static_cast<std::size_t>(place - units_.begin());
    }

    void report_undefined() {
        std::sort(undefined_.begin(), undefined_.end());
        const auto is_of = [](const Undefined& u, std::size_t unit) { return u.unit == unit && !u.is_variable; };
        for (std::size_t first = 0, last = 0; first < undefined_.size(); first = std::max(last, first + 1)) {
            std::vector<FunctionId> missing;
            for (last = first; last < undefined_.size() && is_of(undefined_[last], undefined_[first].unit); ++last)
                missing.push_back(undefined_[last].index);
            if (missing.size() < 2) continue;
            const std::vector<FunctionId> order = missing_order(*units_[undefined_[first].unit], missing);
            for (std::size_t i = first; i < last; ++i) {
                const auto place = std::find(order.begin(), order.end(), undefined_[i].index);
                undefined_[i].index = static_cast<std::uint32_t>(place - order.begin());
            }
        }
        std::sort(undefined_.begin(), undefined_.end());
        for (const Undefined& u : undefined_)
            error("Undefined reference to " + quoted(*u.name) + " in " + quoted(units_[u.unit]->name()));
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
                if (module.variables[id].linkage != Linkage::internal || unit.context.is_static(id)) continue;
                unit.kept_variables.insert(id);
                own_name(unit, number, std::string(module.variables[id].name));
            }
            for (FunctionId id = 0; id < module.functions.size(); ++id) {
                const Function& f = module.functions[id];
                if (f.linkage != Linkage::internal || (f.is_declaration && f.alias_of.empty())) continue;
                unit.kept_functions.insert(id);
                own_name(unit, number, std::string(f.name));
            }
        }
    }

    void own_name(LinkUnit& unit, std::size_t number, const std::string& name) {
        if (!symbols_.contains(name) && own_names_.insert(name).second) return;
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
        auto occurs = [this](const auto& unit) { return unit->source.text().find(marker_) != std::string_view::npos; };
        if (marker_.empty())
            for (marker_ = "$unit"; std::any_of(units_.begin(), units_.end(), occurs);) marker_ += "_";
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
        for (std::uint64_t rest = bytes; rest != 0; rest /= 16) text.insert(0, 1, digits[rest % 16]);
        error("File uses too much global constant data (0x" + text + " bytes, 0x10000 max)");
    }

    LinkUnits& units_;
    SymbolTable& symbols_;
    const std::function<bool(std::string_view)>& is_provided_;
    std::vector<Undefined> undefined_;
    std::unordered_set<std::string> own_names_;
    std::string marker_;
    std::vector<std::string> errors_;
};

} // namespace

std::vector<std::string> resolve_symbols(LinkUnits& units, SymbolTable& symbols,
                                         const std::function<bool(std::string_view)>& is_provided) {
    return Resolution(units, symbols, is_provided).run();
}

} // namespace ptarmigan::ptx
