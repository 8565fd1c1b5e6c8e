// SPDX-License-Identifier: Apache-2.0
// What the units of a link say of each name, and where they contradict each other. A unit is
// compared when it is added, as the driver does it.
#pragma once

#include "frontend/link/link_unit.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ptarmigan::ptx {

enum class Strength : std::uint8_t { none, common, weak, strong };

/// A declaration or definition of a name that other units may see.
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

/// Holds pointers to the units.
class SymbolTable {
public:
    using Symbols = std::unordered_map<std::string, GlobalSymbol>;

    /// Merges the unit's mentions; the first mention of a name is what later ones must fit. Takes
    /// time for this unit's names only.
    void add(LinkUnit& unit);
    /// Two strong definitions, or mentions that differ in kind, space, size or parameters: one line
    /// each, in the driver's words.
    const std::vector<std::string>& errors() const { return errors_; }

    bool contains(const std::string& name) const { return symbols_.count(name) != 0; }
    GlobalSymbol& at(const std::string& name) { return symbols_.at(name); }
    /// All names by first mention.
    const std::vector<const std::string*>& names() const { return names_; }

private:
    void merge(const std::string& name, const Mention& mention);
    void compare_variables(const std::string& name, const GlobalSymbol& symbol, const Mention& mention);
    void compare_functions(const std::string& name, const GlobalSymbol& symbol, const Mention& mention);
    void define(const std::string& name, GlobalSymbol& symbol, const Mention& mention);
    void mismatch(const char* what, const std::string& name, const Mention& mention, const Mention& first);

    Symbols symbols_;
    std::vector<const std::string*> names_; ///< keys of symbols_
    std::vector<std::string> errors_;
};

/// 'name', as messages write it.
std::string quoted(std::string_view name);

} // namespace ptarmigan::ptx
