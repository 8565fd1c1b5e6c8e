// SPDX-License-Identifier: Apache-2.0
// .global and .const variables that bodies declare. They are there when the module is loaded, long before a body is
// bound, so they are looked for when it is: the few bodies that may have any are read for their declarations.
#pragma once

#include "frontend/bind/module_binder.h"

namespace ptarmigan::ptx {

bool is_static_variable(const VariableSyntax& syntax);

/// Appends the variables that the function's body, which ends at offset `end`, declares to Module::variables: to later
/// stages they are variables of module scope that no text can name. What is wrong with them is said when the body is
/// bound.
void bind_static_variables(ModuleContext& context, FunctionId function, std::size_t end, const SourceBuffer& source);

/// Gives them names that nothing else in the module has.
void name_static_variables(ModuleContext& context);

} // namespace ptarmigan::ptx
