// SPDX-License-Identifier: Apache-2.0
// Calls through pointers: what they may reach, and which of them find their code only when they are made (late_call.h).
#pragma once

#include "frontend/ptx/module.h"

#include <vector>

namespace ptarmigan::ptx {
class ModuleLoader;
}

namespace ptarmigan::translator {

/// Functions with a body that the call through a pointer `call`, of `body`, may reach: its target list, or all that
/// have its prototype's parameter sizes.
std::vector<ptx::FunctionId> call_candidates(const ptx::Module& module, const ptx::Body& body,
                                             const ptx::Instruction& call);

/// Whether such a call is made late: too many candidates to make code for before one of them is called, and nothing is
/// handed over, which callers and functions would have to lay out alike. What such functions do is not known to their
/// callers, who take them for able to do everything: steps of one lane, on fibers.
bool is_late_call(const ptx::Module& module, const std::vector<ptx::FunctionId>& candidates);

/// What functions (not kernels) use of shared memory.
struct SharedUsers {
    std::vector<ptx::VariableId> module_variables; ///< that some body names, in order
    std::vector<ptx::FunctionId> functions;        ///< with .shared variables of their own, in order
};
/// Of all functions of the text, for kernels that may call any. Binds them all the first time and keeps none; a text is
/// known again by its contents. Thread-safe as the loader is.
const SharedUsers& shared_users(ptx::ModuleLoader& loader);

} // namespace ptarmigan::translator
