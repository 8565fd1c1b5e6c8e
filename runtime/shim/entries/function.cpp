// SPDX-License-Identifier: Apache-2.0
// Functions and kernels: attributes, parameters, occupancy.
#include "runtime/launch/occupancy.h"
#include "runtime/shim/convert.h"

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Context;
using runtime::Kernel;

namespace {

/// body(Kernel&) of a call that counts as a use of the function: the driver loads it for them.
template <class Body> Status use(Kernel& kernel, const void* handle, Body&& body) {
    const Status status = body(kernel);
    if (status != Status::success) return status;
    Context* const context = runtime::working_context();
    std::shared_ptr<runtime::Function> function;
    if (context && find_function(handle, *context, function) == Status::success) function->mark_used();
    return status;
}

/// kernel_entry() for such calls.
template <class Body> CUresult using_entry(const void* handle, Body&& body) noexcept {
    return kernel_entry(handle, [&](Kernel& kernel) { return use(kernel, handle, body); });
}

/// using_entry() for calls that need a current context, although any function will do.
template <class Body> CUresult using_context_entry(const void* handle, Body&& body) noexcept {
    return context_entry([&](Context&) {
        std::shared_ptr<void> owner;
        Kernel* kernel = find_kernel(handle, owner);
        return kernel ? use(*kernel, handle, body) : Status::invalid_handle;
    });
}

CUresult get_attribute(int* value, int attribute, const void* handle) {
    return kernel_entry(
        handle, [&](Kernel& kernel) { return value ? kernel.attribute(attribute, *value) : Status::invalid_value; });
}

CUresult set_attribute(const void* handle, int attribute, int value) {
    return using_entry(handle, [&](Kernel& kernel) { return kernel.set_attribute(attribute, value); });
}

/// Cache preferences are hints; only their range is checked.
CUresult set_hint(const void* handle, int config, int last) {
    return using_entry(
        handle, [&](Kernel&) { return config >= 0 && config <= last ? Status::success : Status::invalid_value; });
}

Status parameter_place(Kernel& kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
    if (!offset) return Status::invalid_value;
    std::size_t bytes = 0;
    Status status = kernel.parameter(index, *offset, bytes);
    if (status == Status::success) store(size, bytes);
    return status;
}

CUresult parameter_count(const void* handle, std::size_t* count) {
    return using_entry(handle, [&](Kernel& kernel) {
        if (!count) return Status::invalid_value;
        std::size_t offset = 0, bytes = 0, found = 0;
        while (kernel.parameter(found, offset, bytes) == Status::success) ++found;
        *count = found;
        return Status::success;
    });
}

CUresult get_name(const char** name, const void* handle) {
    if (!handle) return static_cast<CUresult>(Status::invalid_value);
    return kernel_entry(handle, [&](Kernel& kernel) {
        if (!name) return Status::invalid_value;
        *name = kernel.name().c_str();
        return Status::success;
    });
}

CUresult blocks_per_multiprocessor(int* blocks, const void* handle, int block_size, std::size_t dynamic_shared) {
    return using_context_entry(handle, [&](Kernel& kernel) {
        return blocks ? runtime::occupancy_blocks(kernel, block_size, dynamic_shared, *blocks) : Status::invalid_value;
    });
}

CUresult potential_block_size(int* min_grid, int* block_size, const void* handle, CUoccupancyB2DSize shared_of,
                              std::size_t dynamic_shared, int limit) {
    return using_context_entry(handle, [&](Kernel& kernel) {
        if (!min_grid || !block_size) return Status::invalid_value;
        return runtime::occupancy_block_size(kernel, shared_of, dynamic_shared, limit, *min_grid, *block_size);
    });
}

std::array<std::uint32_t, 3> cluster_of(const CUlaunchConfig& config) {
    for (unsigned i = 0; config.attrs && i < config.numAttrs; ++i)
        if (config.attrs[i].id == launch_cluster_dimension) {
            auto& size = config.attrs[i].value.clusterDim;
            return {size.x, size.y, size.z};
        }
    return {1, 1, 1};
}

bool valid_device(CUdevice device) {
    return device >= 0 && device < runtime::Device::count();
}

} // namespace

