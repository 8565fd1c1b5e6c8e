// SPDX-License-Identifier: Apache-2.0
// Primary and user contexts, the current-context stack, limits and peers.
#include "runtime/context/peer_access.h"
#include "runtime/graph/capture.h"
#include "runtime/shim/convert.h"
#include "runtime/shim/export_tables.h"

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Context;
using runtime::Device;
using runtime::PeerAccess;

namespace {

/// entry() for calls about the primary context: body(Context&).
template <class Body> CUresult primary_entry(CUdevice device, Body&& body) {
    return entry([&] {
        if (device < 0 || device >= Device::count()) return Status::invalid_device;
        return body(*runtime::primary_context(device));
    });
}

/// The context of a handle; a null handle means the current one.
Status context_or_current(CUcontext handle, std::shared_ptr<Context>& context) {
    context = handle ? find_handle<Context>(handle) : runtime::current_context_shared();
    return context ? Status::success : Status::invalid_context;
}

CUresult create_context(CUcontext* handle, unsigned flags, CUdevice device) {
    return entry([&] {
        if (!handle) return Status::invalid_value;
        if (device < 0 || device >= Device::count()) return Status::invalid_device;
        std::shared_ptr<Context> context;
        Status status = Context::create(flags, device, context);
        if (status == Status::success) *handle = to_handle<CUcontext>(context);
        return status;
    });
}

/// With parameters for what is not there: affinity needs MPS, CIG a device that draws. The codes are an H100's.
CUresult create_context_with(const CUctxCreateParams& parameters, CUcontext* context, unsigned flags, CUdevice device) {
    if (parameters.cigParams) return static_cast<CUresult>(Status::not_supported);
    if (parameters.numExecAffinityParams) {
        const bool given = parameters.execAffinityParams;
        return static_cast<CUresult>(given ? Status::unsupported_exec_affinity : Status::invalid_value);
    }
    return create_context(context, flags, device);
}

CUresult destroy_context(CUcontext handle) {
    return entry([&] {
        if (!handle) return Status::invalid_value;
        auto context = find_handle<Context>(handle);
        if (!context) return Status::invalid_context;
        if (context->is_primary() || &context->root() != context.get()) return Status::invalid_context;
        clear_context_storage(*context);
        return context->destroy();
    });
}

/// Releases the primary context; what the runtime library keeps in it goes with its last user.
CUresult release_primary(CUdevice device) {
    return primary_entry(device, [&](Context& context) {
        Status status = context.release();
        if (!context.active()) clear_context_storage(context);
        return status;
    });
}

CUresult reset_primary(CUdevice device) {
    return primary_entry(device, [&](Context& context) {
        clear_context_storage(context);
        return context.reset();
    });
}

CUresult set_primary_flags(CUdevice device, unsigned flags) {
    return primary_entry(device, [&](Context& context) { return context.set_primary_flags(flags); });
}

/// body(Context&) of a context that lives.
template <class Body> Status with_peer(CUcontext handle, Body&& body) {
    const auto peer = find_handle<Context>(handle);
    if (!peer) return runtime::was_context(handle) ? Status::context_is_destroyed : Status::invalid_context;
    const Status status = peer->status();
    return status == Status::success ? body(peer->root()) : status;
}

CUresult push_context(CUcontext handle) {
    return entry([&] {
        auto context = find_handle<Context>(handle);
        if (!context) return handle ? Status::invalid_context : Status::invalid_value;
        runtime::push_current_context(context);
        return Status::success;
    });
}

CUresult pop_context(CUcontext* handle) {
    return entry([&] {
        auto context = runtime::pop_current_context();
        if (!context) return Status::invalid_context;
        store(handle, to_handle<CUcontext>(context));
        return Status::success;
    });
}

CUresult synchronize_context(CUcontext handle) {
    return entry([&] {
        std::shared_ptr<Context> context;
        if (Status status = context_or_current(handle, context); status != Status::success) return status;
        if (Status status = context->status(); status != Status::success) return status;
        if (Status status = runtime::forbid_captures(context->root()); status != Status::success) return status;
        return context->root().synchronize();
    });
}

CUresult context_device(CUdevice* device, CUcontext handle) {
    return entry([&] {
        if (!device) return Status::invalid_value;
        std::shared_ptr<Context> context;
        Status status = context_or_current(handle, context);
        if (status == Status::success) *device = context->device();
        return status;
    });
}

} // namespace

