// SPDX-License-Identifier: Apache-2.0
// Graphs: nodes without parameters, edges, queries, clones, user objects.
#include "runtime/graph/dot.h"
#include "runtime/graph/graph_memory.h"
#include "runtime/shim/graph_conversion.h"
#include "runtime/shim/graph_edges.h"

#include <algorithm>
#include <optional>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Graph;
using runtime::NodeType;
using runtime::UserObject;

namespace {

/// Lists of nodes as the driver gives them: `count` is the room, and then how many there are; what is left of the room
/// is nulled.
Status list(std::size_t* count, std::size_t there, CUgraphNode* first, const auto& fill) {
    if (!count) return Status::invalid_value;
    if (!first) {
        *count = there;
        return Status::success;
    }
    const std::size_t room = *count;
    if (room == 0) return Status::invalid_value;
    for (std::size_t i = 0; i < room; ++i) fill(i, i < there);
    *count = std::min(room, there);
    return Status::success;
}

CUgraphNode handle_of(const Node* node) {
    return reinterpret_cast<CUgraphNode>(const_cast<Node*>(node));
}

Status list_nodes(const std::vector<const Node*>& nodes, CUgraphNode* places, std::size_t* count) {
    return list(count, nodes.size(), places,
                [&](std::size_t i, bool there) { places[i] = there ? handle_of(nodes[i]) : nullptr; });
}

/// `has_data`: the caller's form has a place for the data of edges, which it may leave null.
Status list_links(const std::vector<Node::Link>& links, CUgraphNode* places, CUgraphEdgeData* data,
                  std::size_t* count) {
    if (!places && data) return Status::invalid_value;
    const bool lossy = places && !data && std::any_of(links.begin(), links.end(), [](const Node::Link& link) {
                           return !link.data.is_plain();
                       });
    if (lossy) return Status::lossy_query;
    return list(count, links.size(), places, [&](std::size_t i, bool there) {
        places[i] = there ? handle_of(links[i].node) : nullptr;
        if (data) data[i] = there ? edge_of(links[i].data) : CUgraphEdgeData{};
    });
}

CUresult get_edges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, std::size_t* count) {
    return graph_entry(graph, [&](Graph& of) {
        if ((from == nullptr) != (to == nullptr) || (!from && data)) return Status::invalid_value;
        struct Edge {
            const Node *from, *to;
            runtime::EdgeData data;
        };
        std::vector<Edge> edges;
        bool lossy = false;
        for (const auto& node : of.nodes())
            for (const Node::Link& link : node->after()) {
                edges.push_back({node.get(), link.node, link.data});
                lossy = lossy || !link.data.is_plain();
            }
        if (from && !data && lossy) return Status::lossy_query;
        return list(count, edges.size(), from, [&](std::size_t i, bool there) {
            from[i] = there ? handle_of(edges[i].from) : nullptr;
            to[i] = there ? handle_of(edges[i].to) : nullptr;
            if (data) data[i] = there ? edge_of(edges[i].data) : CUgraphEdgeData{};
        });
    });
}

CUresult change_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data,
                      std::size_t count, bool add) {
    return graph_entry(graph, [&](Graph& of) {
        if (count == 0) return Status::success;
        if (!from || !to) return Status::invalid_value;
        for (std::size_t i = 0; i < count; ++i) { // those before one that does not fit stay changed
            const auto first = find_handle<Node>(from[i]), second = find_handle<Node>(to[i]);
            if (!first || !second || first->graph() != &of || second->graph() != &of) return Status::invalid_value;
            const CUgraphEdgeData given = data ? data[i] : CUgraphEdgeData{};
            Status status = add ? check_edge(*first, *second, given) : Status::success;
            if (status == Status::success)
                status = add ? of.link(*first, *second, make_edge(given))
                             : of.cut(*first, *second, data ? std::optional(make_edge(given)) : std::nullopt);
            if (status != Status::success) return status;
        }
        return Status::success;
    });
}

} // namespace

