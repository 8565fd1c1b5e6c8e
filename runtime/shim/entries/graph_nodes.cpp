// SPDX-License-Identifier: Apache-2.0
// Nodes of every type: adding them, and their parameters.
#include "runtime/graph/graph_memory.h"
#include "runtime/shim/graph_conversion.h"
#include "runtime/shim/graph_edges.h"
#include "runtime/shim/kernel_attributes.h"

#include <cstring>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Graph;
using runtime::NodeType;

namespace {

/// Adds what `make(NodeWork&)` makes behind `before`; the order of checks is the driver's.
CUresult add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, const CUgraphEdgeData* data,
                  std::size_t count, const auto& make) {
    return graph_entry(graph, [&](Graph& to) {
        if (!node) return Status::invalid_value;
        std::vector<Node::Link> links;
        Status status = make_links(to, before, data, count, links);
        if (status != Status::success) return status;
        NodeWork work;
        status = make(work);
        if (status == Status::success) status = check_place(to, work);
        if (status == Status::success) status = check_links(links, work);
        if (status != Status::success) return status;
        *node = to_handle<CUgraphNode>(to.add(std::move(work), links));
        return Status::success;
    });
}

/// Gives `place` the parameters of a node whose work is a Work.
template <class Work, class Parameters> CUresult get_parameters(CUgraphNode node, Parameters* place) {
    return node_entry(node, [&](Node& of) {
        const auto* work = std::get_if<Work>(&of.work);
        if (!work || !place) return Status::invalid_value;
        *place = parameters_of(*work);
        return Status::success;
    });
}

CUresult set_work(CUgraphNode node, const auto& make) {
    return node_entry(node, [&](Node& of) {
        NodeWork work;
        const Status status = make(of.work, work);
        if (status == Status::success) of.work = std::move(work);
        return status;
    });
}

CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1& given) {
    CUDA_KERNEL_NODE_PARAMS wide{};
    std::memcpy(&wide, &given, sizeof given);
    return wide;
}

/// A work of the same type as `old`, with what belongs to the node and not to its parameters kept.
Status make_kernel(const NodeWork& old, const CUDA_KERNEL_NODE_PARAMS* given, NodeWork& work) {
    const auto* kernel = std::get_if<runtime::KernelWork>(&old);
    if (!kernel || !given) return Status::invalid_value;
    runtime::KernelWork& made = work.emplace<runtime::KernelWork>();
    made.attributes = kernel->attributes;
    const Status status = make_work(*given, made);
    apply_attributes(made);
    return status;
}

CUresult get_event(CUgraphNode node, CUevent* event, NodeType type) {
    return node_entry(node, [&](Node& of) {
        if (of.type() != type || !event) return Status::invalid_value;
        *event = to_handle<CUevent>(type == NodeType::event_wait ? std::get<runtime::EventWaitWork>(of.work).event
                                                                 : std::get<runtime::EventRecordWork>(of.work).event);
        return Status::success;
    });
}

CUresult set_event(CUgraphNode node, CUevent event, NodeType type) {
    return set_work(node, [&](const NodeWork& old, NodeWork& work) {
        if (runtime::type_of(old) != type) return Status::invalid_value;
        return make_event_work(event, type, work);
    });
}

CUresult add_kernel(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,
                    const CUDA_KERNEL_NODE_PARAMS* given) {
    return add_node(node, graph, before, nullptr, count, [&](NodeWork& work) {
        return given ? make_work(*given, work.emplace<runtime::KernelWork>()) : Status::invalid_value;
    });
}

} // namespace

// ---- kernels ----

