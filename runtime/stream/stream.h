// SPDX-License-Identifier: Apache-2.0
// Streams and events: in-order queues of operations, and marks in them. An operation starts when
// what it waits for is done: on a host thread that waits for it, or else on a thread of the
// dispatcher (dispatcher.h).
#pragma once

#include "runtime/base/status.h"
#include "runtime/stream/recorder.h"
#include "runtime/stream/stream_attributes.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace ptarmigan::runtime {

class Context;
class GreenContext;
class SharedEvent; ///< shared_event.h
struct FilePlace;
struct Operation; ///< dispatcher.h

/// What one operation does. Runs on any thread; its Status is ignored (faults go to the context).
using Work = std::function<void()>;

/// The two default streams, and the program's: non_blocking ones are in no order with the legacy one.
enum class StreamKind : std::uint8_t { legacy, per_thread, blocking, non_blocking };

/// Thread-safe. Destroying a stream lets its operations finish.
class Stream : public std::enable_shared_from_this<Stream> {
public:
    /// `green`: where its grids run; null: anywhere.
    Stream(Context& context, StreamKind kind, unsigned flags, int priority,
           std::shared_ptr<GreenContext> green = nullptr);
    ~Stream();

    /// cuStreamCreateWithPriority; flags 0 or 1 (non-blocking), else invalid_value; priority is
    /// clamped to 0..-5.
    static Status create(Context& context, unsigned flags, int priority, std::shared_ptr<Stream>& stream,
                         std::shared_ptr<GreenContext> green = nullptr);
    /// cuStreamDestroy: removes the handle; returns at once.
    static Status destroy(const void* handle);

    Context& context() const { return context_; }
    const std::shared_ptr<GreenContext>& green() const { return green_; }
    StreamKind kind() const { return kind_; }
    unsigned flags() const { return flags_; }
    /// A copy; thread-safe like set_attributes(), which calls change(StreamAttributes&) and returns its Status.
    StreamAttributes attributes() const;
    Status set_attributes(const std::function<Status(StreamAttributes&)>& change);
    int priority() const { return attributes().priority; }
    std::uint64_t id() const { return id_; }

    /// What every call that puts work into the stream, or waits for it, begins with. While the stream captures: its
    /// recorder, and success. Else null, and success or what captures of other streams make of work in this one.
    Status begin_work(std::shared_ptr<StreamRecorder>& recorder);
    std::shared_ptr<StreamRecorder> recorder() const;
    void set_recorder(std::shared_ptr<StreamRecorder> recorder);

    /// How submit() may run an operation whose turn has come already.
    enum class Start : std::uint8_t {
        elsewhere,      ///< never on the caller's thread before it waits: kernels and callbacks
        inline_if_idle, ///< short work that waits for nobody: copies, fills, frees
    };
    /// Appends an operation. Thread-safe.
    std::shared_ptr<Operation> submit(Work work, Start start);
    /// submit() and wait for it; runs it on this thread if its turn has come. The context's status.
    Status submit_and_wait(Work work);
    /// True if nothing is queued or running that this stream's next operation would wait for.
    bool idle() const;

    /// Waits for everything submitted so far (not for later work), then flushes device printf.
    Status synchronize();
    /// success, not_ready, or the context's fault.
    Status query();
    /// The last operation submitted (null: none).
    std::shared_ptr<Operation> last() const;
    /// Makes the next operations wait for `operation` too. Null is fine.
    void wait_for(std::shared_ptr<Operation> operation);
    /// cuStreamAddCallback: `callback` gets the context's status when its turn comes.
    Status add_callback(std::function<void(Status)> callback);
    /// cuLaunchHostFunc.
    Status add_host_function(void (*function)(void*), void* data);

private:
    friend class Dispatcher;
    Context& context_;
    const std::shared_ptr<GreenContext> green_;
    const StreamKind kind_;
    const unsigned flags_;
    const std::uint64_t id_;
    mutable std::mutex attributes_mutex_;
    StreamAttributes attributes_;
    std::shared_ptr<StreamRecorder> recorder_;      ///< guarded by attributes_mutex_
    std::shared_ptr<Operation> last_;               ///< guarded by the dispatcher's mutex
    std::vector<std::shared_ptr<Operation>> waits_; ///< of the next operation; likewise
};

/// The stream that a CUstream handle means: 0 and 1 legacy, 2 per thread (and 0 where
/// `per_thread`), else a handle. invalid_handle if it is none, or belongs to another context (which
/// the driver accepts; so do we: any context).
Status resolve_stream(Context& context, const void* handle, bool per_thread, std::shared_ptr<Stream>& stream);

/// Thread-safe.
class Event : public std::enable_shared_from_this<Event> {
public:
    Event(Context& context, unsigned flags) : context_(context), flags_(flags) {}

    /// cuEventCreate: flags 1 blocking sync, 2 disable timing, 4 interprocess (with 2 only);
    /// others invalid_value.
    static Status create(Context& context, unsigned flags, std::shared_ptr<Event>& event);
    /// cuIpcOpenEventHandle: another process's event. map_failed for what is none, or is gone.
    static Status open(Context& context, const FilePlace& place, std::shared_ptr<Event>& event);
    /// cuIpcGetEventHandle; invalid_handle for events that are not to be shared.
    Status place(FilePlace& place) const;
    static Status destroy(const void* handle);

    Context& context() const { return context_; }
    unsigned flags() const { return flags_; }
    /// cuEventRecord; `external`: a capturing stream gets a node that records the event at each launch. `port`: what of
    /// the stream's last kernel the event marks; where the stream does not capture, its end.
    Status record(Stream& stream, bool external = false, unsigned port = 0);
    /// cuCtxRecordEvent: what the context's streams, or those of a green context (not null), have been given so far.
    Status record_all(const GreenContext* green);
    /// cuCtxWaitEvent: all that streams of `context`, or of a green context, are given from now on waits.
    Status make_all_wait(Context& context, const GreenContext* green);
    /// Unrecorded: success.
    Status query();
    Status synchronize();
    /// cuStreamWaitEvent; flags must be 0 or 1 (external).
    Status make_wait(Stream& stream, unsigned flags);
    /// Milliseconds from one event to the other. invalid_handle if one is unrecorded or has no
    /// timing, not_ready if one has not happened yet.
    static Status elapsed(Event& start, Event& end, float& milliseconds);

    using Clock = std::chrono::steady_clock;
    struct Mark {
        std::shared_ptr<Operation> operation; ///< done when the event has happened
        std::shared_ptr<Clock::time_point> time;
        std::uint64_t shared_record = 0; ///< its number for other processes
    };
    /// Of the last record; without an operation before the first.
    Mark mark() const;
    /// The event has been recorded where `mark` says: by a graph.
    void set_mark(Mark mark);
    /// The event was recorded in a stream that captures.
    void set_captured(std::shared_ptr<CapturedMark> captured);

private:
    std::shared_ptr<CapturedMark> captured() const;
    /// True if the last record is another process's.
    bool recorded_elsewhere(const Mark& mark, std::uint64_t& record) const;

    Context& context_;
    const unsigned flags_;
    std::shared_ptr<SharedEvent> shared_; ///< of events that processes share; constant
    bool is_opened_ = false;              ///< another process's; constant
    mutable std::mutex mutex_;
    Mark mark_;
    std::shared_ptr<CapturedMark> captured_; ///< null: recorded last outside of captures
};

} // namespace ptarmigan::runtime
