// SPDX-License-Identifier: Apache-2.0
// Streams on top of the dispatcher.
#include "runtime/stream/stream.h"

#include "runtime/base/handle_table.h"
#include "runtime/base/per_thread.h"
#include "runtime/context/context.h"
#include "runtime/context/context_keeper.h"
#include "runtime/context/current_context.h"
#include "runtime/context/green_context.h"
#include "runtime/context/printf_buffer.h"
#include "runtime/stream/dispatcher.h"
#include "runtime/stream/host_function.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace ptarmigan::runtime {
namespace {

std::atomic<std::uint64_t> next_stream_id{1};
thread_local const Stream* host_function_of = nullptr;

/// The green context that default streams of `context` mean now.
std::shared_ptr<GreenContext> green_of(const Context& context) {
    return working_context() == &context ? current_green_context() : nullptr;
}

/// The calling thread's own default stream.
std::shared_ptr<Stream> per_thread_stream(Context& context) {
    static thread_local std::vector<std::shared_ptr<Stream>>* of_thread = nullptr; // one per context
    std::vector<std::shared_ptr<Stream>>& mine = per_thread(of_thread);
    const std::shared_ptr<GreenContext> green = green_of(context);
    for (const auto& stream : mine)
        if (&stream->context() == &context && stream->green() == green) return stream;
    mine.push_back(std::make_shared<Stream>(context, StreamKind::per_thread, 0, 0, green));
    return mine.back();
}

/// A green context's own one is made when it is first meant.
const std::shared_ptr<Stream>& legacy_stream(Context& context) {
    const std::shared_ptr<GreenContext> green = green_of(context);
    if (!green) return context.legacy_stream();
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    Context& of_green = *green->context();
    if (!of_green.legacy_stream()) of_green.keep(std::make_shared<Stream>(context, StreamKind::legacy, 0, 0, green));
    return of_green.legacy_stream();
}

void make_legacy_stream(Context& context) {
    if (!context.legacy_stream()) context.keep(std::make_shared<Stream>(context, StreamKind::legacy, 0, 0));
}

void end_streams(Context& context) {
    const auto mine = [&](const auto& object) { return &object.context() == &context; };
    HandleTable<Stream>::get().remove_if(mine);
    HandleTable<Event>::get().remove_if(mine);
}

const RegisterContextKeeper
    streams_of_contexts(ContextKeeper::Kind::streams,
                        {.begin = make_legacy_stream,
                         .wait = [](Context& context) { Dispatcher::get().wait_for_all(context); },
                         .has_work = [](const Context& context) { return !Dispatcher::get().pending(context).empty(); },
                         .end = end_streams});

} // namespace

const Stream* stream_of_host_function() {
    return host_function_of;
}

HostFunctionScope::HostFunctionScope(const Stream& stream) : outer_(std::exchange(host_function_of, &stream)) {}

HostFunctionScope::~HostFunctionScope() {
    host_function_of = outer_;
}

Stream::Stream(Context& context, StreamKind kind, unsigned flags, int priority, std::shared_ptr<GreenContext> green)
    : context_(context), green_(std::move(green)), kind_(kind), flags_(flags), id_(next_stream_id++) {
    attributes_.priority = priority;
    Dispatcher::get().add_stream(this);
}

Stream::~Stream() {
    Dispatcher::get().remove_stream(this);
}

Status Stream::create(Context& context, unsigned flags, int priority, std::shared_ptr<Stream>& stream,
                      std::shared_ptr<GreenContext> green) {
    if (flags > 1) return Status::invalid_value;
    int least = 0, greatest = 0;
    Context::stream_priority_range(least, greatest);
    const StreamKind kind = flags == 1 ? StreamKind::non_blocking : StreamKind::blocking;
    priority = std::clamp(priority, greatest, least);
    stream = std::make_shared<Stream>(context, kind, flags, priority, std::move(green));
    HandleTable<Stream>::get().add(stream);
    return Status::success;
}

Status Stream::destroy(const void* handle) {
    return HandleTable<Stream>::get().remove(handle) ? Status::success : Status::invalid_handle;
}

StreamAttributes Stream::attributes() const {
    std::lock_guard lock(attributes_mutex_);
    return attributes_;
}

Status Stream::set_attributes(const std::function<Status(StreamAttributes&)>& change) {
    std::lock_guard lock(attributes_mutex_);
    return change(attributes_);
}

