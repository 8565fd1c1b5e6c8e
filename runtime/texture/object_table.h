// SPDX-License-Identifier: Apache-2.0
// Handles of texture and surface objects: numbers that kernels look up. A number that is no object is found out, never
// followed.
#pragma once

#include "runtime/base/status.h"
#include "runtime/texture/texture.h"

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

namespace ptarmigan::runtime {

/// Objects live in blocks that are never freed, so that a kernel may look up any number at any time: one that still
/// uses a destroyed object sees it, or whatever took its place, as on the hardware. Thread-safe.
class TextureTable {
public:
    /// The bits of a handle that number the object; numbers from `capacity` on are none and never will be.
    static constexpr std::uint64_t number_bits = (1u << 20) - 1;
    static constexpr std::uint64_t block_size = 256, block_count = 4000, capacity = block_size * block_count;

    static TextureTable& get();

    /// out_of_memory if a million objects are alive.
    Status add(const TextureObject& object, std::uint64_t& handle);
    /// False if the handle is none of that kind.
    bool remove(std::uint64_t handle, TextureObject::Kind kind);
    /// Null if the handle is no live object of that kind.
    const TextureObject* find(std::uint64_t handle, TextureObject::Kind kind) const {
        const Slot* slot = slot_of(handle);
        return slot && slot->alive.load(std::memory_order_acquire) && slot->object.kind == kind ? &slot->object
                                                                                                : nullptr;
    }
    /// What a kernel sees: the last object of that number, null if there never was one.
    const TextureObject* last(std::uint64_t number) const {
        const Slot* slot = slot_of(number);
        return slot && slot->used.load(std::memory_order_acquire) ? &slot->object : nullptr;
    }

private:
    struct Slot {
        std::atomic<bool> used{false}, alive{false};
        TextureObject object;
    };
    using Block = std::array<Slot, block_size>;

    Slot* slot_of(std::uint64_t number) const {
        if (number >= capacity) return nullptr;
        Block* block = blocks_[number / block_size].load(std::memory_order_acquire);
        return block ? &(*block)[number % block_size] : nullptr;
    }

    std::array<std::atomic<Block*>, block_count> blocks_{};
    std::mutex mutex_;                ///< guards what follows
    std::uint64_t next_ = 1;          ///< handles below were given out; 0 is none
    std::vector<std::uint64_t> free_; ///< and these came back
};

} // namespace ptarmigan::runtime