PTM_API(cuDevicePrimaryCtxRetain, CUcontext* handle, CUdevice device) {
    return primary_entry(device, [&](Context& context) {
        if (!handle) return Status::invalid_value;
        Status status = context.retain();
        if (status == Status::success) *handle = reinterpret_cast<CUcontext>(&context);
        return status;
    });
}
PTM_API(cuDevicePrimaryCtxRelease, CUdevice device) {
    const CUresult result = release_primary(device); // this version does not tell that it was not retained
    return result == static_cast<CUresult>(Status::invalid_context) ? 0 : result;
}
PTM_API(cuDevicePrimaryCtxRelease_v2, CUdevice device) {
    return release_primary(device);
}
PTM_API(cuDevicePrimaryCtxReset, CUdevice device) {
    return reset_primary(device);
}
PTM_API(cuDevicePrimaryCtxReset_v2, CUdevice device) {
    return reset_primary(device);
}
PTM_API(cuDevicePrimaryCtxSetFlags, CUdevice device, unsigned flags) {
    return set_primary_flags(device, flags);
}
PTM_API(cuDevicePrimaryCtxSetFlags_v2, CUdevice device, unsigned flags) {
    return set_primary_flags(device, flags);
}
PTM_API(cuDevicePrimaryCtxGetState, CUdevice device, unsigned* flags, int* active) {
    return primary_entry(device, [&](Context& context) {
        if (!flags || !active) return Status::invalid_value;
        bool is_active = false;
        context.primary_state(*flags, is_active);
        *active = is_active;
        return Status::success;
    });
}

PTM_API(cuCtxCreate, CUcontext* context, unsigned flags, CUdevice device) {
    return create_context(context, flags, device);
}
PTM_API(cuCtxCreate_v2, CUcontext* context, unsigned flags, CUdevice device) {
    return create_context(context, flags, device);
}
PTM_API(cuCtxCreate_v3, CUcontext* context, CUexecAffinityParam* affinities, int count, unsigned flags,
        CUdevice device) {
    return create_context_with({affinities, count, nullptr}, context, flags, device);
}
PTM_API(cuCtxCreate_v4, CUcontext* context, const CUctxCreateParams* parameters, unsigned flags, CUdevice device) {
    return create_context_with(parameters ? *parameters : CUctxCreateParams{}, context, flags, device);
}
PTM_API(cuCtxDestroy, CUcontext context) {
    return destroy_context(context);
}
PTM_API(cuCtxDestroy_v2, CUcontext context) {
    return destroy_context(context);
}
PTM_API(cuCtxAttach, CUcontext* handle, unsigned flags) {
    return context_entry([&](Context&) {
        if (!handle || flags) return Status::invalid_value;
        const std::shared_ptr<Context> context = runtime::current_context_shared();
        context->attach();
        *handle = to_handle<CUcontext>(context);
        return Status::success;
    });
}
/// Of the current context only, and of the primary one without effect (an H200 says so).
PTM_API(cuCtxDetach, CUcontext handle) {
    const auto context = find_handle<Context>(handle);
    if (!context || context != runtime::current_context_shared()) return entry([] { return Status::invalid_context; });
    if (context->is_primary() || context->detach()) return entry([] { return Status::success; });
    return destroy_context(handle);
}
PTM_API(cuCtxPushCurrent, CUcontext context) {
    return push_context(context);
}
PTM_API(cuCtxPushCurrent_v2, CUcontext context) {
    return push_context(context);
}
PTM_API(cuCtxPopCurrent, CUcontext* context) {
    return pop_context(context);
}
PTM_API(cuCtxPopCurrent_v2, CUcontext* context) {
    return pop_context(context);
}

PTM_API(cuCtxSetCurrent, CUcontext handle) {
    return entry([&] {
        // An inactive primary context is fine: the runtime library makes it current before it
        // retains it.
        auto context = find_handle<Context>(handle);
        if (handle && !context) return Status::invalid_context;
        runtime::set_current_context(context);
        return Status::success;
    });
}

