// SPDX-License-Identifier: Apache-2.0
// Instantiated graphs: making, launching, changing them.
#include "runtime/graph/exec.h"

#include "runtime/shim/graph_conversion.h"

#include <cstring>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Graph;
using runtime::GraphExec;
using runtime::InstantiateReport;
using runtime::InstantiateResult;

namespace {

/// entry() for calls on an instance: body(GraphExec&). invalid_value for a bad handle.
template <class Body> CUresult exec_entry(CUgraphExec handle, const Body& body) {
    return entry([&] {
        const auto exec = find_handle<GraphExec>(handle);
        return exec ? body(*exec) : Status::invalid_value;
    });
}

Status instantiate(CUgraphExec* exec, CUgraph handle, std::uint64_t flags, InstantiateReport& report) {
    const auto graph = find_handle<Graph>(handle);
    if (!exec || !graph || (flags & ~std::uint64_t{GraphExec::all_flags})) return Status::invalid_value;
    if ((flags & GraphExec::device_launch) && (flags & GraphExec::auto_free)) return Status::invalid_value;
    std::shared_ptr<GraphExec> made;
    const Status status = GraphExec::instantiate(graph, flags, report, made);
    if (status == Status::success) *exec = to_handle<CUgraphExec>(made);
    return status;
}

CUgraphNode handle_of(const runtime::Node* node) {
    return reinterpret_cast<CUgraphNode>(const_cast<runtime::Node*>(node));
}

CUresult instantiate_with_flags(CUgraphExec* exec, CUgraph graph, std::uint64_t flags) {
    return entry([&] {
        if (flags & GraphExec::upload) return Status::invalid_value; // has no stream to do it in
        InstantiateReport report;
        return instantiate(exec, graph, flags, report);
    });
}

/// The form with a buffer for text, which stays empty.
CUresult instantiate_with_log(CUgraphExec* exec, CUgraph graph, CUgraphNode* node, char* log, std::size_t size) {
    return entry([&] {
        InstantiateReport report;
        const Status status = instantiate(exec, graph, 0, report);
        if (log && size) *log = 0;
        if (node) *node = handle_of(report.node);
        return status;
    });
}

/// set_work() of what make(work of the exec's type) makes; `handle` is a node of the graph that it was made of.
CUresult set_node(CUgraphExec exec, CUgraphNode handle, const auto& make) {
    return exec_entry(exec, [&](GraphExec& of) {
        const auto node = find_handle<Node>(handle);
        if (!node) return Status::invalid_value;
        NodeWork old;
        if (const Status status = of.work_of(*node, old); status != Status::success) return status;
        NodeWork work;
        const Status status = make(old, work);
        return status == Status::success ? of.set_work(*node, std::move(work)) : status;
    });
}

/// The parameters of one type in the general form.
template <class Fill> CUresult set_node_of_type(CUgraphExec exec, CUgraphNode node, runtime::NodeType type, Fill fill) {
    CUgraphNodeParams general{};
    general.type = static_cast<int>(type);
    fill(general);
    return set_node(exec, node,
                    [&](const NodeWork& old, NodeWork& work) { return make_changed_work(general, old, work); });
}

CUresult set_kernel(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& given) {
    return set_node_of_type(exec, node, runtime::NodeType::kernel,
                            [&](CUgraphNodeParams& general) { general.kernel = given; });
}

CUresult update(CUgraphExec exec, CUgraph graph, const auto& report_to) {
    return exec_entry(exec, [&](GraphExec& of) {
        const auto with = find_handle<Graph>(graph);
        if (!with) return Status::invalid_value;
        runtime::UpdateReport report;
        const Status status = of.update(*with, report);
        report_to(report);
        return status;
    });
}

} // namespace

