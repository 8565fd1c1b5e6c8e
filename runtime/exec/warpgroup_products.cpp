// SPDX-License-Identifier: Apache-2.0
#include "runtime/exec/warpgroup_products.h"

#include "runtime/code/fault.h"
#include "runtime/exec/async_copies.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace ptarmigan::runtime {
namespace {

using abi::AsyncMode;

constexpr unsigned warps_of_group = 4;

AsyncMode mode_of(const abi::CtaContext& cta) {
    return static_cast<AsyncMode>(cta.launch->async_mode);
}

// A token is a number of one lane: NaN as f32 and as f16, the register's number among the warp's, and the lane.
constexpr std::uint32_t token_mark = 0xffa00000, token_numbers = 1u << 15;

std::uint32_t token(std::uint32_t number, unsigned lane) {
    return token_mark | (number % token_numbers) << 5 | lane;
}

/// The number of a register that is a token in all of the lanes of `mask`.
std::optional<std::uint32_t> number_of(const std::uint32_t (&lanes)[32], std::uint32_t mask) {
    const std::uint32_t number = (lanes[__builtin_ctz(mask)] & ~token_mark) >> 5;
    for (unsigned lane = 0; lane < 32; ++lane)
        if ((mask >> lane & 1) != 0 && lanes[lane] != token(number, lane)) return std::nullopt;
    return number;
}

/// Of `count` registers from the one with number `first` on: which has `number`.
std::optional<std::uint32_t> place_of(std::uint32_t number, std::uint32_t first, std::uint32_t count) {
    const std::uint32_t place = (number - first) % token_numbers;
    return place < count ? std::optional(place) : std::nullopt;
}

} // namespace

void WarpgroupProducts::multiply(const Warp& warp, const abi::WarpgroupCall& call, Registers d) {
    if (!multiplier_) multiplier_ = std::make_unique<tensor_core::WarpgroupMultiplier>();
    // A block's memory is a number of such pieces on an H100.
    constexpr std::uint32_t piece = 128;
    const std::uint32_t size = (warp.cta.shared_size + piece - 1) / piece * piece;
    const tensor_core::SharedMemory memory{copies_.shared_as_seen(warp.cta), size};
    if (!multiplier_->multiply(call, warp.warp % warps_of_group, memory, d))
        fail(warp, call, abi::Fault::illegal_address, "a matrix descriptor leads outside of the block's shared memory");
}

void WarpgroupProducts::fail(const Warp& warp, const abi::WarpgroupCall& call, abi::Fault fault, const char* rule) {
    FaultRecord record;
    record.fault = fault;
    record.cta = &warp.cta;
    record.step = warp.step;
    record.lanes = call.active;
    record.line = call.line;
    record.rule = rule;
    raise_fault(record);
}

/// Lanes that are masked off or have exited do not matter, as on an H100.
void WarpgroupProducts::run(const Warp& warp, abi::WarpgroupCall& call) {
    const std::uint32_t threads = warp.cta.ntid[0] * warp.cta.ntid[1] * warp.cta.ntid[2];
    const std::uint32_t warps = (threads + abi::warp_size - 1) / abi::warp_size;
    if (warp.warp / warps_of_group == warps / warps_of_group)
        fail(warp, call, abi::Fault::illegal_instruction, "the block has only a part of this warpgroup");
    const AsyncMode mode = mode_of(warp.cta);
    if (mode == AsyncMode::eager) return multiply(warp, call, call.d);
    if (mode == AsyncMode::random) do_some();
    switch (static_cast<abi::WarpgroupOperation>(call.operation)) {
    case abi::WarpgroupOperation::multiply: return start(warp, call);
    case abi::WarpgroupOperation::commit: {
        Pending& pending = warps_[{&warp.cta, warp.warp}];
        ++pending.committed;
        for (Product& product : pending.products)
            if (product.group == 0) product.group = pending.committed;
        return;
    }
    case abi::WarpgroupOperation::wait: return wait(warp, call);
    }
}

