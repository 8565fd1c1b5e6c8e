// SPDX-License-Identifier: Apache-2.0
// From the driver's edges of graphs to links of nodes, and which edges there may be.
#pragma once

#include "runtime/graph/graph.h"
#include "runtime/shim/convert.h"
#include "runtime/shim/graph_types.h"

#include <cstddef>
#include <vector>

namespace ptarmigan::shim {

using runtime::Node;
using runtime::NodeWork;

runtime::EdgeData make_edge(const CUgraphEdgeData& given);
CUgraphEdgeData edge_of(const runtime::EdgeData& data);

/// What a node means that is named twice.
enum class Repeated : bool { refused, dropped };
/// The nodes of `graph` that a call names. invalid_value for null and for nodes of other graphs. With graph_mutex().
Status make_links(const runtime::Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count,
                  std::vector<Node::Link>& links, Repeated repeated = Repeated::refused);

/// Whether edges with such data can lead to such a node, and from one node to another.
Status check_links(const std::vector<Node::Link>& links, const NodeWork& work);
Status check_edge(const Node& from, const Node& to, const CUgraphEdgeData& data);

} // namespace ptarmigan::shim
