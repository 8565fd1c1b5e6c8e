// SPDX-License-Identifier: Apache-2.0
// What the async proxy has not seen.
#include "runtime/exec/unfenced_writes.h"

#include "runtime/memory/address_space.h"

#include <algorithm>
#include <cstring>

namespace ptarmigan::runtime {
namespace {

/// Shared or local memory.
bool is_the_ctas(const abi::CtaContext& cta, std::uint64_t address) {
    return address - reinterpret_cast<std::uint64_t>(cta.shared) < cta.shared_window_size ||
           address - reinterpret_cast<std::uint64_t>(cta.local) < cta.local_window_size;
}

/// The host may write to other memory, which needs no fence of a thread's.
bool is_device_memory(std::uint64_t address) {
    const auto allocation = AddressSpace::get().find(address);
    return allocation && allocation->is_device_only();
}

} // namespace

UnfencedWrites::Block* UnfencedWrites::Shard::find(std::uint64_t number, std::uint64_t now) {
    const auto found = blocks.find(number);
    return found != blocks.end() && found->second.epoch == now ? &found->second : nullptr;
}

UnfencedWrites& UnfencedWrites::get() {
    static auto& writes = *new UnfencedWrites; // never destroyed: see README.md
    return writes;
}

/// Calls `visit(block, first of its bytes, last + 1, offset of the first from `address`)` for what is known of these
/// bytes, under the shard's mutex: it must not touch the memory.
template <class Visit> void UnfencedWrites::for_each_block(std::uint64_t address, std::uint64_t size, Visit visit) {
    if (!any()) return;
    for (std::uint64_t done = 0; done < size;) {
        const std::uint64_t number = (address + done) / block_bytes, first = (address + done) % block_bytes;
        const std::uint64_t last = std::min<std::uint64_t>(block_bytes, first + size - done);
        Shard& shard = shard_of(number);
        std::lock_guard lock(shard.mutex);
        if (Block* block = shard.find(number, epoch())) visit(*block, first, last, done);
        done += last - first;
    }
}

/// Neighbouring lanes mostly write neighbouring places: those are kept at once.
void UnfencedWrites::note(const abi::CtaContext& cta, const std::uint64_t* addresses, std::uint64_t lanes,
                          std::uint32_t bytes) {
    if (full_in_.load(std::memory_order_relaxed) == epoch()) return;
    while (lanes != 0) {
        const std::uint64_t begin = addresses[__builtin_ctzll(lanes)];
        std::uint64_t end = begin;
        for (; lanes != 0 && addresses[__builtin_ctzll(lanes)] == end; lanes &= lanes - 1) end += bytes;
        if (!is_the_ctas(cta, begin)) note_range(begin, end);
    }
}

void UnfencedWrites::note_range(std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t size; begin < end; begin += size) {
        size = std::min(block_bytes - begin % block_bytes, end - begin);
        if (!keep(begin, size, false) && is_device_memory(begin)) keep(begin, size, true);
    }
}

/// Under the shard's mutex. Null if there is none: from now on nothing is noted.
UnfencedWrites::Block* UnfencedWrites::make_room(Shard& shard, std::uint64_t number, std::uint64_t now) {
    if (shard.blocks.size() >= most_blocks && !shard.blocks.contains(number)) {
        std::erase_if(shard.blocks, [&](const auto& entry) { return entry.second.epoch != now; });
        if (shard.blocks.size() >= most_blocks) {
            full_in_.store(now, std::memory_order_relaxed);
            std::uint64_t noted = now;
            noted_in_.compare_exchange_strong(noted, 0, std::memory_order_acq_rel);
            return nullptr;
        }
    }
    Block& block = shard.blocks[number];
    block.epoch = now;
    block.unfenced = {};
    return &block;
}

/// Keeps bytes of one block. They are read under the mutex, so that who notes the same bytes later writes later; and
/// they can be: freeing device memory begins another epoch. False if nothing is known of the block yet, unless
/// `is_device`.
bool UnfencedWrites::keep(std::uint64_t address, std::uint64_t size, bool is_device) {
    const std::uint64_t number = address / block_bytes, first = address % block_bytes;
    Shard& shard = shard_of(number);
    std::lock_guard lock(shard.mutex);
    const std::uint64_t now = epoch();
    Block* block = shard.find(number, now);
    if (!block && is_device) block = make_room(shard, number, now);
    if (!block) return false;
    const auto* memory = reinterpret_cast<const std::uint8_t*>(number * block_bytes);
    for (std::uint64_t i = first; i < first + size; ++i)
        if (!block->has(i)) block->put(i, memory[i]);
    if (full_in_.load(std::memory_order_relaxed) != now) noted_in_.store(now, std::memory_order_release);
    return true;
}

bool UnfencedWrites::touch(std::uint64_t address, std::uint64_t size) {
    bool found = false;
    for_each_block(address, size, [&](const Block& block, std::uint64_t first, std::uint64_t last, std::uint64_t) {
        for (std::uint64_t i = first; i < last && !found; ++i) found = block.has(i);
    });
    return found;
}

void UnfencedWrites::undo(std::uint64_t address, std::uint64_t size, std::uint8_t* copy) {
    for_each_block(address, size, [&](const Block& block, std::uint64_t first, std::uint64_t last, std::uint64_t at) {
        for (std::uint64_t i = first; i < last; ++i)
            if (block.has(i)) copy[at + i - first] = block.before[i];
    });
}

void UnfencedWrites::put_back(std::uint64_t address, std::uint64_t size) {
    for (std::uint64_t done = 0; done < size;) {
        const std::uint64_t piece = std::min<std::uint64_t>(block_bytes - (address + done) % block_bytes, size - done);
        Block old; // taken out first: memory is not written to under the mutex
        for_each_block(address + done, piece,
                       [&](const Block& block, std::uint64_t, std::uint64_t, std::uint64_t) { old = block; });
        forget(address + done, piece);
        auto* memory = reinterpret_cast<std::uint8_t*>((address + done) / block_bytes * block_bytes);
        const std::uint64_t first = (address + done) % block_bytes;
        for (std::uint64_t i = first; i < first + piece; ++i)
            if (old.has(i)) memory[i] = old.before[i];
        done += piece;
    }
}

void UnfencedWrites::forget(std::uint64_t address, std::uint64_t size) {
    for_each_block(address, size, [](Block& block, std::uint64_t first, std::uint64_t last, std::uint64_t) {
        for (std::uint64_t i = first; i < last; ++i) block.drop(i);
    });
}

} // namespace ptarmigan::runtime
