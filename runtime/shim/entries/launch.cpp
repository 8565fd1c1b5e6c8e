// SPDX-License-Identifier: Apache-2.0
// Kernel launches.
#include "runtime/launch/launch.h"

#include "runtime/shim/convert.h"

#include <algorithm>
#include <vector>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::LaunchConfig;

namespace {

using Dimensions = std::array<std::uint32_t, 3>;

/// A function to launch in a stream: of the stream's context.
Status find_function_for(const runtime::Stream& queue, CUfunction handle, std::shared_ptr<runtime::Function>& function,
                         LaunchConfig& config) {
    function = find_handle<runtime::Function>(handle);
    if (!function) {
        const auto kernel = find_handle<LibraryKernel>(handle);
        if (!kernel) return Status::invalid_handle;
        if (const Status status = kernel->function(queue.context(), function); status != Status::success) return status;
        config.library_kernel = handle;
    }
    return &function->module().context() == &queue.context() ? Status::success : Status::invalid_handle;
}

CUresult launch(CUfunction handle, LaunchConfig config, CUstream stream, DefaultStream default_stream,
                void** parameters, void** extra) {
    return stream_entry(stream, default_stream, [&](runtime::Stream& queue) {
        std::shared_ptr<runtime::Function> function;
        Status status = find_function_for(queue, handle, function, config);
        if (status == Status::success) status = runtime::launch(*function, config, queue, parameters, extra);
        return status;
    });
}

/// An event that a launch records, and what of the kernel it marks (CUgraphKernelNodePort), which captured graphs note.
struct MarkedEvent {
    std::shared_ptr<runtime::Event> event;
    unsigned port;
};
constexpr unsigned programmatic_port = 1, launch_order_port = 2;

/// An event that a launch records when its grid has ended, which satisfies both kinds: when all blocks have begun, and
/// when all have let the next grid begin. Events with times, and records in graphs, are refused as by an H100's driver.
Status add_event(CUevent handle, int flags, bool may_block, std::vector<MarkedEvent>& events) {
    constexpr unsigned blocking_sync = 1, disable_timing = 2;
    constexpr int external = 1;
    std::shared_ptr<runtime::Event> event = find_handle<runtime::Event>(handle);
    if (!event) return Status::invalid_handle;
    if (flags < 0 || flags > external) return Status::invalid_value;
    if (flags == external) return Status::illegal_state; // of captured streams
    const bool fits = (event->flags() & disable_timing) && (may_block || !(event->flags() & blocking_sync));
    if (!fits) return Status::not_supported;
    events.push_back({std::move(event), may_block ? programmatic_port : launch_order_port});
    return Status::success;
}

/// A preferred size of clusters is a multiple of the required one, in every dimension, and divides the grid. It may
/// stay a wish: clusters have the required size here.
Status check_preferred(const LaunchConfig& config, const Dimensions& preferred) {
    if (preferred == Dimensions{}) return Status::success;
    for (unsigned i = 0; i < 3; ++i) {
        const bool fits = config.has_cluster && preferred[i] != 0 && config.cluster[i] != 0 &&
                          preferred[i] % config.cluster[i] == 0 && config.grid[i] % preferred[i] == 0;
        if (!fits) return Status::invalid_cluster_size;
    }
    return Status::success;
}

/// Launch attributes into `config`; events that the launch is to record are put into `events`. Attributes that only
/// steer caches or overlap are checked as an H100's driver does it
/// (tests/driver_api/answers/attribute_answers_h100.txt) and have no effect: a grid here starts when its stream's
/// earlier work is done, which satisfies all of them.
Status apply_attributes(const CUlaunchConfig& given, LaunchConfig& config, std::vector<MarkedEvent>& events) {
    if (given.numAttrs && !given.attrs) return Status::invalid_value;
    const auto below = [](std::int64_t value, std::int64_t end) {
        return value >= 0 && value < end ? Status::success : Status::invalid_value;
    };
    runtime::StreamAttributes checked; // launches take what streams take
    Dimensions preferred{};
    for (unsigned i = 0; i < given.numAttrs; ++i) {
        const CUlaunchAttributeValue& value = given.attrs[i].value;
        Status status = Status::success;
        switch (given.attrs[i].id) {
        case launch_ignore: break;
        case launch_priority:
            status = checked.set_priority(value.priority);
            config.priority = checked.priority;
            break;
        case launch_programmatic_serialization: config.programmatic = value.cooperative != 0; break;
        case launch_access_policy_window: {
            const CUaccessPolicyWindow& window = value.accessPolicyWindow;
            status = checked.set_window({reinterpret_cast<std::uintptr_t>(window.base_ptr), window.num_bytes,
                                         window.hitRatio, window.hitProp, window.missProp});
            break;
        }
        case launch_cluster_scheduling: status = below(value.clusterSchedulingPolicyPreference, 3); break;
        case launch_mem_sync_domain_map:
            status = checked.set_domain_map({value.memSyncDomainMap.default_, value.memSyncDomainMap.remote});
            break;
        case launch_mem_sync_domain: status = checked.set_domain(value.memSyncDomain); break;
        case launch_shared_carveout: status = below(static_cast<int>(value.sharedMemCarveout), 101); break;
        case launch_nvlink_scheduling: status = below(value.nvlinkUtilCentricScheduling, 2); break;
        case launch_preferred_cluster: preferred = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z}; break;
        case launch_cooperative: config.cooperative = value.cooperative != 0; break;
        case launch_cluster_dimension:
            config.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
            config.has_cluster = config.cluster != Dimensions{};
            break;
        case launch_programmatic_event:
            status = add_event(value.programmaticEvent.event, value.programmaticEvent.flags, true, events);
            break;
        case launch_completion_event:
            status = add_event(value.launchCompletionEvent.event, value.launchCompletionEvent.flags, false, events);
            break;
        case launch_updatable_node: return Status::not_supported; // of graphs
        default: return Status::invalid_value;
        }
        if (status != Status::success) return status;
    }
    return check_preferred(config, preferred);
}

} // namespace

