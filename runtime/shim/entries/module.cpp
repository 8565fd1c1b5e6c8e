// SPDX-License-Identifier: Apache-2.0
// Modules and libraries: loading code, finding its functions and variables.
#include "runtime/base/log.h"
#include "runtime/base/read_file.h"
#include "runtime/shim/convert.h"
#include "runtime/shim/jit_options.h"

#include <algorithm>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Context;
using runtime::Module;

namespace {

constexpr unsigned library_option_preserved = 1; ///< CU_LIBRARY_BINARY_IS_PRESERVED

CUresult load_module(CUmodule* handle, const void* image, std::size_t size, unsigned count, const unsigned* options,
                     void** values) {
    return context_entry([&](Context& context) {
        if (!handle || !image) return Status::invalid_value;
        JitOptions jit(count, options, values);
        if (jit.status() != Status::success) return jit.status();
        std::shared_ptr<runtime::ModuleSource> source;
        std::shared_ptr<Module> module;
        std::string log;
        Status status = load_source(image, size, jit.wants_logs(), source, log);
        if (status == Status::success) status = Module::create(context, source, module);
        bool failed = status != Status::success;
        jit.finish(failed ? std::string_view() : log, failed ? log : std::string_view());
        if (!failed) *handle = to_handle<CUmodule>(module);
        return status;
    });
}

/// A whole file; a string's NUL behind it ends PTX text.
CUresult read_named(const char* path, std::string& contents) {
    return fenced([&] { return path ? runtime::read_file(path, contents) : Status::invalid_value; });
}

CUresult load_library(CUlibrary* handle, const void* image, unsigned jit_count, const unsigned* jit_options,
                      void** jit_values, unsigned count, const unsigned* options, void** values) {
    return entry([&] {
        if (!handle || !image || (count && !options)) return Status::invalid_value;
        // cuBLASLt says that it preserves its binaries without any values, so that option needs none.
        const auto needs_value = [](unsigned option) { return option != library_option_preserved; };
        if (count && !values && std::any_of(options, options + count, needs_value)) return Status::invalid_value;
        JitOptions jit(jit_count, jit_options, jit_values);
        if (jit.status() != Status::success) return jit.status();
        bool preserved = false;
        for (unsigned i = 0; i < count; ++i)
            if (options[i] == library_option_preserved) preserved = values && values[i] != nullptr;
        auto library = Library::create(image, preserved && !jit.wants_logs(), jit.wants_logs());
        if (jit.wants_logs()) {
            std::shared_ptr<runtime::ModuleSource> source;
            std::string log;
            bool failed = library->source(source, &log) != Status::success;
            jit.finish(failed ? std::string_view() : log, failed ? log : std::string_view());
        }
        *handle = to_handle<CUlibrary>(library);
        return Status::success; // damage is reported by what needs the contents
    });
}

/// entry() for calls on a library: body(Library&).
template <class Body> CUresult library_entry(CUlibrary handle, Body&& body) {
    return entry([&] {
        auto library = find_handle<Library>(handle);
        return library ? body(*library) : Status::invalid_handle;
    });
}

CUresult module_global(CUdeviceptr* pointer, std::size_t* size, CUmodule handle, const char* name) {
    return object_entry<Module>(handle, [&](Module& module) {
        if (!name || !*name || (!pointer && !size)) return Status::invalid_value;
        runtime::DevicePointer address = 0;
        std::size_t bytes = 0;
        Status status = module.find_global(name, address, bytes);
        if (status == Status::success) {
            store(pointer, address);
            store(size, bytes);
        }
        return status;
    });
}

/// A variable of a library in `context`.
Status library_variable(CUdeviceptr* pointer, std::size_t* size, Library& library, Context& context, const char* name,
                        bool only_managed) {
    if (!name || (!pointer && !size)) return Status::invalid_value;
    std::shared_ptr<Module> module;
    if (Status status = library.module(context, module); status != Status::success) return status;
    runtime::DevicePointer address = 0;
    std::size_t bytes = 0;
    Status status = module->find_global(name, address, bytes, only_managed);
    if (status == Status::success) {
        store(pointer, address);
        store(size, bytes);
    }
    return status;
}

} // namespace

PTM_API(cuModuleLoadData, CUmodule* module, const void* image) {
    return load_module(module, image, SIZE_MAX, 0, nullptr, nullptr);
}
PTM_API(cuModuleLoadDataEx, CUmodule* module, const void* image, unsigned count, unsigned* options, void** values) {
    return load_module(module, image, SIZE_MAX, count, options, values);
}
PTM_API(cuModuleLoadFatBinary, CUmodule* module, const void* image) {
    return load_module(module, image, SIZE_MAX, 0, nullptr, nullptr);
}
PTM_API(cuModuleLoad, CUmodule* module, const char* path) {
    PTM_REQUIRE_IN_CONTEXT(path);
    std::string contents;
    if (const CUresult failed = read_named(path, contents)) return failed;
    return load_module(module, contents.c_str(), contents.size() + 1, 0, nullptr, nullptr);
}
PTM_API(cuModuleUnload, CUmodule module) {
    return object_entry<Module>(module, [&](Module&) { return Module::unload(module); });
}

PTM_API(cuModuleGetLoadingMode, int* mode) {
    return entry([&] {
        if (!mode) return Status::invalid_value;
        *mode = loads_eagerly() ? 1 : 2;
        return Status::success;
    });
}

