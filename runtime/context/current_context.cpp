// SPDX-License-Identifier: Apache-2.0
// The calling thread's stack of contexts.
#include "runtime/context/current_context.h"

#include "runtime/base/per_thread.h"
#include "runtime/context/context.h"

#include <vector>

namespace ptarmigan::runtime {
namespace {

std::vector<std::shared_ptr<Context>>& stack() {
    static thread_local std::vector<std::shared_ptr<Context>>* mine = nullptr;
    return per_thread(mine);
}

} // namespace

Context* current_context() {
    return stack().empty() ? nullptr : stack().back().get();
}

std::shared_ptr<Context> current_context_shared() {
    return stack().empty() ? nullptr : stack().back();
}

Context* working_context() {
    Context* const current = current_context();
    return current ? &current->root() : nullptr;
}

Status usable_context(Context*& context) {
    const Context* const current = current_context();
    context = working_context();
    return current ? current->status() : Status::invalid_context;
}

void set_current_context(std::shared_ptr<Context> context) {
    if (!stack().empty()) stack().pop_back();
    if (context) stack().push_back(std::move(context));
}

void push_current_context(std::shared_ptr<Context> context) {
    stack().push_back(std::move(context));
}

std::shared_ptr<Context> pop_current_context() {
    if (stack().empty()) return nullptr;
    std::shared_ptr<Context> top = std::move(stack().back());
    stack().pop_back();
    return top;
}

} // namespace ptarmigan::runtime
