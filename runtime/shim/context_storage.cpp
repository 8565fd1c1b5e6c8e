// SPDX-License-Identifier: Apache-2.0
#include "runtime/shim/context_storage.h"

#include "runtime/context/context.h"
#include "runtime/context/current_context.h"

#include <vector>

namespace ptarmigan::shim {
namespace {

using runtime::Status;

const void* context_of(CUcontext handle) {
    return handle ? static_cast<const void*>(handle) : runtime::current_context();
}

struct LastAnswer {
    std::uint64_t generation = 0;
    const void* context = nullptr;
    void* key = nullptr;
    void* value = nullptr;
};

} // namespace

ContextStorage& ContextStorage::get() {
    static auto* storage = new ContextStorage; // never destroyed: used from exit handlers
    return *storage;
}

Status ContextStorage::put(CUcontext handle, void* key, void* value, Destructor destructor) {
    const void* context = context_of(handle);
    if (!context) return Status::invalid_context;
    std::lock_guard lock(mutex_);
    entries_[{context, key}] = {value, destructor};
    generation_.fetch_add(1, std::memory_order_release);
    return Status::success;
}

Status ContextStorage::remove(CUcontext handle, void* key) {
    const void* context = context_of(handle);
    if (!context) return Status::invalid_context;
    std::lock_guard lock(mutex_);
    if (entries_.erase({context, key}) == 0) return Status::invalid_handle;
    generation_.fetch_add(1, std::memory_order_release);
    return Status::success;
}

Status ContextStorage::find(void** value, CUcontext handle, void* key) {
    static thread_local LastAnswer last;
    const void* context = context_of(handle);
    if (!context) return Status::invalid_context;
    std::uint64_t generation = generation_.load(std::memory_order_acquire);
    if (last.generation != generation || last.context != context || last.key != key) {
        std::lock_guard lock(mutex_);
        auto entry = entries_.find({context, key});
        if (entry == entries_.end()) return Status::invalid_handle;
        // The counter cannot change under the lock, but may have since it was read.
        last = {generation_.load(std::memory_order_relaxed), context, key, entry->second.value};
    }
    if (value) *value = last.value;
    return Status::success;
}

void ContextStorage::clear(runtime::Context& context) {
    std::vector<std::pair<void*, Entry>> gone;
    {
        std::lock_guard lock(mutex_);
        for (auto entry = entries_.begin(); entry != entries_.end();) {
            if (entry->first.first == &context) {
                gone.emplace_back(entry->first.second, entry->second);
                entry = entries_.erase(entry);
            } else {
                ++entry;
            }
        }
        generation_.fetch_add(1, std::memory_order_release);
    }
    for (auto& [key, entry] : gone)
        if (entry.destructor) entry.destructor(reinterpret_cast<CUcontext>(&context), key, entry.value);
}

} // namespace ptarmigan::shim