PTM_API(cuModuleGetFunction, CUfunction* function, CUmodule handle, const char* name) {
    return object_entry<Module>(handle, [&](Module& module) {
        if (!function || !name || !*name) return Status::invalid_value;
        auto found = module.find_function(name);
        if (!found) return Status::not_found;
        if (const Status status = found->kernel().check(); status != Status::success) return status;
        found->mark_used();
        *function = to_handle<CUfunction>(found);
        return Status::success;
    });
}

PTM_API(cuModuleGetFunctionCount, unsigned* count, CUmodule handle) {
    PTM_REQUIRE(count);
    return object_entry<Module>(handle, [&](Module& module) {
        if (!count) return Status::invalid_value;
        *count = static_cast<unsigned>(module.functions().size());
        return Status::success;
    });
}

PTM_API(cuModuleEnumerateFunctions, CUfunction* functions, unsigned count, CUmodule handle) {
    PTM_REQUIRE(functions);
    return object_entry<Module>(handle, [&](Module& module) {
        if (!functions && count) return Status::invalid_value;
        for (unsigned i = 0; i < std::min<std::size_t>(count, module.functions().size()); ++i)
            functions[i] = to_handle<CUfunction>(module.functions()[i]);
        return Status::success;
    });
}

PTM_API(cuModuleGetGlobal, unsigned* pointer, unsigned* size, CUmodule module, const char* name) {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    CUresult result = module_global(&address, &bytes, module, name);
    if (result == 0 && address > 0xffffffffu)
        return static_cast<CUresult>(Status::invalid_value); // 32-bit addresses of CUDA 2: nothing lies there
    if (result == 0) {
        store(pointer, address);
        store(size, bytes);
    }
    return result;
}
PTM_API(cuModuleGetGlobal_v2, CUdeviceptr* pointer, std::size_t* size, CUmodule module, const char* name) {
    return module_global(pointer, size, module, name);
}

PTM_API(cuLibraryLoadData, CUlibrary* library, const void* image, unsigned* jit_options, void** jit_values,
        unsigned jit_count, unsigned* options, void** values, unsigned count) {
    return load_library(library, image, jit_count, jit_options, jit_values, count, options, values);
}

PTM_API(cuLibraryLoadFromFile, CUlibrary* library, const char* path, unsigned* jit_options, void** jit_values,
        unsigned jit_count, unsigned*, void**, unsigned) {
    std::string contents;
    if (const CUresult failed = read_named(path, contents)) return failed;
    return load_library(library, contents.c_str(), jit_count, jit_options, jit_values, 0, nullptr, nullptr);
}

PTM_API(cuLibraryUnload, CUlibrary library) {
    return entry([&] { return Library::unload(library); });
}

PTM_API(cuLibraryGetKernel, CUkernel* kernel, CUlibrary handle, const char* name) {
    PTM_REQUIRE(kernel);
    return library_entry(handle, [&](Library& library) {
        if (!kernel || !name) return Status::invalid_value;
        std::shared_ptr<LibraryKernel> found;
        Status status = library.kernel(name, found);
        if (status == Status::success) status = found->kernel().check();
        if (status == Status::success) *kernel = to_handle<CUkernel>(found);
        return status;
    });
}

PTM_API(cuLibraryGetKernelCount, unsigned* count, CUlibrary handle) {
    PTM_REQUIRE(count);
    return library_entry(handle, [&](Library& library) {
        if (!count) return Status::invalid_value;
        std::vector<std::shared_ptr<LibraryKernel>> kernels;
        (void)library.kernels(kernels); // an unusable image has no kernels, says the driver
        *count = static_cast<unsigned>(kernels.size());
        return Status::success;
    });
}

PTM_API(cuLibraryEnumerateKernels, CUkernel* kernels, unsigned count, CUlibrary handle) {
    PTM_REQUIRE(kernels);
    return library_entry(handle, [&](Library& library) {
        if (!kernels && count) return Status::invalid_value;
        std::vector<std::shared_ptr<LibraryKernel>> all;
        Status status = library.kernels(all);
        for (unsigned i = 0; i < std::min<std::size_t>(count, all.size()); ++i)
            kernels[i] = to_handle<CUkernel>(all[i]);
        return status;
    });
}

PTM_API(cuLibraryGetModule, CUmodule* module, CUlibrary handle) {
    PTM_REQUIRE(module);
    return context_entry([&](Context& context) {
        auto library = find_handle<Library>(handle);
        if (!library) return Status::invalid_handle;
        if (!module) return Status::invalid_value;
        std::shared_ptr<Module> found;
        Status status = library->module(context, found);
        if (status == Status::success) *module = to_handle<CUmodule>(found);
        return status;
    });
}

PTM_API(cuLibraryGetGlobal, CUdeviceptr* pointer, std::size_t* size, CUlibrary handle, const char* name) {
    PTM_REQUIRE(name);
    return context_entry([&](Context& context) {
        auto library = find_handle<Library>(handle);
        if (!library) return Status::invalid_handle;
        return library_variable(pointer, size, *library, context, name, false);
    });
}

PTM_API(cuLibraryGetManaged, CUdeviceptr* pointer, std::size_t* size, CUlibrary handle, const char* name) {
    PTM_REQUIRE(name);
    return library_entry(handle, [&](Library& library) {
        // The runtime library asks before any context exists: managed variables live in the primary
        // one.
        Context* const current = runtime::working_context();
        Context& context = current && current->active() ? *current : *runtime::primary_context();
        return library_variable(pointer, size, library, context, name, true);
    });
}

PTM_API(cuLibraryGetUnifiedFunction, void** function, CUlibrary handle, const char*) {
    PTM_REQUIRE(function);
    return library_entry(handle, [&](Library&) { return function ? Status::not_found : Status::invalid_value; });
}