PTM_API(cuGraphAddKernelNode, CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,
        const CUDA_KERNEL_NODE_PARAMS_v1* given) {
    if (!given) return static_cast<CUresult>(Status::invalid_value);
    const CUDA_KERNEL_NODE_PARAMS wide = widen(*given);
    return add_kernel(node, graph, before, count, &wide);
}
PTM_API(cuGraphAddKernelNode_v2, CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,
        const CUDA_KERNEL_NODE_PARAMS* given) {
    return add_kernel(node, graph, before, count, given);
}
PTM_API(cuGraphKernelNodeGetParams, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* place) {
    if (!place) return static_cast<CUresult>(Status::invalid_value);
    CUDA_KERNEL_NODE_PARAMS wide{};
    const CUresult result = get_parameters<runtime::KernelWork>(node, &wide);
    if (result == 0) {
        if (!wide.func) wide.func = reinterpret_cast<CUfunction>(wide.kern);
        std::memcpy(place, &wide, sizeof *place);
    }
    return result;
}
PTM_API(cuGraphKernelNodeGetParams_v2, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* place) {
    return get_parameters<runtime::KernelWork>(node, place);
}
PTM_API(cuGraphKernelNodeSetParams, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* given) {
    if (!given) return static_cast<CUresult>(Status::invalid_value);
    const CUDA_KERNEL_NODE_PARAMS wide = widen(*given);
    return set_work(node, [&](const NodeWork& old, NodeWork& work) { return make_kernel(old, &wide, work); });
}
PTM_API(cuGraphKernelNodeSetParams_v2, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* given) {
    return set_work(node, [&](const NodeWork& old, NodeWork& work) { return make_kernel(old, given, work); });
}
PTM_API(cuGraphKernelNodeGetAttribute, CUgraphNode node, unsigned id, CUlaunchAttributeValue* value) {
    return node_entry(node, [&](Node& of) {
        const auto* kernel = std::get_if<runtime::KernelWork>(&of.work);
        return kernel && value ? get_attribute(*kernel, id, *value) : Status::invalid_value;
    });
}
PTM_API(cuGraphKernelNodeSetAttribute, CUgraphNode node, unsigned id, const CUlaunchAttributeValue* value) {
    return node_entry(node, [&](Node& of) {
        auto* kernel = std::get_if<runtime::KernelWork>(&of.work);
        return kernel && value ? set_attribute(*kernel, id, *value) : Status::invalid_value;
    });
}
PTM_API(cuGraphKernelNodeCopyAttributes, CUgraphNode to, CUgraphNode from) {
    return node_entry(to, [&](Node& target) {
        const auto source = find_handle<Node>(from);
        auto* kernel = std::get_if<runtime::KernelWork>(&target.work);
        const auto* other = source ? std::get_if<runtime::KernelWork>(&source->work) : nullptr;
        if (!kernel || !other) return Status::invalid_value;
        kernel->attributes = other->attributes;
        apply_attributes(*kernel);
        return Status::success;
    });
}

// ---- copies and fills ----

PTM_API(cuGraphAddMemcpyNode, CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,
        const CUDA_MEMCPY3D* given, CUcontext context) {
    return add_node(node, graph, before, nullptr, count, [&](NodeWork& work) {
        return given ? make_work(*given, context, work.emplace<runtime::CopyWork>()) : Status::invalid_value;
    });
}
PTM_API(cuGraphMemcpyNodeGetParams, CUgraphNode node, CUDA_MEMCPY3D* place) {
    return get_parameters<runtime::CopyWork>(node, place);
}
PTM_API(cuGraphMemcpyNodeSetParams, CUgraphNode node, const CUDA_MEMCPY3D* given) {
    return set_work(node, [&](const NodeWork& old, NodeWork& work) {
        const auto* copy = std::get_if<runtime::CopyWork>(&old);
        if (!copy || !given) return Status::invalid_value;
        return make_work(*given, reinterpret_cast<CUcontext>(copy->context), work.emplace<runtime::CopyWork>());
    });
}
PTM_API(cuGraphAddMemsetNode, CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,
        const CUDA_MEMSET_NODE_PARAMS* given, CUcontext context) {
    return add_node(node, graph, before, nullptr, count, [&](NodeWork& work) {
        return given ? make_work(*given, context, work.emplace<runtime::FillWork>()) : Status::invalid_value;
    });
}
PTM_API(cuGraphMemsetNodeGetParams, CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* place) {
    return get_parameters<runtime::FillWork>(node, place);
}
PTM_API(cuGraphMemsetNodeSetParams, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* given) {
    return set_work(node, [&](const NodeWork& old, NodeWork& work) {
        const auto* fill = std::get_if<runtime::FillWork>(&old);
        if (!fill || !given) return Status::invalid_value;
        return make_work(*given, reinterpret_cast<CUcontext>(fill->context), work.emplace<runtime::FillWork>());
    });
}

// ---- host functions, graphs, events ----

