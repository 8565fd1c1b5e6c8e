// SPDX-License-Identifier: Apache-2.0
// What each operation does, and the errors of the H200
// (tests/recordings/async_copies/async_faults).
#include "runtime/exec/async_copies.h"

#include "runtime/code/fault.h"
#include "runtime/copy_engine/copy_engine.h"
#include "runtime/exec/mbarriers.h"
#include "runtime/exec/unfenced_writes.h"
#include "runtime/memory/multicast.h"

#include <algorithm>

namespace ptarmigan::runtime {

using abi::AsyncCall;
using abi::AsyncMode;

namespace {

/// Sizes of bulk copies are whole pieces of 16 bytes, and 20 bits of them count.
std::uint32_t bulk_size(std::uint32_t size) {
    return size & 0xffff0;
}

/// 0 for cp.async, whose groups are others than those of bulk copies.
bool is_bulk(abi::AsyncOperation operation) {
    return operation > abi::AsyncOperation::copy_wait_all;
}

} // namespace

void AsyncCopies::fail(const Copy& copy, abi::Fault fault, std::uint64_t address, const char* rule) const {
    FaultRecord record;
    record.fault = fault;
    record.cta = copy.cta;
    record.step = copy.step;
    record.lanes = std::uint64_t{1} << copy.lane;
    record.line = copy.line;
    record.address = address;
    record.has_address = address != 0;
    record.rule = rule;
    raise_fault(record);
}

/// The address in shared memory of the CTA of another rank that is where `address` is in its own.
std::uint64_t AsyncCopies::in_cta(const Copy& copy, std::uint64_t address, unsigned rank) const {
    const auto base = reinterpret_cast<std::uint64_t>(copy.cta->shared);
    constexpr std::uint64_t inside = (std::uint64_t{1} << abi::cluster_rank_bit) - 1;
    return base + (std::uint64_t{rank} << abi::cluster_rank_bit) + ((address - base) & inside);
}

/// Whose mbarrier counts what a multicast copies to the CTA of `rank`: of .cta_group::2 in each pair that of the
/// mbarrier's parity.
unsigned AsyncCopies::told_rank(const Copy& copy, unsigned rank) const {
    if ((copy.flags & AsyncCall::pair_barrier) == 0) return rank;
    const std::uint64_t offset = copy.barrier - reinterpret_cast<std::uint64_t>(copy.cta->shared);
    return (rank & ~1u) | (offset >> abi::cluster_rank_bit & 1);
}

/// Somebody waits for a phase that the copy counts in.
bool AsyncCopies::is_waited_for(const Copy& copy) const {
    const auto waits_at = [&](std::uint64_t object) {
        return mbarriers_.is_waited_for(reinterpret_cast<const std::uint64_t*>(object));
    };
    if (copy.barrier == 0) return false;
    if ((copy.flags & AsyncCall::multicast) == 0) return waits_at(copy.barrier);
    for (unsigned rank = 0; rank < 16; ++rank)
        if ((copy.mask >> rank & 1) != 0 && waits_at(in_cta(copy, copy.barrier, told_rank(copy, rank)))) return true;
    return false;
}

void AsyncCopies::complete(const Copy& copy, std::uint64_t object, std::uint64_t bytes) {
    const std::uint64_t offset = object - reinterpret_cast<std::uint64_t>(copy.cta->shared);
    if (offset >> abi::cluster_rank_bit >= abi::cluster_size(*copy.cta->launch))
        return; // of a CTA that the cluster doesn't have: as on the H200, nobody is told
    // Counts leave their range where the object is none: that too passes in silence there.
    static_cast<void>(
        mbarriers_.complete_transactions(reinterpret_cast<std::uint64_t*>(object), static_cast<std::uint32_t>(bytes)));
}

/// .ignore_oob: bytes beside an allocation are in the same 16 as bytes of it, so they can be read; what becomes of them
/// is not defined. Copies that are late make a program that uses them fail.
void AsyncCopies::spoil_ignored(const Copy& copy, std::uint8_t* target, std::uint32_t size) const {
    if (static_cast<AsyncMode>(copy.cta->launch->async_mode) == AsyncMode::eager) return;
    const std::uint32_t left = std::min(copy.offsets[0], size), right = std::min(copy.offsets[1], size);
    std::memset(target, poison, left);
    std::memset(target + size - right, poison, right);
}

void AsyncCopies::load(const Copy& copy) {
    const std::uint32_t size = bulk_size(copy.size);
    const auto* source =
        some_unfenced(copy) ? global_source(copy.source, size) : reinterpret_cast<const std::uint8_t*>(copy.source);
    const auto deliver = [&](std::uint64_t target, std::uint64_t barrier) {
        copy_bulk(reinterpret_cast<void*>(target), source, size);
        if ((copy.flags & AsyncCall::ignores) != 0) spoil_ignored(copy, reinterpret_cast<std::uint8_t*>(target), size);
        written(copy, target, size);
        complete(copy, barrier, size);
    };
    if ((copy.flags & AsyncCall::multicast) == 0) return deliver(copy.target, copy.barrier);
    for (unsigned rank = 0; rank < 16; ++rank)
        if ((copy.mask >> rank & 1) != 0) deliver(in_cta(copy, copy.target, rank), in_cta(copy, copy.barrier, rank));
}

void AsyncCopies::load_tensor(const Copy& copy) {
    const TensorMap map = map_at(copy, copy.source);
    const TensorTile* tile = nullptr;
    const TensorPosition position{copy.coordinates, copy.offsets};
    if (const char* rule = tile_of_map(map, tensor_mode(copy.detail), tensor_rank(copy.detail), position, tile))
        fail(copy, abi::Fault::illegal_instruction, copy.source, rule);
    const std::uint64_t bytes = tile_bytes(*tile);
    const bool unfenced = some_unfenced(copy);
    const auto deliver = [&](std::uint64_t target, std::uint64_t barrier) {
        auto* shared = reinterpret_cast<std::uint8_t*>(target);
        // The tensor's address must be one even where nothing is read (H200).
        if (!(unfenced && load_unfenced(*tile, position, shared)) && !load_tile(*tile, position, shared))
            static_cast<void>(*reinterpret_cast<const volatile std::uint8_t*>(tile->map.address));
        written(copy, target, std::uint64_t{tile->rows} * tile->row_pitch);
        complete(copy, barrier, bytes);
    };
    if ((copy.flags & AsyncCall::multicast) == 0) return deliver(copy.target, copy.barrier);
    for (unsigned rank = 0; rank < 16; ++rank)
        if ((copy.mask >> rank & 1) != 0)
            deliver(in_cta(copy, copy.target, rank), in_cta(copy, copy.barrier, told_rank(copy, rank)));
}

/// perform_operation() for each device's memory behind a multicast address.
void AsyncCopies::perform_multimem(const Copy& copy) {
    MulticastPlaces places;
    const std::uint32_t size = bulk_size(copy.size);
    if (size == 0) return;
    if (!MulticastMaps::get().find(copy.target, size, places))
        fail(copy, abi::Fault::illegal_address, copy.target,
             "no multicast memory, or some device has none bound there");
    Copy one = copy;
    one.flags &= ~AsyncCall::multimem;
    for (unsigned i = 0; i < places.count; ++i) {
        one.target = reinterpret_cast<std::uint64_t>(places.at[i]);
        perform_operation(one);
    }
}

void AsyncCopies::store(const Copy& copy) {
    auto* target = reinterpret_cast<std::uint8_t*>(copy.target);
    const std::uint32_t size = bulk_size(copy.size);
    const std::uint8_t* source = source_of(copy, size);
    const bool unfenced = some_unfenced(copy);
    if ((copy.flags & AsyncCall::masked) == 0) {
        if (unfenced) UnfencedWrites::get().forget(copy.target, size);
        return copy_bulk(target, source, size);
    }
    for (std::uint32_t i = 0; i < size; ++i) {
        if ((copy.mask >> (i & 15) & 1) == 0) continue;
        if (unfenced) UnfencedWrites::get().forget(copy.target + i, 1);
        target[i] = source[i];
    }
}

void AsyncCopies::reduce(const Copy& copy) {
    const auto type = static_cast<TensorType>(copy.detail >> 8 & 0xff);
    const std::uint32_t size = bulk_size(copy.size);
    const std::uint8_t* source = source_of(copy, size);
    if (copy.operation == Operation::reduce && some_unfenced(copy)) UnfencedWrites::get().put_back(copy.target, size);
    if (ReduceRun run = reduce_run(static_cast<BulkReduction>(copy.detail & 0xff), type))
        run(reinterpret_cast<std::uint8_t*>(copy.target), source, size / tensor_element_bytes(type));
    if (copy.operation == Operation::reduce_shared) {
        written(copy, copy.target, size);
        complete(copy, copy.barrier, size);
    }
}

/// st.async and red.async. Not of the async proxy: copies see what they write behind a fence.
void AsyncCopies::put_value(const Copy& copy) {
    auto* target = reinterpret_cast<std::uint8_t*>(copy.target);
    const auto* value = reinterpret_cast<const std::uint8_t*>(copy.coordinates.data());
    if (copy.operation == Operation::store_value)
        std::memcpy(target, value, copy.size);
    else
        reduce_run(static_cast<BulkReduction>(copy.detail & 0xff),
                   static_cast<TensorType>(copy.detail >> 8 & 0xff))(target, value, 1);
    complete(copy, copy.barrier, copy.size);
}

void AsyncCopies::store_tensor(const Copy& copy) {
    const TensorMap map = map_of(copy);
    const TensorTile* tile = nullptr;
    const TensorPosition position{copy.coordinates, {}};
    if (const char* rule = tile_of_map(map, tensor_mode(copy.detail), tensor_rank(copy.detail), position, tile))
        fail(copy, abi::Fault::illegal_instruction, copy.target, rule);
    const std::uint8_t* source = source_of(copy, std::uint64_t{tile->rows} * tile->row_pitch);
    if (some_unfenced(copy))
        for_each_place(*tile, position, true, [&](std::uint8_t* place, std::size_t bytes) {
            const auto address = reinterpret_cast<std::uint64_t>(place);
            if (copy.operation == Operation::tensor_store)
                UnfencedWrites::get().forget(address, bytes);
            else
                UnfencedWrites::get().put_back(address, bytes);
        });
    if (copy.operation == Operation::tensor_store)
        store_tile(*tile, position, source);
    else
        reduce_tile(*tile, position, source, reduce_run(static_cast<BulkReduction>(copy.detail >> 16), map_type(map)));
}

/// tensormap.replace, and tensormap.cp_fenceproxy, which releases what it copies.
void AsyncCopies::change_map(const Copy& copy) {
    const TensorMap before = read_map(copy.target);
    TensorMap map = copy.operation == Operation::copy_map ? read_map(copy.source) : before;
    if (copy.operation == Operation::replace)
        replace_field(map, static_cast<TensorMapField>(copy.detail), copy.size, copy.source);
    std::memcpy(reinterpret_cast<void*>(copy.target), &map, sizeof map);
    const bool is_shared =
        copy.target - reinterpret_cast<std::uint64_t>(copy.cta->shared) < copy.cta->shared_window_size;
    if (is_shared || static_cast<AsyncMode>(copy.cta->launch->async_mode) == AsyncMode::eager) return;
    MapHistory& history = map_history(*copy.cta);
    history.changed(copy.target, before, map);
    if (copy.operation == Operation::copy_map) history.release(copy.target);
}

void AsyncCopies::describe(FaultRecord& record) const {
    if (!faulty_cta_ || record.line != 0 || record.in_generated_code) return;
    record.cta = faulty_cta_;
    record.step = faulty_step_;
    record.lanes = std::uint64_t{1} << faulty_lane_;
    record.line = faulty_line_;
}

void AsyncCopies::perform(const Copy& copy) {
    faulty_cta_ = copy.cta;
    faulty_step_ = copy.step;
    faulty_lane_ = copy.lane;
    faulty_line_ = copy.line;
    perform_operation(copy);
    faulty_cta_ = nullptr;
}

void AsyncCopies::perform_operation(const Copy& copy) {
    if (copy.arrives) {
        if (!mbarriers_.arrive(reinterpret_cast<std::uint64_t*>(copy.barrier), 1))
            fail(copy, abi::Fault::mbarrier_overflow, copy.barrier);
        return;
    }
    if ((copy.flags & AsyncCall::multimem) != 0) return perform_multimem(copy);
    auto* target = reinterpret_cast<std::uint8_t*>(copy.target);
    switch (copy.operation) {
    case Operation::copy:
        std::memcpy(target, reinterpret_cast<const void*>(copy.source), std::min(copy.size, copy.detail));
        if (copy.size < copy.detail) std::memset(target + copy.size, 0, copy.detail - copy.size);
        return;
    case Operation::load: return load(copy);
    case Operation::store: return store(copy);
    case Operation::move: {
        const std::uint32_t size = bulk_size(copy.size);
        copy_bulk(target, source_of(copy, size), size);
        written(copy, copy.target, size);
        return complete(copy, copy.barrier, size);
    }
    case Operation::reduce:
    case Operation::reduce_shared: return reduce(copy);
    case Operation::store_value:
    case Operation::reduce_value: return put_value(copy);
    case Operation::tensor_load: return load_tensor(copy);
    case Operation::tensor_store:
    case Operation::tensor_reduce: return store_tensor(copy);
    case Operation::replace:
    case Operation::copy_map: return change_map(copy);
    case Operation::clear: return static_cast<void>(std::memset(target, 0, copy.source));
    default: return;
    }
}

void AsyncCopies::start(const Copy& copy, std::uint32_t thread) {
    check(copy);
    const auto mode = static_cast<AsyncMode>(copy.cta->launch->async_mode);
    const bool at_once = copy.operation >= Operation::replace || copy.operation == Operation::prefetch ||
                         copy.operation == Operation::tensor_prefetch;
    if (mode == AsyncMode::eager || at_once) return perform(copy);
    Pending& pending = copies_.emplace_back();
    pending.copy = copy;
    pending.thread = thread;
    pending.bulk = is_bulk(copy.operation);
    // Somebody waits for it already, who won't look again for long.
    if (is_waited_for(copy)) take(copies_.size() - 1);
}

void AsyncCopies::store_words(abi::CtaContext& cta, std::uint32_t step, std::uint32_t line, std::uint64_t target,
                              std::uint64_t barrier, const std::array<std::uint32_t, 4>& words) {
    Copy copy{};
    copy.cta = &cta;
    copy.step = step;
    copy.line = line;
    copy.operation = Operation::store_value;
    copy.size = sizeof words;
    copy.target = target;
    copy.barrier = barrier;
    std::copy(words.begin(), words.end(), copy.coordinates.begin());
    start(copy, 0);
}

void AsyncCopies::run(abi::CtaContext& cta, std::uint32_t step, std::uint32_t lane_width, abi::AsyncCall& call) {
    const auto operation = static_cast<Operation>(call.operation);
    const auto mode = static_cast<AsyncMode>(cta.launch->async_mode);
    if (mode == AsyncMode::random) do_some();
    if (operation == Operation::proxy_fence) return fence(cta, static_cast<abi::FencedMemory>(call.detail));
    if (operation == Operation::map_release && mode != AsyncMode::eager) return map_history(cta).release_all();
    for (std::uint64_t lanes = call.active; lanes != 0; lanes &= lanes - 1) {
        const auto lane = static_cast<unsigned>(__builtin_ctzll(lanes));
        const std::uint32_t number = step * lane_width + lane;
        const Thread thread{&cta, number};
        switch (operation) {
        case Operation::copy_commit:
        case Operation::commit:
            if (mode != AsyncMode::eager) commit(thread, operation == Operation::commit);
            continue;
        case Operation::copy_wait:
        case Operation::copy_wait_all:
            wait(thread, false, call.detail, operation == Operation::copy_wait_all, false);
            continue;
        case Operation::map_acquire:
            if (mode != AsyncMode::eager) map_views_.acquire(cta, call.target[lane]);
            continue;
        case Operation::wait:
        case Operation::wait_read: wait(thread, true, call.detail, false, operation == Operation::wait_read); continue;
        default: break;
        }
        Copy copy{&cta,
                  step,
                  lane,
                  call.line,
                  operation,
                  call.flags,
                  call.detail,
                  call.size[lane],
                  call.mask[lane],
                  call.target[lane],
                  call.source[lane],
                  call.barrier[lane],
                  {},
                  {}};
        for (unsigned i = 0; i < 5; ++i) copy.coordinates[i] = static_cast<std::int32_t>(call.coordinates[i][lane]);
        // Stores and reductions have none, and the call's array has anything there.
        const bool has_offsets = operation == Operation::tensor_load || operation == Operation::tensor_prefetch ||
                                 (call.flags & abi::AsyncCall::ignores) != 0;
        for (unsigned i = 0; has_offsets && i < 3; ++i) copy.offsets[i] = call.offsets[i][lane];
        const bool counts = operation == Operation::load || operation == Operation::move ||
                            operation == Operation::reduce_shared || operation == Operation::tensor_load ||
                            operation == Operation::store_value || operation == Operation::reduce_value;
        if (!counts) copy.barrier = 0; // the call's array has anything there
        start(copy, number);
        if (operation == Operation::copy_map) break; // all lanes of the warp ask for the same
    }
}

} // namespace ptarmigan::runtime
