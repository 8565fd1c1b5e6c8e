// SPDX-License-Identifier: Apache-2.0
// From the driver's structures of graphs to the runtime's works of nodes, and back.
#pragma once

#include "runtime/graph/graph.h"
#include "runtime/shim/convert.h"
#include "runtime/shim/graph_types.h"

#include <vector>

namespace ptarmigan::shim {

using runtime::Node;
using runtime::NodeWork;

/// What a node's parameters say it does; the status is what the driver says of wrong ones. A context of null means the
/// current one.
Status make_work(const CUDA_KERNEL_NODE_PARAMS& given, runtime::KernelWork& work);
Status make_work(const CUDA_MEMCPY3D& given, CUcontext context, runtime::CopyWork& work);
Status make_work(const CUDA_MEMSET_NODE_PARAMS& given, CUcontext context, runtime::FillWork& work);
Status make_work(const CUDA_HOST_NODE_PARAMS& given, runtime::HostWork& work);
Status make_work(const CUDA_BATCH_MEM_OP_NODE_PARAMS& given, runtime::MemoryOperationsWork& work);
Status make_work(const CUDA_EXT_SEM_NODE_PARAMS& given, runtime::SemaphoreWork& work);
Status make_work(CUDA_MEM_ALLOC_NODE_PARAMS& given, runtime::AllocateWork& work); ///< writes dptr
Status make_work(const CUDA_MEM_FREE_NODE_PARAMS& given, runtime::FreeWork& work);

/// The parameters as they were given; what they point to lives as long as the node is not changed.
CUDA_KERNEL_NODE_PARAMS parameters_of(const runtime::KernelWork& work);
CUDA_MEMCPY3D parameters_of(const runtime::CopyWork& work);
CUDA_MEMSET_NODE_PARAMS parameters_of(const runtime::FillWork& work);
CUDA_HOST_NODE_PARAMS parameters_of(const runtime::HostWork& work);
CUDA_BATCH_MEM_OP_NODE_PARAMS parameters_of(const runtime::MemoryOperationsWork& work);
CUDA_EXT_SEM_NODE_PARAMS parameters_of(const runtime::SemaphoreWork& work);
CUDA_MEM_ALLOC_NODE_PARAMS parameters_of(const runtime::AllocateWork& work);

/// A child node of `parent`: a clone of the graph, or (ownership 1) the graph itself.
Status make_child_work(const CUDA_CHILD_GRAPH_NODE_PARAMS& given, runtime::Graph& parent, NodeWork& work);
Status make_event_work(CUevent event, runtime::NodeType type, NodeWork& work); ///< event_wait or event_record
/// Any type, for cuGraphAddNode. Of conditional nodes the bodies are made.
Status make_any_work(CUgraphNodeParams& given, runtime::Graph& parent, NodeWork& work);
/// The work that `given` says, of the type that `old` is, with what is no parameter kept.
Status make_changed_work(const CUgraphNodeParams& given, const NodeWork& old, NodeWork& work);
Status any_parameters_of(const Node& node, CUgraphNodeParams& place);
/// The handles of a conditional node's graphs, as long as it lives.
CUgraph* bodies_of(const runtime::ConditionalWork& work);

/// Whether there can be such a node in the graph: bodies of conditional nodes and graphs that were moved into others
/// hold some types only.
Status check_place(const runtime::Graph& graph, const NodeWork& work);
/// entry() for calls on a graph: body(Graph&) with graph_mutex() held. invalid_value for a bad handle.
template <class Body> CUresult graph_entry(CUgraph handle, Body&& body) noexcept {
    return entry([&] {
        const std::shared_ptr<runtime::Graph> graph = find_handle<runtime::Graph>(handle);
        if (!graph) return Status::invalid_value;
        std::lock_guard lock(runtime::graph_mutex());
        return body(*graph);
    });
}

/// entry() for calls on a node: body(Node&) with graph_mutex() held.
template <class Body> CUresult node_entry(CUgraphNode handle, Body&& body) noexcept {
    return entry([&] {
        const std::shared_ptr<Node> node = find_handle<Node>(handle);
        if (!node) return Status::invalid_value;
        std::lock_guard lock(runtime::graph_mutex());
        return node->graph() ? body(*node) : Status::invalid_value;
    });
}

} // namespace ptarmigan::shim