PTM_API(cuGraphCreate, CUgraph* graph, unsigned flags) {
    return entry([&] {
        if (!graph || flags) return Status::invalid_value;
        *graph = to_handle<CUgraph>(Graph::create());
        return Status::success;
    });
}
PTM_API(cuGraphDestroy, CUgraph graph) {
    return graph_entry(graph, [](Graph& of) {
        if (of.owner() != Graph::Owner::program) return Status::invalid_value;
        if (of.is_captured) return Status::illegal_state;
        of.forget_handles();
        return Status::success;
    });
}
PTM_API(cuGraphClone, CUgraph* clone, CUgraph graph) {
    return graph_entry(graph, [&](Graph& of) {
        if (!clone) return Status::invalid_value;
        if (of.has_memory_nodes() || of.has_conditional_nodes()) return Status::not_supported;
        *clone = to_handle<CUgraph>(of.clone());
        return Status::success;
    });
}
PTM_API(cuGraphGetId, CUgraph graph, unsigned* id) {
    return graph_entry(graph, [&](Graph& of) {
        if (!id) return Status::invalid_value;
        *id = static_cast<unsigned>(of.id());
        return Status::success;
    });
}
PTM_API(cuGraphGetNodes, CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
    return graph_entry(graph, [&](Graph& of) {
        std::vector<const Node*> all;
        for (const auto& node : of.nodes()) all.push_back(node.get());
        return list_nodes(all, nodes, count);
    });
}
PTM_API(cuGraphGetRootNodes, CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
    return graph_entry(graph, [&](Graph& of) {
        std::vector<const Node*> roots;
        for (auto node = of.nodes().rbegin(); node != of.nodes().rend(); ++node) // the last one first
            if ((*node)->before().empty()) roots.push_back(node->get());
        return list_nodes(roots, nodes, count);
    });
}
PTM_API(cuGraphGetEdges, CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
    return get_edges(graph, from, to, nullptr, count);
}
PTM_API(cuGraphGetEdges_v2, CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
        std::size_t* count) {
    return get_edges(graph, from, to, data, count);
}
PTM_API(cuGraphNodeGetDependencies, CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
    return node_entry(node, [&](Node& of) { return list_links(of.before(), nodes, nullptr, count); });
}
PTM_API(cuGraphNodeGetDependencies_v2, CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data,
        std::size_t* count) {
    return node_entry(node, [&](Node& of) { return list_links(of.before(), nodes, data, count); });
}
PTM_API(cuGraphNodeGetDependentNodes, CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
    return node_entry(node, [&](Node& of) { return list_links(of.after(), nodes, nullptr, count); });
}
PTM_API(cuGraphNodeGetDependentNodes_v2, CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data,
        std::size_t* count) {
    return node_entry(node, [&](Node& of) { return list_links(of.after(), nodes, data, count); });
}
PTM_API(cuGraphAddDependencies, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
    return change_edges(graph, from, to, nullptr, count, true);
}
PTM_API(cuGraphAddDependencies_v2, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
        const CUgraphEdgeData* data, std::size_t count) {
    return change_edges(graph, from, to, data, count, true);
}
PTM_API(cuGraphRemoveDependencies, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
    return change_edges(graph, from, to, nullptr, count, false);
}
PTM_API(cuGraphRemoveDependencies_v2, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
        const CUgraphEdgeData* data, std::size_t count) {
    return change_edges(graph, from, to, data, count, false);
}
PTM_API(cuGraphDestroyNode, CUgraphNode node) {
    return node_entry(node, [](Node& of) {
        if (of.type() == NodeType::allocate || of.type() == NodeType::free) return Status::not_supported;
        of.graph()->remove(of);
        return Status::success;
    });
}
PTM_API(cuGraphNodeGetType, CUgraphNode node, int* type) {
    return node_entry(node, [&](Node& of) {
        if (!type) return Status::invalid_value;
        *type = static_cast<int>(of.type());
        return Status::success;
    });
}
PTM_API(cuGraphNodeGetContainingGraph, CUgraphNode node, CUgraph* graph) {
    return node_entry(node, [&](Node& of) {
        if (!graph) return Status::invalid_value;
        *graph = reinterpret_cast<CUgraph>(of.graph());
        return Status::success;
    });
}
PTM_API(cuGraphNodeGetLocalId, CUgraphNode node, unsigned* id) {
    return node_entry(node, [&](Node& of) {
        if (!id) return Status::invalid_value;
        const auto& nodes = of.graph()->nodes();
        *id = static_cast<unsigned>(
            std::find_if(nodes.begin(), nodes.end(), [&](const auto& one) { return one.get() == &of; }) -
            nodes.begin());
        return Status::success;
    });
}
PTM_API(cuGraphNodeGetToolsId, CUgraphNode node, unsigned long long* id) {
    return node_entry(node, [&](Node& of) {
        if (!id) return Status::invalid_value;
        *id = of.id();
        return Status::success;
    });
}
PTM_API(cuGraphNodeFindInClone, CUgraphNode* found, CUgraphNode node, CUgraph clone) {
    return graph_entry(clone, [&](Graph& in) {
        const auto original = find_handle<Node>(node);
        if (!found || !original) return Status::invalid_value;
        Node* twin = in.find_copy_of(*original);
        if (!twin) return Status::invalid_value;
        *found = handle_of(twin);
        return Status::success;
    });
}
PTM_API(cuGraphDebugDotPrint, CUgraph graph, const char* path, unsigned flags) {
    return graph_entry(graph,
                       [&](Graph& of) { return path ? runtime::print_dot(of, path, flags) : Status::invalid_value; });
}

