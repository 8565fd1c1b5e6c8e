// SPDX-License-Identifier: Apache-2.0
#include "runtime/shim/graph_edges.h"

#include <algorithm>

namespace ptarmigan::shim {

runtime::EdgeData make_edge(const CUgraphEdgeData& given) {
    return {given.from_port, given.to_port, given.type};
}

CUgraphEdgeData edge_of(const runtime::EdgeData& data) {
    return {data.from_port, data.to_port, data.type, {}};
}

Status make_links(const runtime::Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count,
                  std::vector<Node::Link>& links, Repeated repeated) {
    links.clear();
    if (count > 0 && !nodes) return Status::invalid_value;
    for (std::size_t i = 0; i < count; ++i) {
        const auto node = find_handle<Node>(nodes[i]);
        if (!node || node->graph() != &graph) return Status::invalid_value;
        const runtime::EdgeData edge = data ? make_edge(data[i]) : runtime::EdgeData{};
        if (std::any_of(links.begin(), links.end(), [&](const Node::Link& link) { return link.node == node.get(); })) {
            if (repeated == Repeated::refused) return Status::invalid_value;
            continue;
        }
        links.push_back({node.get(), edge});
    }
    return Status::success;
}

namespace {

/// Ports are of kernels, and what is not plain leads to kernels.
Status check_data(const CUgraphEdgeData& data, bool from_kernel, bool to_kernel) {
    constexpr unsigned char launch_order_port = 2, programmatic = 1;
    for (unsigned char byte : data.reserved)
        if (byte) return Status::invalid_value;
    if (data.to_port || data.from_port > launch_order_port || data.type > programmatic) return Status::invalid_value;
    if (data.from_port == 0 && data.type == 0) return Status::success;
    const bool fits = data.type == programmatic ? from_kernel && to_kernel && data.from_port != 0
                                                : from_kernel && data.from_port == launch_order_port;
    return fits ? Status::success : Status::invalid_value;
}

CUgraphEdgeData edge_of_link(const Node::Link& link) {
    return edge_of(link.data);
}

} // namespace

Status check_links(const std::vector<Node::Link>& links, const NodeWork& work) {
    const bool to_kernel = runtime::type_of(work) == runtime::NodeType::kernel;
    for (const Node::Link& link : links) {
        const Status status = check_data(edge_of_link(link), link.node->type() == runtime::NodeType::kernel, to_kernel);
        if (status != Status::success) return status;
    }
    return Status::success;
}

Status check_edge(const Node& from, const Node& to, const CUgraphEdgeData& data) {
    return check_data(data, from.type() == runtime::NodeType::kernel, to.type() == runtime::NodeType::kernel);
}

} // namespace ptarmigan::shim
