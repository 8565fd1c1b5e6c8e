// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph/capture.h"

#include "runtime/base/handle_table.h"
#include "runtime/context/context.h"
#include "runtime/graph/graph_memory.h"
#include "runtime/graph/program.h"
#include "runtime/memory/pool.h"
#include "runtime/module/module.h"
#include "runtime/stream/stream.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

namespace ptarmigan::runtime {
namespace {

thread_local int thread_mode = 0; ///< CaptureMode, or another number, which the driver takes, too

/// One capture, from its begin to its end: everything guarded by graph_mutex().
struct Sequence {
    std::uint64_t id = 0;
    CaptureMode mode = CaptureMode::global;
    std::thread::id thread;
    std::weak_ptr<Stream> origin;
    std::shared_ptr<Graph> graph;
    bool into_given = false; ///< the graph was there before
    bool invalid = false;
    std::vector<std::shared_ptr<Stream>> streams; ///< the first one and those that joined
    std::vector<Node::Link> left_behind;          ///< the last nodes of streams that were destroyed
};

std::vector<std::shared_ptr<Sequence>>& sequences() {
    static auto* all = new std::vector<std::shared_ptr<Sequence>>; // never destroyed, as graph_mutex()
    return *all;
}

class CaptureRecorder;
std::shared_ptr<CaptureRecorder> recorder_of(const Stream& stream);

/// What one stream of a capture records.
class CaptureRecorder : public StreamRecorder, public std::enable_shared_from_this<CaptureRecorder> {
public:
    CaptureRecorder(std::shared_ptr<Sequence> sequence, Stream& stream)
        : sequence(std::move(sequence)), stream(stream) {}

    Status kernel(Function& function, const LaunchConfig& config, void* const* parameters, void* const* extra) override;
    Status copy(const CopyBox& box) override;
    Status fill(std::uint64_t to, std::size_t pitch, unsigned element_size, std::uint32_t value, std::size_t width,
                std::size_t height) override;
    Status host_function(void (*function)(void*), void* data) override { return add(HostWork{function, data}); }
    Status allocate(const std::shared_ptr<MemoryPool>& pool, std::size_t size, std::uint64_t& pointer) override;
    Status free(std::uint64_t pointer) override;
    Status values(std::vector<ValueStep> steps) override {
        return add(MemoryOperationsWork{&stream.context(), std::move(steps), {}});
    }
    Status semaphores(std::vector<std::pair<std::shared_ptr<ExternalSemaphore>, std::uint64_t>> semaphores,
                      bool wait) override {
        SemaphoreWork work{std::move(semaphores), {}, {}};
        return wait ? add(SemaphoreWaitWork{std::move(work)}) : add(SemaphoreSignalWork{std::move(work)});
    }
    Status record(Event& event, bool external, unsigned port) override;
    Status wait(Event& event, bool external) override;
    Status forbid() override {
        std::lock_guard lock(graph_mutex());
        sequence->invalid = true;
        return Status::capture_unsupported;
    }

    /// A node behind the stream's last.
    Status add(NodeWork work, std::shared_ptr<Node>* made = nullptr) {
        std::lock_guard lock(graph_mutex());
        if (sequence->invalid) return Status::capture_invalidated;
        if (type_of(work) != NodeType::kernel) // which alone may begin before others end
            for (Node::Link& link : before)
                if (link.data.type != 0) link.data = {};
        const std::shared_ptr<Node> node = sequence->graph->add(std::move(work), before);
        before = {{node.get(), {}}};
        has_recorded = true;
        if (made) *made = node;
        return Status::success;
    }
    void join(const std::vector<Node::Link>& nodes) {
        for (const Node::Link& link : nodes) {
            const bool known =
                std::any_of(before.begin(), before.end(), [&](const Node::Link& own) { return own.node == link.node; });
            if (!known) before.push_back(link);
        }
        has_recorded = true;
    }
    Status failed(Status status) {
        std::lock_guard lock(graph_mutex());
        return sequence->invalid ? Status::capture_invalidated : status;
    }