PTM_API(cuCtxGetCurrent, CUcontext* context) {
    return entry([&] {
        if (!context) return Status::invalid_value;
        *context = reinterpret_cast<CUcontext>(runtime::current_context());
        return Status::success;
    });
}

PTM_API(cuCtxGetDevice, CUdevice* device) {
    return context_device(device, nullptr);
}
PTM_API(cuCtxGetDevice_v2, CUdevice* device, CUcontext context) {
    return context_device(device, context);
}
PTM_API(cuCtxSynchronize) {
    return synchronize_context(nullptr);
}
PTM_API(cuCtxSynchronize_v2, CUcontext context) {
    return synchronize_context(context);
}

PTM_API(cuCtxGetFlags, unsigned* flags) {
    PTM_REQUIRE(flags);
    return context_entry([&](Context& context) {
        if (!flags) return Status::invalid_value;
        *flags = context.flags();
        return Status::success;
    });
}
PTM_API(cuCtxSetFlags, unsigned flags) {
    return context_entry([&](Context& context) { return context.set_flags(flags); });
}

PTM_API(cuCtxGetApiVersion, CUcontext handle, unsigned* version) {
    return entry([&] {
        std::shared_ptr<Context> context;
        Status status = context_or_current(handle, context);
        if (status == Status::success && !version) return Status::invalid_value;
        if (status == Status::success) *version = context->api_version();
        return status;
    });
}

PTM_API(cuCtxGetId, CUcontext handle, unsigned long long* id) {
    return entry([&] {
        if (!id) return Status::invalid_value;
        std::shared_ptr<Context> context;
        Status status = context_or_current(handle, context);
        if (status == Status::success) *id = context->id();
        return status;
    });
}

PTM_API(cuCtxGetLimit, std::size_t* value, int limit) {
    return context_entry([&](Context& context) {
        if (!value || limit < 0 || limit > 9) return Status::invalid_value;
        return context.limit(runtime::Limit{limit}, *value);
    });
}
PTM_API(cuCtxSetLimit, int limit, std::size_t value) {
    return context_entry([&](Context& context) {
        if (limit < 0 || limit > 9) return Status::invalid_value;
        return context.set_limit(runtime::Limit{limit}, value);
    });
}

PTM_API(cuCtxGetCacheConfig, int* config) {
    return context_entry([&](Context& context) {
        if (!config) return Status::invalid_value;
        *config = context.cache_config();
        return Status::success;
    });
}
PTM_API(cuCtxSetCacheConfig, int config) {
    return context_entry([&](Context& context) { return context.set_cache_config(config); });
}
PTM_API(cuCtxGetSharedMemConfig, int* config) {
    return context_entry([&](Context& context) {
        if (!config) return Status::invalid_value;
        *config = context.shared_config();
        return Status::success;
    });
}
PTM_API(cuCtxSetSharedMemConfig, int config) {
    return context_entry([&](Context& context) { return context.set_shared_config(config); });
}
PTM_API(cuCtxResetPersistingL2Cache) {
    return context_entry([](Context&) { return Status::success; }); // the CPU's caches manage themselves
}

PTM_API(cuCtxGetStreamPriorityRange, int* least, int* greatest) {
    return context_entry([&](Context&) {
        int low = 0, high = 0;
        Context::stream_priority_range(low, high);
        store(least, low);
        store(greatest, high);
        return Status::success;
    });
}

PTM_API(cuCtxEnablePeerAccess, CUcontext handle, unsigned flags) {
    return context_entry([&](Context& context) {
        if (flags) return Status::invalid_value;
        return with_peer(handle, [&](Context& peer) { return PeerAccess::get().enable(context, peer); });
    });
}
PTM_API(cuCtxDisablePeerAccess, CUcontext handle) {
    return context_entry([&](Context& context) {
        return with_peer(handle, [&](Context& peer) { return PeerAccess::get().disable(context, peer); });
    });
}

PTM_API(cuProfilerStart) {
    return context_entry([](Context&) { return Status::success; });
}
PTM_API(cuProfilerStop) {
    return context_entry([](Context&) { return Status::success; });
}
