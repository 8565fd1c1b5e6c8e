// SPDX-License-Identifier: Apache-2.0
// What the tensormap proxy has seen.
#include "runtime/exec/map_history.h"

#include "runtime/memory/address_space.h"
#include "runtime/memory/outside_writes.h"

#include <cstring>

namespace ptarmigan::runtime {
namespace {

bool equal(const TensorMap& one, const TensorMap& other) {
    return std::memcmp(&one, &other, sizeof one) == 0;
}

/// The host may write there, which needs no fence of a thread's.
bool is_the_hosts(std::uint64_t address) {
    const auto allocation = AddressSpace::get().find(address);
    return allocation && !allocation->is_device_only();
}

} // namespace

/// What others than kernels wrote is there for everybody, and may have been any map.
void MapHistory::forget_old() {
    if (outside_writes_ == OutsideWrite::count()) return;
    outside_writes_ = OutsideWrite::count();
    entries_.clear();
}

MapHistory::Entry* MapHistory::find(std::uint64_t address, const TensorMap& now) {
    forget_old();
    const auto entry = entries_.find(address);
    return entry == entries_.end() || !equal(entry->second.left, now) ? nullptr : &entry->second;
}

void MapHistory::changed(std::uint64_t address, const TensorMap& before, const TensorMap& now) {
    if (is_the_hosts(address)) return;
    std::lock_guard lock(mutex_);
    forget_old();
    const auto [place, is_new] = entries_.try_emplace(address, Entry{before, before, now, false});
    Entry& entry = place->second;
    if (!is_new && entry.is_released) entry.released = before;
    entry.is_released = false;
    entry.left = now;
}

void MapHistory::release(std::uint64_t address) {
    std::lock_guard lock(mutex_);
    const auto entry = entries_.find(address);
    if (entry != entries_.end()) entry->second.is_released = true;
}

void MapHistory::release_all() {
    std::lock_guard lock(mutex_);
    for (auto& [address, entry] : entries_) entry.is_released = true;
}

TensorMap MapHistory::acquired(std::uint64_t address, const TensorMap& now) {
    std::lock_guard lock(mutex_);
    const Entry* entry = find(address, now);
    return entry && !entry->is_released ? entry->released : now;
}

TensorMap MapHistory::first_seen(std::uint64_t address, const TensorMap& now) {
    std::lock_guard lock(mutex_);
    const Entry* entry = find(address, now);
    return entry ? entry->first : now;
}

void MapViews::forget_old() {
    if (outside_writes_ == OutsideWrite::count()) return;
    outside_writes_ = OutsideWrite::count();
    views_.clear();
}

TensorMap MapViews::see(const abi::CtaContext& cta, std::uint64_t address) {
    const TensorMap now = read_map(address);
    if (OutsideWrite::any()) return now;
    forget_old();
    const auto view = views_.find({&cta, address});
    if (view != views_.end()) return view->second;
    if (is_the_hosts(address)) return now;
    return views_.emplace(std::pair{&cta, address}, map_history(cta).first_seen(address, now)).first->second;
}

void MapViews::acquire(const abi::CtaContext& cta, std::uint64_t address) {
    if (is_the_hosts(address)) return;
    forget_old();
    views_.insert_or_assign({&cta, address}, map_history(cta).acquired(address, read_map(address)));
}

void MapViews::forget(const abi::CtaContext* cta) {
    std::erase_if(views_, [&](const auto& entry) { return !cta || entry.first.first == cta; });
}

} // namespace ptarmigan::runtime
