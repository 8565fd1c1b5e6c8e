// SPDX-License-Identifier: Apache-2.0
// The queues of all streams and the threads that serve them.
#include "runtime/stream/dispatcher.h"

#include "runtime/base/log.h"
#include "runtime/base/tuning.h"
#include "runtime/context/context.h"

#include <algorithm>
#include <new>
#include <pthread.h>
#include <signal.h>
#include <string>
#include <system_error>
#include <thread>

namespace ptarmigan::runtime {
namespace {

/// When the calling thread last submitted an operation that could start at once; epoch: not since its last wait.
thread_local std::chrono::steady_clock::time_point last_submission{};

/// `due` of an operation that the thread that made it ready takes itself.
constexpr auto taken_by_waiter = std::chrono::steady_clock::time_point::max();

/// Work that could not be done (no memory, an exception of a host function) is a fault of its context: those who wait
/// for it go on and are told, and the process lives.
void report_failed_work(const Operation& operation, Status code, const char* reason) {
    log(LogLevel::error, std::string("work of a stream failed: ") + reason);
    if (operation.context) operation.context->set_fault(code);
}

} // namespace

Dispatcher& Dispatcher::get() {
    // Never destroyed: its threads run until the process ends.
    static auto* dispatcher = [] {
        // No thread but the caller's lives on in a forked child.
        pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); }, [] { get().forget_threads(); });
        return new Dispatcher;
    }();
    return *dispatcher;
}

/// In a forked child, with mutex_ locked. Condition variables remember the sleepers that are gone, and would wait for
/// them.
void Dispatcher::forget_threads() {
    new (&work_available_) std::condition_variable;
    new (&operation_done_) std::condition_variable;
    idle_threads_ = threads_ = waiters_ = 0;
    watched_ = wakes_ = false;
    mutex_.unlock();
}

void Dispatcher::add_stream(Stream* stream) {
    std::lock_guard lock(mutex_);
    streams_.push_back(stream);
    std::erase_if(waits_of_all_, [](const WaitOfAll& wait) { return wait.operation->state == Operation::State::done; });
    for (const WaitOfAll& wait : waits_of_all_)
        if (wait.context == &stream->context_ && (!wait.green || wait.green == stream->green_.get()))
            stream->waits_.push_back(wait.operation);
}

/// What is still queued is waited for by whoever waits for the context, and keeps the order of the default stream: it
/// is handed to that stream unless it had nothing to do with it.
void Dispatcher::remove_stream(Stream* stream) {
    const auto is_done = [](const OperationPtr& operation) { return operation->state == Operation::State::done; };
    std::lock_guard lock(mutex_);
    std::erase(streams_, stream);
    std::erase_if(left_behind_, [&](const LeftBehind& left) { return is_done(left.operation); });
    if (!stream->last_ || is_done(stream->last_)) return;
    if (stream->kind_ != StreamKind::blocking && stream->kind_ != StreamKind::per_thread) {
        left_behind_.push_back({&stream->context_, stream->last_});
        return;
    }
    for (Stream* other : streams_) {
        if (other->kind_ != StreamKind::legacy || &other->context_ != &stream->context_) continue;
        std::erase_if(other->waits_, is_done);
        other->waits_.push_back(stream->last_);
    }
}

/// Everything that the next operation of `stream` waits for: its own last one, what add_wait()
/// said, and the rules of the legacy default stream, which runs alone among the blocking streams of
/// its context.
template <class Visit> void Dispatcher::for_each_predecessor(const Stream& stream, Visit visit) const {
    if (stream.last_) visit(stream.last_);
    for (const OperationPtr& wait : stream.waits_) visit(wait);
    if (stream.kind_ == StreamKind::non_blocking) return;
    const bool is_legacy = stream.kind_ == StreamKind::legacy;
    for (const Stream* other : streams_) {
        if (other == &stream || &other->context_ != &stream.context_ || !other->last_) continue;
        if (other->kind_ == StreamKind::non_blocking) continue;
        if (is_legacy || other->kind_ == StreamKind::legacy) visit(other->last_);
    }
}

