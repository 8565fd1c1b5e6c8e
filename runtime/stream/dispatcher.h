// SPDX-License-Identifier: Apache-2.0
// Runs the operations of all streams when what they wait for is done. Runtime-internal: stream.h is
// the interface.
#pragma once

#include "runtime/stream/stream.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace ptarmigan::runtime {

/// One operation of a stream. Every member is guarded by the dispatcher's mutex, except that `work`
/// belongs to the thread that moved the state to `running`.
struct Operation {
    enum class State : std::uint8_t { waiting, ready, running, done };
    Work work;
    State state = State::waiting;
    int priority = 0;
    std::uint64_t stream_id = 0;
    unsigned blockers = 0; ///< operations that are not done and that this one waits for
    std::vector<std::shared_ptr<Operation>> dependents;
};

/// One per process, never destroyed. One mutex guards the queues of all streams: an operation costs
/// two short critical sections, and no lock order between streams has to be kept. No lock but leaf
/// locks is taken under it.
class Dispatcher {
public:
    static Dispatcher &get();

    void add_stream(Stream *stream);
    void remove_stream(Stream *stream);

    /// Appends to `stream`. If the turn of the operation has come and `start` allows it, it runs
    /// before this returns; `claim`: then it is marked running and left to the caller, who must
    /// call run().
    std::shared_ptr<Operation> submit(Stream &stream, Work work, Stream::Start start,
                                      bool claim = false);
    /// Runs a claimed operation on this thread.
    void run(const std::shared_ptr<Operation> &operation);
    /// Waits until `operation` is done; runs it, and ready ones of its stream, on this thread.
    /// Null: returns at once.
    void wait(const std::shared_ptr<Operation> &operation);
    bool is_done(const std::shared_ptr<Operation> &operation) const;

    std::shared_ptr<Operation> last(const Stream &stream) const;
    void add_wait(Stream &stream, std::shared_ptr<Operation> operation);
    /// True if an operation submitted to `stream` now could start at once.
    bool idle(const Stream &stream) const;
    /// The operations that are not done and that an operation submitted to `stream` now would wait
    /// for.
    std::vector<std::shared_ptr<Operation>> pending_before(const Stream &stream) const;
    /// The last operations of all streams of a context that are not done.
    std::vector<std::shared_ptr<Operation>> pending(const Context &context) const;

private:
    Dispatcher() = default;
    using OperationPtr = std::shared_ptr<Operation>;
    template <class Visit> void for_each_predecessor(const Stream &stream, Visit visit) const;
    void make_ready(const OperationPtr &operation, bool wake);
    void wake_thread();
    void take_ready(const OperationPtr &operation);
    OperationPtr take_ready_of_stream(std::uint64_t stream_id);
    void finish(const OperationPtr &operation);
    void thread_main();

    mutable std::mutex mutex_;
    std::condition_variable work_available_, operation_done_;
    std::deque<OperationPtr> ready_; ///< by priority, then in order
    std::vector<Stream *> streams_;
    unsigned idle_threads_ = 0, threads_ = 0;
    unsigned waiters_ = 0; ///< threads in wait() that sleep
};

} // namespace ptarmigan::runtime
