// SPDX-License-Identifier: Apache-2.0
// Stream capture.
#include "runtime/graph/capture.h"

#include "runtime/shim/graph_conversion.h"
#include "runtime/shim/graph_edges.h"

#include <algorithm>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::CaptureInfo;
using runtime::CaptureMode;
using runtime::CaptureStatus;
using runtime::Stream;

namespace {

bool is_mode(int mode) {
    return mode >= 0 && mode <= 2;
}

CUresult begin(CUstream stream, DefaultStream default_stream, int mode) {
    return stream_entry(stream, default_stream, [&](Stream& queue) {
        if (!is_mode(mode)) return Status::invalid_value;
        return runtime::begin_capture(queue.shared_from_this(), static_cast<CaptureMode>(mode));
    });
}

CUresult is_capturing(CUstream stream, DefaultStream default_stream, int* place) {
    return stream_entry(stream, default_stream, [&](Stream& queue) {
        if (!place) return Status::invalid_value;
        CaptureInfo info;
        const Status status = runtime::capture_info(queue, info);
        if (status == Status::success) *place = static_cast<int>(info.status);
        return status;
    });
}

/// The lists that cuStreamGetCaptureInfo hands out live until the thread's next call, or the stream's next work.
struct Lists {
    std::vector<CUgraphNode> nodes;
    std::vector<CUgraphEdgeData> data;
};

/// What the forms of cuStreamGetCaptureInfo have places for; null: none.
struct Places {
    int* status;
    unsigned long long* id;
    CUgraph* graph;
    const CUgraphNode** nodes;
    const CUgraphEdgeData** data;
    std::size_t* count;
    bool has_data; ///< the form has a place for it
};

CUresult get_info(CUstream stream, DefaultStream default_stream, const Places& places) {
    return stream_entry(stream, default_stream, [&](Stream& queue) {
        if (!places.status) return Status::invalid_value;
        CaptureInfo info;
        if (const Status status = runtime::capture_info(queue, info); status != Status::success) return status;
        const bool lossy = std::any_of(info.before.begin(), info.before.end(),
                                       [](const Node::Link& link) { return !link.data.is_plain(); });
        if (places.nodes && !places.data && lossy) return Status::lossy_query;
        *places.status = static_cast<int>(info.status);
        if (info.status != CaptureStatus::active) return Status::success;
        static thread_local Lists* lists = nullptr;
        if (!lists) lists = new Lists; // of a thread: few, and small
        lists->nodes.clear();
        lists->data.clear();
        lists->nodes.reserve(1);
        lists->data.reserve(1);
        for (const Node::Link& link : info.before) {
            lists->nodes.push_back(reinterpret_cast<CUgraphNode>(link.node));
            lists->data.push_back(edge_of(link.data));
        }
        store(places.id, info.id);
        if (places.graph) *places.graph = to_handle<CUgraph>(info.graph);
        // Lists that were never anything are null.
        if (places.nodes) *places.nodes = info.has_recorded ? lists->nodes.data() : nullptr;
        if (places.data) *places.data = info.has_recorded ? lists->data.data() : nullptr;
        store(places.count, lists->nodes.size());
        return Status::success;
    });
}

CUresult update(CUstream stream, DefaultStream default_stream, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                std::size_t count, unsigned flags) {
    return stream_entry(stream, default_stream, [&](Stream& queue) {
        constexpr unsigned set = 1;
        if (flags > set) return Status::invalid_value;
        std::lock_guard lock(runtime::graph_mutex());
        CaptureInfo info;
        if (const Status status = runtime::capture_info(queue, info); status != Status::success) return status;
        if (info.status == CaptureStatus::none) return Status::illegal_state;
        if (info.status == CaptureStatus::invalidated) return Status::capture_invalidated;
        std::vector<Node::Link> links;
        const Status status = make_links(*info.graph, nodes, data, count, links, Repeated::dropped);
        return status == Status::success ? runtime::update_capture(queue, links, flags == set) : status;
    });
}

} // namespace

PTM_STREAM_API(cuStreamBeginCapture, cuStreamBeginCapture_ptsz, (CUstream stream), (stream)) {
    return begin(stream, default_stream, 0);
}
PTM_STREAM_API(cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz, (CUstream stream, int mode), (stream, mode)) {
    return begin(stream, default_stream, mode);
}
PTM_STREAM_API(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz,
               (CUstream stream, CUgraph handle, const CUgraphNode* before, const CUgraphEdgeData* data,
                std::size_t count, int mode),
               (stream, handle, before, data, count, mode)) {
    PTM_REQUIRE(handle);
    return stream_entry(stream, default_stream, [&](Stream& queue) {
        const auto graph = find_handle<runtime::Graph>(handle);
        if (!graph || !is_mode(mode)) return Status::invalid_value;
        std::lock_guard lock(runtime::graph_mutex());
        std::vector<Node::Link> links;
        const Status status = make_links(*graph, before, data, count, links, Repeated::dropped);
        if (status != Status::success) return status;
        return runtime::begin_capture_to(queue.shared_from_this(), graph, std::move(links),
                                         static_cast<CaptureMode>(mode));
    });
}
PTM_STREAM_API(cuStreamEndCapture, cuStreamEndCapture_ptsz, (CUstream stream, CUgraph* place), (stream, place)) {
    return stream_entry(stream, default_stream, [&](Stream& queue) {
        std::shared_ptr<runtime::Graph> graph;
        const Status status = runtime::end_capture(queue, graph);
        if (place) *place = to_handle<CUgraph>(graph);
        return status;
    });
}
PTM_STREAM_API(cuStreamIsCapturing, cuStreamIsCapturing_ptsz, (CUstream stream, int* status), (stream, status)) {
    PTM_REQUIRE(status);
    return is_capturing(stream, default_stream, status);
}
PTM_STREAM_API(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz,
               (CUstream stream, int* status, unsigned long long* id), (stream, status, id)) {
    PTM_REQUIRE(status);
    return get_info(stream, default_stream, {status, id, nullptr, nullptr, nullptr, nullptr, false});
}
PTM_STREAM_API(cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz,
               (CUstream stream, int* status, unsigned long long* id, CUgraph* graph, const CUgraphNode** nodes,
                std::size_t* count),
               (stream, status, id, graph, nodes, count)) {
    PTM_REQUIRE(status);
    return get_info(stream, default_stream, {status, id, graph, nodes, nullptr, count, false});
}
PTM_STREAM_API(cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz,
               (CUstream stream, int* status, unsigned long long* id, CUgraph* graph, const CUgraphNode** nodes,
                const CUgraphEdgeData** data, std::size_t* count),
               (stream, status, id, graph, nodes, data, count)) {
    PTM_REQUIRE(status);
    return get_info(stream, default_stream, {status, id, graph, nodes, data, count, true});
}
PTM_STREAM_API(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_ptsz,
               (CUstream stream, CUgraphNode* nodes, std::size_t count, unsigned flags),
               (stream, nodes, count, flags)) {
    return update(stream, default_stream, nodes, nullptr, count, flags);
}
PTM_STREAM_API(cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2_ptsz,
               (CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count, unsigned flags),
               (stream, nodes, data, count, flags)) {
    return update(stream, default_stream, nodes, data, count, flags);
}
PTM_API(cuThreadExchangeStreamCaptureMode, int* mode) {
    return entry([&] {
        if (!mode) return Status::invalid_value;
        *mode = runtime::exchange_thread_capture_mode(*mode);
        return Status::success;
    });
}