PTM_API(cuFuncGetAttribute, int* value, int attribute, CUfunction function) {
    PTM_REQUIRE(value);
    if (find_handle<LibraryKernel>(function)) // which other calls take
        return entry([] { return Status::invalid_handle; });
    return get_attribute(value, attribute, function);
}
PTM_API(cuFuncSetAttribute, CUfunction function, int attribute, int value) {
    return set_attribute(function, attribute, value);
}
PTM_API(cuFuncSetCacheConfig, CUfunction function, int config) {
    return set_hint(function, config, 3);
}
PTM_API(cuFuncSetSharedMemConfig, CUfunction function, int config) {
    return set_hint(function, config, 2);
}
PTM_API(cuFuncGetName, const char** name, CUfunction function) {
    return get_name(name, function);
}
PTM_API(cuFuncGetParamInfo, CUfunction function, std::size_t index, std::size_t* offset, std::size_t* size) {
    PTM_REQUIRE(offset);
    return using_entry(function, [&](Kernel& kernel) { return parameter_place(kernel, index, offset, size); });
}
PTM_API(cuFuncGetParamCount, CUfunction function, std::size_t* count) {
    return parameter_count(function, count);
}
PTM_API(cuFuncGetModule, CUmodule* module, CUfunction handle) {
    if (!handle) return static_cast<CUresult>(Status::invalid_value);
    return object_entry<runtime::Function>(handle, [&](runtime::Function& function) { // not of a CUkernel
        if (!module) return Status::invalid_value;
        *module = reinterpret_cast<CUmodule>(&function.module());
        return Status::success;
    });
}
PTM_API(cuFuncIsLoaded, int* state, CUfunction function) {
    PTM_REQUIRE(state);
    return entry([&] {
        const auto found = find_handle<runtime::Function>(function); // not of a CUkernel
        if (!found) return Status::invalid_handle;
        if (!state) return Status::invalid_value;
        *state = loads_eagerly() || found->is_used();
        return Status::success;
    });
}
PTM_API(cuFuncLoad, CUfunction function) {
    return entry([&] {
        const auto found = find_handle<runtime::Function>(function); // not of a CUkernel
        if (!found) return Status::invalid_handle;
        // Errors that were left for the first use are this call's.
        const runtime::KernelFacts* facts = nullptr;
        const Status status = found->kernel().facts(facts);
        if (status == Status::success) found->mark_used();
        return status;
    });
}

PTM_API(cuKernelGetFunction, CUfunction* function, CUkernel handle) {
    PTM_REQUIRE(function);
    return context_entry([&](Context& context) {
        auto kernel = find_handle<LibraryKernel>(handle);
        if (!kernel) return Status::invalid_handle;
        if (!function) return Status::invalid_value;
        std::shared_ptr<runtime::Function> found;
        Status status = kernel->function(context, found);
        if (status == Status::success) *function = to_handle<CUfunction>(found);
        return status;
    });
}
PTM_API(cuKernelGetLibrary, CUlibrary* library, CUkernel handle) {
    PTM_REQUIRE(library);
    return entry([&] {
        auto kernel = find_handle<LibraryKernel>(handle);
        auto owner = kernel ? kernel->library() : nullptr;
        if (!owner) return Status::invalid_handle;
        if (!library) return Status::invalid_value;
        *library = to_handle<CUlibrary>(owner);
        return Status::success;
    });
}
// Attributes are the kernel's on all devices, where a GPU's driver keeps them by device.
PTM_API(cuKernelGetAttribute, int* value, int attribute, CUkernel kernel, CUdevice device) {
    if (value && !valid_device(device)) return kernel_entry(kernel, [](auto&) { return Status::invalid_device; });
    return get_attribute(value, attribute, kernel);
}
PTM_API(cuKernelSetAttribute, int attribute, int value, CUkernel kernel, CUdevice device) {
    if (!valid_device(device)) return kernel_entry(kernel, [](auto&) { return Status::invalid_device; });
    return set_attribute(kernel, attribute, value);
}
PTM_API(cuKernelSetCacheConfig, CUkernel kernel, int config, CUdevice) {
    return set_hint(kernel, config, 3);
}
PTM_API(cuKernelGetName, const char** name, CUkernel kernel) {
    return get_name(name, kernel);
}
PTM_API(cuKernelGetParamInfo, CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
    PTM_REQUIRE(offset);
    return using_context_entry(kernel, [&](Kernel& found) { return parameter_place(found, index, offset, size); });
}
PTM_API(cuKernelGetParamCount, CUkernel kernel, std::size_t* count) {
    return parameter_count(kernel, count);
}

