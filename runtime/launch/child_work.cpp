// SPDX-License-Identifier: Apache-2.0
// Child grids run when their parent's CTAs have ended, one after the other in the order of their launches. That is one
// of the orders that the programming guide allows: streams of one block keep theirs, a child sees what its parent wrote
// before the launch, nobody can wait for a child, and nothing promises that grids run at the same time.
#include "runtime/launch/child_work.h"

#include "runtime/base/host_access.h"
#include "runtime/base/log.h"
#include "runtime/code/fault.h"
#include "runtime/context/context.h"
#include "runtime/launch/grid.h"
#include "runtime/module/module.h"

#include <iterator>

namespace ptarmigan::runtime {

void* ChildWork::add_buffer(std::unique_ptr<ChildItem> item) {
    void* buffer = item->parameters.data();
    std::lock_guard lock(mutex_);
    buffers_[buffer] = std::move(item);
    return buffer;
}

bool ChildWork::has_buffer(const void* address, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    auto buffer = buffers_.upper_bound(address);
    if (buffer == buffers_.begin()) return false;
    --buffer;
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(buffer->first);
    const std::size_t size = buffer->second->parameters.size() * sizeof(ParameterLine);
    return offset < size && bytes <= size - offset;
}

std::unique_ptr<ChildItem> ChildWork::take_buffer(void* buffer) {
    std::lock_guard lock(mutex_);
    const auto found = buffers_.find(buffer);
    if (found == buffers_.end()) return nullptr;
    std::unique_ptr<ChildItem> item = std::move(found->second);
    buffers_.erase(found);
    return item;
}

int ChildWork::launch(std::unique_ptr<ChildItem> item, std::uint64_t stream) {
    const int error = !is_stream(stream) ? invalid_resource_handle : item->error;
    if (error == success) add(std::move(item), stream);
    return error;
}

void ChildWork::add(std::unique_ptr<ChildItem> item, std::uint64_t stream) {
    std::lock_guard lock(mutex_);
    (stream == tail_launch ? tail_ : items_).push_back(std::move(item));
}

void ChildWork::set_error(std::uint64_t thread, int error) {
    if (error == success) return;
    std::lock_guard lock(mutex_);
    errors_[thread] = error;
    has_errors_.store(true, std::memory_order_release);
}

int ChildWork::last_error(std::uint64_t thread, bool clear) {
    if (!has_errors_.load(std::memory_order_acquire)) return success;
    std::lock_guard lock(mutex_);
    const auto found = errors_.find(thread);
    if (found == errors_.end()) return success;
    const int error = found->second;
    if (clear) errors_.erase(found);
    return error;
}

std::vector<std::unique_ptr<ChildItem>> ChildWork::take() {
    std::lock_guard lock(mutex_);
    buffers_.clear();
    std::vector<std::unique_ptr<ChildItem>> work = std::move(items_);
    std::move(tail_.begin(), tail_.end(), std::back_inserter(work));
    items_.clear();
    tail_.clear();
    return work;
}

ChildWork& child_work_of(Grid& grid) {
    std::call_once(grid.children_once, [&] { grid.children = std::make_shared<ChildWork>(); });
    return *grid.children;
}

namespace {

using Pending = std::vector<std::unique_ptr<ChildItem>>; ///< the next one last

void push(Grid& grid, Pending& pending) {
    if (!grid.children) return;
    auto work = grid.children->take();
    std::move(work.rbegin(), work.rend(), std::back_inserter(pending));
}

/// What a launch by the host would return is an error of the context here: no caller is left to be told.
void fail(Grid& parent, const std::string& what, Status status) {
    publish_fault_report("kernel " + parent.code->name + ": " + what);
    parent.context->set_fault(status);
}

/// Runs one item; what it launched goes to `pending`.
bool run_item(Grid& parent, ChildItem& item, Pending& pending) {
    if (item.host_work) {
        if (item.host_work()) return true;
        fail(parent, "a copy or fill that it or a child of it asked for leaves the device's memory",
             Status::illegal_address);
        return false;
    }
    const void* buffer = item.parameters.data();
    std::size_t bytes = item.parameter_bytes;
    void* extra[] = {reinterpret_cast<void*>(1), const_cast<void*>(buffer), reinterpret_cast<void*>(2), &bytes,
                     nullptr};
    std::shared_ptr<Grid> child;
    LaunchConfig config = item.config;
    config.multiprocessors = parent.multiprocessors;
    const Status status = make_grid(*item.function, config, *parent.context, nullptr, extra, child);
    if (status != Status::success) {
        fail(parent, "the launch of " + item.function->kernel().name() + " from the device failed: " + error_detail(),
             status);
        return false;
    }
    run_ctas(child);
    if (child->stopped() || child->context->status() != Status::success) return false;
    push(*child, pending);
    return true;
}

} // namespace

void run_child_work(Grid& grid) {
    const DeviceMemoryUse use; // copies and fills are done here
    if (!grid.children || grid.stopped()) return;
    Pending pending;
    push(grid, pending);
    while (!pending.empty()) {
        const std::unique_ptr<ChildItem> item = std::move(pending.back());
        pending.pop_back();
        if (!run_item(grid, *item, pending)) return;
    }
}

} // namespace ptarmigan::runtime