PTM_API(cuGraphAddHostNode, CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,
        const CUDA_HOST_NODE_PARAMS* given) {
    return add_node(node, graph, before, nullptr, count, [&](NodeWork& work) {
        return given ? make_work(*given, work.emplace<runtime::HostWork>()) : Status::invalid_value;
    });
}
PTM_API(cuGraphHostNodeGetParams, CUgraphNode node, CUDA_HOST_NODE_PARAMS* place) {
    return get_parameters<runtime::HostWork>(node, place);
}
PTM_API(cuGraphHostNodeSetParams, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* given) {
    return set_work(node, [&](const NodeWork& old, NodeWork& work) {
        if (!std::holds_alternative<runtime::HostWork>(old) || !given) return Status::invalid_value;
        return make_work(*given, work.emplace<runtime::HostWork>());
    });
}
PTM_API(cuGraphAddEmptyNode, CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count) {
    return add_node(node, graph, before, nullptr, count, [](NodeWork& work) {
        work.emplace<std::monostate>();
        return Status::success;
    });
}
PTM_API(cuGraphAddChildGraphNode, CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,
        CUgraph child) {
    return add_node(node, graph, before, nullptr, count, [&](NodeWork& work) {
        return make_child_work({child, 0}, *find_handle<Graph>(graph), work);
    });
}
PTM_API(cuGraphChildGraphNodeGetGraph, CUgraphNode node, CUgraph* graph) {
    return node_entry(node, [&](Node& of) {
        const auto* child = std::get_if<runtime::ChildWorkOfGraph>(&of.work);
        if (!child || !graph) return Status::invalid_value;
        *graph = to_handle<CUgraph>(child->graph);
        return Status::success;
    });
}

/// The entries of one kind of event node.
#define PTM_EVENT_NODES(name, type)                                                                                    \
    PTM_API(cuGraphAddEvent##name##Node, CUgraphNode* node, CUgraph graph, const CUgraphNode* before,                  \
            std::size_t count, CUevent event) {                                                                        \
        return add_node(node, graph, before, nullptr, count,                                                           \
                        [&](NodeWork& work) { return make_event_work(event, type, work); });                           \
    }                                                                                                                  \
    PTM_API(cuGraphEvent##name##NodeGetEvent, CUgraphNode node, CUevent* event) {                                      \
        return get_event(node, event, type);                                                                           \
    }                                                                                                                  \
    PTM_API(cuGraphEvent##name##NodeSetEvent, CUgraphNode node, CUevent event) {                                       \
        return set_event(node, event, type);                                                                           \
    }
PTM_EVENT_NODES(Record, NodeType::event_record)
PTM_EVENT_NODES(Wait, NodeType::event_wait)

// ---- memory operations and semaphores ----

/// The entries of a type whose parameters are given and got whole.
#define PTM_PLAIN_NODES(name, Work, Parameters)                                                                        \
    PTM_API(cuGraphAdd##name##Node, CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,    \
            const Parameters* given) {                                                                                 \
        return add_node(node, graph, before, nullptr, count, [&](NodeWork& work) {                                     \
            return given ? make_work(*given, work.emplace<Work>()) : Status::invalid_value;                            \
        });                                                                                                            \
    }                                                                                                                  \
    PTM_API(cuGraph##name##NodeGetParams, CUgraphNode node, Parameters* place) {                                       \
        return get_parameters<Work>(node, place);                                                                      \
    }                                                                                                                  \
    PTM_API(cuGraph##name##NodeSetParams, CUgraphNode node, const Parameters* given) {                                 \
        return set_work(node, [&](const NodeWork& old, NodeWork& work) {                                               \
            if (!std::holds_alternative<Work>(old) || !given) return Status::invalid_value;                            \
            return make_work(*given, work.emplace<Work>());                                                            \
        });                                                                                                            \
    }
PTM_PLAIN_NODES(BatchMemOp, runtime::MemoryOperationsWork, CUDA_BATCH_MEM_OP_NODE_PARAMS)
PTM_PLAIN_NODES(ExternalSemaphoresSignal, runtime::SemaphoreSignalWork, CUDA_EXT_SEM_NODE_PARAMS)
PTM_PLAIN_NODES(ExternalSemaphoresWait, runtime::SemaphoreWaitWork, CUDA_EXT_SEM_NODE_PARAMS)

// ---- memory ----

PTM_API(cuGraphAddMemAllocNode, CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,
        CUDA_MEM_ALLOC_NODE_PARAMS* given) {
    return add_node(node, graph, before, nullptr, count, [&](NodeWork& work) {
        return given ? make_work(*given, work.emplace<runtime::AllocateWork>()) : Status::invalid_value;
    });
}
PTM_API(cuGraphMemAllocNodeGetParams, CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* place) {
    return get_parameters<runtime::AllocateWork>(node, place);
}
PTM_API(cuGraphAddMemFreeNode, CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,
        CUdeviceptr pointer) {
    return add_node(node, graph, before, nullptr, count, [&](NodeWork& work) {
        return make_work(CUDA_MEM_FREE_NODE_PARAMS{pointer}, work.emplace<runtime::FreeWork>());
    });
}
PTM_API(cuGraphMemFreeNodeGetParams, CUgraphNode node, CUdeviceptr* pointer) {
    return node_entry(node, [&](Node& of) {
        const auto* free = std::get_if<runtime::FreeWork>(&of.work);
        if (!free || !pointer) return Status::invalid_value;
        *pointer = free->memory->pointer();
        return Status::success;
    });
}

