// SPDX-License-Identifier: Apache-2.0
// CUlibrary and CUkernel: a code image that is independent of contexts, read when first used, with
// one module per context that runs its kernels or touches its variables.
#pragma once

#include "runtime/base/status.h"
#include "runtime/module/module.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::shim {

using runtime::Status;
class Library;

/// Reads an image (PTX text, fat binary wrapper or container; SIZE_MAX: size unknown) and parses
/// its PTX. On failure the reason is in `log` in the driver's words, and has been said on stderr. With `wants_log` all
/// of a PTX text is checked, however long it is: who gave a buffer for errors expects them there.
Status load_source(const void* image, std::size_t size, bool wants_log, std::shared_ptr<runtime::ModuleSource>& source,
                   std::string& log);
/// CUDA_MODULE_LOADING=EAGER.
bool loads_eagerly();

/// CUkernel. Found in HandleTable<LibraryKernel> while its library is loaded. Thread-safe.
class LibraryKernel {
public:
    LibraryKernel(std::weak_ptr<Library> library, std::shared_ptr<runtime::ModuleSource> source,
                  runtime::Kernel& kernel);
    runtime::Kernel& kernel() const { return kernel_; }
    std::shared_ptr<Library> library() const { return library_.lock(); }
    /// The kernel as a function of `context`; loads the module there on first use.
    Status function(runtime::Context& context, std::shared_ptr<runtime::Function>& function);

private:
    std::weak_ptr<Library> library_;
    std::shared_ptr<runtime::ModuleSource> source_; ///< keeps kernel_ alive
    runtime::Kernel& kernel_;
};

/// CUlibrary. Found in HandleTable<Library>. Thread-safe.
class Library : public std::enable_shared_from_this<Library> {
public:
    /// `preserved`: the image outlives the library (cudart says so of its fat binaries) and is read
    /// when first needed; otherwise it is read now. Damage is reported by the calls that need the
    /// contents, as the driver does it.
    static std::shared_ptr<Library> create(const void* image, bool preserved, bool wants_log);
    /// Unloads its modules from all contexts. invalid_handle if it is no library.
    static Status unload(const void* handle);

    /// The parsed image, or why there is none. `log`: what the reading said, also on failure.
    Status source(std::shared_ptr<runtime::ModuleSource>& source, std::string* log = nullptr);
    /// The module in `context`, made on first use, and again after the context was reset.
    Status module(runtime::Context& context, std::shared_ptr<runtime::Module>& module);
    /// not_found if there is no kernel of that name.
    Status kernel(std::string_view name, std::shared_ptr<LibraryKernel>& kernel);
    Status kernels(std::vector<std::shared_ptr<LibraryKernel>>& kernels);

private:
    Status load_locked();

    std::mutex mutex_; ///< guards all; the runtime's locks are taken under it
    const void* image_ = nullptr;
    bool wants_log_ = false;
    bool loaded_ = false;
    Status status_ = Status::success;
    std::string log_;
    std::shared_ptr<runtime::ModuleSource> source_;
    std::vector<std::shared_ptr<LibraryKernel>> kernels_; ///< by Kernel::index()
    std::map<const runtime::Context*, std::shared_ptr<runtime::Module>> modules_;
};

} // namespace ptarmigan::shim
