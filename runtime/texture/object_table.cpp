// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/object_table.h"

namespace ptarmigan::runtime {

TextureTable &TextureTable::get() {
    static auto *table = new TextureTable; // never destroyed: kernels may run while the process exits
    return *table;
}

Status TextureTable::add(const TextureObject &object, std::uint64_t &handle) {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
        handle = free_.back();
        free_.pop_back();
    } else if (next_ == capacity) {
        return Status::out_of_memory;
    } else {
        std::atomic<Block *> &block = blocks_[next_ / block_size];
        if (!block.load(std::memory_order_relaxed))
            block.store(new Block{}, std::memory_order_release);
        handle = next_++;
    }
    TextureObject &slot = (*blocks_[handle / block_size].load(std::memory_order_relaxed))[handle % block_size];
    slot.image = object.image;
    slot.sampler = object.sampler;
    __atomic_store_n(&slot.kind, object.kind, __ATOMIC_RELEASE);
    return Status::success;
}

bool TextureTable::remove(std::uint64_t handle, TextureObject::Kind kind) {
    std::lock_guard lock(mutex_);
    const TextureObject *object = find(handle, kind);
    if (!object)
        return false;
    __atomic_store_n(&const_cast<TextureObject *>(object)->kind, TextureObject::Kind::none, __ATOMIC_RELEASE);
    free_.push_back(handle);
    return true;
}

} // namespace ptarmigan::runtime
