// SPDX-License-Identifier: Apache-2.0
// Events: marks in streams.
#include "runtime/base/handle_table.h"
#include "runtime/context/context.h"
#include "runtime/stream/dispatcher.h"
#include "runtime/stream/stream.h"

namespace ptarmigan::runtime {
namespace {

constexpr unsigned blocking_sync = 1, disable_timing = 2, interprocess = 4;

} // namespace

Status Event::create(Context& context, unsigned flags, std::shared_ptr<Event>& event) {
    if (flags & ~(blocking_sync | disable_timing | interprocess)) return Status::invalid_value;
    if (flags & interprocess) return flags & disable_timing ? Status::not_supported : Status::invalid_value;
    event = std::make_shared<Event>(context, flags);
    HandleTable<Event>::get().add(event);
    return Status::success;
}

Status Event::destroy(const void* handle) {
    return HandleTable<Event>::get().remove(handle) ? Status::success : Status::invalid_handle;
}

Event::Mark Event::mark() const {
    std::lock_guard lock(mutex_);
    return mark_;
}

Status Event::record(Stream& stream) {
    auto time = std::make_shared<Clock::time_point>();
    Mark mark;
    mark.time = time;
    mark.operation = stream.submit([time] { *time = Clock::now(); }, Stream::Start::inline_if_idle);
    std::lock_guard lock(mutex_);
    mark_ = std::move(mark);
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
    const Mark mark = this->mark();
    if (const Status status = context_.status(); status != Status::success) return status;
    Dispatcher& dispatcher = Dispatcher::get();
    if (dispatcher.is_done(mark.operation)) return Status::success;
    dispatcher.hurry();
    return Status::not_ready;
}

Status Event::synchronize() {
    Dispatcher::get().wait(mark().operation);
    return context_.after_wait();
}

Status Event::make_wait(Stream& stream, unsigned flags) {
    if (flags > 1) return Status::invalid_value;
    stream.wait_for(mark().operation);
    return Status::success;
}

Status Event::elapsed(Event& start, Event& end, float& milliseconds) {
    const Mark first = start.mark(), second = end.mark();
    if ((start.flags_ | end.flags_) & disable_timing) return Status::invalid_handle;
    if (!first.operation || !second.operation) return Status::invalid_handle;
    Dispatcher& dispatcher = Dispatcher::get();
    if (!dispatcher.is_done(first.operation) || !dispatcher.is_done(second.operation)) return Status::not_ready;
    milliseconds = std::chrono::duration<float, std::milli>(*second.time - *first.time).count();
    return Status::success;
}

} // namespace ptarmigan::runtime
