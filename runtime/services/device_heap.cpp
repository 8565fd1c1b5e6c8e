// SPDX-License-Identifier: Apache-2.0
// First fit over coalesced ranges.
#include "runtime/services/device_heap.h"

#include "runtime/context/context.h"
#include "runtime/context/context_keeper.h"
#include "runtime/memory/address_space.h"

#include <algorithm>

namespace ptarmigan::runtime {
namespace {

constexpr std::size_t block = 16;

const RegisterContextKeeper
    heaps_of_contexts(ContextKeeper::Kind::kernel_heap,
                      {.make = [](Context& context) { context.keep(std::make_shared<KernelHeap>(context)); },
                       .end = [](Context& context) { context.kernel_heap().release(); }});

} // namespace

bool KernelHeap::reserve() {
    std::size_t size = 0;
    Allocation allocation;
    if (context_.limit(Limit::malloc_heap_size, size) != Status::success) return false;
    AddressSpace& space = AddressSpace::get();
    if (space.allocate(size, MemoryKind::device, &context_, allocation) != Status::success) return false;
    if (space.annotate(allocation.base, [](Allocation& record) { record.owned_by_module = true; }) != Status::success)
        return false;
    context_.fix_heap_limit();
    base_ = allocation.base;
    size_ = size;
    free_.emplace(base_, size / block * block);
    return true;
}

void* KernelHeap::allocate(std::size_t size) {
    std::lock_guard lock(mutex_);
    if (size > SIZE_MAX - block) return nullptr;
    if (base_ == 0 && !reserve()) return nullptr;
    size = std::max(block, (size + block - 1) / block * block);
    for (auto range = free_.begin(); range != free_.end(); ++range) {
        if (range->second < size) continue;
        const std::uintptr_t address = range->first;
        const std::size_t left = range->second - size;
        free_.erase(range);
        if (left > 0) free_.emplace(address + size, left);
        live_.emplace(address, size);
        return reinterpret_cast<void*>(address);
    }
    return nullptr;
}

KernelHeap::Freed KernelHeap::free(void* pointer) {
    if (!pointer) return Freed::yes;
    std::lock_guard lock(mutex_);
    const auto given = reinterpret_cast<std::uintptr_t>(pointer);
    auto found = live_.find(given);
    if (found == live_.end()) return base_ != 0 && given - base_ < size_ ? Freed::dead : Freed::not_ours;
    std::uintptr_t address = found->first;
    std::size_t size = found->second;
    live_.erase(found);
    auto next = free_.lower_bound(address);
    if (next != free_.end() && next->first == address + size) {
        size += next->second;
        next = free_.erase(next);
    }
    if (next != free_.begin()) {
        auto previous = std::prev(next);
        if (previous->first + previous->second == address) {
            previous->second += size;
            return Freed::yes;
        }
    }
    free_.emplace(address, size);
    return Freed::yes;
}

void KernelHeap::release() {
    std::lock_guard lock(mutex_);
    if (base_ != 0) static_cast<void>(AddressSpace::get().free(base_, [](const Allocation&) { return true; }));
    base_ = 0;
    free_.clear();
    live_.clear();
}

} // namespace ptarmigan::runtime
