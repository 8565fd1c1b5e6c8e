// SPDX-License-Identifier: Apache-2.0
// Allocation, and when things are done. What moves between registers, shared and tensor memory: moves.cpp.
#include "runtime/tensor_memory/tensor_memories.h"

#include "runtime/base/log.h"
#include "runtime/code/fault.h"
#include "runtime/exec/mbarriers.h"

#include <algorithm>
#include <bit>

namespace ptarmigan::runtime {

using abi::AsyncMode;
using abi::TensorMemoryCall;
using Kind = abi::TensorMemoryOperation;

namespace {

template <class Visit> void for_each_lane(std::uint64_t lanes, Visit visit) {
    for (; lanes != 0; lanes &= lanes - 1) visit(static_cast<unsigned>(__builtin_ctzll(lanes)));
}

/// What nobody has written yet.
constexpr std::uint32_t poison = 0xa5a5a5a5;

} // namespace

TensorMemories::TensorMemories(Mbarriers& mbarriers) : mbarriers_(mbarriers) {
    mbarriers.ask_too(*this);
}

void TensorMemories::fail(const Origin& origin, abi::Fault fault, const char* rule) {
    FaultRecord record;
    record.fault = fault;
    record.cta = origin.cta;
    record.step = origin.step;
    record.lanes = std::uint64_t{1} << origin.lane;
    record.line = origin.line;
    record.rule = rule;
    raise_fault(record);
}

void TensorMemories::fail_rule(const Origin& origin, const char* rule) {
    fail(origin, abi::Fault::illegal_instruction, rule);
}

std::uint8_t* TensorMemories::shared_of(const abi::CtaContext& cta, unsigned rank) const {
    return cta.shared + (std::uint64_t{rank} << abi::cluster_rank_bit);
}

TensorMemory& TensorMemories::memory_of(std::uint8_t* shared) {
    std::unique_ptr<TensorMemory>& memory = memories_[shared];
    if (!memory) {
        memory = std::make_unique<TensorMemory>();
        std::fill_n(memory->column(0), std::size_t{TensorMemory::lanes} * TensorMemory::columns, poison);
    }
    return *memory;
}

TensorMemory& TensorMemories::own_memory(const Origin& origin) {
    return memory_of(shared_of(*origin.cta, origin.cta->cluster_ctarank));
}

std::uint8_t* TensorMemories::peer_shared(const Origin& origin) const {
    const unsigned peer = origin.cta->cluster_ctarank ^ 1;
    if (peer >= abi::cluster_size(*origin.cta->launch))
        fail_rule(origin, ".cta_group::2 needs a pair of blocks in the cluster");
    return shared_of(*origin.cta, peer);
}

ProductCta TensorMemories::product_cta(const Origin& origin, unsigned rank) {
    std::uint8_t* shared = shared_of(*origin.cta, rank);
    return {&memory_of(shared), {shared, origin.cta->shared_size}};
}

/// The CTAs whose tensor memory an instruction works on, the even one of a pair first.
TensorMemories::ProductCtas TensorMemories::product_ctas(const Origin& origin, std::uint32_t flags) {
    const unsigned rank = origin.cta->cluster_ctarank;
    if ((flags & TensorMemoryCall::pair) == 0) return {{product_cta(origin, rank)}, 1};
    static_cast<void>(peer_shared(origin)); // is there one?
    return {{product_cta(origin, rank & ~1u), product_cta(origin, rank | 1u)}, 2};
}

void TensorMemories::allocate(const Origin& origin, const TensorMemoryCall& call, GiveWay give_way) {
    const unsigned count = call.count[origin.lane];
    if (!std::has_single_bit(count) || count < TensorMemory::unit || count > TensorMemory::columns)
        fail_rule(origin, "the number of columns to allocate is no power of two from 32 to 512");
    const std::uint64_t place = call.place[origin.lane];
    const auto own = reinterpret_cast<std::uint64_t>(shared_of(*origin.cta, origin.cta->cluster_ctarank));
    if (place % 4 != 0) fail(origin, abi::Fault::misaligned_address, "where an allocation's address goes");
    if (place - own >= origin.cta->shared_size)
        fail(origin, abi::Fault::illegal_address,
             "the address of an allocation goes to the block's shared memory only");
    const bool pair = (call.flags & TensorMemoryCall::pair) != 0;
    for (;;) {
        TensorMemory& memory = own_memory(origin);
        if (memory.relinquished) fail_rule(origin, "the block has relinquished the right to allocate tensor memory");
        std::optional<unsigned> first;
        if (pair && !memory.allocated_by_peer.empty()) {
            const auto [column, columns] = memory.allocated_by_peer.front();
            if (columns != count) fail_rule(origin, "a pair of blocks allocates different numbers of columns");
            memory.allocated_by_peer.pop_front();
            first = column;
        } else {
            TensorMemory* peer = pair ? &memory_of(peer_shared(origin)) : nullptr;
            first = memory.allocate(count, peer);
            if (first && peer) peer->allocated_by_peer.push_back({*first, count});
        }
        if (first) {
            *reinterpret_cast<std::uint32_t*>(place) = *first;
            return;
        }
        give_way(*origin.cta, {.kind = Wait::Kind::memory, .lanes = std::uint64_t{1} << origin.lane});
    }
}

void TensorMemories::free(const Origin& origin, const TensorMemoryCall& call) {
    const unsigned count = call.count[origin.lane];
    const TensorMemoryAddress address(call.d[origin.lane]);
    TensorMemory& memory = own_memory(origin);
    if (address.lane != 0 || !memory.is_allocation(address.column, count))
        fail_rule(origin, "what is freed is no allocation of tensor memory");
    if ((call.flags & TensorMemoryCall::pair) == 0) return static_cast<void>(memory.free(address.column, count));
    // The columns of both are free when both have said so.
    TensorMemory& peer = memory_of(peer_shared(origin));
    auto& told = memory.freed_by_peer;
    const std::array<unsigned, 2> columns{address.column, count};
    const auto found = std::find(told.begin(), told.end(), columns);
    if (found == told.end()) return peer.freed_by_peer.push_back(columns);
    told.erase(found);
    memory.free(address.column, count);
    peer.free(address.column, count);
}

void TensorMemories::run(abi::CtaContext& cta, std::uint32_t step, std::uint32_t lane_width, TensorMemoryCall& call,
                         GiveWay give_way) {
    const auto kind = static_cast<Kind>(call.operation);
    if (call.active == 0) return;
    const Origin first{&cta, step, static_cast<std::uint32_t>(__builtin_ctzll(call.active)), call.line};
    switch (kind) {
    case Kind::allocate: return allocate(first, call, give_way);
    case Kind::free: return free(first, call);
    case Kind::relinquish: own_memory(first).relinquished = true; return;
    case Kind::load:
    case Kind::store: return move_registers(first, lane_width, call);
    default: break;
    }
    for_each_lane(call.active, [&](unsigned lane) {
        Operation operation{{&cta, step, lane, call.line},
                            kind,
                            call.flags,
                            call.detail,
                            call.unpacks,
                            call.count[lane],
                            call.place[lane],
                            {}};
        TensorProduct& product = operation.product;
        product.kind = static_cast<abi::TensorMemoryKind>(call.detail);
        product.flags = call.flags;
        product.scales = call.scales;
        product.halvings = call.halvings;
        product.a = call.a[lane];
        product.b = call.b[lane];
        product.d = call.d[lane];
        product.zero_columns = call.zero_columns[lane];
        product.scale_a = call.scale_a[lane];
        product.scale_b = call.scale_b[lane];
        product.metadata = call.metadata[lane];
        product.descriptor = call.descriptor[lane];
        product.accumulates = call.accumulates[lane] != 0;
        for (unsigned i = 0; i < 8; ++i) product.lanes.at(i) = call.lanes[i][lane];
        start(operation);
    });
}

/// Where the object of a multicast is in the CTA of another rank.
std::uint64_t* TensorMemories::object_in(const Operation& operation, unsigned rank) const {
    const abi::CtaContext& cta = *operation.origin.cta;
    constexpr std::uint64_t inside = (std::uint64_t{1} << abi::cluster_rank_bit) - 1;
    const std::uint64_t offset = (operation.object - reinterpret_cast<std::uint64_t>(cta.shared)) & inside;
    return reinterpret_cast<std::uint64_t*>(shared_of(cta, rank) + offset);
}

/// The mbarrier objects that a commit arrives on.
template <class Visit> void TensorMemories::for_each_object(const Operation& operation, Visit visit) const {
    if ((operation.flags & TensorMemoryCall::multicast) == 0)
        return visit(reinterpret_cast<std::uint64_t*>(operation.object));
    const std::uint32_t size = abi::cluster_size(*operation.origin.cta->launch);
    for (unsigned rank = 0; rank < size && rank < 16; ++rank)
        if ((operation.mask >> rank & 1) != 0) visit(object_in(operation, rank));
}

bool TensorMemories::is_waited_for(const Operation& operation) const {
    bool waited = false;
    for_each_object(operation,
                    [&](const std::uint64_t* object) { waited = waited || mbarriers_.is_waited_for(object); });
    return waited;
}

void TensorMemories::arrive(const Operation& operation) {
    for_each_object(operation, [&](std::uint64_t* object) {
        if (!mbarriers_.arrive(object, 1)) fail(operation.origin, abi::Fault::mbarrier_overflow, nullptr);
    });
}

void TensorMemories::start(const Operation& operation) {
    const abi::CtaContext& cta = *operation.origin.cta;
    if (operation.operation == Kind::commit) {
        const auto base = reinterpret_cast<std::uint64_t>(cta.shared);
        if (operation.object % 8 != 0) fail(operation.origin, abi::Fault::misaligned_address, "an mbarrier object");
        if (operation.object - base >= cta.shared_window_size)
            fail_rule(operation.origin, "an mbarrier object that is not in shared memory");
    }
    const auto mode = static_cast<AsyncMode>(cta.launch->async_mode);
    if (mode == AsyncMode::eager) return perform(operation);
    std::deque<Operation>& queue = queues_[cta.shared];
    queue.push_back(operation);
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    const bool now = operation.operation == Kind::commit && is_waited_for(operation);
    const std::size_t some = now ? queue.size() : mode == AsyncMode::random ? (random_ >> 33) % (queue.size() + 1) : 0;
    for (std::size_t i = 0; i < some; ++i) perform_first(queue);
    if (queue.empty()) queues_.erase(cta.shared);
}

void TensorMemories::perform_first(std::deque<Operation>& queue) {
    const Operation operation = queue.front();
    queue.pop_front();
    perform(operation);
}

bool TensorMemories::complete_next(const std::uint64_t* object) {
    for (auto& [cluster, queue] : queues_) {
        for (std::size_t i = 0; i < queue.size(); ++i) {
            if (queue[i].operation != Kind::commit) continue;
            bool counts = false;
            for_each_object(queue[i], [&](const std::uint64_t* other) { counts = counts || other == object; });
            if (!counts) continue;
            std::uint8_t* const done = cluster;
            for (std::size_t left = i + 1; left > 0; --left) perform_first(queue);
            if (queue.empty()) queues_.erase(done);
            return true;
        }
    }
    return false;
}

void TensorMemories::perform(const Operation& operation) {
    switch (operation.operation) {
    case Kind::copy: return copy(operation);
    case Kind::shift: return shift(operation);
    case Kind::commit: return arrive(operation);
    default: break;
    }
    const ProductCtas ctas = product_ctas(operation.origin, operation.flags);
    if (const char* rule = multiply(operation.product, ctas.span())) fail_rule(operation.origin, rule);
}

void TensorMemories::finish(const abi::CtaContext* cta) {
    const std::uint8_t* const only = cta ? shared_of(*cta, cta->cluster_ctarank) : nullptr;
    for (auto& [cluster, queue] : queues_)
        std::erase_if(queue, [&](const Operation& operation) { return !cta || operation.origin.cta == cta; });
    std::erase_if(queues_, [](const auto& entry) { return entry.second.empty(); });
    std::erase_if(memories_, [&](const auto& entry) {
        if (cta && entry.first != only) return false;
        if (entry.second->any_allocated())
            log_once("tensor memory",
                     "a block has exited without freeing its tensor memory: on a GPU later blocks lack it");
        return true;
    });
}

void TensorMemories::reset() {
    queues_.clear();
    memories_.clear();
}

} // namespace ptarmigan::runtime
