// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph/exec.h"

#include "runtime/base/handle_table.h"
#include "runtime/base/log.h"
#include "runtime/context/context.h"
#include "runtime/graph/graph_memory.h"
#include "runtime/launch/child_work.h"
#include "runtime/launch/grid.h"
#include "runtime/module/module.h"
#include "runtime/stream/dispatcher.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <set>
#include <utility>

namespace ptarmigan::runtime {
namespace {

std::atomic<std::uint64_t> next_exec_id{1};

/// Calls `visit` for each node, those of graphs inside too.
template <class Visit> void for_each_node(const Graph& graph, const Visit& visit) {
    for (const auto& node : graph.nodes()) {
        visit(*node);
        if (const auto* child = std::get_if<ChildWorkOfGraph>(&node->work)) for_each_node(*child->graph, visit);
        if (const auto* conditional = std::get_if<ConditionalWork>(&node->work))
            for (const auto& body : conditional->bodies) for_each_node(*body, visit);
    }
}

bool has_circle(const Graph& graph) {
    if (!graph.nodes().empty() && graph.in_order().empty()) return true;
    return graph.any_node([](const Node& node) {
        const auto circle = [](const std::shared_ptr<Graph>& inner) {
            return !inner->nodes().empty() && inner->in_order().empty();
        };
        if (const auto* child = std::get_if<ChildWorkOfGraph>(&node.work)) return circle(child->graph);
        const auto* conditional = std::get_if<ConditionalWork>(&node.work);
        return conditional && std::any_of(conditional->bodies.begin(), conditional->bodies.end(), circle);
    });
}

bool runs_on_device(const Node& node) {
    switch (node.type()) {
    case NodeType::kernel:
    case NodeType::copy:
    case NodeType::fill:
    case NodeType::child:
    case NodeType::empty: return true;
    default: return false;
    }
}

/// The list of a graph's steps with the graphs of its child nodes in place, and who waits for whom.
struct Lister {
    std::vector<const Node*> nodes;
    std::vector<std::vector<std::uint32_t>> followers;

    std::uint32_t place(const Node* node) {
        nodes.push_back(node);
        followers.emplace_back();
        return static_cast<std::uint32_t>(nodes.size() - 1);
    }
    /// Appends `graph`, its first nodes behind the step `before` (none: -1). The steps that nobody in it waits for.
    std::vector<std::uint32_t> list(const Graph& graph, std::int64_t before) {
        std::unordered_map<const Node*, std::vector<std::uint32_t>> ends; // of each node
        std::vector<std::uint32_t> last;
        for (const Node* node : graph.in_order()) {
            const std::uint32_t begin = place(node);
            if (node->before().empty() && before >= 0) followers[static_cast<std::size_t>(before)].push_back(begin);
            for (const Node::Link& link : node->before())
                for (std::uint32_t end : ends.at(link.node)) followers[end].push_back(begin);
            std::vector<std::uint32_t>& mine = ends[node];
            mine = {begin};
            if (const auto* child = std::get_if<ChildWorkOfGraph>(&node->work);
                child && !child->graph->nodes().empty()) {
                const std::vector<std::uint32_t> inside = list(*child->graph, begin);
                const std::uint32_t end = place(nullptr);
                for (std::uint32_t step : inside) followers[step].push_back(end);
                mine = {end};
            }
            if (node->after().empty()) last.insert(last.end(), mine.begin(), mine.end());
        }
        return last;
    }

