// SPDX-License-Identifier: Apache-2.0
// The queues of all streams and the threads that serve them.
#include "runtime/stream/dispatcher.h"

#include "runtime/tuning.h"

#include <algorithm>
#include <pthread.h>
#include <signal.h>
#include <thread>

namespace ptarmigan::runtime {

Dispatcher &Dispatcher::get() {
    static auto *dispatcher =
        new Dispatcher; // never destroyed: its threads run until the process ends
    return *dispatcher;
}

void Dispatcher::add_stream(Stream *stream) {
    std::lock_guard lock(mutex_);
    streams_.push_back(stream);
}

void Dispatcher::remove_stream(Stream *stream) {
    std::lock_guard lock(mutex_);
    std::erase(streams_, stream);
    // What is still queued keeps the order of the default stream: hand it to that stream.
    if (!stream->last_ || stream->last_->state == Operation::State::done)
        return;
    if (stream->kind_ != StreamKind::blocking && stream->kind_ != StreamKind::per_thread)
        return;
    for (Stream *other : streams_)
        if (other->kind_ == StreamKind::legacy && &other->context_ == &stream->context_)
            other->waits_.push_back(stream->last_);
}

/// Everything that the next operation of `stream` waits for: its own last one, what add_wait()
/// said, and the rules of the legacy default stream, which runs alone among the blocking streams of
/// its context.
template <class Visit>
void Dispatcher::for_each_predecessor(const Stream &stream, Visit visit) const {
    if (stream.last_)
        visit(stream.last_);
    for (const OperationPtr &wait : stream.waits_)
        visit(wait);
    if (stream.kind_ == StreamKind::non_blocking)
        return;
    const bool is_legacy = stream.kind_ == StreamKind::legacy;
    for (const Stream *other : streams_) {
        if (other == &stream || &other->context_ != &stream.context_ || !other->last_)
            continue;
        if (other->kind_ == StreamKind::non_blocking)
            continue;
        if (is_legacy || other->kind_ == StreamKind::legacy)
            visit(other->last_);
    }
}

std::shared_ptr<Operation> Dispatcher::submit(Stream &stream, Work work, Stream::Start start,
                                              bool claim) {
    auto operation = std::make_shared<Operation>();
    operation->work = std::move(work);
    operation->priority = stream.priority_;
    operation->stream_id = stream.id_;
    {
        std::lock_guard lock(mutex_);
        for_each_predecessor(stream, [&](const OperationPtr &before) {
            if (before->state == Operation::State::done)
                return;
            before->dependents.push_back(operation);
            ++operation->blockers;
        });
        stream.waits_.clear();
        stream.last_ = operation;
        if (operation->blockers > 0)
            return operation;
        if (start == Stream::Start::elsewhere && !claim) {
            make_ready(operation, true);
            return operation;
        }
        operation->state = Operation::State::running;
    }
    if (!claim)
        run(operation);
    return operation;
}

void Dispatcher::make_ready(const OperationPtr &operation, bool wake) {
    operation->state = Operation::State::ready;
    auto place = ready_.end();
    while (place != ready_.begin() && (*std::prev(place))->priority > operation->priority)
        --place;
    ready_.insert(place, operation);
    if (wake)
        wake_thread();
}

void Dispatcher::wake_thread() {
    if (idle_threads_ >= ready_.size()) {
        work_available_.notify_one();
        return;
    }
    if (threads_ >= tuning::max_dispatcher_threads)
        return;
    ++threads_;
    // The program's signal handlers must not run on our threads: only the faults of kernels are
    // taken there.
    sigset_t all, before;
    sigfillset(&all);
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
        sigdelset(&all, number);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { thread_main(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Dispatcher::take_ready(const OperationPtr &operation) {
    ready_.erase(std::find(ready_.begin(), ready_.end(), operation));
    operation->state = Operation::State::running;
}

Dispatcher::OperationPtr Dispatcher::take_ready_of_stream(std::uint64_t stream_id) {
    for (const OperationPtr &candidate : ready_) {
        if (candidate->stream_id != stream_id)
            continue;
        OperationPtr found = candidate;
        take_ready(found);
        return found;
    }
    return nullptr;
}

void Dispatcher::run(const OperationPtr &operation) {
    operation->work();
    operation->work = nullptr; // what it holds goes before anyone is told that it is done
    finish(operation);
}

void Dispatcher::finish(const OperationPtr &operation) {
    std::lock_guard lock(mutex_);
    operation->state = Operation::State::done;
    for (const OperationPtr &next : operation->dependents)
        if (--next->blockers == 0)
            make_ready(next, true);
    operation->dependents.clear();
    if (waiters_ > 0)
        operation_done_.notify_all();
}

void Dispatcher::wait(const OperationPtr &operation) {
    if (!operation)
        return;
    std::unique_lock lock(mutex_);
    while (operation->state != Operation::State::done) {
        OperationPtr mine;
        if (operation->state == Operation::State::ready) {
            take_ready(operation);
            mine = operation;
        } else if (operation->state == Operation::State::waiting) {
            mine = take_ready_of_stream(operation->stream_id);
        }
        if (mine) {
            lock.unlock();
            run(mine);
            lock.lock();
            continue;
        }
        ++waiters_;
        operation_done_.wait(lock);
        --waiters_;
    }
}

bool Dispatcher::is_done(const OperationPtr &operation) const {
    std::lock_guard lock(mutex_);
    return !operation || operation->state == Operation::State::done;
}

std::shared_ptr<Operation> Dispatcher::last(const Stream &stream) const {
    std::lock_guard lock(mutex_);
    return stream.last_;
}

void Dispatcher::add_wait(Stream &stream, OperationPtr operation) {
    std::lock_guard lock(mutex_);
    if (!operation || operation->state == Operation::State::done)
        return;
    std::erase_if(stream.waits_,
                  [](const OperationPtr &wait) { return wait->state == Operation::State::done; });
    stream.waits_.push_back(std::move(operation));
}

bool Dispatcher::idle(const Stream &stream) const {
    std::lock_guard lock(mutex_);
    bool idle = true;
    for_each_predecessor(stream, [&](const OperationPtr &before) {
        if (before->state != Operation::State::done)
            idle = false;
    });
    return idle;
}

std::vector<std::shared_ptr<Operation>> Dispatcher::pending_before(const Stream &stream) const {
    std::vector<OperationPtr> operations;
    std::lock_guard lock(mutex_);
    for_each_predecessor(stream, [&](const OperationPtr &before) {
        if (before->state != Operation::State::done)
            operations.push_back(before);
    });
    return operations;
}

std::vector<std::shared_ptr<Operation>> Dispatcher::pending(const Context &context) const {
    std::vector<OperationPtr> operations;
    std::lock_guard lock(mutex_);
    for (const Stream *stream : streams_) {
        if (&stream->context_ != &context)
            continue;
        if (stream->last_ && stream->last_->state != Operation::State::done)
            operations.push_back(stream->last_);
        for (const OperationPtr &wait : stream->waits_)
            if (wait->state != Operation::State::done)
                operations.push_back(wait);
    }
    return operations;
}

void Dispatcher::thread_main() {
    pthread_setname_np(pthread_self(), "ptm-stream");
    std::unique_lock lock(mutex_);
    for (;;) {
        while (ready_.empty()) {
            ++idle_threads_;
            work_available_.wait(lock);
            --idle_threads_;
        }
        const OperationPtr operation = ready_.front();
        take_ready(operation);
        lock.unlock();
        run(operation);
        lock.lock();
    }
}

} // namespace ptarmigan::runtime
