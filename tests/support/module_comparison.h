// SPDX-License-Identifier: Apache-2.0
// Whether two modules mean the same: what is printed must parse back to an equal one.
#pragma once

#include "frontend/module_loader.h"

#include <string>

namespace ptarmigan::test {

/// The first difference between two bodies of modules with the same functions and variables; empty
/// if there is none. Numbers of registers may differ, as long as they correspond one to one.
std::string difference(const ptx::Body& a, const ptx::Body& b);
/// Likewise of whole modules. Binds all bodies; throws DiagnosticError if one has errors.
std::string difference(ptx::ModuleLoader& a, ptx::ModuleLoader& b);

/// Prints the module, loads the text, compares, and prints once more: empty, or what went wrong.
/// The module has no errors.
std::string round_trip_fault(ptx::ModuleLoader& loader);

} // namespace ptarmigan::test
