// SPDX-License-Identifier: Apache-2.0
// Graphs as programs build them: nodes of work and the edges between them.
#pragma once

#include "runtime/base/status.h"
#include "runtime/graph/node_work.h"
#include "runtime/launch/conditional_value.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace ptarmigan::runtime {

class Graph;
class UserObject;

/// CUgraphEdgeData. Ports and types other than 0 allow a kernel to start earlier; here none does.
struct EdgeData {
    std::uint8_t from_port = 0, to_port = 0, type = 0;
    bool operator==(const EdgeData&) const = default;
    bool is_plain() const { return *this == EdgeData{}; }
};

/// One node. Its members are guarded by graph_mutex(). Handles are found in HandleTable<Node> until the node, or its
/// graph, is destroyed.
class Node : public std::enable_shared_from_this<Node> {
public:
    struct Link {
        Node* node;
        EdgeData data;
    };
    /// For Graph::add(), which links it.
    Node(Graph& graph, NodeWork work, std::uint64_t copy_of = 0);

    NodeType type() const { return type_of(work); }
    std::uint64_t id() const { return id_; }
    /// The node that this one was cloned from; 0: none.
    std::uint64_t copy_of() const { return copy_of_; }
    Graph* graph() const { return graph_; }
    const std::vector<Link>& before() const { return before_; }
    const std::vector<Link>& after() const { return after_; }

    NodeWork work;

private:
    friend class Graph;
    Graph* graph_;
    const std::uint64_t id_, copy_of_;
    std::vector<Link> before_, after_;
};

/// Guards all graphs, their nodes and captures: building is not the fast part, and one lock has no order. No work runs
/// and nothing of the program's is called under it.
std::recursive_mutex& graph_mutex();

/// Everything but the constructor with graph_mutex() held. Handles are found in HandleTable<Graph>.
class Graph : public std::enable_shared_from_this<Graph> {
public:
    /// Who a graph belongs to, besides the program: a child graph's node, a conditional node, a capture.
    enum class Owner : std::uint8_t { program, child_node, moved_child, conditional_node };

    Graph() = default;
    ~Graph();
    /// Empty, and with a handle.
    static std::shared_ptr<Graph> create(Owner owner = Owner::program);

    /// In the order in which they were added.
    const std::vector<std::shared_ptr<Node>>& nodes() const { return nodes_; }
    Owner owner() const { return owner_; }
    void set_owner(Owner owner, Graph* parent) { owner_ = owner, parent_ = parent; }
    /// The graph whose node it belongs to; null: none.
    Graph* parent() const { return parent_; }
    std::uint64_t id() const { return id_; }

    /// Adds a node behind `before`, which are nodes of this graph, each once.
    std::shared_ptr<Node> add(NodeWork work, const std::vector<Node::Link>& before, std::uint64_t copy_of = 0);
    /// invalid_value if there is such an edge, or if its ends are one node.
    Status link(Node& from, Node& to, EdgeData data);
    /// invalid_value if there is no such edge; without `data` whatever its data.
    Status cut(Node& from, Node& to, std::optional<EdgeData> data);
    bool has_edge(const Node& from, const Node& to) const;
    /// Takes the node, its edges and what it owns away.
    void remove(Node& node);
    /// Invalidates the handles of the graph, its nodes and the graphs in them.
    void forget_handles();

    /// A copy with everything in it. Nodes remember what they are copies of.
    std::shared_ptr<Graph> clone(Owner owner = Owner::program) const;
    /// The copy in this graph of a node of the graph that it was cloned from; null if there is none.
    Node* find_copy_of(const Node& node) const;
    /// The graph that it was cloned from; 0: none.
    std::uint64_t clone_of() const { return clone_of_; }

    /// Nodes so that each comes behind those that it waits for; empty if there is a circle.
    std::vector<Node*> in_order() const;
    /// True if `what` holds for a node of this graph or of graphs inside.
    bool any_node(const std::function<bool(const Node&)>& what) const;

    /// References to user objects, by object.
    std::map<std::shared_ptr<UserObject>, unsigned> user_objects;
    /// The values that conditional nodes of this graph may use.
    std::vector<std::shared_ptr<ConditionalValue>> conditional_values;
    /// Instances that are alive, of graphs that may have one only.
    std::weak_ptr<void> only_instance;
    bool is_captured = false; ///< streams record into it now
    /// Something was added that forbids this to be cloned or to be a child: memory, conditional nodes.
    bool has_memory_nodes() const;
    bool has_conditional_nodes() const;

private:
    std::vector<std::shared_ptr<Node>> nodes_;
    Owner owner_ = Owner::program;
    Graph* parent_ = nullptr;
    std::uint64_t id_ = next_id();
    std::uint64_t clone_of_ = 0;
    static std::uint64_t next_id();
};

/// CUuserObject: memory of the program's that graphs hold, and the function that frees it when the last reference
/// goes. Called on a thread of the runtime's, without locks.
class UserObject : public std::enable_shared_from_this<UserObject> {
public:
    UserObject(void* pointer, void (*destroy)(void*), unsigned references)
        : pointer_(pointer), destroy_(destroy), references_(references) {}
    static std::shared_ptr<UserObject> create(void* pointer, void (*destroy)(void*), unsigned references);
    /// With graph_mutex(). `count` references more, or fewer: false if there are not so many.
    void retain(unsigned count) { references_ += count; }
    bool release(unsigned count);

private:
    void* const pointer_;
    void (*const destroy_)(void*);
    std::uint64_t references_;
};

} // namespace ptarmigan::runtime