// ---- conditional nodes, and nodes of any type ----

PTM_API(cuGraphConditionalHandleCreate, CUgraphConditionalHandle* handle, CUgraph graph, CUcontext context,
        unsigned value, unsigned flags) {
    return graph_entry(graph, [&](Graph& of) {
        constexpr unsigned assign_default = 1;
        if (!handle || flags > assign_default) return Status::invalid_value;
        runtime::Context* owner = nullptr;
        const auto found = find_handle<runtime::Context>(context);
        if (!found) return Status::invalid_context;
        owner = found.get();
        auto made = runtime::ConditionalValue::create(*owner, value, flags == assign_default);
        *handle = made->handle;
        of.conditional_values.push_back(std::move(made));
        return Status::success;
    });
}

namespace {

CUresult add_any(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, const CUgraphEdgeData* data,
                 std::size_t count, CUgraphNodeParams* given) {
    return graph_entry(graph, [&](Graph& to) {
        if (!node || !given) return Status::invalid_value;
        std::vector<Node::Link> links;
        Status status = make_links(to, before, data, count, links);
        NodeWork work;
        if (status == Status::success) status = make_any_work(*given, to, work);
        if (status == Status::success) status = check_place(to, work);
        if (status == Status::success) status = check_links(links, work);
        if (status != Status::success) return status;
        const std::shared_ptr<Node> made = to.add(std::move(work), links);
        *node = to_handle<CUgraphNode>(made);
        if (auto* conditional = std::get_if<runtime::ConditionalWork>(&made->work)) {
            conditional->value->used = true;
            given->conditional.phGraph_out = bodies_of(*conditional);
        }
        return Status::success;
    });
}

CUresult set_any(CUgraphNode node, CUgraphNodeParams* given) {
    return node_entry(node, [&](Node& of) {
        if (!given) return Status::invalid_value;
        NodeWork work;
        const Status status = make_changed_work(*given, of.work, work);
        if (status == Status::success) of.work = std::move(work);
        return status;
    });
}

/// From 13.4 on a kernel node that names a context besides its function has to name the function's (a green one counts
/// as the context that it is a part of).
Status check_context(const CUgraphNodeParams* given) {
    if (!given || given->type != static_cast<int>(NodeType::kernel) || !given->kernel.func || !given->kernel.ctx)
        return Status::success;
    const auto context = find_handle<runtime::Context>(given->kernel.ctx);
    if (!context) return Status::invalid_context;
    const auto function = find_handle<runtime::Function>(given->kernel.func);
    if (!function) return Status::success; // who makes the node says what it is
    return &context->root() == &function->module().context().root() ? Status::success : Status::invalid_context;
}

} // namespace

PTM_API(cuGraphAddNode, CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,
        CUgraphNodeParams* given) {
    return add_any(node, graph, before, nullptr, count, given);
}
PTM_API(cuGraphAddNode_v2, CUgraphNode* node, CUgraph graph, const CUgraphNode* before, const CUgraphEdgeData* data,
        std::size_t count, CUgraphNodeParams* given) {
    return add_any(node, graph, before, data, count, given);
}
PTM_API(cuGraphAddNode_v3, CUgraphNode* node, CUgraph graph, const CUgraphNode* before, const CUgraphEdgeData* data,
        std::size_t count, CUgraphNodeParams* given) {
    const Status status = check_context(given);
    return status == Status::success ? add_any(node, graph, before, data, count, given) : entry([&] { return status; });
}
PTM_API(cuGraphNodeSetParams, CUgraphNode node, CUgraphNodeParams* given) {
    return set_any(node, given);
}
PTM_API(cuGraphNodeSetParams_v2, CUgraphNode node, CUgraphNodeParams* given) {
    const Status status = check_context(given);
    return status == Status::success ? set_any(node, given) : entry([&] { return status; });
}
PTM_API(cuGraphNodeGetParams, CUgraphNode node, CUgraphNodeParams* place) {
    return node_entry(node, [&](Node& of) { return place ? any_parameters_of(of, *place) : Status::invalid_value; });
}
