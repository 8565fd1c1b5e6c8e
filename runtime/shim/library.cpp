// SPDX-License-Identifier: Apache-2.0
#include "runtime/shim/library.h"

#include "runtime/base/env.h"
#include "runtime/base/handle_table.h"
#include "runtime/base/log.h"
#include "runtime/base/repeated_error.h"
#include "runtime/context/context.h"
#include "runtime/device/device.h"
#include "runtime/module/fatbin.h"
#include "runtime/module/image_options.h"
#include "runtime/module/link_image.h"
#include "runtime/shim/machine_code_advice.h"

#include <dlfcn.h>

namespace ptarmigan::shim {
namespace {

using runtime::HandleTable;

/// File that an image lies in, for messages: the program or shared library, or nothing for heap
/// memory.
std::string image_owner(const void* image) {
    Dl_info info{};
    if (dladdr(image, &info) && info.dli_fname) return info.dli_fname;
    return {};
}

} // namespace

bool loads_eagerly() {
    return runtime::env_text(runtime::Env::module_loading) == "EAGER";
}

Status load_source(const void* image, std::size_t size, bool wants_log, std::shared_ptr<runtime::ModuleSource>& source,
                   std::string& log) {
    const runtime::ImageOptions options = runtime::image_options_of_loads();
    std::string owner = image_owner(image);
    runtime::ImagePtx ptx = runtime::read_image(image, size, options);
    if (ptx.result != runtime::ImageResult::ok) {
        if (ptx.result == runtime::ImageResult::no_binary_for_device) {
            ptx.advice = machine_code_advice(owner, loaded_objects(), ptx.advice);
            if (!options.lifts) ptx.advice += "; PTARMIGAN_MACHINE_CODE=1 tries machine code of sm_75 to sm_121";
        }
        log = (owner.empty() ? std::string() : owner + ": ") + describe_failure(ptx);
        runtime::set_repeated_error_detail(log); // NCCL asks for 20 such images
        return Status{runtime::image_result_code(ptx.result)};
    }
    if (!runtime::link_image(ptx, log)) {
        log = (owner.empty() ? std::string() : owner + ": ") + log;
        runtime::set_error_detail(log);
        return Status::invalid_image;
    }
    // nvcc's own PTX in fat binaries is right, and may be huge: its bodies are bound at first use.
    // Text that a program made is checked whole, because the program expects load errors and a log
    // from the driver; a long one only for who asks for them.
    using runtime::BodyCheck;
    BodyCheck check = BodyCheck::at_first_use;
    if (runtime::image_kind(image, size) == runtime::ImageKind::ptx_text)
        check = wants_log || loads_eagerly() ? BodyCheck::at_load : BodyCheck::at_load_or_got;
    std::string name = owner.empty() ? "<ptx>" : owner;
    if (ptx.is_newer)
        runtime::log(runtime::LogLevel::info, name + ": has machine code for this device but no PTX: that for sm_" +
                                                  std::to_string(ptx.architecture) + " is taken");
    const bool is_substitute = ptx.is_newer || ptx.machine_code;
    const Status status = runtime::ModuleSource::load(
        std::move(ptx.text), std::move(name), source, log, check,
        is_substitute ? runtime::TextUse::substitute : runtime::TextUse::program, std::move(ptx.machine_code));
    if (status == Status::success) source->keep_ptx_beside(std::move(ptx.ptx_beside));
    return status;
}

LibraryKernel::LibraryKernel(std::weak_ptr<Library> library, std::shared_ptr<runtime::ModuleSource> source,
                             runtime::Kernel& kernel)
    : library_(std::move(library)), source_(std::move(source)), kernel_(kernel) {}

Status LibraryKernel::function(runtime::Context& context, std::shared_ptr<runtime::Function>& function) {
    std::shared_ptr<Library> library = library_.lock();
    if (!library) return Status::invalid_handle;
    std::shared_ptr<runtime::Module> module;
    Status status = library->module(context, module);
    if (status != Status::success) return status;
    function = module->find_function(kernel_.name());
    if (!function) return Status::not_found;
    function->mark_used();
    return Status::success;
}

std::shared_ptr<Library> Library::create(const void* image, bool preserved, bool wants_log) {
    auto library = std::make_shared<Library>();
    library->image_ = image;
    library->wants_log_ = wants_log;
    HandleTable<Library>::get().add(library);
    if (!preserved) {
        std::lock_guard lock(library->mutex_);
        (void)library->load_locked();
    }
    return library;
}

Status Library::unload(const void* handle) {
    std::shared_ptr<Library> library = HandleTable<Library>::get().remove(handle);
    if (!library) return Status::invalid_handle;
    std::lock_guard lock(library->mutex_);
    for (auto& kernel : library->kernels_) HandleTable<LibraryKernel>::get().remove(kernel.get());
    for (auto& [context, module] : library->modules_)
        (void)runtime::Module::unload(module.get()); // gone already with its context: nothing to do
    library->modules_.clear();
    return Status::success;
}

Status Library::load_locked() {
    if (loaded_) return status_;
    loaded_ = true;
    status_ = load_source(image_, SIZE_MAX, wants_log_, source_, log_);
    if (status_ == Status::success) {
        for (auto& kernel : source_->kernels()) {
            kernels_.push_back(std::make_shared<LibraryKernel>(weak_from_this(), source_, *kernel));
            HandleTable<LibraryKernel>::get().add(kernels_.back());
        }
    }
    return status_;
}

Status Library::source(std::shared_ptr<runtime::ModuleSource>& source, std::string* log) {
    std::lock_guard lock(mutex_);
    Status status = load_locked();
    source = source_;
    if (log) *log = log_;
    return status;
}

Status Library::module(runtime::Context& context, std::shared_ptr<runtime::Module>& module) {
    std::lock_guard lock(mutex_);
    if (Status status = load_locked(); status != Status::success) return status;
    std::shared_ptr<runtime::Module>& entry = modules_[&context];
    // A reset or destroyed context takes its modules with it; holding the old one keeps its address
    // from being reused.
    if (!entry || !HandleTable<runtime::Module>::get().find(entry.get())) {
        std::shared_ptr<runtime::Module> fresh, sibling;
        for (const auto& [its_context, other] : modules_)
            if (other && HandleTable<runtime::Module>::get().find(other.get())) sibling = other;
        const Status status = runtime::Module::create(context, source_, fresh, std::move(sibling));
        if (status != Status::success) return status;
        entry = std::move(fresh);
    }
    module = entry;
    return Status::success;
}

Status Library::kernel(std::string_view name, std::shared_ptr<LibraryKernel>& kernel) {
    std::lock_guard lock(mutex_);
    if (Status status = load_locked(); status != Status::success) return status;
    const runtime::Kernel* found = source_ ? source_->find_kernel(name) : nullptr;
    if (!found) return Status::not_found;
    kernel = kernels_[found->index()];
    return Status::success;
}

Status Library::kernels(std::vector<std::shared_ptr<LibraryKernel>>& kernels) {
    std::lock_guard lock(mutex_);
    Status status = load_locked();
    kernels = kernels_;
    return status;
}

} // namespace ptarmigan::shim