std::shared_ptr<Operation> Dispatcher::submit(Stream& stream, Work work, Stream::Start start) {
    auto operation = std::make_shared<Operation>();
    operation->work = std::move(work);
    operation->priority = stream.priority();
    operation->stream_id = stream.id_;
    operation->context = &stream.context_;
    {
        std::lock_guard lock(mutex_);
        for_each_predecessor(stream, [&](const OperationPtr& before) {
            if (before->state == Operation::State::done) return;
            before->dependents.push_back(operation);
            ++operation->blockers;
        });
        stream.waits_.clear();
        stream.last_ = operation;
        if (operation->blockers > 0) return operation;
        if (start == Stream::Start::elsewhere) {
            last_submission = Clock::now();
            if (prompt_waits_ >= tuning::expect_prompt_wait)
                leave_to_waiter(operation, last_submission);
            else
                make_ready(operation);
            return operation;
        }
        operation->state = Operation::State::running;
    }
    run(operation, Next::nobody);
    return operation;
}

void Dispatcher::insert_ready(const OperationPtr& operation) {
    operation->state = Operation::State::ready;
    auto place = ready_.end();
    while (place != ready_.begin() && (*std::prev(place))->priority > operation->priority) --place;
    ready_.insert(place, operation);
}

void Dispatcher::make_ready(const OperationPtr& operation) {
    insert_ready(operation);
    wake_thread();
}

void Dispatcher::leave_to_waiter(const OperationPtr& operation, Clock::time_point now) {
    operation->due = now + tuning::prompt_wait;
    operation->expects_wait = true;
    watch_until_ = now + tuning::watch_time;
    insert_ready(operation);
    if (!watched_) wake_thread();
}

void Dispatcher::run_later(Work work, std::chrono::microseconds delay) {
    auto operation = std::make_shared<Operation>();
    operation->work = std::move(work);
    operation->due = Clock::now() + delay;
    std::lock_guard lock(mutex_);
    insert_ready(operation);
    if (!watched_) wake_thread();
}

/// Under mutex_: nobody comes for what was left to waiting threads, or the one who does is stuck behind it.
void Dispatcher::start_expected() {
    for (const OperationPtr& operation : ready_) {
        if (!operation->expects_wait || operation->due == Clock::time_point{}) continue;
        operation->due = {};
        wake_thread();
    }
}

/// Under mutex_: a thread waits no longer, and what was made ready for it in this stream is anybody's.
void Dispatcher::leave_to_others(std::uint64_t stream_id) {
    for (const OperationPtr& operation : ready_) {
        if (operation->stream_id != stream_id || operation->due != taken_by_waiter) continue;
        operation->due = {};
        wake_thread();
    }
}

void Dispatcher::hurry() {
    std::unique_lock lock(mutex_);
    start_expected();
    const OperationPtr operation = take_if_alone();
    lock.unlock();
    if (operation) run(operation, Next::nobody);
}

/// Under mutex_, when a thread begins to wait: did it do so soon after it submitted?
void Dispatcher::learn_from_wait() {
    if (last_submission == Clock::time_point{}) return;
    if (Clock::now() - last_submission < tuning::prompt_wait)
        prompt_waits_ = std::min(prompt_waits_ + 1, tuning::expect_prompt_wait);
    else
        prompt_waits_ = -tuning::late_wait_penalty;
    last_submission = {};
}

/// One at a time: a thread that comes and finds more than it takes wakes the next one. A program that gives work to
/// many streams at once would wake as many threads, which stand in its way.
void Dispatcher::wake_thread() {
    if (wakes_) return;
    if (idle_threads_ > 0)
        work_available_.notify_one();
    else if (!make_thread())
        return;
    wakes_ = true;
}

bool Dispatcher::has_due(Clock::time_point now) const {
    return std::any_of(ready_.begin(), ready_.end(),
                       [&](const OperationPtr& operation) { return operation->due <= now; });
}

/// False if there are enough, or the system gives no more: those that there are do it, or the threads that wait.
bool Dispatcher::make_thread() {
    if (threads_ >= tuning::max_dispatcher_threads) return false;
    // The program's signal handlers must not run on our threads: only the faults of kernels are
    // taken there.
    bool made = false;
    sigset_t all, before;
    sigfillset(&all);
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, number);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        std::thread([this] { thread_main(); }).detach();
        ++threads_;
        made = true;
    } catch (const std::system_error& error) {
        log_once("dispatcher thread",
                 std::string("can't start a thread, so kernels run while the program waits: ") + error.what());
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return made;
}

