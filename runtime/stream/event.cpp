// SPDX-License-Identifier: Apache-2.0
// Events: marks in streams.
#include "runtime/base/handle_table.h"
#include "runtime/context/context.h"
#include "runtime/stream/dispatcher.h"
#include "runtime/stream/shared_event.h"
#include "runtime/stream/stream.h"

namespace ptarmigan::runtime {
namespace {

constexpr unsigned blocking_sync = 1, disable_timing = 2, interprocess = 4;

} // namespace

Status Event::create(Context& context, unsigned flags, std::shared_ptr<Event>& event) {
    if (flags & ~(blocking_sync | disable_timing | interprocess)) return Status::invalid_value;
    if ((flags & interprocess) && !(flags & disable_timing)) return Status::invalid_value;
    event = std::make_shared<Event>(context, flags);
    if (flags & interprocess) {
        event->shared_ = SharedEvent::create();
        if (!event->shared_) return Status::out_of_memory;
    }
    HandleTable<Event>::get().add(event);
    return Status::success;
}

Status Event::open(Context& context, const FilePlace& place, std::shared_ptr<Event>& event) {
    auto shared = SharedEvent::open(place);
    if (!shared) return Status::map_failed;
    event = std::make_shared<Event>(context, disable_timing | interprocess);
    event->shared_ = std::move(shared);
    event->is_opened_ = true;
    HandleTable<Event>::get().add(event);
    return Status::success;
}

Status Event::place(FilePlace& place) const {
    return shared_ && !is_opened_ ? shared_->place(place) : Status::invalid_handle;
}

bool Event::recorded_elsewhere(const Mark& mark, std::uint64_t& record) const {
    if (!shared_) return false;
    record = shared_->last();
    return record != mark.shared_record;
}

Status Event::destroy(const void* handle) {
    return HandleTable<Event>::get().remove(handle) ? Status::success : Status::invalid_handle;
}

Event::Mark Event::mark() const {
    std::lock_guard lock(mutex_);
    return mark_;
}

void Event::set_mark(Mark mark) {
    std::lock_guard lock(mutex_);
    mark_ = std::move(mark);
    captured_ = nullptr;
}

void Event::set_captured(std::shared_ptr<CapturedMark> captured) {
    std::lock_guard lock(mutex_);
    captured_ = std::move(captured);
}

std::shared_ptr<CapturedMark> Event::captured() const {
    std::lock_guard lock(mutex_);
    return captured_;
}

Status Event::record(Stream& stream, bool external, unsigned port) {
    std::shared_ptr<StreamRecorder> recorder;
    if (const Status status = stream.begin_work(recorder); status != Status::success) return status;
    if (recorder) return recorder->record(*this, external, port);
    auto time = std::make_shared<Clock::time_point>();
    Mark mark;
    mark.time = time;
    if (shared_) mark.shared_record = shared_->record();
    mark.operation = stream.submit(
        [time, shared = shared_, record = mark.shared_record] {
            *time = Clock::now();
            if (shared) shared->happened(record);
        },
        Stream::Start::inline_if_idle);
    set_mark(std::move(mark));
    return Status::success;
}

Status Event::record_all(const GreenContext* green) {
    Dispatcher& dispatcher = Dispatcher::get();
    const auto stream = std::make_shared<Stream>(context_, StreamKind::non_blocking, 0, 0);
    for (auto& operation : green ? dispatcher.pending(*green) : dispatcher.pending(context_))
        stream->wait_for(std::move(operation));
    return record(*stream);
}

Status Event::make_all_wait(Context& context, const GreenContext* green) {
    Dispatcher::get().add_wait_to_all(context, green, mark().operation);
    return Status::success;
}

Status Event::query() {
    if (const auto captured = this->captured()) return captured->forbid();
    if (const Status status = Captures::check_unsafe_call(); status != Status::success) return status;
    const Mark mark = this->mark();
    if (const Status status = context_.status(); status != Status::success) return status;
    Dispatcher& dispatcher = Dispatcher::get();
    std::uint64_t record = 0;
    if (recorded_elsewhere(mark, record)) return shared_->has_happened(record) ? Status::success : Status::not_ready;
    if (dispatcher.is_done(mark.operation)) return Status::success;
    dispatcher.hurry();
    return Status::not_ready;
}

Status Event::synchronize() {
    if (const auto captured = this->captured()) return captured->forbid();
    if (const Status status = Captures::check_unsafe_call(); status != Status::success) return status;
    const Mark mark = this->mark();
    std::uint64_t record = 0;
    if (recorded_elsewhere(mark, record))
        shared_->wait(record, [this] { return context_.status() != Status::success; });
    else
        Dispatcher::get().wait(mark.operation);
    return context_.after_wait();
}

Status Event::make_wait(Stream& stream, unsigned flags) {
    if (flags > 1) return Status::invalid_value;
    const bool external = flags == 1;
    if (const auto captured = this->captured()) return captured->wait(stream, external);
    std::shared_ptr<StreamRecorder> recorder;
    if (const Status status = stream.begin_work(recorder); status != Status::success) return status;
    if (recorder) return recorder->wait(*this, external);
    const Mark mark = this->mark();
    std::uint64_t record = 0;
    if (recorded_elsewhere(mark, record)) {
        if (shared_->has_happened(record)) return Status::success;
        Context& context = stream.context();
        stream.submit([shared = shared_, record,
                       &context] { shared->wait(record, [&context] { return context.status() != Status::success; }); },
                      Stream::Start::elsewhere);
        return Status::success;
    }
    stream.wait_for(mark.operation);
    return Status::success;
}

Status Event::elapsed(Event& start, Event& end, float& milliseconds) {
    for (const Event* event : {&start, &end})
        if (const auto captured = event->captured()) return captured->forbid();
    const Mark first = start.mark(), second = end.mark();
    if ((start.flags_ | end.flags_) & disable_timing) return Status::invalid_handle;
    if (!first.operation || !second.operation) return Status::invalid_handle;
    if (start.context().device() != end.context().device()) return Status::invalid_handle;
    Dispatcher& dispatcher = Dispatcher::get();
    if (!dispatcher.is_done(first.operation) || !dispatcher.is_done(second.operation)) return Status::not_ready;
    milliseconds = std::chrono::duration<float, std::milli>(*second.time - *first.time).count();
    return Status::success;
}

} // namespace ptarmigan::runtime
