// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/address_pool.h"

#include "runtime/base/shared_pages.h"

#include <algorithm>
#include <iterator>
#include <sys/mman.h>

namespace ptarmigan::runtime {

AddressPool& AddressPool::get() {
    static auto* pool = new AddressPool; // never destroyed: programs call in from their exit handlers
    return *pool;
}

void AddressPool::add(Ranges& ranges, std::uintptr_t address, std::size_t size) {
    auto next = ranges.lower_bound(address);
    if (next != ranges.end() && address + size == next->first) {
        size += next->second;
        next = ranges.erase(next);
    }
    if (next != ranges.begin() && std::prev(next)->first + std::prev(next)->second == address)
        std::prev(next)->second += size;
    else
        ranges.emplace_hint(next, address, size);
}

void AddressPool::cut(Ranges& ranges, std::uintptr_t address, std::size_t size) {
    const std::uintptr_t end = address + size;
    auto range = ranges.upper_bound(address);
    if (range != ranges.begin() && std::prev(range)->first + std::prev(range)->second > address) --range;
    while (range != ranges.end() && range->first < end) {
        const std::uintptr_t its_begin = range->first, its_end = its_begin + range->second;
        range = ranges.erase(range);
        if (its_begin < address) ranges.emplace(its_begin, address - its_begin);
        if (its_end > end) ranges.emplace(end, its_end - end);
    }
}

bool AddressPool::meets(const Ranges& ranges, std::uintptr_t address, std::size_t size) {
    const auto next = ranges.upper_bound(address);
    if (next != ranges.begin() && address - std::prev(next)->first < std::prev(next)->second) return true;
    return next != ranges.end() && next->first - address < size;
}

bool AddressPool::take_at(std::uintptr_t address, std::size_t size) {
    const std::uintptr_t end = address + size;
    Ranges fresh; // what the system has to give
    add(fresh, address, size);
    for (const auto& [begin, bytes] : free_) cut(fresh, begin, bytes);
    for (auto range = fresh.begin(); range != fresh.end(); ++range) {
        if (take_addresses_at(range->first, range->second)) continue;
        for (auto taken = fresh.begin(); taken != range; ++taken)
            munmap(reinterpret_cast<void*>(taken->first), taken->second);
        return false;
    }
    for (const auto& [begin, bytes] : fresh) add(all_, begin, bytes);
    cut(free_, address, end - address);
    return true;
}

void AddressPool::give_all_to_the_system() {
    for (const auto& [begin, bytes] : free_) {
        munmap(reinterpret_cast<void*>(begin), bytes);
        cut(all_, begin, bytes);
    }
    free_.clear();
}

std::uintptr_t AddressPool::take(std::size_t size, std::size_t alignment, std::uintptr_t wish) {
    std::lock_guard lock(mutex_);
    if (wish != 0 && wish % alignment == 0 && take_at(wish, size)) return wish;
    for (const auto& [begin, bytes] : free_) {
        const std::uintptr_t place = (begin + alignment - 1) / alignment * alignment;
        if (place - begin > bytes || bytes - (place - begin) < size) continue;
        cut(free_, place, size);
        return place;
    }
    std::uintptr_t place = take_addresses(size, alignment);
    if (place == 0 && !free_.empty()) {
        give_all_to_the_system();
        place = take_addresses(size, alignment);
    }
    if (place != 0) add(all_, place, size);
    return place;
}

void AddressPool::give_back(std::uintptr_t address, std::size_t size) {
    std::lock_guard lock(mutex_);
    add(free_, address, size);
}

bool AddressPool::meets(std::uintptr_t address, std::size_t size) const {
    std::lock_guard lock(mutex_);
    return meets(all_, address, size);
}

} // namespace ptarmigan::runtime
