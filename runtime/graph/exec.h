// SPDX-License-Identifier: Apache-2.0
// Instantiated graphs: CUgraphExec.
#pragma once

#include "runtime/base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/program.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace ptarmigan::runtime {

/// CUgraphInstantiateResult.
enum class InstantiateResult : int {
    success = 0,
    error = 1,
    invalid_structure = 2,
    operation_not_supported = 3,
    multiple_contexts = 4,
    conditional_handle_unused = 5,
};

/// CUgraphExecUpdateResult.
enum class UpdateResult : int {
    success = 0,
    error = 1,
    topology_changed = 2,
    node_type_changed = 3,
    function_changed = 4,
    parameters_changed = 5,
    not_supported = 6,
    unsupported_function_change = 7,
    attributes_changed = 8,
};

/// Why an instantiation failed, and at which node (of the program's graph).
struct InstantiateReport {
    InstantiateResult result = InstantiateResult::success;
    const Node* node = nullptr;
};
/// Why an update failed, and at which node.
struct UpdateReport {
    UpdateResult result = UpdateResult::success;
    const Node *node = nullptr, *from = nullptr; ///< of the graph that was to be the new one
};

/// Thread-safe. Handles are found in HandleTable<GraphExec>. Launches that were made keep what they run.
class GraphExec : public std::enable_shared_from_this<GraphExec> {
public:
    /// CUgraphInstantiate_flags.
    enum Flags : unsigned { auto_free = 1, upload = 2, device_launch = 4, node_priority = 8, all_flags = 15 };

    /// Of a copy of `graph`, which may change or go afterwards. `report` is set where the graph itself is to blame.
    static Status instantiate(const std::shared_ptr<Graph>& graph, std::uint64_t flags, InstantiateReport& report,
                              std::shared_ptr<GraphExec>& exec);
    /// Removes the handle; what runs goes on.
    static Status destroy(const void* handle);
    ~GraphExec();

    std::uint64_t flags() const { return flags_; }
    std::uint64_t id() const { return id_; }
    /// A copy of the graph that it was made of, with later changes.
    std::shared_ptr<Graph> copy_of_graph() const;
    bool has_memory_nodes() const { return !allocations_.empty() || !frees_.empty(); }

    /// Puts a run of what it is now into `stream`, and returns; launches of one GraphExec follow each other, whatever
    /// their streams. A stream that captures refuses it.
    Status launch(Stream& stream);
    /// cuGraphUpload: counts the memory that its launches will need.
    void reserve_memory() const;
    /// All steps and then the graphs that its kernels launched for then. One at a time.
    void run(const std::shared_ptr<const Program>& program, const GraphLaunch& launch);
    /// For a kernel of another graph's launch `parent`, on this thread and now; call_from_device() has allowed it.
    void run_from_device(const GraphLaunch& parent);
    /// False if it runs, or is going to: a graph that a kernel launches may not.
    bool call_from_device();
    bool is_running() const { return is_running_.load(std::memory_order_relaxed); }
    /// cuGraphExecUpdate.
    Status update(Graph& graph, UpdateReport& report);
    /// cuGraphExecXxxNodeSetParams: `node` is one of the graph that it was made of.
    Status work_of(const Node& node, NodeWork& work) const;
    Status set_work(const Node& node, NodeWork work);
    Status set_child(const Node& node, Graph& graph);
    Status set_enabled(const Node& node, bool enabled);
    Status enabled(const Node& node, bool& enabled) const;

private:
    struct Entry {
        std::shared_ptr<Step> step;
        bool enabled = true;
    };
    /// A graph, without the graphs of child nodes, which are part of it: where its nodes stand in the list. Null: ends
    /// of child graphs.
    struct Layout {
        std::shared_ptr<const Topology> topology;
        std::vector<const Node*> nodes;
    };

    Status check(const Graph& graph, InstantiateReport& report) const;
    Status make_entries(const Graph& graph);
    Status make_entry(const Node& node);
    void lay_out(const Graph& graph);
    std::shared_ptr<const Program> program_of(const Graph& graph);
    const std::shared_ptr<const Program>& program();
    Node* find(const Node& node) const;
    Status change(const std::vector<std::pair<Node*, Node*>>& pairs, UpdateReport& report);
    Status take_memory();
    void measure_memory();

    void run_once(const std::shared_ptr<const Program>& program, const GraphLaunch& launch);
    std::shared_ptr<const Program> current_program();

    std::mutex running_; ///< held while its steps run: they are used again. Taken with no other lock
    std::atomic<bool> is_running_{false};
    std::atomic<bool> is_called_{false}; ///< by a kernel, and has not ended
    mutable std::mutex mutex_;           ///< guards everything; graph_mutex() may be taken under it
    std::shared_ptr<Graph> blueprint_;
    std::shared_ptr<Graph> source_; ///< whose only instance this is
    std::unordered_map<std::uint64_t, Node*>
        nodes_; ///< of the blueprint and the graphs in it, by the id of whose copy they are
    std::unordered_map<const Node*, Entry> entries_;   ///< of the blueprint's nodes
    std::unordered_map<const Graph*, Layout> layouts_; ///< of the blueprint and of conditional bodies
    std::vector<std::shared_ptr<GraphMemory>> allocations_, frees_;
    std::uint64_t memory_bytes_ = 0;         ///< of all allocations, where one is made of what another has freed
    std::shared_ptr<const Program> program_; ///< null: to be made of the entries
    std::shared_ptr<Operation> last_launch_;
    std::uint64_t flags_ = 0, id_ = 0;
    bool has_node_priorities_ = false;
    Context* context_ = nullptr; ///< that kernels run in; null: any
};

/// The order in which the driver pairs and numbers nodes: from those that nobody waits for, in the order in which they
/// were made, each behind those that it waits for.
std::vector<Node*> pairing_order(const Graph& graph);
/// Pairs the nodes of two graphs as cuGraphExecUpdate does. False, with what does not fit in `report`, if they have
/// another structure or types.
bool pair_nodes(const Graph& old_graph, const Graph& new_graph, std::vector<std::pair<Node*, Node*>>& pairs,
                UpdateReport& report);
/// What cuGraphExecUpdate says of a node whose work becomes `changed`.
UpdateResult compare_works(const NodeWork& old_work, const NodeWork& changed);

} // namespace ptarmigan::runtime
