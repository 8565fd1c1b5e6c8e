// SPDX-License-Identifier: Apache-2.0
// What may change when an instantiated graph is updated, and which node is which.
#include "runtime/graph/exec.h"

#include <unordered_map>
#include <unordered_set>

namespace ptarmigan::runtime {
namespace {

using Pairs = std::vector<std::pair<Node*, Node*>>;

/// Appends the nodes that `node` waits for, in the order of its edges, and then the node, each once.
void append_with_those_before(const Node& node, std::unordered_set<const Node*>& known, std::vector<Node*>& order) {
    // No recursion: graphs may be long chains.
    std::vector<std::pair<const Node*, std::size_t>> path;
    if (known.insert(&node).second) path.emplace_back(&node, 0);
    while (!path.empty()) {
        auto& [last, next] = path.back();
        if (next < last->before().size()) {
            const Node* before = last->before()[next++].node;
            if (known.insert(before).second) path.emplace_back(before, 0);
        } else {
            order.push_back(const_cast<Node*>(last));
            path.pop_back();
        }
    }
}

bool pair(const Graph& old_graph, const Graph& new_graph, Pairs& pairs, UpdateReport& report) {
    const auto fail = [&](UpdateResult result, const Node* node) {
        report = {result, node, nullptr};
        return false;
    };
    const std::vector<Node*> old_order = pairing_order(old_graph), new_order = pairing_order(new_graph);
    if (old_order.size() != new_order.size() || old_graph.nodes().size() != new_graph.nodes().size())
        return fail(UpdateResult::topology_changed, nullptr);
    std::unordered_map<const Node*, const Node*> partner;
    for (std::size_t i = 0; i < old_order.size(); ++i) {
        Node &own = *old_order[i], &given = *new_order[i];
        if (own.type() != given.type()) return fail(UpdateResult::node_type_changed, &given);
        if (own.before().size() != given.before().size()) return fail(UpdateResult::topology_changed, &given);
        for (std::size_t edge = 0; edge < own.before().size(); ++edge)
            if (partner[own.before()[edge].node] != given.before()[edge].node ||
                own.before()[edge].data != given.before()[edge].data)
                return fail(UpdateResult::topology_changed, &given);
        partner[&own] = &given;
        pairs.emplace_back(&own, &given);
        if (const auto* child = std::get_if<ChildWorkOfGraph>(&own.work))
            if (!pair(*child->graph, *std::get<ChildWorkOfGraph>(given.work).graph, pairs, report)) return false;
        if (const auto* conditional = std::get_if<ConditionalWork>(&own.work)) {
            const auto& bodies = std::get<ConditionalWork>(given.work).bodies;
            if (bodies.size() != conditional->bodies.size()) return fail(UpdateResult::parameters_changed, &given);
            for (std::size_t body = 0; body < bodies.size(); ++body)
                if (!pair(*conditional->bodies[body], *bodies[body], pairs, report)) return false;
        }
    }
    return true;
}

bool is_cooperative(const KernelWork& work) {
    return work.config.cooperative;
}

struct Compare {
    UpdateResult operator()(const KernelWork& own, const KernelWork& given) const {
        if (&own.context() != &given.context()) return UpdateResult::function_changed;
        if (is_cooperative(own) != is_cooperative(given)) return UpdateResult::attributes_changed;
        return UpdateResult::success;
    }
    UpdateResult operator()(const CopyWork& own, const CopyWork& given) const {
        const auto kind = [](const CopyWork& work, std::size_t end) {
            const CopyBox::End& side = end == 0 ? work.box.source : work.box.destination;
            constexpr int array = -1;
            return side.array ? array : static_cast<int>(side.side);
        };
        const bool same_kinds = kind(own, 0) == kind(given, 0) && kind(own, 1) == kind(given, 1);
        const bool same_shape =
            (own.box.height > 1 || own.box.depth > 1) == (given.box.height > 1 || given.box.depth > 1);
        return same_kinds && same_shape && own.context == given.context ? UpdateResult::success
                                                                        : UpdateResult::parameters_changed;
    }
    UpdateResult operator()(const FillWork& own, const FillWork& given) const {
        const bool same_shape = (own.height > 1) == (given.height > 1);
        return own.context == given.context && same_shape ? UpdateResult::success : UpdateResult::parameters_changed;
    }
    UpdateResult operator()(const AllocateWork& own, const AllocateWork& given) const {
        return own.memory == given.memory ? UpdateResult::success : UpdateResult::parameters_changed;
    }
    UpdateResult operator()(const FreeWork& own, const FreeWork& given) const {
        return own.memory == given.memory ? UpdateResult::success : UpdateResult::parameters_changed;
    }
    UpdateResult operator()(const ConditionalWork& own, const ConditionalWork& given) const {
        return own.kind == given.kind && own.context == given.context ? UpdateResult::success
                                                                      : UpdateResult::parameters_changed;
    }
    template <class Own, class Given> UpdateResult operator()(const Own&, const Given&) const {
        return std::is_same_v<Own, Given> ? UpdateResult::success : UpdateResult::node_type_changed;
    }
};

} // namespace

std::vector<Node*> pairing_order(const Graph& graph) {
    std::vector<Node*> order;
    std::unordered_set<const Node*> known;
    for (const auto& node : graph.nodes())
        if (node->after().empty()) append_with_those_before(*node, known, order);
    return order;
}

bool pair_nodes(const Graph& old_graph, const Graph& new_graph, Pairs& pairs, UpdateReport& report) {
    return pair(old_graph, new_graph, pairs, report);
}

UpdateResult compare_works(const NodeWork& old_work, const NodeWork& changed) {
    return std::visit(Compare{}, old_work, changed);
}

} // namespace ptarmigan::runtime