void WarpgroupProducts::start(const Warp& warp, abi::WarpgroupCall& call) {
    Pending& pending = warps_[{&warp.cta, warp.warp}];
    Product& product = pending.products.emplace_back();
    product.call = std::make_unique<abi::WarpgroupCall>();
    std::memcpy(product.call.get(), &call,
                offsetof(abi::WarpgroupCall, d) + std::size_t{call.registers} * sizeof call.d[0]);
    product.step = warp.step;
    product.first_token = pending.next_token;
    pending.next_token += call.registers;
    for (std::uint32_t r = 0; r < call.registers; ++r) {
        if (const auto number = call.adds ? number_of(call.d[r], warp.lanes) : std::nullopt)
            for (const Product& earlier : pending.products)
                if (const auto place = place_of(*number, earlier.first_token, earlier.call->registers);
                    place && &earlier != &product) {
                    if (earlier.done)
                        std::memcpy(product.call->d[r], earlier.call->d[*place], sizeof call.d[r]);
                    else
                        product.sources.push_back({r, *number});
                }
        for (unsigned lane = 0; lane < 32; ++lane) call.d[r][lane] = token(product.first_token + r, lane);
    }
}

/// Those before it are done.
void WarpgroupProducts::finish_product(const Key& key, Pending& pending, Product& product) {
    multiply({*key.first, key.second, product.step, ~0u}, *product.call, product.call->d);
    product.done = true;
    for (Product& later : pending.products)
        for (const Source& source : later.sources)
            if (const auto place = place_of(source.token, product.first_token, product.call->registers))
                std::memcpy(later.call->d[source.register_index], product.call->d[*place], sizeof product.call->d[0]);
}

void WarpgroupProducts::wait(const Warp& warp, abi::WarpgroupCall& call) {
    const auto found = warps_.find({&warp.cta, warp.warp});
    if (found == warps_.end() || found->second.committed <= call.detail) return;
    Pending& pending = found->second;
    const std::uint32_t last = pending.committed - call.detail; // group to be waited for
    // The other warps' shares too: this one may let others overwrite the operands.
    const std::uint32_t first_warp = warp.warp / warps_of_group * warps_of_group;
    for (std::uint32_t number = first_warp; number < first_warp + warps_of_group; ++number)
        if (const auto other = warps_.find({&warp.cta, number}); other != warps_.end())
            for (Product& product : other->second.products)
                if (!product.done && product.group != 0 && product.group <= last)
                    finish_product(other->first, other->second, product);
    std::size_t due = 0;
    while (due < pending.products.size() && pending.products[due].group - 1 < last) ++due;
    auto* registers = abi::registers_of(call);
    for (std::uint32_t r = 0; r < call.registers; ++r) {
        const auto number = number_of(registers[r], warp.lanes);
        for (std::size_t i = 0; number && i < due; ++i) {
            const Product& product = pending.products[i];
            if (const auto place = place_of(*number, product.first_token, product.call->registers))
                std::memcpy(registers[r], product.call->d[*place], sizeof registers[r]);
        }
    }
    pending.products.erase(pending.products.begin(), pending.products.begin() + static_cast<std::ptrdiff_t>(due));
}

/// The next product of each warp is done with a chance of a quarter.
void WarpgroupProducts::do_some() {
    for (auto& [key, pending] : warps_)
        for (Product& product : pending.products) {
            if (product.done) continue;
            if (random(4) != 0) break;
            finish_product(key, pending, product);
        }
}

std::uint32_t WarpgroupProducts::random(std::uint32_t below) {
    random_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = (random_ ^ random_ >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return static_cast<std::uint32_t>((z >> 33) % below);
}

void WarpgroupProducts::finish(const abi::CtaContext* cta) {
    std::erase_if(warps_, [&](const auto& entry) { return !cta || entry.first.first == cta; });
}

void WarpgroupProducts::run_collective(const Warp& warp, const std::uint64_t (&calls)[32]) {
    const auto call_of = [&](unsigned lane) { return reinterpret_cast<abi::WarpgroupCall*>(calls[lane]); };
    const auto for_each_lane = [&](auto visit) {
        for (std::uint32_t left = warp.lanes; left != 0; left &= left - 1)
            visit(static_cast<unsigned>(__builtin_ctz(left)));
    };
    const abi::WarpgroupCall& first = *call_of(static_cast<unsigned>(__builtin_ctz(warp.lanes)));
    // The call of the whole warp, with room for as many registers.
    whole_.resize(1 + first.registers / std::size(first.d));
    abi::WarpgroupCall& whole = whole_.front();
    std::memcpy(static_cast<void*>(&whole), &first, offsetof(abi::WarpgroupCall, metadata));
    for_each_lane([&](unsigned lane) {
        tensor_core::deposit_lane(*call_of(lane), lane - call_of(lane)->first_lane, whole, lane);
    });
    run(warp, whole);
    for_each_lane([&](unsigned lane) {
        tensor_core::collect_lane(whole, lane, *call_of(lane), lane - call_of(lane)->first_lane);
    });
}

} // namespace ptarmigan::runtime
