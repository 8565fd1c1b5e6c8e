// SPDX-License-Identifier: Apache-2.0
// Declarations as PTX text: what the printer and the linker write alike.
#pragma once

#include "frontend/ptx/module.h"

#include <string>

namespace ptarmigan::ptx {

/// The lines `.version`, `.target` and `.address_size`.
std::string module_header(const Module& module);
/// `.visible .global .align 8 .f32 name[4]`, without initialiser and `;`.
std::string variable_declaration(const Variable& variable, const std::string& name);
/// The same of a variable of module scope, by its own name, for a text of that PTX version.
std::string module_variable_declaration(Version version, const Variable& variable);
/// ` = {...}`, or nothing if the variable starts as zeros. Symbols are named as in `module`.
std::string variable_initializer(const Module& module, const Variable& variable);
/// `(.param .b32 a, ...)`
std::string parameter_list(const std::vector<Variable>& parameters);
/// `.visible .entry k(...)`. `with_limits`: with what only a definition may say (.maxntid and the
/// like); a declaration takes none but .noreturn.
std::string function_head(const Function& function, bool with_limits);

/// A literal of that type with these bits.
std::string constant_text(std::uint64_t bits, ScalarType type);
/// `+offset`, or nothing for 0.
std::string offset_text(std::uint64_t offset);

} // namespace ptarmigan::ptx
