// SPDX-License-Identifier: Apache-2.0
// Global memory that threads have written to and that copies of the async proxy do not see yet, because no proxy fence
// has come since (PTX manual 9.7.9.25.2). Kept for copies that are late, so that a missing fence shows.
#pragma once

#include "runtime/memory/outside_writes.h"
#include "translator/kernel_abi.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace ptarmigan::runtime {

/// Bytes of device memory as they were before the first write that is not fenced. One for the process: a fence of any
/// thread of any grid stands for all writes before it, and so do OutsideWrites, which is more than the manual grants
/// and never less. Memory that the host may write to is left out. Thread-safe; its mutexes are leaves.
class UnfencedWrites {
public:
    static UnfencedWrites& get();

    /// Services::note_write: before the lanes write.
    void note(const abi::CtaContext& cta, const std::uint64_t* addresses, std::uint64_t lanes, std::uint32_t bytes);
    /// fence.proxy.async for global memory.
    void fence() { fences_.fetch_add(1, std::memory_order_seq_cst); }
    /// Some are known; false: the others need not be called.
    bool any() const { return noted_in_.load(std::memory_order_acquire) == epoch(); }
    /// Some of these bytes are such.
    bool touch(std::uint64_t address, std::uint64_t size);
    /// `copy` is what memory holds: becomes what the async proxy sees there.
    void undo(std::uint64_t address, std::uint64_t size, std::uint8_t* copy);
    /// The async proxy is going to change these bytes: memory becomes what it sees.
    void put_back(std::uint64_t address, std::uint64_t size);
    /// The async proxy has written these bytes, which it sees.
    void forget(std::uint64_t address, std::uint64_t size);

private:
    static constexpr std::size_t block_bytes = 256, shards = 64;
    /// Old bytes that are kept at most: 64 MiB. With more, nothing is found until the next fence.
    static constexpr std::size_t most_blocks = (std::size_t{64} << 20) / block_bytes / shards; ///< of a shard
    struct Block {
        std::uint64_t epoch = 0;                                ///< what follows is good in this one only
        std::array<std::uint64_t, block_bytes / 64> unfenced{}; ///< a bit for each byte
        std::array<std::uint8_t, block_bytes> before;

        static std::uint64_t bit(std::uint64_t byte) { return std::uint64_t{1} << byte % 64; }
        bool has(std::uint64_t byte) const { return (unfenced[byte / 64] & bit(byte)) != 0; }
        void put(std::uint64_t byte, std::uint8_t value) {
            before[byte] = value;
            unfenced[byte / 64] |= bit(byte);
        }
        void drop(std::uint64_t byte) { unfenced[byte / 64] &= ~bit(byte); }
    };
    struct Shard {
        std::mutex mutex;                                ///< guards `blocks`
        std::unordered_map<std::uint64_t, Block> blocks; ///< by address / block_bytes
        Block* find(std::uint64_t number, std::uint64_t now);
    };

    /// Changes with every fence and OutsideWrite.
    std::uint64_t epoch() const { return fences_.load(std::memory_order_seq_cst) + OutsideWrite::count(); }
    Shard& shard_of(std::uint64_t number) { return shards_[number * 0x9e3779b97f4a7c15 >> 58]; }
    void note_range(std::uint64_t begin, std::uint64_t end);
    bool keep(std::uint64_t address, std::uint64_t size, bool is_device);
    Block* make_room(Shard& shard, std::uint64_t number, std::uint64_t now);
    template <class Visit> void for_each_block(std::uint64_t address, std::uint64_t size, Visit visit);

    std::atomic<std::uint64_t> fences_{1};
    std::atomic<std::uint64_t> noted_in_{0}; ///< the epoch of the last note
    std::atomic<std::uint64_t> full_in_{0};  ///< the epoch in which there was too much
    std::array<Shard, shards> shards_;
};

} // namespace ptarmigan::runtime
