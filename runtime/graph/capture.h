// SPDX-License-Identifier: Apache-2.0
// Stream capture: work of streams becomes nodes of a graph instead of running.
#pragma once

#include "runtime/base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/stream/recorder.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace ptarmigan::runtime {

class Context;
class Stream;

/// CUstreamCaptureMode: of a capture, whose calls it forbids; of a thread, whose captures forbid it calls.
enum class CaptureMode : std::uint8_t { global = 0, thread_local_only = 1, relaxed = 2 };
/// CUstreamCaptureStatus.
enum class CaptureStatus : std::uint8_t { none = 0, active = 1, invalidated = 2 };

/// All are thread-safe. Codes are an H100's (tests/driver_api/graphs).
Status begin_capture(const std::shared_ptr<Stream>& stream, CaptureMode mode);
/// Into a graph that there is, behind some of its nodes.
Status begin_capture_to(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Graph>& graph,
                        std::vector<Node::Link> before, CaptureMode mode);
/// `graph` is null where the capture had become invalid.
Status end_capture(Stream& stream, std::shared_ptr<Graph>& graph);
/// The stream goes while it may capture.
void abandon_capture(Stream& stream);

struct CaptureInfo {
    CaptureStatus status = CaptureStatus::none;
    std::uint64_t id = 0;
    std::shared_ptr<Graph> graph;
    std::vector<Node::Link> before; ///< what the next node will wait for
    bool has_recorded = false;      ///< that has been something else
};
/// capture_implicit for the legacy stream while a blocking one captures.
Status capture_info(Stream& stream, CaptureInfo& info);
/// Adds to, or replaces, what the next node will wait for: nodes of the captured graph.
Status update_capture(Stream& stream, const std::vector<Node::Link>& nodes, bool replace);

/// The mode of the calling thread (CaptureMode; the driver takes any number); returns the one before.
int exchange_thread_capture_mode(int mode);
/// A call that waits for all work of a context: capture_unsupported while a stream of it captures, whatever the modes.
Status forbid_captures(const Context& context);

/// Adds a node of any kind behind the stream's last.
Status record_work(StreamRecorder& recorder, NodeWork work, std::shared_ptr<Node>* node = nullptr);

} // namespace ptarmigan::runtime