PTM_API(cuOccupancyMaxActiveBlocksPerMultiprocessor, int* blocks, CUfunction function, int block_size,
        std::size_t dynamic_shared) {
    PTM_REQUIRE_IN_CONTEXT(blocks);
    return blocks_per_multiprocessor(blocks, function, block_size, dynamic_shared);
}
PTM_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int* blocks, CUfunction function, int block_size,
        std::size_t dynamic_shared, unsigned flags) {
    PTM_REQUIRE_IN_CONTEXT(blocks);
    if (flags > 1) return static_cast<CUresult>(Status::invalid_value);
    return blocks_per_multiprocessor(blocks, function, block_size, dynamic_shared);
}
PTM_API(cuOccupancyMaxPotentialBlockSize, int* min_grid, int* block_size, CUfunction function,
        CUoccupancyB2DSize shared_of, std::size_t dynamic_shared, int limit) {
    PTM_REQUIRE_IN_CONTEXT(min_grid);
    return potential_block_size(min_grid, block_size, function, shared_of, dynamic_shared, limit);
}
PTM_API(cuOccupancyMaxPotentialBlockSizeWithFlags, int* min_grid, int* block_size, CUfunction function,
        CUoccupancyB2DSize shared_of, std::size_t dynamic_shared, int limit, unsigned flags) {
    PTM_REQUIRE_IN_CONTEXT(min_grid);
    if (flags > 1) return static_cast<CUresult>(Status::invalid_value);
    return potential_block_size(min_grid, block_size, function, shared_of, dynamic_shared, limit);
}
PTM_API(cuOccupancyAvailableDynamicSMemPerBlock, std::size_t* bytes, CUfunction function, int blocks, int block_size) {
    PTM_REQUIRE_IN_CONTEXT(bytes);
    return using_context_entry(function, [&](Kernel& kernel) {
        return bytes ? runtime::occupancy_dynamic_shared(kernel, blocks, block_size, *bytes) : Status::invalid_value;
    });
}
PTM_API(cuOccupancyMaxActiveClusters, int* clusters, CUfunction function, const CUlaunchConfig* config) {
    PTM_REQUIRE(clusters);
    const auto answer = [&](Kernel* kernel) {
        if (!clusters || !config) return Status::invalid_value;
        int block_size = static_cast<int>(config->blockDimX * config->blockDimY * config->blockDimZ);
        return runtime::occupancy_clusters(kernel, cluster_of(*config), block_size, config->sharedMemBytes, *clusters);
    };
    // cuBLAS from 13.1 on asks so what the device can do (no kernel; not recorded on a GPU).
    if (!function) return context_entry([&](Context&) { return answer(nullptr); });
    return using_context_entry(function, [&](Kernel& kernel) { return answer(&kernel); });
}
PTM_API(cuOccupancyMaxPotentialClusterSize, int* size, CUfunction function, const CUlaunchConfig* config) {
    PTM_REQUIRE(size);
    return using_context_entry(function, [&](Kernel& kernel) {
        if (!size || !config) return Status::invalid_value;
        *size = kernel.non_portable_cluster() ? 16 : 8;
        return Status::success;
    });
}
