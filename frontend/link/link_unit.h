// SPDX-License-Identifier: Apache-2.0
// One input of the linker: its text and bound declarations. Symbols that only it knows are renamed
// here when another text uses their names.
#pragma once

#include "frontend/bind/module_binder.h"
#include "frontend/source/diagnostic.h"
#include "frontend/source/source_buffer.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace ptarmigan::ptx {

struct LinkUnit {
    LinkUnit(std::string text, std::string name);

    const std::string& name() const { return source.name(); }
    Module& module() { return context.module; }
    const Module& module() const { return context.module; }
    /// `{ ... }` of a defined function, as written.
    std::string_view body(FunctionId function) const;
    /// Whether a body names `symbol`.
    bool mentions(std::string_view symbol) const;

    bool on_demand = false; ///< of a library: used only if it defines what is missed
    SourceBuffer source;
    Diagnostics diagnostics;
    ModuleContext context;
    std::unordered_set<std::uint32_t> kept_variables,
        kept_functions;                                        ///< what the result takes of it
    std::unordered_map<std::string_view, std::string> renamed; ///< keys: views into the text
    std::uint32_t first_file = 0;                              ///< what to add to the file numbers of `.loc`
};

/// A symbol can't be renamed because its name has another meaning in the text's bodies.
struct RenameConflict {
    std::string name;
};

/// Gives the unit's own symbol `name` the name `fresh`. Throws RenameConflict.
void rename_symbol(LinkUnit& unit, std::string_view name, std::string fresh);
/// body() with renamed symbols and `.loc` file numbers of the linked text.
std::string linked_body(const LinkUnit& unit, FunctionId function);

} // namespace ptarmigan::ptx