PTM_API(cuGraphInstantiate, CUgraphExec* exec, CUgraph graph, CUgraphNode* node, char* log, std::size_t size) {
    PTM_REQUIRE_IN_CONTEXT(exec && graph);
    return instantiate_with_log(exec, graph, node, log, size);
}
PTM_API(cuGraphInstantiate_v2, CUgraphExec* exec, CUgraph graph, CUgraphNode* node, char* log, std::size_t size) {
    PTM_REQUIRE_IN_CONTEXT(exec && graph);
    return instantiate_with_log(exec, graph, node, log, size);
}
PTM_API(cuGraphInstantiateWithFlags, CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
    PTM_REQUIRE_IN_CONTEXT(exec && graph);
    return instantiate_with_flags(exec, graph, flags);
}
PTM_STREAM_API(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz,
               (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* given), (exec, graph, given)) {
    return entry([&] {
        if (!given) return Status::invalid_value;
        InstantiateReport report;
        const Status status = instantiate(exec, graph, given->flags, report);
        if (status != Status::success && report.result == InstantiateResult::success)
            report.result = InstantiateResult::error;
        given->result_out = static_cast<int>(report.result);
        given->hErrNode_out = handle_of(report.node);
        return status;
    });
}
PTM_API(cuGraphExecGetFlags, CUgraphExec exec, std::uint64_t* flags) {
    return exec_entry(exec, [&](GraphExec& of) {
        if (!flags) return Status::invalid_value;
        *flags = of.flags();
        return Status::success;
    });
}
PTM_API(cuGraphExecGetId, CUgraphExec exec, unsigned* id) {
    return exec_entry(exec, [&](GraphExec& of) {
        if (!id) return Status::invalid_value;
        *id = static_cast<unsigned>(of.id());
        return Status::success;
    });
}
PTM_API(cuGraphExecDestroy, CUgraphExec exec) {
    return exec_entry(exec, [&](GraphExec&) { return GraphExec::destroy(exec); });
}
PTM_STREAM_API(cuGraphLaunch, cuGraphLaunch_ptsz, (CUgraphExec exec, CUstream stream), (exec, stream)) {
    const auto of = find_handle<GraphExec>(exec);
    return stream_entry(stream, default_stream,
                        [&](runtime::Stream& queue) { return of ? of->launch(queue) : Status::invalid_value; });
}
PTM_STREAM_API(cuGraphUpload, cuGraphUpload_ptsz, (CUgraphExec exec, CUstream stream), (exec, stream)) {
    const auto of = find_handle<GraphExec>(exec);
    return stream_entry(stream, default_stream, [&](runtime::Stream& queue) {
        std::shared_ptr<runtime::StreamRecorder> recorder;
        if (!of) return Status::invalid_value;
        const Status status = queue.begin_work(recorder);
        if (status != Status::success) return status;
        if (recorder) return recorder->forbid();
        of->reserve_memory(); // the rest is in place already
        return Status::success;
    });
}
PTM_API(cuGraphExecUpdate, CUgraphExec exec, CUgraph graph, CUgraphNode* node, int* result) {
    if (!result) return static_cast<CUresult>(Status::invalid_value);
    return update(exec, graph, [&](const runtime::UpdateReport& report) {
        if (node) *node = handle_of(report.node);
        *result = static_cast<int>(report.result);
    });
}
PTM_API(cuGraphExecUpdate_v2, CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
    return update(exec, graph, [&](const runtime::UpdateReport& report) {
        if (info) *info = {static_cast<int>(report.result), handle_of(report.node), handle_of(report.from)};
    });
}
PTM_API(cuGraphNodeSetEnabled, CUgraphExec exec, CUgraphNode handle, unsigned enabled) {
    return exec_entry(exec, [&](GraphExec& of) {
        const auto node = find_handle<Node>(handle);
        return node ? of.set_enabled(*node, enabled != 0) : Status::invalid_value;
    });
}
PTM_API(cuGraphNodeGetEnabled, CUgraphExec exec, CUgraphNode handle, unsigned* place) {
    return exec_entry(exec, [&](GraphExec& of) {
        const auto node = find_handle<Node>(handle);
        bool enabled = false;
        if (!node || !place) return Status::invalid_value;
        const Status status = of.enabled(*node, enabled);
        if (status == Status::success) *place = enabled;
        return status;
    });
}

// ---- parameters of single nodes ----

