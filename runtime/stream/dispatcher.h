// SPDX-License-Identifier: Apache-2.0
// Runs the operations of all streams when what they wait for is done. Runtime-internal: stream.h is
// the interface.
#pragma once

#include "runtime/stream/stream.h"

#include <chrono>
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
    Context* context = nullptr; ///< of the stream; outlives the operation
    unsigned blockers = 0;      ///< operations that are not done and that this one waits for
    /// Until then dispatcher threads leave a ready operation to a host thread that waits for it.
    std::chrono::steady_clock::time_point due{};
    bool expects_wait = false; ///< `due` is a guess that somebody will wait
    std::vector<std::shared_ptr<Operation>> dependents;
};

/// One per process, never destroyed. A thread that waits runs what it waits for, so an operation that is expected to be
/// waited for soon (the last ones were) is left alone for a moment instead of waking a thread for it; an idle thread
/// looks after those that are forgotten. One mutex guards the queues of all streams: an operation costs two short
/// critical sections, and no lock order between streams has to be kept. No lock but leaf locks is taken under it.
class Dispatcher {
public:
    static Dispatcher& get();

    /// Called by a stream's constructor and destructor only. What a removed stream had been given still runs.
    void add_stream(Stream* stream);
    void remove_stream(Stream* stream);

    /// Appends to `stream`. If the turn of the operation has come and `start` allows it, it runs
    /// before this returns.
    std::shared_ptr<Operation> submit(Stream& stream, Work work, Stream::Start start);
    /// Waits until `operation` is done; runs it, and ready ones of its stream, on this thread.
    /// Null: returns at once.
    void wait(const std::shared_ptr<Operation>& operation);
    bool is_done(const std::shared_ptr<Operation>& operation) const;
    /// For host threads that ask instead of waiting, or wait for something else: starts what was left to threads that
    /// were expected to wait.
    void hurry();
    /// Runs `work` on a dispatcher thread, not much earlier than after `delay`.
    void run_later(Work work, std::chrono::microseconds delay);

    /// An operation of no queue, done when keep() says so: others may wait for it. Who waits for it runs what is ready
    /// of `stream`.
    std::shared_ptr<Operation> promise(const Stream& stream) const;
    void keep(const std::shared_ptr<Operation>& promised);

    /// What `stream` was given last, done or not; null: nothing yet.
    std::shared_ptr<Operation> last(const Stream& stream) const;
    /// What `stream` is given from now on waits for `operation`, too.
    void add_wait(Stream& stream, std::shared_ptr<Operation> operation);
    /// True if an operation submitted to `stream` now could start at once.
    bool idle(const Stream& stream) const;
    /// The operations that are not done and that an operation submitted to `stream` now would wait
    /// for.
    std::vector<std::shared_ptr<Operation>> pending_before(const Stream& stream) const;
    /// The last operations of all streams of a context that are not done, those of destroyed streams among them.
    std::vector<std::shared_ptr<Operation>> pending(const Context& context) const;
    /// Those of streams of a green context only.
    std::vector<std::shared_ptr<Operation>> pending(const GreenContext& green) const;
    /// Makes the next operations of all streams of a context wait for `operation`, also of streams that are made later;
    /// `green` not null: of its streams only. Null operations are fine.
    void add_wait_to_all(const Context& context, const GreenContext* green, std::shared_ptr<Operation> operation);
    /// Waits for these.
    void wait_for_all(const Context& context);

private:
    using Clock = std::chrono::steady_clock;
    using OperationPtr = std::shared_ptr<Operation>;
    /// The last operation of a stream that was destroyed before it was done.
    struct LeftBehind {
        const Context* context;
        OperationPtr operation;
    };
    /// What streams that are made later wait for, too.
    struct WaitOfAll {
        const Context* context;
        const GreenContext* green; ///< null: all of the context's; compared only
        OperationPtr operation;
    };
    /// Who takes what becomes ready by the end of an operation, without being woken: nobody in particular, the
    /// dispatcher thread that ran it (one operation), or the host thread that ran it (those of the same stream).
    enum class Next : std::uint8_t { nobody, one, same_stream };

    Dispatcher() = default;
    void forget_threads();
    template <class Visit> void for_each_predecessor(const Stream& stream, Visit visit) const;
    void insert_ready(const OperationPtr& operation);
    void make_ready(const OperationPtr& operation);
    void leave_to_waiter(const OperationPtr& operation, Clock::time_point now);
    void wake_thread();
    bool has_due(Clock::time_point now) const;
    bool make_thread();
    void start_expected();
    void leave_to_others(std::uint64_t stream_id);
    void learn_from_wait();
    void take_ready(const OperationPtr& operation);
    OperationPtr take_ready_of_stream(std::uint64_t stream_id);
    OperationPtr take_if_alone();
    OperationPtr take_due(Clock::time_point now);
    void run(const OperationPtr& operation, Next next);
    void finish(const OperationPtr& operation, Next next);
    void rest(std::unique_lock<std::mutex>& lock, Clock::time_point now);
    void thread_main();

    mutable std::mutex mutex_;
    std::condition_variable work_available_, operation_done_;
    std::deque<OperationPtr> ready_; ///< by priority, then in order
    std::vector<Stream*> streams_;
    std::vector<LeftBehind> left_behind_; ///< by non-blocking streams
    std::vector<WaitOfAll> waits_of_all_;
    unsigned idle_threads_ = 0, threads_ = 0;
    unsigned waiters_ = 0;            ///< threads in wait() that sleep
    bool wakes_ = false;              ///< a thread was woken or made and has not come yet
    bool watched_ = false;            ///< an idle thread wakes by itself to look for forgotten operations
    Clock::time_point watch_until_{}; ///< how long it does
    int prompt_waits_ = 0;            ///< in a row; negative after a late one
};

} // namespace ptarmigan::runtime
