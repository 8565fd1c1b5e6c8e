// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/object_table.h"

namespace ptarmigan::runtime {

TextureTable& TextureTable::get() {
    static auto* table = new TextureTable; // never destroyed: kernels may run while the process exits
    return *table;
}

Status TextureTable::add(const TextureObject& object, std::uint64_t& handle) {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
        handle = free_.back();
        free_.pop_back();
    } else if (next_ == capacity) {
        return Status::out_of_memory;
    } else {
        std::atomic<Block*>& block = blocks_[next_ / block_size];
        if (!block.load(std::memory_order_relaxed)) block.store(new Block{}, std::memory_order_release);
        handle = next_++;
    }
    Slot& slot = *slot_of(handle);
    slot.object = object;
    slot.alive.store(true, std::memory_order_release);
    slot.used.store(true, std::memory_order_release);
    return Status::success;
}

bool TextureTable::remove(std::uint64_t handle, TextureObject::Kind kind) {
    std::lock_guard lock(mutex_);
    if (!find(handle, kind)) return false;
    slot_of(handle)->alive.store(false, std::memory_order_release);
    free_.push_back(handle);
    return true;
}

} // namespace ptarmigan::runtime
