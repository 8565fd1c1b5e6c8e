// SPDX-License-Identifier: Apache-2.0
// When asynchronous copies are done that are not done at once: groups, mbarriers, snapshots of what
// they read.
#include "runtime/copy_engine/copy_engine.h"
#include "runtime/exec/async_copies.h"
#include "runtime/exec/mbarriers.h"
#include "runtime/exec/unfenced_writes.h"

#include <algorithm>
#include <cstring>

namespace ptarmigan::runtime {
namespace {

/// Swizzles look at the last 10 bits of addresses: copies of shared memory keep them.
constexpr std::size_t alignment = 1024;

std::uint8_t* aligned(std::uint8_t* memory) {
    return reinterpret_cast<std::uint8_t*>((reinterpret_cast<std::uintptr_t>(memory) + alignment - 1) / alignment *
                                           alignment);
}

/// Where the shared memory of the CTA of `rank` in the cluster of `cta` begins.
std::uint64_t base_of(const abi::CtaContext& cta, unsigned rank) {
    return reinterpret_cast<std::uint64_t>(cta.shared) + (std::uint64_t{rank} << abi::cluster_rank_bit);
}

std::uint64_t own_base(const abi::CtaContext& cta) {
    return base_of(cta, cta.cluster_ctarank);
}

} // namespace

std::uint32_t AsyncCopies::random(std::uint32_t below) {
    random_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = (random_ ^ random_ >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return static_cast<std::uint32_t>((z >> 33) % below);
}

std::uint8_t* AsyncCopies::shadow_of(const abi::CtaContext& cta, unsigned rank) {
    std::unique_ptr<std::uint8_t[]>& memory = shadows_[base_of(cta, rank)];
    if (!memory) {
        memory = std::make_unique<std::uint8_t[]>(cta.shared_size + 2 * alignment);
        std::memset(memory.get(), poison, cta.shared_size + 2 * alignment);
    }
    return aligned(memory.get());
}

/// fence.proxy.async: what threads have written to `memory` is there for copies from now on.
void AsyncCopies::fence(const abi::CtaContext& cta, abi::FencedMemory memory) {
    using abi::FencedMemory;
    if (static_cast<abi::AsyncMode>(cta.launch->async_mode) == abi::AsyncMode::eager) return;
    if (memory == FencedMemory::global || memory == FencedMemory::all) UnfencedWrites::get().fence();
    if (memory == FencedMemory::global) return;
    const bool of_cluster = memory != FencedMemory::shared_of_cta;
    const unsigned first = of_cluster ? 0 : cta.cluster_ctarank;
    const unsigned end = of_cluster ? abi::cluster_size(*cta.launch) : first + 1;
    for (unsigned rank = first; rank < end; ++rank)
        std::memcpy(shadow_of(cta, rank), reinterpret_cast<const void*>(base_of(cta, rank)), cta.shared_size);
}

/// A copy has written to shared memory: other copies see it without a fence.
void AsyncCopies::written(const Copy& copy, std::uint64_t address, std::uint64_t bytes) {
    const abi::CtaContext& cta = *copy.cta;
    if (static_cast<abi::AsyncMode>(cta.launch->async_mode) == abi::AsyncMode::eager) return;
    const auto rank = static_cast<unsigned>((address - base_of(cta, 0)) >> abi::cluster_rank_bit);
    const std::uint64_t offset = address - base_of(cta, rank);
    if (rank >= abi::cluster_size(*cta.launch) || offset >= cta.shared_size) return;
    std::memcpy(shadow_of(cta, rank) + offset, reinterpret_cast<const void*>(address),
                std::min<std::uint64_t>(bytes, cta.shared_size - offset));
}

const std::uint8_t* AsyncCopies::shared_as_seen(const abi::CtaContext& cta) {
    if (static_cast<abi::AsyncMode>(cta.launch->async_mode) == abi::AsyncMode::eager)
        return reinterpret_cast<const std::uint8_t*>(own_base(cta));
    return shadow_of(cta, cta.cluster_ctarank);
}

/// What a copy from shared memory reads.
const std::uint8_t* AsyncCopies::source_of(const Copy& copy, std::uint64_t) {
    if (snapshot_) return snapshot_;
    const abi::CtaContext& cta = *copy.cta;
    const std::uint64_t offset = copy.source - own_base(cta);
    if (static_cast<abi::AsyncMode>(cta.launch->async_mode) == abi::AsyncMode::eager || offset >= cta.shared_size)
        return reinterpret_cast<const std::uint8_t*>(copy.source);
    return shadow_of(cta, cta.cluster_ctarank) + offset;
}

/// Threads may have written to global memory what the copy must not see.
bool AsyncCopies::some_unfenced(const Copy& copy) {
    return static_cast<abi::AsyncMode>(copy.cta->launch->async_mode) != abi::AsyncMode::eager &&
           UnfencedWrites::get().any();
}

/// What a copy reads of global memory, if some_unfenced().
const std::uint8_t* AsyncCopies::global_source(std::uint64_t address, std::uint64_t bytes) {
    const auto* memory = reinterpret_cast<const std::uint8_t*>(address);
    UnfencedWrites& writes = UnfencedWrites::get();
    if (!writes.touch(address, bytes)) return memory;
    seen_.resize(bytes);
    std::memcpy(seen_.data(), memory, bytes);
    writes.undo(address, bytes, seen_.data());
    return seen_.data();
}

/// Loads a tile that has bytes which the copy must not see; false if it has none.
bool AsyncCopies::load_unfenced(const TensorTile& tile, const TensorPosition& position, std::uint8_t* shared) {
    bool any = false;
    for_each_place(tile, position, false, [&](std::uint8_t* place, std::size_t bytes) {
        any = any || UnfencedWrites::get().touch(reinterpret_cast<std::uint64_t>(place), bytes);
    });
    if (!any) return false;
    const GlobalReader reader{[](void* copies, const std::uint8_t* place, std::size_t bytes) {
                                  return static_cast<AsyncCopies*>(copies)->global_source(
                                      reinterpret_cast<std::uint64_t>(place), bytes);
                              },
                              this};
    load_tile_portably(tile, position, shared, &reader);
    return true;
}

/// What a copy finds where its map is.
TensorMap AsyncCopies::map_at(const Copy& copy, std::uint64_t address) {
    if (static_cast<abi::AsyncMode>(copy.cta->launch->async_mode) != abi::AsyncMode::eager)
        return map_views_.see(*copy.cta, address);
    return read_map(address);
}

/// The map of a tensor store or reduction, as it was when the source was read.
TensorMap AsyncCopies::map_of(const Copy& copy) {
    return snapshot_ ? held_map_ : map_at(copy, copy.target);
}

/// Does a copy and forgets it. It is taken out first: it may end in a fault.
void AsyncCopies::take(std::size_t index) {
    const Copy copy = copies_[index].copy;
    if (copies_[index].read) {
        std::swap(held_, copies_[index].snapshot);
        snapshot_ = held_.get() + copies_[index].snapshot_offset;
        held_map_ = copies_[index].map;
    }
    copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(index));
    perform(copy);
    snapshot_ = nullptr;
}

/// .read: the source and the map may be overwritten from now on, the target is written later.
void AsyncCopies::read_source(Pending& pending) {
    const Copy& copy = pending.copy;
    std::uint64_t bytes = copy.size;
    if (copy.operation == Operation::tensor_store || copy.operation == Operation::tensor_reduce) {
        pending.map = map_of(copy);
        const TensorTile* tile = nullptr;
        if (tile_of_map(pending.map, tensor_mode(copy.detail), tensor_rank(copy.detail), {copy.coordinates, {}}, tile))
            return;
        bytes = std::uint64_t{tile->rows} * tile->row_pitch;
    }
    const std::uint64_t low = copy.source % alignment, offset = copy.source - own_base(*copy.cta);
    bytes = offset < copy.cta->shared_size ? std::min<std::uint64_t>(bytes, copy.cta->shared_size - offset) : 0;
    const std::uint8_t* source = source_of(copy, bytes);
    pending.snapshot = std::make_unique<std::uint8_t[]>(low + bytes + 3 * alignment);
    std::uint8_t* place = aligned(pending.snapshot.get()) + low;
    pending.snapshot_offset = static_cast<std::size_t>(place - pending.snapshot.get());
    std::memcpy(place, source, bytes);
    pending.read = true;
}

void AsyncCopies::commit(const Thread& thread, bool bulk) {
    const std::uint32_t group = ++committed_[thread][bulk];
    for (Pending& pending : copies_)
        if (pending.copy.cta == thread.first && pending.thread == thread.second && pending.bulk == bulk &&
            pending.group == 0 && pending.copy.barrier == 0)
            pending.group = group;
}

/// Does the thread's copies of all groups but the last `left`.
void AsyncCopies::wait(const Thread& thread, bool bulk, std::uint32_t left, bool all, bool only_read) {
    if (copies_.empty()) return;
    const std::uint32_t committed = committed_[thread][bulk];
    for (std::size_t i = 0; i < copies_.size();) {
        Pending& pending = copies_[i];
        const bool mine = pending.copy.cta == thread.first && pending.thread == thread.second && pending.bulk == bulk &&
                          !pending.copy.arrives;
        const bool due = all || (pending.group != 0 && pending.group + left <= committed);
        if (!mine || !due) {
            ++i;
        } else if (only_read) {
            if (!pending.read && pending.copy.barrier == 0) read_source(pending);
            ++i;
        } else {
            take(i);
        }
    }
}

bool AsyncCopies::complete_next(const std::uint64_t* object) {
    const auto address = reinterpret_cast<std::uint64_t>(object);
    constexpr std::uint64_t inside = (std::uint64_t{1} << abi::cluster_rank_bit) - 1;
    for (std::size_t i = 0; i < copies_.size(); ++i) {
        const Copy& copy = copies_[i].copy;
        if (copy.barrier == 0) continue;
        const auto base = reinterpret_cast<std::uint64_t>(copy.cta->shared);
        const bool same_place = (copy.flags & abi::AsyncCall::multicast) != 0 &&
                                ((copy.barrier - base) & inside) == ((address - base) & inside);
        if (copy.barrier != address && !same_place) continue;
        if (copy.arrives) { // after the thread's copies
            const Thread thread{copy.cta, copies_[i].thread};
            for (std::size_t j = 0; j < i;) {
                const Pending& before = copies_[j];
                if (before.copy.cta == thread.first && before.thread == thread.second &&
                    before.copy.operation == Operation::copy && !before.copy.arrives) {
                    take(j);
                    --i;
                } else {
                    ++j;
                }
            }
        }
        take(i);
        return true;
    }
    return false;
}

bool AsyncCopies::defer_arrival(abi::CtaContext& cta, std::uint32_t thread, std::uint64_t* object) {
    const auto is_own = [&](const Pending& pending) {
        return pending.copy.cta == &cta && pending.thread == thread && !pending.copy.arrives &&
               pending.copy.operation == Operation::copy;
    };
    if (std::none_of(copies_.begin(), copies_.end(), is_own)) return false;
    // Who waits already won't look again: the copies are done now, and the arrival comes behind
    // them.
    if (mbarriers_.is_waited_for(object)) {
        for (std::size_t i = 0; i < copies_.size();) {
            if (is_own(copies_[i]))
                take(i);
            else
                ++i;
        }
        return false;
    }
    Pending& pending = copies_.emplace_back();
    pending.copy = Copy{};
    pending.copy.cta = &cta;
    pending.copy.operation = Operation::copy;
    pending.copy.barrier = reinterpret_cast<std::uint64_t>(object);
    pending.copy.arrives = true;
    pending.thread = thread;
    pending.bulk = false;
    return true;
}

/// Each pending copy is done with a chance of a quarter.
void AsyncCopies::do_some() {
    for (std::size_t i = 0; i < copies_.size();) {
        if (copies_[i].copy.arrives || random(4) != 0)
            ++i;
        else
            take(i);
    }
}

void AsyncCopies::finish(const abi::CtaContext* cta) {
    // Who waited for the source to be read may leave the rest to the end of the grid.
    for (std::size_t i = 0; i < copies_.size();) {
        if (copies_[i].read && (!cta || copies_[i].copy.cta == cta))
            take(i);
        else
            ++i;
    }
    std::erase_if(copies_, [&](const Pending& pending) { return !cta || pending.copy.cta == cta; });
    std::erase_if(committed_, [&](const auto& entry) { return !cta || entry.first.first == cta; });
    std::erase_if(shadows_, [&](const auto& entry) { return !cta || entry.first == own_base(*cta); });
    map_views_.forget(cta);
}

void AsyncCopies::reset() {
    copies_.clear();
    committed_.clear();
    shadows_.clear();
    map_views_.forget(nullptr);
    held_.reset();
    faulty_cta_ = nullptr;
    snapshot_ = nullptr;
}

} // namespace ptarmigan::runtime
