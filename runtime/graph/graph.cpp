// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph/graph.h"

#include "runtime/base/handle_table.h"
#include "runtime/graph/graph_memory.h"
#include "runtime/module/module.h"
#include "runtime/stream/dispatcher.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <unordered_map>

namespace ptarmigan::runtime {
namespace {

std::atomic<std::uint64_t> next_node_id{1};

/// Takes away the links that `is` accepts; the last one comes in their place, as in the driver's lists. How many.
template <class Is> std::size_t take_links(std::vector<Node::Link>& links, const Is& is) {
    std::size_t taken = 0;
    for (std::size_t i = 0; i < links.size();) {
        if (!is(links[i])) {
            ++i;
            continue;
        }
        links[i] = links.back();
        links.pop_back();
        ++taken;
    }
    return taken;
}

} // namespace

std::recursive_mutex& graph_mutex() {
    static auto* mutex = new std::recursive_mutex; // never destroyed: programs call in from their exit handlers
    return *mutex;
}

Context& KernelWork::context() const {
    return module->context();
}

Node::Node(Graph& graph, NodeWork given, std::uint64_t copy_of)
    : work(std::move(given)), graph_(&graph), id_(next_node_id.fetch_add(1, std::memory_order_relaxed)),
      copy_of_(copy_of) {}

std::uint64_t Graph::next_id() {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
}

std::shared_ptr<Graph> Graph::create(Owner owner) {
    auto graph = std::make_shared<Graph>();
    graph->owner_ = owner;
    HandleTable<Graph>::get().add(graph);
    return graph;
}

Graph::~Graph() {
    std::lock_guard lock(graph_mutex());
    for (const auto& node : nodes_) node->graph_ = nullptr;
    for (const auto& [object, count] : user_objects) static_cast<void>(object->release(count));
}

std::shared_ptr<Node> Graph::add(NodeWork work, const std::vector<Node::Link>& before, std::uint64_t copy_of) {
    auto node = std::make_shared<Node>(*this, std::move(work), copy_of);
    for (const Node::Link& link : before) {
        node->before_.push_back(link);
        link.node->after_.push_back({node.get(), link.data});
    }
    nodes_.push_back(node);
    if (const auto* allocate = std::get_if<AllocateWork>(&node->work); allocate && copy_of == 0)
        allocate->memory->graph_id = id_;
    if (const auto* free = std::get_if<FreeWork>(&node->work); free && free->memory->graph_id == id_)
        free->memory->is_freed_in_graph = true;
    HandleTable<Node>::get().add(node);
    return node;
}

bool Graph::has_edge(const Node& from, const Node& to) const {
    return std::any_of(to.before_.begin(), to.before_.end(),
                       [&](const Node::Link& link) { return link.node == &from; });
}

Status Graph::link(Node& from, Node& to, EdgeData data) {
    if (&from == &to || has_edge(from, to)) return Status::invalid_value;
    from.after_.push_back({&to, data});
    to.before_.push_back({&from, data});
    return Status::success;
}

Status Graph::cut(Node& from, Node& to, std::optional<EdgeData> data) {
    const auto is = [&](const Node& node) {
        return [&, wanted = &node](const Node::Link& link) {
            return link.node == wanted && (!data || link.data == *data);
        };
    };
    if (take_links(from.after_, is(to)) == 0) return Status::invalid_value;
    take_links(to.before_, is(from));
    return Status::success;
}

namespace {

/// Graphs that a node owns.
std::vector<std::shared_ptr<Graph>> graphs_in(const Node& node) {
    if (const auto* child = std::get_if<ChildWorkOfGraph>(&node.work)) return {child->graph};
    if (const auto* conditional = std::get_if<ConditionalWork>(&node.work)) return conditional->bodies;
    return {};
}

} // namespace

void Graph::remove(Node& node) {
    const auto is_node = [&](const Node::Link& link) { return link.node == &node; };
    for (const Node::Link& link : node.before_) take_links(link.node->after_, is_node);
    for (const Node::Link& link : node.after_) take_links(link.node->before_, is_node);
    for (const auto& graph : graphs_in(node)) graph->forget_handles();
    if (const auto* conditional = std::get_if<ConditionalWork>(&node.work)) conditional->value->used = false;
    HandleTable<Node>::get().remove(&node);
    node.graph_ = nullptr;
    std::erase_if(nodes_, [&](const auto& one) { return one.get() == &node; });
}

void Graph::forget_handles() {
    HandleTable<Graph>::get().remove(this);
    for (const auto& node : nodes_) {
        HandleTable<Node>::get().remove(node.get());
        for (const auto& graph : graphs_in(*node)) graph->forget_handles();
    }
}

std::shared_ptr<Graph> Graph::clone(Owner owner) const {
    std::shared_ptr<Graph> copy = create(owner);
    copy->clone_of_ = id_;
    std::unordered_map<const Node*, Node*> twins;
    for (const auto& node : nodes_) {
        NodeWork work = node->work;
        const auto adopt = [&](std::shared_ptr<Graph>& graph) {
            graph = graph->clone(graph->owner());
            graph->parent_ = copy.get();
        };
        if (auto* child = std::get_if<ChildWorkOfGraph>(&work)) adopt(child->graph);
        if (auto* conditional = std::get_if<ConditionalWork>(&work))
            for (auto& body : conditional->bodies) adopt(body);
        twins[node.get()] = copy->add(std::move(work), {}, node->id()).get();
    }
    for (const auto& node : nodes_) {
        Node& twin = *twins.at(node.get());
        for (const Node::Link& link : node->before_) { // in this order, as the driver's clones have them
            twin.before_.push_back({twins.at(link.node), link.data});
            twins.at(link.node)->after_.push_back({&twin, link.data});
        }
    }
    copy->user_objects = user_objects;
    for (const auto& [object, count] : user_objects) object->retain(count);
    copy->conditional_values = conditional_values;
    return copy;
}

Node* Graph::find_copy_of(const Node& node) const {
    for (const auto& one : nodes_)
        if (one->copy_of() == node.id()) return one.get();
    return nullptr;
}

std::vector<Node*> Graph::in_order() const {
    std::unordered_map<const Node*, std::size_t> waits;
    std::vector<Node*> order;
    order.reserve(nodes_.size());
    for (const auto& node : nodes_) {
        waits[node.get()] = node->before_.size();
        if (node->before_.empty()) order.push_back(node.get());
    }
    for (std::size_t next = 0; next < order.size(); ++next)
        for (const Node::Link& link : order[next]->after_)
            if (--waits[link.node] == 0) order.push_back(link.node);
    if (order.size() != nodes_.size()) order.clear();
    return order;
}

bool Graph::any_node(const std::function<bool(const Node&)>& what) const {
    return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
        if (what(*node)) return true;
        const auto inside = graphs_in(*node);
        return std::any_of(inside.begin(), inside.end(), [&](const auto& graph) { return graph->any_node(what); });
    });
}

bool Graph::has_memory_nodes() const {
    return any_node(
        [](const Node& node) { return node.type() == NodeType::allocate || node.type() == NodeType::free; });
}

bool Graph::has_conditional_nodes() const {
    return any_node([](const Node& node) { return node.type() == NodeType::conditional; });
}

std::shared_ptr<UserObject> UserObject::create(void* pointer, void (*destroy)(void*), unsigned references) {
    auto object = std::make_shared<UserObject>(pointer, destroy, references);
    HandleTable<UserObject>::get().add(object);
    return object;
}

bool UserObject::release(unsigned count) {
    if (count > references_) return false;
    references_ -= count;
    if (references_ > 0) return true;
    HandleTable<UserObject>::get().remove(this);
    Dispatcher::get().run_later([destroy = destroy_, pointer = pointer_] { destroy(pointer); },
                                std::chrono::microseconds{0});
    return true;
}

} // namespace ptarmigan::runtime
