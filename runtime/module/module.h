// SPDX-License-Identifier: Apache-2.0
// A module in a context: a source's variables placed and initialised in device memory, and its
// functions.
#pragma once

#include "runtime/memory/memory.h"
#include "runtime/module/module_source.h"
#include "runtime/texture/texture_reference.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace ptarmigan::runtime {

class Context;
class Module;

/// A kernel in a module: CUfunction. Lives as long as its module.
class Function {
public:
    Function(Module& module, Kernel& kernel) : module_(module), kernel_(kernel) {}
    Module& module() const { return module_; }
    Kernel& kernel() const { return kernel_; }

    /// What cuFuncIsLoaded tells of a module that is loaded lazily: whether the program has got, loaded or launched the
    /// function, asked for its occupancy or parameters, or set an attribute or a preference of it; as recorded in
    /// tests/recordings/module_functions_h100.txt. Thread-safe.
    bool is_used() const { return used_.load(std::memory_order_relaxed); }
    void mark_used() { used_.store(true, std::memory_order_relaxed); }

private:
    Module& module_;
    Kernel& kernel_;
    std::atomic<bool> used_{false};
};

/// Thread-safe; constant after create() but for what references are bound to. Found in HandleTable<Module>, its
/// functions in HandleTable<Function>.
class Module : public std::enable_shared_from_this<Module> {
public:
    /// Places and initialises the variables. The context may be the primary one before it was
    /// retained. `sibling`: a module of the same source in another context, whose managed variables are this one's,
    /// too.
    static Status create(Context& context, std::shared_ptr<ModuleSource> source, std::shared_ptr<Module>& module,
                         std::shared_ptr<Module> sibling = nullptr);
    /// cuModuleUnload: waits for the context's work, then frees the variables; while the process exits it does not
    /// wait, and leaves them where work is left. invalid_handle if it is no module.
    static Status unload(const void* handle);
    ~Module();

    Context& context() const { return context_; }
    ModuleSource& source() const { return *source_; }
    const std::vector<std::shared_ptr<Function>>& functions() const { return functions_; }
    /// Null if there is none. The same pointer at each call.
    std::shared_ptr<Function> find_function(std::string_view name) const;
    /// The function of `kernel`, which is of the PTX beside this module's machine code: with this module's variables
    /// where both have them. Made at its first use.
    Status function_beside(Kernel& kernel, std::shared_ptr<Function>& function);
    /// Address and size of a .global or .const variable; not_found otherwise. `only_managed`:
    /// __managed__ ones only.
    Status find_global(std::string_view name, DevicePointer& pointer, std::size_t& size,
                       bool only_managed = false) const;
    /// The .texref or .surfref variable of that name; not_found if there is none.
    Status find_reference(std::string_view name, TextureReference::Kind kind,
                          std::shared_ptr<TextureReference>& reference) const;
    /// Before a launch: gives references that were changed their new objects, when the context's earlier work is done.
    Status bind_references();
    /// Generic addresses by VariableId (0 for spaces that have none), for LaunchContext::variables.
    const std::uint64_t* variables() const { return addresses_.data(); }
    /// Keeps the module, and the one that owns it where it is of the PTX beside that one's machine code.
    std::shared_ptr<Module> keep();

private:
    Module(Context& context, std::shared_ptr<ModuleSource> source) : context_(context), source_(std::move(source)) {}
    Status place_variables();
    /// Where a variable of `owner_` is this one's, its address there; else 0.
    std::uint64_t lent_address(std::size_t variable) const;
    void initialise_variables();
    Status bind(std::size_t reference);

    struct Reference {
        std::size_t variable = 0;
        std::shared_ptr<TextureReference> state;
        std::uint64_t object = 0; ///< in TextureTable; 0: none
    };
    Context& context_;
    std::shared_ptr<ModuleSource> source_;
    std::shared_ptr<Module> sibling_;
    Module* owner_ = nullptr; ///< of the PTX beside the machine code of that module, which lends variables
    std::vector<std::uint64_t> addresses_;
    std::vector<Reference> references_;
    std::mutex bind_mutex_;                            ///< guards Reference::object
    std::vector<std::shared_ptr<Function>> functions_; ///< by Kernel::index()
    std::mutex beside_mutex_;                          ///< guards the next
    std::shared_ptr<Module> beside_;                   ///< its `owner_` is this one; gone before what it refers to
};

/// The value of a function's address in PTX: generated code calls through it by index.
constexpr std::uint64_t function_address(ptx::FunctionId function) {
    return (std::uint64_t{function} + 1) * 16;
}

} // namespace ptarmigan::runtime