// ---- user objects ----

PTM_API(cuUserObjectCreate, CUuserObject* object, void* pointer, CUhostFn destroy, unsigned references,
        unsigned flags) {
    return entry([&] {
        constexpr unsigned no_synchronization = 1;
        if (!object || !destroy || references == 0 || flags != no_synchronization) return Status::invalid_value;
        *object = to_handle<CUuserObject>(UserObject::create(pointer, destroy, references));
        return Status::success;
    });
}

namespace {

CUresult user_object_entry(CUuserObject handle, unsigned count, const auto& body) {
    return entry([&] {
        const auto object = find_handle<UserObject>(handle);
        if (!object || count == 0 || count > 0x7fffffffu) return Status::invalid_value;
        std::lock_guard lock(runtime::graph_mutex());
        return body(object);
    });
}

} // namespace

PTM_API(cuUserObjectRetain, CUuserObject object, unsigned count) {
    return user_object_entry(object, count, [&](const std::shared_ptr<UserObject>& of) {
        of->retain(count);
        return Status::success;
    });
}
PTM_API(cuUserObjectRelease, CUuserObject object, unsigned count) {
    return user_object_entry(object, count, [&](const std::shared_ptr<UserObject>& of) {
        return of->release(count) ? Status::success : Status::invalid_value;
    });
}
PTM_API(cuGraphRetainUserObject, CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
    return user_object_entry(object, count, [&](const std::shared_ptr<UserObject>& of) {
        const auto holder = find_handle<Graph>(graph);
        constexpr unsigned move = 1;
        if (!holder || flags > move) return Status::invalid_value;
        if (flags != move) of->retain(count);
        holder->user_objects[of] += count;
        return Status::success;
    });
}
PTM_API(cuGraphReleaseUserObject, CUgraph graph, CUuserObject object, unsigned count) {
    return user_object_entry(object, count, [&](const std::shared_ptr<UserObject>& of) {
        const auto holder = find_handle<Graph>(graph);
        if (!holder) return Status::invalid_value;
        const auto held = holder->user_objects.find(of);
        if (held == holder->user_objects.end()) return Status::success;
        const unsigned released = std::min(held->second, count); // more than it has: all that it has
        held->second -= released;
        if (held->second == 0) holder->user_objects.erase(held);
        static_cast<void>(of->release(released));
        return Status::success;
    });
}

// ---- memory of graphs ----

namespace {

CUresult graph_memory_entry(CUdevice device, const auto& body) {
    return entry([&] {
        if (device < 0 || device >= runtime::Device::count()) return Status::invalid_device;
        return body();
    });
}

} // namespace

PTM_API(cuDeviceGetGraphMemAttribute, CUdevice device, int attribute, void* value) {
    return graph_memory_entry(device, [&] {
        std::uint64_t number = 0;
        if (!value) return Status::invalid_value;
        const Status status = runtime::graph_memory_attribute(attribute, number);
        if (status == Status::success) *static_cast<std::uint64_t*>(value) = number;
        return status;
    });
}
PTM_API(cuDeviceSetGraphMemAttribute, CUdevice device, int attribute, void* value) {
    return graph_memory_entry(device, [&] {
        if (!value) return Status::invalid_value;
        return runtime::set_graph_memory_attribute(attribute, *static_cast<std::uint64_t*>(value));
    });
}
PTM_API(cuDeviceGraphMemTrim, CUdevice device) {
    return graph_memory_entry(device, [] {
        runtime::trim_graph_memory();
        return Status::success;
    });
}
