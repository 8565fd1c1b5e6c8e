// SPDX-License-Identifier: Apache-2.0
// Kernel launches.
#include "runtime/launch/launch.h"

#include "runtime/shim/convert.h"

#include <vector>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::LaunchConfig;

namespace {

using Dimensions = std::array<std::uint32_t, 3>;

/// A function to launch in a stream: of the stream's context.
Status find_function_for(const runtime::Stream& queue, CUfunction handle,
                         std::shared_ptr<runtime::Function>& function) {
    const Status status = find_function(handle, queue.context(), function);
    if (status != Status::success) return status;
    return &function->module().context() == &queue.context() ? Status::success : Status::invalid_handle;
}

CUresult launch(CUfunction handle, const LaunchConfig& config, CUstream stream, DefaultStream default_stream,
                void** parameters, void** extra) {
    return stream_entry(stream, default_stream, [&](runtime::Stream& queue) {
        std::shared_ptr<runtime::Function> function;
        Status status = find_function_for(queue, handle, function);
        if (status == Status::success) status = runtime::launch(*function, config, queue, parameters, extra);
        return status;
    });
}

/// Launch attributes into `config`; events that the launch is to record are put into `events`.
/// Attributes that only steer caches, priorities or overlap are taken and have no effect: a grid
/// here starts when its stream's earlier work is done, which satisfies all of them.
Status apply_attributes(const CUlaunchConfig& given, LaunchConfig& config, std::vector<CUevent>& events) {
    if (given.numAttrs && !given.attrs) return Status::invalid_value;
    for (unsigned i = 0; i < given.numAttrs; ++i) {
        const CUlaunchAttributeValue& value = given.attrs[i].value;
        switch (given.attrs[i].id) {
        case launch_ignore:
        case launch_access_policy_window:
        case launch_synchronization_policy:
        case launch_cluster_scheduling:
        case launch_programmatic_serialization:
        case launch_priority:
        case launch_mem_sync_domain_map:
        case launch_mem_sync_domain:
        case launch_preferred_cluster:
        case launch_shared_carveout:
        case launch_nvlink_scheduling: break;
        case launch_cooperative: config.cooperative = value.cooperative != 0; break;
        case launch_cluster_dimension:
            config.has_cluster = true;
            config.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
            break;
        case launch_programmatic_event: events.push_back(value.programmaticEvent.event); break;
        case launch_completion_event: events.push_back(value.launchCompletionEvent.event); break;
        case launch_updatable_node: return Status::not_supported;
        default: return Status::invalid_value;
        }
    }
    return Status::success;
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
        std::vector<CUevent> events;
        std::shared_ptr<runtime::Function> function;
        Status status = find_function_for(queue, handle, function);
        if (status == Status::success) status = apply_attributes(*given, config, events);
        if (status == Status::success) status = runtime::launch(*function, config, queue, parameters, extra);
        for (CUevent recorded : events) {
            auto event = find_handle<runtime::Event>(recorded);
            if (status == Status::success) status = event ? event->record(queue) : Status::invalid_handle;
        }
        return status;
    });
}
