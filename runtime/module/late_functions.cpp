// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/late_functions.h"

#include "runtime/module/kernel_cache.h"
#include "runtime/module/module_source.h"
#include "translator/late_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace ptarmigan::runtime {
namespace {

/// What code that calls late was made of, and what it has called.
struct Caller {
    std::weak_ptr<const LoadedKernel> code;
    std::weak_ptr<ModuleSource> source;
    std::string kernel;
    translator::BlockShape shape;
    translator::CompileOptions options; ///< in the form that worked
    std::map<ptx::FunctionId, std::shared_ptr<const LoadedKernel>> functions;
};

/// Guarded by mutex(), a leaf.
std::unordered_map<const LoadedKernel*, std::shared_ptr<Caller>>& callers() {
    static auto& map = *new std::unordered_map<const LoadedKernel*, std::shared_ptr<Caller>>; // for exit handlers too
    return map;
}
std::mutex& mutex() {
    static auto& mutex = *new std::mutex;
    return mutex;
}

std::atomic<unsigned> being_made{0};

std::string why_unfit(const LoadedKernel& code, const LoadedKernel& function, std::size_t stack) {
    const translator::KernelProperties &of_code = code.properties, &of_function = function.properties;
    if (function.form != code.form || of_function.lane_width != of_code.lane_width || !of_function.uses_fibers ||
        of_function.static_shared != of_code.static_shared)
        return fmt::format("it could only be compiled in another form ({}) than the kernel ({})",
                           describe(function.form), describe(code.form));
    if (function.stack_bytes > stack)
        return fmt::format("it takes {} bytes of the host's stack where {} are left (cudaLimitStackSize makes it more)",
                           function.stack_bytes, stack);
    return {};
}

std::shared_ptr<const LoadedKernel> make(const Caller& caller, const LoadedKernel& code, ptx::FunctionId function,
                                         std::size_t stack, std::string& error) {
    const std::shared_ptr<ModuleSource> source = caller.source.lock();
    if (!source) {
        error = "its module is unloaded";
        return nullptr;
    }
    const std::string& name = source->module().functions.at(function).name;
    std::shared_ptr<const LoadedKernel> made;
    try {
        made = KernelCache::process_cache().get({source->loader(),
                                                 source->loader_mutex(),
                                                 source->text_hash(),
                                                 translator::late_function_name(caller.kernel, name),
                                                 caller.shape,
                                                 caller.options,
                                                 false,
                                                 {},
                                                 {}});
        error = why_unfit(code, *made, stack);
    } catch (const std::exception& failure) {
        error = failure.what();
    }
    if (error.empty()) return made;
    error = fmt::format("kernel {} calls function {}, which can't run: {}", caller.kernel, name, error);
    return nullptr;
}

} // namespace

bool may_call_late(const ptx::Module& module) {
    const auto count = std::count_if(module.functions.begin(), module.functions.end(), [](const ptx::Function& f) {
        return !f.is_entry && !f.is_declaration && f.returns.empty() && f.parameters.empty();
    });
    return static_cast<std::size_t>(count) >= translator::least_late_candidates;
}

void note_late_caller(ModuleSource& source, const std::string& kernel, const translator::BlockShape& shape,
                      const translator::CompileOptions& options, const std::shared_ptr<const LoadedKernel>& code) {
    if (!code || !code->properties.unbounded_stack || !code->properties.uses_fibers) return; // calls nothing late
    auto caller = std::make_shared<Caller>();
    caller->code = code;
    caller->source = source.weak_from_this();
    caller->kernel = kernel;
    caller->shape = shape;
    caller->options = options;
    static_cast<translator::CompileForm&>(caller->options) = code->form;
    const std::lock_guard lock(mutex());
    std::erase_if(callers(), [](const auto& item) { return item.second->code.expired(); });
    std::shared_ptr<Caller>& known = callers()[code.get()];
    if (!known) known = std::move(caller);
}

bool makes_late_functions() {
    return being_made.load(std::memory_order_relaxed) != 0;
}

const LoadedKernel* late_function(const LoadedKernel& code, ptx::FunctionId function, std::size_t stack,
                                  std::string& error) {
    std::shared_ptr<Caller> caller;
    {
        const std::lock_guard lock(mutex());
        const auto found = callers().find(&code);
        if (found == callers().end()) {
            error = "kernel " + code.name + " calls a function late, and nothing is known of its module";
            return nullptr;
        }
        caller = found->second;
        if (const auto made = caller->functions.find(function); made != caller->functions.end())
            return made->second.get();
    }
    being_made.fetch_add(1, std::memory_order_relaxed);
    std::shared_ptr<const LoadedKernel> made = make(*caller, code, function, stack, error);
    being_made.fetch_sub(1, std::memory_order_relaxed);
    if (!made) return nullptr;
    const std::lock_guard lock(mutex());
    return caller->functions.try_emplace(function, std::move(made)).first->second.get();
}

} // namespace ptarmigan::runtime