void Dispatcher::take_ready(const OperationPtr& operation) {
    ready_.erase(std::find(ready_.begin(), ready_.end(), operation));
    operation->state = Operation::State::running;
}

Dispatcher::OperationPtr Dispatcher::take_ready_of_stream(std::uint64_t stream_id) {
    for (const OperationPtr& candidate : ready_) {
        if (candidate->stream_id != stream_id) continue;
        OperationPtr found = candidate;
        take_ready(found);
        return found;
    }
    return nullptr;
}

/// The first that is ready, where no dispatcher thread could be made: nobody else would run it.
Dispatcher::OperationPtr Dispatcher::take_if_alone() {
    if (threads_ > 0 || ready_.empty()) return nullptr;
    OperationPtr first = ready_.front();
    take_ready(first);
    return first;
}

/// The first that need not be left to a waiting thread any longer.
Dispatcher::OperationPtr Dispatcher::take_due(Clock::time_point now) {
    for (const OperationPtr& candidate : ready_) {
        if (candidate->due > now) continue;
        OperationPtr found = candidate;
        take_ready(found);
        if (found->expects_wait) prompt_waits_ = -tuning::late_wait_penalty; // nobody came
        return found;
    }
    return nullptr;
}

void Dispatcher::run(const OperationPtr& operation, Next next) {
    try {
        operation->work();
    } catch (const std::bad_alloc&) {
        report_failed_work(*operation, Status::out_of_memory, "no memory is left");
    } catch (const std::exception& error) {
        report_failed_work(*operation, Status::unknown, error.what());
    }
    operation->work = nullptr; // what it holds goes before anyone is told that it is done
    finish(operation, next);
}

void Dispatcher::finish(const OperationPtr& operation, Next next) {
    std::lock_guard lock(mutex_);
    operation->state = Operation::State::done;
    for (const OperationPtr& dependent : operation->dependents) {
        if (--dependent->blockers > 0) continue;
        if (next == Next::one) {
            insert_ready(dependent);
            next = Next::nobody;
        } else if (next == Next::same_stream && dependent->stream_id == operation->stream_id) {
            dependent->due = taken_by_waiter;
            insert_ready(dependent);
        } else {
            make_ready(dependent);
        }
    }
    operation->dependents.clear();
    if (waiters_ > 0) operation_done_.notify_all();
}

void Dispatcher::wait(const OperationPtr& operation) {
    if (!operation) return;
    std::unique_lock lock(mutex_);
    if (operation->state != Operation::State::done) learn_from_wait();
    bool keeps_next = false; // some that follow in the stream may be ready for this thread alone
    while (operation->state != Operation::State::done) {
        OperationPtr mine;
        if (operation->state == Operation::State::ready) {
            take_ready(operation);
            mine = operation;
        } else if (operation->state == Operation::State::waiting) {
            mine = take_ready_of_stream(operation->stream_id);
            if (!mine) mine = take_if_alone();
        }
        if (mine) {
            lock.unlock();
            // What follows `mine` in the stream stands before `operation`, and is taken in the next turn: unless
            // `operation` is a promise, which `mine` may have kept.
            const bool keeps = mine->stream_id == operation->stream_id && mine != operation;
            keeps_next = keeps_next || keeps;
            run(mine, keeps ? Next::same_stream : Next::nobody);
            lock.lock();
            continue;
        }
        start_expected();
        ++waiters_;
        operation_done_.wait(lock);
        --waiters_;
    }
    if (keeps_next) leave_to_others(operation->stream_id);
}

std::shared_ptr<Operation> Dispatcher::promise(const Stream& stream) const {
    auto operation = std::make_shared<Operation>();
    operation->stream_id = stream.id_;
    operation->context = &stream.context_;
    operation->blockers = 1;
    return operation;
}

void Dispatcher::keep(const OperationPtr& promised) {
    finish(promised, Next::nobody);
}

bool Dispatcher::is_done(const OperationPtr& operation) const {
    std::lock_guard lock(mutex_);
    return !operation || operation->state == Operation::State::done;
}

