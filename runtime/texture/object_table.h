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

/// Objects live in blocks that are never freed, so that a kernel may look up any number at any time: one that still uses a
/// destroyed object sees whatever took its place, as on the hardware. Thread-safe.
class TextureTable {
public:
    /// The bits of a handle that number the object; numbers from `capacity` on are none and never will be.
    static constexpr std::uint64_t number_bits = (1u << 20) - 1;
    static constexpr std::uint64_t block_size = 256, block_count = 4000, capacity = block_size * block_count;

    static TextureTable &get();

    /// out_of_memory if a million objects are alive.
    Status add(const TextureObject &object, std::uint64_t &handle);
    /// False if the handle is none of that kind.
    bool remove(std::uint64_t handle, TextureObject::Kind kind);
    /// Null if the handle is none of that kind. Async-signal-safe.
    const TextureObject *find(std::uint64_t handle, TextureObject::Kind kind) const {
        if (handle >= capacity)
            return nullptr;
        const Block *block = blocks_[handle / block_size].load(std::memory_order_acquire);
        if (!block)
            return nullptr;
        const TextureObject &object = (*block)[handle % block_size];
        return __atomic_load_n(&object.kind, __ATOMIC_ACQUIRE) == kind ? &object : nullptr;
    }

private:
    using Block = std::array<TextureObject, block_size>;

    std::array<std::atomic<Block *>, block_count> blocks_{};
    std::mutex mutex_;                ///< guards what follows
    std::uint64_t next_ = 1;          ///< handles below were given out; 0 is none
    std::vector<std::uint64_t> free_; ///< and these came back
};

} // namespace ptarmigan::runtime