std::shared_ptr<StreamRecorder> Stream::recorder() const {
    if (!Captures::any()) return nullptr;
    std::lock_guard lock(attributes_mutex_);
    return recorder_;
}

void Stream::set_recorder(std::shared_ptr<StreamRecorder> recorder) {
    std::lock_guard lock(attributes_mutex_);
    recorder_.swap(recorder);
}

Status Stream::begin_work(std::shared_ptr<StreamRecorder>& recorder) {
    if (!Captures::any()) return Status::success;
    recorder = this->recorder();
    if (recorder || kind_ != StreamKind::legacy) return Status::success;
    const auto legacy_work = Captures::legacy_work.load();
    return legacy_work ? legacy_work(context_) : Status::success;
}

std::shared_ptr<Operation> Stream::submit(Work work, Start start) {
    return Dispatcher::get().submit(*this, std::move(work), start);
}

Status Stream::submit_and_wait(Work work) {
    Dispatcher& dispatcher = Dispatcher::get();
    dispatcher.wait(dispatcher.submit(*this, std::move(work), Start::inline_if_idle));
    return context_.status();
}

bool Stream::idle() const {
    return Dispatcher::get().idle(*this);
}

std::shared_ptr<Operation> Stream::last() const {
    return Dispatcher::get().last(*this);
}

void Stream::wait_for(std::shared_ptr<Operation> operation) {
    Dispatcher::get().add_wait(*this, std::move(operation));
}

Status Stream::synchronize() {
    std::shared_ptr<StreamRecorder> recorder;
    if (const Status status = begin_work(recorder); status != Status::success) return status;
    if (recorder) return recorder->forbid();
    if (const Status status = Captures::check_unsafe_call(); status != Status::success) return status;
    if (stream_of_host_function() == this) return Status::not_permitted; // it would wait for itself
    Dispatcher& dispatcher = Dispatcher::get();
    if (kind_ == StreamKind::legacy)
        for (const auto& operation : dispatcher.pending_before(*this)) dispatcher.wait(operation);
    else
        dispatcher.wait(dispatcher.last(*this));
    return context_.after_wait();
}

Status Stream::query() {
    std::shared_ptr<StreamRecorder> recorder;
    if (const Status status = begin_work(recorder); status != Status::success) return status;
    if (recorder) return recorder->forbid();
    if (const Status status = Captures::check_unsafe_call(); status != Status::success) return status;
    Dispatcher& dispatcher = Dispatcher::get();
    const bool done = kind_ == StreamKind::legacy ? dispatcher.idle(*this) : dispatcher.is_done(dispatcher.last(*this));
    if (const Status status = context_.status(); status != Status::success) return status;
    if (!done) {
        dispatcher.hurry();
        return Status::not_ready;
    }
    context_.printf_buffer().flush();
    return Status::success;
}

Status Stream::add_callback(std::function<void(Status)> callback) {
    std::shared_ptr<StreamRecorder> recorder;
    if (const Status status = begin_work(recorder); status != Status::success) return status;
    if (recorder) return recorder->forbid(); // a callback gets the stream's status, which a graph has none of
    const auto call = [self = this, &context = context_, callback = std::move(callback)] {
        const HostFunctionScope scope(*self); // compared only: the stream may be gone
        callback(context.status());
    };
    submit(call, Start::elsewhere);
    return Status::success;
}

Status Stream::add_host_function(void (*function)(void*), void* data) {
    std::shared_ptr<StreamRecorder> recorder;
    if (const Status status = begin_work(recorder); status != Status::success) return status;
    if (recorder) return recorder->host_function(function, data);
    return add_callback([=](Status status) {
        if (status == Status::success) function(data); // after a fault the driver calls no host functions
    });
}

Status resolve_stream(Context& context, const void* handle, bool per_thread, std::shared_ptr<Stream>& stream) {
    const auto value = reinterpret_cast<std::uintptr_t>(handle);
    if (value == 1 || (value == 0 && !per_thread))
        stream = legacy_stream(context);
    else if (value == 2 || value == 0)
        stream = per_thread_stream(context);
    else
        stream = HandleTable<Stream>::get().find(handle);
    return stream ? Status::success : Status::invalid_handle;
}

} // namespace ptarmigan::runtime
