// SPDX-License-Identifier: Apache-2.0
// The stack of current contexts of the calling host thread. All functions concern the calling
// thread only.
#pragma once

#include "runtime/base/status.h"

#include <memory>

namespace ptarmigan::runtime {

class Context;

/// The current context, or null. It may be inactive (primary, not yet retained) or destroyed.
Context* current_context();
std::shared_ptr<Context> current_context_shared();
/// The context that the calling thread's calls work in: Context::root() of the current one. Null: none.
Context* working_context();
/// working_context() if it can be used: else invalid_context (none), or the current one's status().
Status usable_context(Context*& context);
/// Replaces the top of the stack; null pops it (no error on an empty stack).
void set_current_context(std::shared_ptr<Context> context);
void push_current_context(std::shared_ptr<Context> context);
/// Pops the top; null if the stack is empty.
std::shared_ptr<Context> pop_current_context();

} // namespace ptarmigan::runtime