    std::shared_ptr<const Topology> topology() const {
        auto topology = std::make_shared<Topology>();
        topology->waits.assign(nodes.size(), 0);
        for (std::uint32_t step = 0; step < nodes.size(); ++step) {
            topology->first_follower.push_back(static_cast<std::uint32_t>(topology->followers.size()));
            bool next = false;
            for (std::uint32_t follower : followers[step]) {
                topology->followers.push_back(follower);
                ++topology->waits[follower];
                next = next || follower == step + 1;
            }
            if (step + 1 < nodes.size() && !next) topology->is_chain = false;
        }
        topology->first_follower.push_back(static_cast<std::uint32_t>(topology->followers.size()));
        return topology;
    }
};

} // namespace

Status GraphExec::check(const Graph& graph, InstantiateReport& report) const {
    const auto fail = [&](InstantiateResult result, const Node* node, Status status) {
        report = {result, node};
        return status;
    };
    if (has_circle(graph)) return fail(InstantiateResult::invalid_structure, nullptr, Status::invalid_value);
    for (const auto& value : graph.conditional_values)
        if (!value->used) return fail(InstantiateResult::conditional_handle_unused, nullptr, Status::invalid_value);
    const Node* unfit = nullptr; // in a body of a conditional node
    const auto is_unfit = [&](const Node& node) {
        if (!runs_on_device(node) && node.type() != NodeType::conditional) unfit = &node;
        return unfit != nullptr;
    };
    graph.any_node([&](const Node& node) {
        if (const auto* conditional = std::get_if<ConditionalWork>(&node.work))
            for (const auto& body : conditional->bodies)
                if (!unfit) body->any_node(is_unfit);
        return unfit != nullptr;
    });
    if (unfit) return fail(InstantiateResult::operation_not_supported, unfit, Status::invalid_value);
    if (flags_ & device_launch) {
        if (graph.nodes().empty()) return fail(InstantiateResult::error, nullptr, Status::invalid_value);
        const Node* bad = nullptr;
        graph.any_node([&](const Node& node) {
            if (!runs_on_device(node)) bad = &node;
            return bad != nullptr;
        });
        if (bad) return fail(InstantiateResult::operation_not_supported, bad, Status::invalid_value);
    }
    return Status::success;
}

Status GraphExec::instantiate(const std::shared_ptr<Graph>& graph, std::uint64_t flags, InstantiateReport& report,
                              std::shared_ptr<GraphExec>& made) {
    auto exec = std::make_shared<GraphExec>();
    exec->flags_ = flags & (auto_free | device_launch); // all that the driver tells of later
    exec->has_node_priorities_ = (flags & node_priority) != 0;
    exec->id_ = next_exec_id.fetch_add(1, std::memory_order_relaxed);
    {
        std::lock_guard lock(graph_mutex());
        if (graph->owner() != Graph::Owner::program) return Status::not_supported;
        if (const Status status = exec->check(*graph, report); status != Status::success) return status;
        const bool only_one = graph->has_memory_nodes() || graph->has_conditional_nodes();
        if (only_one) {
            if (!graph->only_instance.expired()) {
                report = {InstantiateResult::error, nullptr};
                return Status::not_supported;
            }
            graph->only_instance = exec;
            exec->source_ = graph;
        }
        exec->blueprint_ = graph->clone(Graph::Owner::program);
        exec->blueprint_->forget_handles();
        for_each_node(*exec->blueprint_, [&](Node& node) { exec->nodes_[node.copy_of()] = &node; });
    }
    const Status status = exec->make_entries(*exec->blueprint_);
    if (status != Status::success) {
        report.result = InstantiateResult::error;
        return status;
    }
    exec->measure_memory();
    exec->lay_out(*exec->blueprint_);
    static_cast<void>(exec->program());
    HandleTable<GraphExec>::get().add(exec);
    made = std::move(exec);
    return Status::success;
}

Status GraphExec::destroy(const void* handle) {
    return HandleTable<GraphExec>::get().remove(handle) ? Status::success : Status::invalid_value;
}

GraphExec::~GraphExec() {
    std::lock_guard lock(graph_mutex()); // the blueprint's user objects
    source_ = nullptr;
    entries_.clear();
    blueprint_ = nullptr;
}

/// The work of all nodes becomes steps; memory nodes and contexts are noted.
Status GraphExec::make_entries(const Graph& graph) {
    Status failed = Status::success;
    for_each_node(graph, [&](const Node& node) {
        if (failed != Status::success) return;
        if (const auto* kernel = std::get_if<KernelWork>(&node.work)) {
            if (!context_) context_ = &kernel->context();
        }
        if (const auto* allocate = std::get_if<AllocateWork>(&node.work)) allocations_.push_back(allocate->memory);
        if (const auto* free = std::get_if<FreeWork>(&node.work)) frees_.push_back(free->memory);
        if (node.type() == NodeType::conditional) return; // of the programs inside: program_of()
        failed = make_entry(node);
    });
    return failed;
}

Status GraphExec::make_entry(const Node& node) {
    std::shared_ptr<Step> step;
    const Status status = make_step(node.work, {}, step);
    if (status == Status::success) entries_[&node].step = std::move(step);
    return status;
}

void GraphExec::lay_out(const Graph& graph) {
    Lister lister;
    lister.list(graph, -1);
    Layout& layout = layouts_[&graph];
    layout.topology = lister.topology();
    layout.nodes = std::move(lister.nodes);
    for_each_node(graph, [&](const Node& node) {
        if (const auto* conditional = std::get_if<ConditionalWork>(&node.work))
            for (const auto& body : conditional->bodies)
                if (!layouts_.contains(body.get())) lay_out(*body);
    });
}

std::shared_ptr<const Program> GraphExec::program_of(const Graph& graph) {
    const Layout& layout = layouts_.at(&graph);
    auto program = std::make_shared<Program>();
    program->topology = layout.topology;
    program->steps.reserve(layout.nodes.size());
    for (const Node* node : layout.nodes) {
        std::shared_ptr<Step> step;
        if (node) {
            if (const auto* conditional = std::get_if<ConditionalWork>(&node->work)) {
                std::vector<std::shared_ptr<const Program>> bodies;
                program->conditional_values.push_back(conditional->value);
                for (const auto& body : conditional->bodies) {
                    const auto& values = bodies.emplace_back(program_of(*body))->conditional_values;
                    program->conditional_values.insert(program->conditional_values.end(), values.begin(), values.end());
                }
                static_cast<void>(make_step(node->work, bodies, step));
            } else if (const Entry& entry = entries_.at(node); entry.enabled) {
                step = entry.step;
            }
        }
        program->steps.push_back(std::move(step));
    }
    return program;
}

const std::shared_ptr<const Program>& GraphExec::program() {
    if (!program_) program_ = program_of(*blueprint_);
    return program_;
}

std::shared_ptr<Graph> GraphExec::copy_of_graph() const {
    std::lock_guard lock(mutex_);
    std::lock_guard graphs(graph_mutex());
    return blueprint_->clone(Graph::Owner::child_node);
}

/// The driver lays out the memory of a graph once: an allocation behind the free of another takes its place.
void GraphExec::measure_memory() {
    if (allocations_.empty()) return;
    struct Block {
        std::size_t size;
        const Node* freed = nullptr;
    };
    const auto comes_before = [](const Node& first, const Node& node) {
        std::vector<const Node*> next{&node};
        std::set<const Node*> known;
        while (!next.empty()) {
            const Node* one = next.back();
            next.pop_back();
            if (one == &first) return true;
            if (!known.insert(one).second) continue;
            for (const Node::Link& link : one->before()) next.push_back(link.node);
        }
        return false;
    };
    std::vector<Block> blocks;
    std::unordered_map<const GraphMemory*, std::size_t> block_of;
    for (const Node* node : blueprint_->in_order()) {
        if (const auto* free = std::get_if<FreeWork>(&node->work)) {
            const auto block = block_of.find(free->memory.get());
            if (block != block_of.end()) blocks[block->second].freed = node;
        }
        const auto* allocate = std::get_if<AllocateWork>(&node->work);
        if (!allocate) continue;
        auto block = std::find_if(blocks.begin(), blocks.end(), [&](const Block& one) {
            return one.freed && one.size >= allocate->memory->size() && comes_before(*one.freed, *node);
        });
        if (block == blocks.end()) {
            memory_bytes_ += allocate->memory->size();
            block = blocks.insert(blocks.end(), {allocate->memory->size()});
        }
        block->freed = nullptr;
        block_of[allocate->memory.get()] = static_cast<std::size_t>(block - blocks.begin());
    }
}

/// What its nodes allocate is taken now, and what they free given back: in the order of launches, which is the order in
/// which the program may use it. invalid_value if memory of an earlier launch has not been freed.
Status GraphExec::take_memory() {
    for (const auto& memory : allocations_) {
        if (!memory->is_held()) continue;
        if (!(flags_ & auto_free)) return Status::invalid_value;
        static_cast<void>(memory->mark_free_pending());
    }
    for (const auto& memory : frees_) {
        const bool own = std::find(allocations_.begin(), allocations_.end(), memory) != allocations_.end();
        if (!own && !memory->is_held()) return Status::invalid_value;
    }
    const GraphFootprint footprint{id_, memory_bytes_};
    if (!allocations_.empty()) reserve_graph_memory(footprint);
    for (const auto& memory : allocations_) static_cast<void>(memory->take(footprint));
    for (const auto& memory : frees_) static_cast<void>(memory->mark_free_pending());
    return Status::success;
}

void GraphExec::reserve_memory() const {
    if (!allocations_.empty()) reserve_graph_memory({id_, memory_bytes_});
}

Status GraphExec::launch(Stream& stream) {
    std::shared_ptr<StreamRecorder> recorder;
    if (const Status status = stream.begin_work(recorder); status != Status::success) return status;
    if (recorder) return recorder->forbid(); // as the driver does
    std::lock_guard lock(mutex_);
    if (has_memory_nodes())
        if (const Status status = take_memory(); status != Status::success) return status;
    auto launch = std::make_shared<GraphLaunch>();
    launch->exec = shared_from_this();
    launch->stream = &stream;
    launch->context = &stream.context();
    if (!has_node_priorities_) launch->priority = stream.priority();
    const std::shared_ptr<const Program> program = this->program();
    for (const auto& step : program->steps)
        if (step) step->prepare(*launch, stream);
    if (last_launch_) stream.wait_for(last_launch_); // one launch of an instance runs at a time
    last_launch_ = stream.submit([program, launch] { launch->exec->run(program, *launch); }, Stream::Start::elsewhere);
    return Status::success;
}

void GraphExec::run(const std::shared_ptr<const Program>& program, const GraphLaunch& launch) {
    run_once(program, launch);
    // Graphs that end by launching others, or themselves again, go on for as long as they like: no recursion.
    std::deque<std::shared_ptr<GraphExec>> next(launch.tails.begin(), launch.tails.end());
    while (!next.empty()) {
        GraphLaunch tail;
        tail.exec = std::move(next.front());
        next.pop_front();
        tail.stream = launch.stream;
        tail.context = launch.context;
        tail.exec->run_once(tail.exec->current_program(), tail);
        next.insert(next.begin(), tail.tails.begin(), tail.tails.end());
    }
}

void GraphExec::run_once(const std::shared_ptr<const Program>& program, const GraphLaunch& launch) {
    std::lock_guard lock(running_);
    is_running_.store(true, std::memory_order_relaxed);
    // "At the beginning of each graph execution" (cuGraphConditionalHandleCreate): an earlier launch looks at them
    // until it has ended.
    for (const auto& value : program->conditional_values)
        if (value->assign_default) value->set(value->default_value);
    run_program(program, launch);
    is_running_.store(false, std::memory_order_relaxed);
}

std::shared_ptr<const Program> GraphExec::current_program() {
    std::lock_guard lock(mutex_);
    return program();
}

void GraphExec::run_from_device(const GraphLaunch& parent) {
    // Device graphs have no nodes that prepare for a launch.
    GraphLaunch launch;
    launch.exec = shared_from_this();
    launch.stream = parent.stream;
    launch.context = parent.context;
    run(current_program(), launch);
    is_called_.store(false, std::memory_order_release);
}

bool GraphExec::call_from_device() {
    return !is_running_.load(std::memory_order_relaxed) && !is_called_.exchange(true, std::memory_order_acquire);
}

namespace {

/// Streams of cudaGraphLaunch in device code.
enum DeviceGraphStream : std::uint64_t {
    graph_tail = 0x0100000000000000,
    graph_fire_and_forget = 0x0200000000000000,
    graph_sibling = 0x0300000000000000,
};

int launch_from_device(Grid& grid, std::uint64_t handle, std::uint64_t stream) {
    const auto* launch = static_cast<const GraphLaunch*>(grid.graph_launch);
    if (!launch) return ChildWork::invalid_value; // of a grid that is no node
    const std::shared_ptr<GraphExec> exec =
        handle == 0 ? launch->exec : HandleTable<GraphExec>::get().find(reinterpret_cast<const void*>(handle));
    if (!exec || !(exec->flags() & GraphExec::device_launch)) return ChildWork::invalid_value;
    switch (stream) {
    case graph_tail: {
        if (exec != launch->exec && exec->is_running()) return ChildWork::invalid_value;
        std::lock_guard lock(launch->mutex);
        launch->tails.push_back(exec);
        return ChildWork::success;
    }
    case graph_fire_and_forget:
    case graph_sibling: {
        // "Launching a device graph from the device while a previous launch of the graph is running will cause an
        // error" (CUDA programming guide): it would wait for itself.
        if (exec == launch->exec || !exec->call_from_device()) return ChildWork::invalid_value;
        auto item = std::make_unique<ChildItem>();
        item->host_work = [exec, launch] {
            exec->run_from_device(*launch);
            return true;
        };
        child_work_of(grid).add(std::move(item), ChildWork::fire_and_forget);
        return ChildWork::success;
    }
    default: return ChildWork::invalid_value;
    }
}

[[maybe_unused]] const bool device_launches_known = [] {
    device_graph_launch.store(&launch_from_device, std::memory_order_release);
    return true;
}();

} // namespace

Node* GraphExec::find(const Node& node) const {
    const auto found = nodes_.find(node.id());
    return found == nodes_.end() ? nullptr : found->second;
}

Status GraphExec::set_enabled(const Node& node, bool enabled) {
    std::lock_guard lock(mutex_);
    const Node* mine = find(node);
    if (!mine) return Status::invalid_value;
    const NodeType type = mine->type();
    if (type != NodeType::kernel && type != NodeType::copy && type != NodeType::fill) return Status::invalid_value;
    entries_.at(mine).enabled = enabled;
    program_ = nullptr;
    return Status::success;
}

Status GraphExec::enabled(const Node& node, bool& enabled) const {
    std::lock_guard lock(mutex_);
    const Node* mine = find(node);
    if (!mine) return Status::invalid_value;
    const NodeType type = mine->type();
    if (type != NodeType::kernel && type != NodeType::copy && type != NodeType::fill) return Status::invalid_value;
    enabled = entries_.at(mine).enabled;
    return Status::success;
}

Status GraphExec::work_of(const Node& node, NodeWork& work) const {
    std::lock_guard lock(mutex_);
    const Node* mine = find(node);
    if (!mine) return Status::invalid_value;
    work = mine->work;
    return Status::success;
}

Status GraphExec::set_work(const Node& node, NodeWork work) {
    std::lock_guard lock(mutex_);
    std::lock_guard graphs(graph_mutex());
    Node* mine = find(node);
    if (!mine || mine->type() != type_of(work)) return Status::invalid_value;
    if (compare_works(mine->work, work) != UpdateResult::success) return Status::invalid_value;
    std::swap(mine->work, work);
    const Status status = make_entry(*mine);
    if (status != Status::success) std::swap(mine->work, work);
    program_ = nullptr;
    return status;
}

/// Gives the first of each pair the work of the second. `report`: the first that can't be changed so.
Status GraphExec::change(const std::vector<std::pair<Node*, Node*>>& pairs, UpdateReport& report) {
    for (const auto& [own, given] : pairs) {
        report = {compare_works(own->work, given->work), given, nullptr};
        if (report.result != UpdateResult::success) return Status::graph_exec_update_failure;
    }
    for (const auto& [own, given] : pairs) {
        if (own->type() == NodeType::child) continue;
        if (auto* conditional = std::get_if<ConditionalWork>(&own->work)) {
            // "Handle flags and default values are updated" (cuGraphExecUpdate): the kernels of `given` set its value.
            conditional->value = std::get<ConditionalWork>(given->work).value;
            continue;
        }
        own->work = given->work;
        if (make_entry(*own) == Status::success) continue;
        report = {UpdateResult::error, given, nullptr};
        return Status::graph_exec_update_failure;
    }
    report = {};
    program_ = nullptr;
    return Status::success;
}

Status GraphExec::set_child(const Node& node, Graph& graph) {
    std::lock_guard lock(mutex_);
    std::lock_guard graphs(graph_mutex());
    Node* mine = find(node);
    if (!mine || mine->type() != NodeType::child) return Status::invalid_value;
    UpdateReport report;
    std::vector<std::pair<Node*, Node*>> pairs;
    if (!pair_nodes(*std::get<ChildWorkOfGraph>(mine->work).graph, graph, pairs, report))
        return Status::graph_exec_update_failure;
    return change(pairs, report);
}

Status GraphExec::update(Graph& graph, UpdateReport& report) {
    std::lock_guard lock(mutex_);
    std::lock_guard graphs(graph_mutex());
    std::vector<std::pair<Node*, Node*>> pairs;
    if (!pair_nodes(*blueprint_, graph, pairs, report)) return Status::graph_exec_update_failure;
    if (const Status status = change(pairs, report); status != Status::success) return status;
    nodes_.clear();
    for (const auto& [own, given] : pairs) nodes_[given->id()] = own;
    for_each_node(*blueprint_, [&](Node& node) { nodes_.emplace(node.copy_of(), &node); });
    return Status::success;
}

} // namespace ptarmigan::runtime
