// SPDX-License-Identifier: Apache-2.0
#include "frontend/module_loader.h"

#include "frontend/bind/body_binder.h"
#include "frontend/bind/module_binder.h"
#include "frontend/ptx/device_library.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace ptarmigan::ptx {

struct ModuleLoader::Impl {
    Impl(std::string text, std::string name, unsigned limit)
        : source(std::move(text), std::move(name)), max_errors(limit), diagnostics(source, limit) {}

    SourceBuffer source;
    unsigned max_errors;
    Diagnostics diagnostics;
    ModuleContext context;
    BindingMemory memory;
    struct BoundBody {
        Body body;
        std::optional<Diagnostics> errors; ///< a body with errors stays unusable
    };
    std::vector<std::unique_ptr<BoundBody>> bodies;
    std::vector<FunctionId> bound; ///< since bodies were last forgotten
    std::vector<bool> reported;    ///< the body's diagnostics are among ours

    const BoundBody& bind_body(FunctionId function) {
        std::unique_ptr<BoundBody>& body = bodies[function];
        if (body) return *body;
        body = std::make_unique<BoundBody>();
        bound.push_back(function);
        Diagnostics own(source,
                        max_errors); // the limit is per body, or the first bad one would silence the others
        const std::uint64_t variables = context.range_variables, bytes = context.initialized_bytes;
        body->body = BodyBinder(context, memory, own).bind(function);
        if (reported[function]) { // bound again: the budget has paid for it
            context.range_variables = variables;
            context.initialized_bytes = bytes;
        }
        if (!reported[function]) diagnostics.append(own);
        if (own.has_errors()) body->errors = std::move(own); // rendered when asked for: that walks the text
        reported[function] = true;
        return *body;
    }
};

namespace {

/// True if the module declares functions of the device library and defines none of them.
bool lacks_device_library(const Module& module) {
    bool declares = false;
    for (const Function& function : module.functions) {
        if (!is_device_library_function(function.name)) continue;
        if (!function.is_declaration || !function.alias_of.empty()) return false;
        declares = true;
    }
    return declares;
}

} // namespace

ModuleLoader::ModuleLoader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ModuleLoader::~ModuleLoader() = default;

std::unique_ptr<ModuleLoader> ModuleLoader::load(std::string text, std::string name, const Options& options) {
    auto impl = std::make_unique<Impl>(std::move(text), std::move(name), options.max_errors);
    impl->context.text = impl->source.text();
    impl->context.module.name = impl->source.name();
    bind_module(impl->context, impl->diagnostics);
    if (!impl->diagnostics.has_errors() && lacks_device_library(impl->context.module))
        return load(std::string(impl->source.text()) + std::string(device_library_text), impl->source.name(), options);
    const std::size_t functions = impl->context.module.functions.size();
    impl->bodies.resize(functions);
    impl->reported.resize(functions);
    const FunctionId unclosed = impl->context.unclosed;
    if (unclosed < functions && !impl->context.module.functions[unclosed].is_declaration) {
        impl->bind_body(unclosed); // says where the braces went wrong
        if (impl->diagnostics.error_count() == 0)
            impl->diagnostics.error(impl->context.module.functions[unclosed].location,
                                    "the body of this function does not end");
    }
    if (options.bind_all_bodies && options.keep_bodies)
        for (FunctionId f = 0; f < functions && !impl->diagnostics.is_hopeless(); ++f)
            if (!impl->context.module.functions[f].is_declaration) impl->bind_body(f);
    impl->diagnostics.sort();
    std::unique_ptr<ModuleLoader> loader(new ModuleLoader(std::move(impl)));
    if (options.bind_all_bodies && !options.keep_bodies) loader->check_bodies();
    return loader;
}

std::unique_ptr<ModuleLoader> ModuleLoader::load(std::string text, std::string name) {
    return load(std::move(text), std::move(name), Options{});
}

bool ModuleLoader::ok() const {
    return !impl_->diagnostics.has_errors();
}
const Diagnostics& ModuleLoader::diagnostics() const {
    return impl_->diagnostics;
}
const Module& ModuleLoader::module() const {
    return impl_->context.module;
}
std::string_view ModuleLoader::text() const {
    return impl_->source.text();
}

void ModuleLoader::check_bodies(const BodyVisitor& visit, const RunOnThreads& run) {
    const std::size_t count = impl_->bodies.size();
    std::atomic<std::size_t> next{0};
    std::mutex mutex; // guards what follows
    std::map<FunctionId, Diagnostics> found;
    std::uint64_t errors = 0;
    unsigned unkept = 0; // errors of bodies that are too far down to be shown
    std::exception_ptr failure;
    const auto check = [&](FunctionId f, BindingMemory& memory) {
        if (impl_->bodies[f]) {
            if (!impl_->bodies[f]->errors && visit) visit(f, impl_->bodies[f]->body);
            return;
        }
        Diagnostics own(impl_->source, impl_->max_errors);
        const Body body = BodyBinder(impl_->context, memory, own).bind(f);
        if (visit && !own.has_errors()) visit(f, body);
        if (own.list().empty() && own.error_count() == 0) return;
        const std::lock_guard lock(mutex);
        errors += own.error_count();
        if (errors >= Diagnostics::max_counted_errors) next = count;
        found.emplace(f, std::move(own));
        if (found.size() <= impl_->max_errors) return;
        unkept += std::prev(found.end())->second.error_count();
        found.erase(std::prev(found.end()));
    };
    const auto work = [&] {
        try {
            BindingMemory memory;
            for (std::size_t f = next++; f < count; f = next++)
                if (!module().functions[f].is_declaration) check(static_cast<FunctionId>(f), memory);
        } catch (...) {
            const std::lock_guard lock(mutex);
            failure = std::current_exception();
            next = count;
        }
    };
    if (run)
        run(work);
    else
        work();
    if (failure) std::rethrow_exception(failure);
    for (const auto& [f, own] : found)
        if (!impl_->reported[f]) impl_->diagnostics.append(own);
    impl_->diagnostics.count_unkept(unkept);
    std::fill(impl_->reported.begin(), impl_->reported.end(), true);
}

const Body& ModuleLoader::body(FunctionId function) {
    if (function >= impl_->bodies.size() || module().functions[function].is_declaration)
        throw DiagnosticError("the function has no body in this module");
    const Impl::BoundBody& bound = impl_->bind_body(function);
    if (bound.errors) throw DiagnosticError(bound.errors->render_all());
    return bound.body;
}

void ModuleLoader::forget_bodies() {
    for (const FunctionId f : impl_->bound)
        if (impl_->bodies[f] && !impl_->bodies[f]->errors) impl_->bodies[f].reset();
    impl_->bound.clear();
}

} // namespace ptarmigan::ptx
