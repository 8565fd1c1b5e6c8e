// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/multicast.h"

#include "runtime/base/host_access.h"
#include "runtime/base/shared_pages.h"

#include <algorithm>
#include <mutex>
#include <sys/mman.h>
#include <utility>

namespace ptarmigan::runtime {
namespace {

constexpr std::size_t granularity = std::size_t{2} << 20;

void drop(std::uintptr_t mapped, std::size_t size) {
    HostAccess::forget(mapped, size);
    munmap(reinterpret_cast<void*>(mapped), size);
}

} // namespace

MulticastTeam::~MulticastTeam() {
    for (const Member& member : members_)
        for (const auto& [offset, binding] : member.bindings) drop(binding.mapped, binding.size);
}

const MulticastTeam::Member* MulticastTeam::member(int device) const {
    const auto found =
        std::find_if(members_.begin(), members_.end(), [&](const Member& member) { return member.device == device; });
    return found == members_.end() ? nullptr : &*found;
}

Status MulticastTeam::add_device(int device) {
    std::unique_lock lock(mutex_);
    if (members_.size() == wanted_ || member(device)) return Status::invalid_value;
    members_.push_back({device, {}});
    return Status::success;
}

bool MulticastTeam::has(int device) const {
    std::shared_lock lock(mutex_);
    return member(device) != nullptr;
}

bool MulticastTeam::is_complete() const {
    std::shared_lock lock(mutex_);
    return members_.size() == wanted_;
}

Status MulticastTeam::bind(int device, std::size_t offset, std::size_t size, int file, std::size_t file_offset) {
    if (size == 0 || size % granularity || offset % granularity || file_offset % granularity || size > size_ ||
        offset > size_ - size)
        return Status::invalid_value;
    std::unique_lock lock(mutex_);
    auto* const found = const_cast<Member*>(member(device));
    if (!found) return Status::invalid_device;
    if (members_.size() != wanted_) return Status::invalid_value;
    auto& bindings = found->bindings;
    const auto next = bindings.lower_bound(offset);
    if (next != bindings.end() && next->first < offset + size) return Status::invalid_value;
    if (next != bindings.begin() && std::prev(next)->first + std::prev(next)->second.size > offset)
        return Status::invalid_value;
    const std::uintptr_t mapped = map_shared(0, size, file, file_offset, PROT_READ | PROT_WRITE);
    if (mapped == 0) return Status::out_of_memory;
    HostAccess::protect(mapped, size, PROT_READ | PROT_WRITE);
    bindings.emplace(offset, Binding{size, mapped});
    return Status::success;
}

Status MulticastTeam::unbind(int device, std::size_t offset, std::size_t size) {
    if (size == 0 || size % granularity || offset % granularity || size > size_ || offset > size_ - size)
        return Status::invalid_value;
    std::unique_lock lock(mutex_);
    auto* const found = const_cast<Member*>(member(device));
    if (!found) return Status::invalid_device;
    auto& bindings = found->bindings;
    const auto first = bindings.lower_bound(offset), last = bindings.lower_bound(offset + size);
    const auto cut = [](auto binding, std::size_t at) {
        return binding->first < at && at < binding->first + binding->second.size;
    };
    if (first == last || (first != bindings.begin() && cut(std::prev(first), offset)) ||
        cut(std::prev(last), offset + size))
        return Status::invalid_value;
    for (auto binding = first; binding != last; ++binding) drop(binding->second.mapped, binding->second.size);
    bindings.erase(first, last);
    return Status::success;
}

bool MulticastTeam::find(std::size_t offset, std::size_t size, MulticastPlaces& places) const {
    std::shared_lock lock(mutex_);
    places.count = 0;
    if (members_.size() != wanted_) return false;
    for (const Member& member : members_) {
        auto binding = member.bindings.upper_bound(offset);
        if (binding == member.bindings.begin()) return false;
        --binding;
        const std::size_t inside = offset - binding->first;
        if (inside >= binding->second.size || size > binding->second.size - inside) return false;
        places.at[places.count++] = reinterpret_cast<std::uint8_t*>(binding->second.mapped + inside);
    }
    return true;
}

MulticastMaps& MulticastMaps::get() {
    static auto* maps = new MulticastMaps; // never destroyed: kernels may outlive static destructors
    return *maps;
}

void MulticastMaps::add(std::uintptr_t address, std::size_t size, std::shared_ptr<MulticastTeam> team,
                        std::size_t offset) {
    std::unique_lock lock(mutex_);
    maps_[address] = {size, std::move(team), offset, false};
}

void MulticastMaps::set_access(std::uintptr_t address, bool allowed) {
    std::unique_lock lock(mutex_);
    const auto map = maps_.find(address);
    if (map != maps_.end()) map->second.allowed = allowed;
}

void MulticastMaps::remove(std::uintptr_t address) {
    std::unique_lock lock(mutex_);
    maps_.erase(address);
}

bool MulticastMaps::find(std::uintptr_t address, std::size_t size, MulticastPlaces& places) const {
    std::shared_lock lock(mutex_);
    auto map = maps_.upper_bound(address);
    if (map == maps_.begin()) return false;
    --map;
    const Map& found = map->second;
    const std::size_t inside = address - map->first;
    if (inside >= found.size || size > found.size - inside || !found.allowed) return false;
    return found.team->find(found.offset + inside, size, places);
}

} // namespace ptarmigan::runtime