    const std::shared_ptr<Sequence> sequence;
    Stream& stream;
    std::vector<Node::Link> before;
    bool has_recorded = false; ///< `before` has been changed
};

/// An event recorded in a capture: the nodes that it stands behind.
class CapturePoint : public CapturedMark {
public:
    CapturePoint(std::shared_ptr<Sequence> sequence, std::vector<Node::Link> before)
        : sequence_(std::move(sequence)), before_(std::move(before)) {}
    Status wait(Stream& stream, bool external) override;
    Status forbid() override {
        std::lock_guard lock(graph_mutex());
        if (!is_open()) return Status::invalid_value; // it marks nothing any more
        sequence_->invalid = true;
        return Status::captured_event;
    }
    bool is_open() const { return sequence_->graph != nullptr; }

private:
    const std::shared_ptr<Sequence> sequence_;
    const std::vector<Node::Link> before_;
};

std::shared_ptr<CaptureRecorder> recorder_of(const Stream& stream) {
    return std::static_pointer_cast<CaptureRecorder>(stream.recorder());
}

/// With graph_mutex(). The stream records into the sequence from now on.
std::shared_ptr<CaptureRecorder> join_sequence(const std::shared_ptr<Sequence>& sequence, Stream& stream) {
    auto recorder = std::make_shared<CaptureRecorder>(sequence, stream);
    sequence->streams.push_back(stream.shared_from_this());
    Captures::count.fetch_add(1);
    stream.set_recorder(recorder);
    return recorder;
}

/// With graph_mutex(). The streams of a sequence go back to their queues.
void leave_sequence(Sequence& sequence) {
    for (const auto& stream : sequence.streams) {
        stream->set_recorder(nullptr);
        Captures::count.fetch_sub(1);
    }
    sequence.streams.clear();
    sequence.graph->is_captured = false;
    sequence.graph = nullptr;
    std::erase_if(sequences(), [&](const auto& one) { return one.get() == &sequence; });
}

/// True if the legacy stream of the context would wait for a stream of the sequence.
bool blocks_legacy_stream(const Sequence& sequence, const Context& context) {
    return std::any_of(sequence.streams.begin(), sequence.streams.end(), [&](const auto& stream) {
        return &stream->context() == &context && stream->kind() != StreamKind::non_blocking;
    });
}

Status legacy_work(Context& context) {
    std::lock_guard lock(graph_mutex());
    Status status = Status::success;
    for (const auto& sequence : sequences()) {
        if (!blocks_legacy_stream(*sequence, context)) continue;
        sequence->invalid = true;
        status = Status::capture_implicit;
    }
    return status;
}

Status unsafe_call() {
    constexpr int global = 0, relaxed = 2;
    if (thread_mode == relaxed) return Status::success;
    std::lock_guard lock(graph_mutex());
    Status status = Status::success;
    for (const auto& sequence : sequences()) {
        const bool own = sequence->thread == std::this_thread::get_id();
        const bool forbids = own ? sequence->mode != CaptureMode::relaxed
                                 : sequence->mode == CaptureMode::global && thread_mode == global;
        if (!forbids) continue;
        sequence->invalid = true;
        status = Status::capture_unsupported;
    }
    return status;
}

/// A launch attribute as the nodes' attributes are kept.
template <class... Words> LaunchAttribute attribute_of(Words... words) {
    const std::uint32_t given[] = {static_cast<std::uint32_t>(words)...};
    LaunchAttribute attribute{};
    std::memcpy(attribute.data(), given, sizeof given);
    return attribute;
}

Status CaptureRecorder::kernel(Function& function, const LaunchConfig& config, void* const* parameters,
                               void* const* extra) {
    KernelWork work;
    work.module = function.module().shared_from_this();
    work.function = &function;
    work.config = config;
    work.library_kernel = config.library_kernel;
    constexpr unsigned cooperative_id = 2, cluster_id = 4;
    if (config.cooperative) work.attributes[cooperative_id] = attribute_of(1);
    if (config.has_cluster)
        work.attributes[cluster_id] = attribute_of(config.cluster[0], config.cluster[1], config.cluster[2]);
    Status status = pack_launch_parameters(function.kernel(), parameters, extra, work.parameters);
    if (status == Status::success) status = check_kernel(work);
    std::lock_guard lock(graph_mutex());
    if (sequence->invalid) return Status::capture_invalidated;
    if (status != Status::success) {
        sequence->invalid = true; // of all calls that go wrong a launch alone ends the capture
        return status;
    }
    constexpr EdgeData programmatic{1, 0, 1};
    if (config.programmatic)
        for (Node::Link& link : before)
            if (link.node->type() == NodeType::kernel && link.data.is_plain()) link.data = programmatic;
    return add(std::move(work));
}

Status CaptureRecorder::copy(const CopyBox& box) {
    CopyWork work;
    work.box = box;
    work.context = &stream.context();
    const auto settle = [](CopyBox::End& end) { // copies by addresses become what they are
        if (end.side != Side::unified) return;
        const auto allocation = AddressSpace::get().find(reinterpret_cast<std::uintptr_t>(end.base));
        end.side = allocation && !allocation->is_host() ? Side::device : Side::host;
    };
    settle(work.box.source), settle(work.box.destination);
    work.arrays = {box.source.array, box.destination.array};
    RowCopy laid;
    const Status status = RowCopy::lay_out(work.box, laid);
    if (status != Status::success) return failed(status);
    return add(std::move(work));
}

Status CaptureRecorder::fill(std::uint64_t to, std::size_t pitch, unsigned element_size, std::uint32_t value,
                             std::size_t width, std::size_t height) {
    // What memory there is the instance asks (make_step): an H200 records fills of any address.
    const Status status = RowFill::check_shape(to, pitch, element_size, width, height);
    if (status != Status::success) return failed(status);
    if (width == 0 || height == 0) return Status::success;
    return add(FillWork{to, pitch, width, height, element_size, value, &stream.context()});
}

Status CaptureRecorder::allocate(const std::shared_ptr<MemoryPool>& pool, std::size_t size, std::uint64_t& pointer) {
    AllocateWork work;
    const PoolProperties& properties = pool->properties();
    work.place = properties.place;
    work.allocation_type = 1;
    const Status status = GraphMemory::create(stream.context(), properties.kind, size, work.memory,
                                              work.place.type == MemoryPlace::device ? work.place.id : any_device);
    if (status != Status::success) return failed(status);
    pointer = work.memory->pointer();
    return add(std::move(work));
}

Status CaptureRecorder::free(std::uint64_t pointer) {
    const std::shared_ptr<GraphMemory> memory = GraphMemory::find(pointer);
    if (!memory || memory->is_freed_in_graph) return failed(Status::invalid_value);
    return add(FreeWork{memory});
}

Status CaptureRecorder::record(Event& event, bool external, unsigned port) {
    std::lock_guard lock(graph_mutex());
    if (sequence->invalid) return Status::capture_invalidated;
    if (external) return add(EventRecordWork{event.shared_from_this()});
    std::vector<Node::Link> marked = before;
    constexpr unsigned programmatic_port = 1;
    if (port != 0)
        for (Node::Link& link : marked)
            link.data = {static_cast<std::uint8_t>(port), 0, static_cast<std::uint8_t>(port == programmatic_port)};
    event.set_captured(std::make_shared<CapturePoint>(sequence, std::move(marked)));
    return Status::success;
}

Status CaptureRecorder::wait(Event& event, bool external) {
    if (external) return add(EventWaitWork{event.shared_from_this()});
    std::lock_guard lock(graph_mutex());
    if (sequence->invalid) return Status::capture_invalidated;
    if (!event.mark().operation) return Status::success; // never recorded
    sequence->invalid = true;
    return Status::capture_isolation;
}

Status CapturePoint::wait(Stream& stream, bool external) {
    std::lock_guard lock(graph_mutex());
    std::shared_ptr<CaptureRecorder> recorder = recorder_of(stream);
    if (recorder && recorder->sequence->invalid) return Status::capture_invalidated;
    if (!is_open()) {
        if (recorder) recorder->sequence->invalid = true;
        return Status::invalid_value;
    }
    if (sequence_->invalid) return Status::capture_invalidated;
    static_cast<void>(external);
    if (recorder && recorder->sequence != sequence_) {
        recorder->sequence->invalid = sequence_->invalid = true;
        return Status::capture_merge;
    }
    if (!recorder) {
        if (stream.kind() == StreamKind::legacy) {
            sequence_->invalid = true;
            return Status::capture_implicit;
        }
        recorder = join_sequence(sequence_, stream);
    }
    recorder->join(before_);
    return Status::success;
}

Status start(const std::shared_ptr<Stream>& stream, CaptureMode mode, std::shared_ptr<Graph> graph,
             std::vector<Node::Link> before, bool into_given) {
    if (stream->kind() == StreamKind::legacy) return Status::capture_unsupported;
    if (graph->is_captured) return Status::illegal_state;
    Captures::legacy_work.store(&legacy_work);
    Captures::unsafe_call.store(&unsafe_call);
    graph->is_captured = true;
    if (recorder_of(*stream)) return Status::illegal_state;
    static std::atomic<std::uint64_t> next{1};
    auto sequence = std::make_shared<Sequence>();
    sequence->id = next.fetch_add(1);
    sequence->mode = mode;
    sequence->thread = std::this_thread::get_id();
    sequence->origin = stream;
    sequence->graph = std::move(graph);
    sequence->into_given = into_given;
    sequences().push_back(sequence);
    const auto recorder = join_sequence(sequence, *stream);
    recorder->has_recorded = !before.empty();
    recorder->before = std::move(before);
    return Status::success;
}

/// True if the work of all streams comes before the last of the first stream, or of a stream that the program keeps.
bool all_joined(const Sequence& sequence, const CaptureRecorder& origin) {
    std::vector<const Node*> reached;
    std::vector<const Node*> next;
    for (const Node::Link& link : origin.before) next.push_back(link.node);
    while (!next.empty()) {
        const Node* node = next.back();
        next.pop_back();
        if (std::find(reached.begin(), reached.end(), node) != reached.end()) continue;
        reached.push_back(node);
        for (const Node::Link& link : node->before()) next.push_back(link.node);
    }
    const auto is_reached = [&](const Node::Link& link) {
        return std::find(reached.begin(), reached.end(), link.node) != reached.end();
    };
    for (const auto& stream : sequence.streams) {
        const auto recorder = recorder_of(*stream);
        if (!recorder || recorder.get() == &origin) continue;
        for (const Node::Link& link : recorder->before)
            if (!is_reached(link)) return false;
    }
    return std::all_of(sequence.left_behind.begin(), sequence.left_behind.end(), is_reached);
}

} // namespace

Status begin_capture(const std::shared_ptr<Stream>& stream, CaptureMode mode) {
    std::lock_guard lock(graph_mutex());
    if (stream->kind() == StreamKind::legacy) return Status::capture_unsupported;
    if (recorder_of(*stream)) return Status::illegal_state;
    return start(stream, mode, Graph::create(), {}, false);
}

Status begin_capture_to(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Graph>& graph,
                        std::vector<Node::Link> before, CaptureMode mode) {
    std::lock_guard lock(graph_mutex());
    return start(stream, mode, graph, std::move(before), true);
}

Status end_capture(Stream& stream, std::shared_ptr<Graph>& graph) {
    graph = nullptr;
    std::lock_guard lock(graph_mutex());
    const auto recorder = recorder_of(stream);
    if (!recorder) return Status::illegal_state;
    const std::shared_ptr<Sequence> sequence = recorder->sequence;
    if (sequence->origin.lock().get() != &stream) {
        sequence->invalid = true;
        return Status::capture_unmatched;
    }
    Status status = Status::success;
    if (sequence->mode != CaptureMode::relaxed && sequence->thread != std::this_thread::get_id())
        status = Status::capture_wrong_thread; // it ends all the same
    else if (sequence->invalid)
        status = Status::capture_invalidated;
    else if (!all_joined(*sequence, *recorder))
        status = Status::capture_unjoined;
    const std::shared_ptr<Graph> captured = sequence->graph;
    leave_sequence(*sequence);
    if (status == Status::success)
        graph = captured;
    else
        captured->forget_handles(); // also a graph that was there before
    return status;
}

void abandon_capture(Stream& stream) {
    std::lock_guard lock(graph_mutex());
    const auto recorder = recorder_of(stream);
    if (!recorder) return;
    const std::shared_ptr<Sequence> sequence = recorder->sequence;
    if (sequence->origin.lock().get() == &stream) {
        const std::shared_ptr<Graph> captured = sequence->graph;
        leave_sequence(*sequence);
        captured->forget_handles();
        return;
    }
    const auto& before = recorder->before; // which the first stream has to come behind
    sequence->left_behind.insert(sequence->left_behind.end(), before.begin(), before.end());
    std::erase_if(sequence->streams, [&](const auto& one) { return one.get() == &stream; });
    stream.set_recorder(nullptr);
    Captures::count.fetch_sub(1);
}

Status capture_info(Stream& stream, CaptureInfo& info) {
    info = {};
    if (!Captures::any()) return Status::success;
    std::lock_guard lock(graph_mutex());
    const auto recorder = recorder_of(stream);
    if (!recorder) {
        const auto blocks = [&](const auto& sequence) { return blocks_legacy_stream(*sequence, stream.context()); };
        const bool legacy = stream.kind() == StreamKind::legacy;
        return legacy && std::any_of(sequences().begin(), sequences().end(), blocks) ? Status::capture_implicit
                                                                                     : Status::success;
    }
    info.has_recorded = recorder->has_recorded;
    info.id = recorder->sequence->id;
    info.status = recorder->sequence->invalid ? CaptureStatus::invalidated : CaptureStatus::active;
    info.graph = recorder->sequence->graph;
    info.before = recorder->before;
    return Status::success;
}

Status update_capture(Stream& stream, const std::vector<Node::Link>& nodes, bool replace) {
    std::lock_guard lock(graph_mutex());
    const auto recorder = recorder_of(stream);
    if (!recorder) return Status::illegal_state;
    if (recorder->sequence->invalid) return Status::capture_invalidated;
    if (replace) recorder->before.clear();
    recorder->join(nodes);
    return Status::success;
}

int exchange_thread_capture_mode(int mode) {
    return std::exchange(thread_mode, mode);
}

Status forbid_captures(const Context& context) {
    if (!Captures::any()) return Status::success;
    std::lock_guard lock(graph_mutex());
    Status status = Status::success;
    for (const auto& sequence : sequences()) {
        const auto of_context = [&](const auto& stream) { return &stream->context() == &context; };
        if (!std::any_of(sequence->streams.begin(), sequence->streams.end(), of_context)) continue;
        sequence->invalid = true;
        status = Status::capture_unsupported;
    }
    return status;
}

Status record_work(StreamRecorder& recorder, NodeWork work, std::shared_ptr<Node>* node) {
    return static_cast<CaptureRecorder&>(recorder).add(std::move(work), node);
}

} // namespace ptarmigan::runtime