PTM_API(cuGraphExecKernelNodeSetParams, CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* given) {
    if (!given) return static_cast<CUresult>(Status::invalid_value);
    CUDA_KERNEL_NODE_PARAMS wide{};
    std::memcpy(&wide, given, sizeof *given);
    return set_kernel(exec, node, wide);
}
PTM_API(cuGraphExecKernelNodeSetParams_v2, CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* given) {
    return given ? set_kernel(exec, node, *given) : static_cast<CUresult>(Status::invalid_value);
}
PTM_API(cuGraphExecMemcpyNodeSetParams, CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* given,
        CUcontext context) {
    if (!given) return static_cast<CUresult>(Status::invalid_value);
    return set_node_of_type(exec, node, runtime::NodeType::copy, [&](CUgraphNodeParams& general) {
        general.memcpy.copyParams = *given;
        general.memcpy.copyCtx = context;
    });
}
PTM_API(cuGraphExecMemsetNodeSetParams, CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* given,
        CUcontext context) {
    if (!given) return static_cast<CUresult>(Status::invalid_value);
    return set_node_of_type(exec, node, runtime::NodeType::fill, [&](CUgraphNodeParams& general) {
        std::memcpy(&general.memset, given, sizeof *given);
        general.memset.ctx = context;
    });
}
PTM_API(cuGraphExecHostNodeSetParams, CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* given) {
    if (!given) return static_cast<CUresult>(Status::invalid_value);
    return set_node_of_type(exec, node, runtime::NodeType::host,
                            [&](CUgraphNodeParams& general) { general.host = *given; });
}
PTM_API(cuGraphExecChildGraphNodeSetParams, CUgraphExec exec, CUgraphNode handle, CUgraph child) {
    return exec_entry(exec, [&](GraphExec& of) {
        const auto node = find_handle<Node>(handle);
        const auto graph = find_handle<Graph>(child);
        return node && graph ? of.set_child(*node, *graph) : Status::invalid_value;
    });
}
PTM_API(cuGraphExecEventRecordNodeSetEvent, CUgraphExec exec, CUgraphNode node, CUevent event) {
    return set_node_of_type(exec, node, runtime::NodeType::event_record,
                            [&](CUgraphNodeParams& general) { general.event.event = event; });
}
PTM_API(cuGraphExecEventWaitNodeSetEvent, CUgraphExec exec, CUgraphNode node, CUevent event) {
    return set_node_of_type(exec, node, runtime::NodeType::event_wait,
                            [&](CUgraphNodeParams& general) { general.event.event = event; });
}
PTM_API(cuGraphExecBatchMemOpNodeSetParams, CUgraphExec exec, CUgraphNode node,
        const CUDA_BATCH_MEM_OP_NODE_PARAMS* given) {
    if (!given) return static_cast<CUresult>(Status::invalid_value);
    return set_node_of_type(exec, node, runtime::NodeType::memory_operations,
                            [&](CUgraphNodeParams& general) { general.memOp = *given; });
}
PTM_API(cuGraphExecExternalSemaphoresSignalNodeSetParams, CUgraphExec exec, CUgraphNode node,
        const CUDA_EXT_SEM_NODE_PARAMS* given) {
    if (!given) return static_cast<CUresult>(Status::invalid_value);
    return set_node_of_type(exec, node, runtime::NodeType::semaphore_signal,
                            [&](CUgraphNodeParams& general) { general.semaphores = *given; });
}
PTM_API(cuGraphExecExternalSemaphoresWaitNodeSetParams, CUgraphExec exec, CUgraphNode node,
        const CUDA_EXT_SEM_NODE_PARAMS* given) {
    if (!given) return static_cast<CUresult>(Status::invalid_value);
    return set_node_of_type(exec, node, runtime::NodeType::semaphore_wait,
                            [&](CUgraphNodeParams& general) { general.semaphores = *given; });
}
PTM_API(cuGraphExecNodeSetParams, CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* given) {
    if (!given) return static_cast<CUresult>(Status::invalid_value);
    if (given->type == static_cast<int>(runtime::NodeType::child))
        return cuGraphExecChildGraphNodeSetParams(exec, node, given->graph.graph);
    return set_node(exec, node,
                    [&](const NodeWork& old, NodeWork& work) { return make_changed_work(*given, old, work); });
}