std::shared_ptr<Operation> Dispatcher::last(const Stream& stream) const {
    std::lock_guard lock(mutex_);
    return stream.last_;
}

void Dispatcher::add_wait(Stream& stream, OperationPtr operation) {
    std::lock_guard lock(mutex_);
    if (!operation || operation->state == Operation::State::done) return;
    std::erase_if(stream.waits_, [](const OperationPtr& wait) { return wait->state == Operation::State::done; });
    stream.waits_.push_back(std::move(operation));
}

bool Dispatcher::idle(const Stream& stream) const {
    std::lock_guard lock(mutex_);
    bool idle = true;
    for_each_predecessor(stream, [&](const OperationPtr& before) {
        if (before->state != Operation::State::done) idle = false;
    });
    return idle;
}

std::vector<std::shared_ptr<Operation>> Dispatcher::pending_before(const Stream& stream) const {
    std::vector<OperationPtr> operations;
    std::lock_guard lock(mutex_);
    for_each_predecessor(stream, [&](const OperationPtr& before) {
        if (before->state != Operation::State::done) operations.push_back(before);
    });
    return operations;
}

std::vector<std::shared_ptr<Operation>> Dispatcher::pending(const Context& context) const {
    std::vector<OperationPtr> operations;
    std::lock_guard lock(mutex_);
    for (const Stream* stream : streams_) {
        if (&stream->context_ != &context) continue;
        if (stream->last_ && stream->last_->state != Operation::State::done) operations.push_back(stream->last_);
        for (const OperationPtr& wait : stream->waits_)
            if (wait->state != Operation::State::done) operations.push_back(wait);
    }
    for (const LeftBehind& left : left_behind_)
        if (left.context == &context && left.operation->state != Operation::State::done)
            operations.push_back(left.operation);
    return operations;
}

std::vector<std::shared_ptr<Operation>> Dispatcher::pending(const GreenContext& green) const {
    std::vector<OperationPtr> operations;
    std::lock_guard lock(mutex_);
    for (const Stream* stream : streams_)
        if (stream->green_.get() == &green && stream->last_ && stream->last_->state != Operation::State::done)
            operations.push_back(stream->last_);
    return operations;
}

void Dispatcher::add_wait_to_all(const Context& context, const GreenContext* green, OperationPtr operation) {
    std::lock_guard lock(mutex_);
    if (!operation || operation->state == Operation::State::done) return;
    for (Stream* stream : streams_)
        if (&stream->context_ == &context && (!green || stream->green_.get() == green))
            stream->waits_.push_back(operation);
    std::erase_if(waits_of_all_, [](const WaitOfAll& wait) { return wait.operation->state == Operation::State::done; });
    waits_of_all_.push_back({&context, green, std::move(operation)});
}

void Dispatcher::wait_for_all(const Context& context) {
    for (const OperationPtr& operation : pending(context)) wait(operation);
}

/// An idle thread's sleep. One of them wakes by itself while there is something to look after.
void Dispatcher::rest(std::unique_lock<std::mutex>& lock, Clock::time_point now) {
    Clock::time_point wake_at = now < watch_until_ ? now + tuning::watch_interval : taken_by_waiter;
    for (const OperationPtr& operation : ready_) wake_at = std::min(wake_at, operation->due);
    ++idle_threads_;
    if (watched_ || wake_at == taken_by_waiter) {
        work_available_.wait(lock);
    } else {
        watched_ = true;
        work_available_.wait_until(lock, wake_at);
        watched_ = false;
    }
    --idle_threads_;
    wakes_ = false;
}

void Dispatcher::thread_main() {
    pthread_setname_np(pthread_self(), "ptm-stream");
    std::unique_lock lock(mutex_);
    wakes_ = false;
    for (;;) {
        const Clock::time_point now = Clock::now();
        const OperationPtr operation = take_due(now);
        if (!operation) {
            rest(lock, now);
            continue;
        }
        // For what is ready, too, or to look after what is not due yet.
        if (!ready_.empty() && (!watched_ || has_due(now))) wake_thread();
        lock.unlock();
        run(operation, Next::one);
        lock.lock();
    }
}

} // namespace ptarmigan::runtime
