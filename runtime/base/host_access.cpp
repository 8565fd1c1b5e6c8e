// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/host_access.h"

#include "runtime/base/env.h"

#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace ptarmigan::runtime {
namespace {

/// Device memory by address, where no keys are: opened and closed as a whole.
struct Guarded {
    struct Range {
        std::size_t size;
        int protection;
    };
    std::mutex mutex;
    std::map<std::uintptr_t, Range> ranges;
    unsigned uses = 0;

    static Guarded& get() {
        static auto* guarded = new Guarded; // never destroyed: kernels may outlive static destructors
        return *guarded;
    }
    /// Under the mutex.
    void cut(std::uintptr_t at) {
        auto range = ranges.upper_bound(at);
        if (range == ranges.begin()) return;
        --range;
        const std::uintptr_t end = range->first + range->second.size;
        if (range->first >= at || end <= at) return;
        ranges.emplace(at, Range{end - at, range->second.protection});
        range->second.size = at - range->first;
    }
    void take_out(std::uintptr_t at, std::size_t size) {
        cut(at);
        cut(at + size);
        ranges.erase(ranges.lower_bound(at), ranges.lower_bound(at + size));
    }
    void put_in(std::uintptr_t at, std::size_t size, int protection) {
        take_out(at, size);
        auto next = ranges.emplace(at, Range{size, protection}).first;
        const auto joins = [](auto first, auto second) {
            return first->first + first->second.size == second->first &&
                   first->second.protection == second->second.protection;
        };
        if (auto behind = std::next(next); behind != ranges.end() && joins(next, behind)) {
            next->second.size += behind->second.size;
            ranges.erase(behind);
        }
        if (next != ranges.begin() && joins(std::prev(next), next)) {
            std::prev(next)->second.size += next->second.size;
            ranges.erase(next);
        }
    }
    void set_all(bool open) {
        for (const auto& [at, range] : ranges)
            mprotect(reinterpret_cast<void*>(at), range.size, open ? range.protection : PROT_NONE);
    }
};

/// The process's key; -1 if the CPU has none.
int protection_key() {
    static const int key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    return key;
}

thread_local unsigned depth = 0; ///< uses of this thread
std::atomic<std::uintptr_t> addresses_begin{0};
std::atomic<std::size_t> addresses_size{0};

} // namespace

bool HostAccess::is_guarded() {
    static const bool guarded = env_text(Env::host_access) == "fault";
    return guarded;
}

bool HostAccess::protect(std::uintptr_t at, std::size_t size, int protection) {
    void* memory = reinterpret_cast<void*>(at);
    if (!is_guarded()) return mprotect(memory, size, protection) == 0;
    if (protection_key() >= 0) return pkey_mprotect(memory, size, protection, protection_key()) == 0;
    Guarded& guarded = Guarded::get();
    std::lock_guard lock(guarded.mutex);
    if (mprotect(memory, size, guarded.uses ? protection : PROT_NONE) != 0) return false;
    guarded.put_in(at, size, protection);
    return true;
}

void HostAccess::set_addresses(std::uintptr_t begin, std::size_t size) {
    addresses_begin.store(begin);
    addresses_size.store(size);
}

void HostAccess::tell(std::uintptr_t address) {
    if (address - addresses_begin.load() >= addresses_size.load()) return;
    char line[160];
    const int length = std::snprintf(line, sizeof line,
                                     "ptarmigan: host code used device memory at 0x%llx, which a machine with a GPU "
                                     "does not allow (PTARMIGAN_HOST_ACCESS=fault)\n",
                                     static_cast<unsigned long long>(address));
    if (write(STDERR_FILENO, line, static_cast<std::size_t>(length)) < 0) return;
}

void HostAccess::forget(std::uintptr_t at, std::size_t size) {
    if (!is_guarded() || protection_key() >= 0) return;
    Guarded& guarded = Guarded::get();
    std::lock_guard lock(guarded.mutex);
    guarded.take_out(at, size);
}

void HostAccess::begin_use() {
    ++depth;
    if (protection_key() >= 0) {
        pkey_set(protection_key(), 0); // each time: a signal has closed it
        return;
    }
    if (depth != 1) return;
    Guarded& guarded = Guarded::get();
    std::lock_guard lock(guarded.mutex);
    if (guarded.uses++ == 0) guarded.set_all(true);
}

void HostAccess::end_use() {
    --depth;
    if (protection_key() >= 0) {
        pkey_set(protection_key(), depth ? 0 : PKEY_DISABLE_ACCESS);
        return;
    }
    if (depth != 0) return;
    Guarded& guarded = Guarded::get();
    std::lock_guard lock(guarded.mutex);
    if (--guarded.uses == 0) guarded.set_all(false);
}

} // namespace ptarmigan::runtime