PTM_STREAM_API(cuLaunchKernel, cuLaunchKernel_ptsz,
               (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** parameters, void** extra),
               (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra)) {
    LaunchConfig config;
    config.grid = Dimensions{grid_x, grid_y, grid_z};
    config.block = Dimensions{block_x, block_y, block_z};
    config.dynamic_shared = shared;
    return launch(function, config, stream, default_stream, parameters, extra);
}

PTM_STREAM_API(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz,
               (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** parameters),
               (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters)) {
    LaunchConfig config;
    config.grid = Dimensions{grid_x, grid_y, grid_z};
    config.block = Dimensions{block_x, block_y, block_z};
    config.dynamic_shared = shared;
    config.cooperative = true;
    return launch(function, config, stream, default_stream, parameters, nullptr);
}

PTM_STREAM_API(cuLaunchKernelEx, cuLaunchKernelEx_ptsz,
               (const CUlaunchConfig* given, CUfunction handle, void** parameters, void** extra),
               (given, handle, parameters, extra)) {
    if (!given) return static_cast<CUresult>(Status::invalid_value);
    return stream_entry(given->hStream, default_stream, [&](runtime::Stream& queue) {
        LaunchConfig config;
        config.grid = Dimensions{given->gridDimX, given->gridDimY, given->gridDimZ};
        config.block = Dimensions{given->blockDimX, given->blockDimY, given->blockDimZ};
        config.dynamic_shared = given->sharedMemBytes;
        std::vector<MarkedEvent> events;
        std::shared_ptr<runtime::Function> function;
        Status status = find_function_for(queue, handle, function, config);
        if (status == Status::success) status = apply_attributes(*given, config, events);
        if (status == Status::success) status = runtime::launch(*function, config, queue, parameters, extra);
        for (const MarkedEvent& marked : events)
            if (status == Status::success) status = marked.event->record(queue, false, marked.port);
        return status;
    });
}

PTM_API(cuLaunchCooperativeKernelMultiDevice, const CUDA_LAUNCH_PARAMS* launches, unsigned count, unsigned flags) {
    PTM_REQUIRE(launches);
    constexpr unsigned known_flags = 3; // no synchronisation before, none after: it is left out or does no harm
    PTM_REQUIRE(count != 0 && count <= static_cast<unsigned>(runtime::Device::count()) && flags <= known_flags);
    const CUDA_LAUNCH_PARAMS& first = launches[0];
    std::vector<int> devices;
    for (unsigned i = 0; i < count; ++i) {
        const CUDA_LAUNCH_PARAMS& launch = launches[i];
        const auto stream = reinterpret_cast<std::uintptr_t>(launch.hStream) > stream_per_thread
                                ? find_handle<runtime::Stream>(launch.hStream)
                                : nullptr;
        if (!stream) return entry([] { return Status::invalid_handle; });
        const auto function = find_handle<runtime::Function>(launch.function);
        const int device = stream->context().device();
        // A stream of another device than the function's, too.
        if (function && &function->module().context() != &stream->context())
            return entry([] { return Status::invalid_handle; });
        const bool differs = launch.gridDimX != first.gridDimX || launch.gridDimY != first.gridDimY ||
                             launch.gridDimZ != first.gridDimZ || launch.blockDimX != first.blockDimX ||
                             launch.blockDimY != first.blockDimY || launch.blockDimZ != first.blockDimZ ||
                             launch.sharedMemBytes != first.sharedMemBytes;
        if (differs) return entry([] { return Status::invalid_value; });
        if (std::find(devices.begin(), devices.end(), device) != devices.end())
            return entry([] { return Status::invalid_device; });
        devices.push_back(device);
    }
    for (unsigned i = 0; i < count; ++i) {
        const CUDA_LAUNCH_PARAMS& part = launches[i];
        LaunchConfig config;
        config.grid = Dimensions{part.gridDimX, part.gridDimY, part.gridDimZ};
        config.block = Dimensions{part.blockDimX, part.blockDimY, part.blockDimZ};
        config.dynamic_shared = part.sharedMemBytes;
        config.cooperative = true;
        const CUresult result =
            launch(part.function, config, part.hStream, DefaultStream::legacy, part.kernelParams, nullptr);
        if (result != 0) return result;
    }
    return 0;
}
