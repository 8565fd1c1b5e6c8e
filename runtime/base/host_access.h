// SPDX-License-Identifier: Apache-2.0
// Who may use device memory. Kernels and the driver's copies always; host code, too, unless
// PTARMIGAN_HOST_ACCESS=fault: then its accesses end in SIGSEGV, as on a machine with a GPU. Where the CPU has
// protection keys, threads that run kernels have the key; elsewhere device memory is inaccessible as long as no kernel
// and no copy runs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptarmigan::runtime {

/// All thread-safe.
class HostAccess {
public:
    /// PTARMIGAN_HOST_ACCESS=fault.
    static bool is_guarded();
    /// mprotect() of device memory: what kernels may do there. False if the system has no room for it.
    static bool protect(std::uintptr_t at, std::size_t size, int protection);
    /// Where device memory is, allocated or not.
    static void set_addresses(std::uintptr_t begin, std::size_t size);
    /// Async-signal-safe: a line on stderr if host code has used device memory at `address`.
    static void tell(std::uintptr_t address);
    /// Before the addresses become something else.
    static void forget(std::uintptr_t at, std::size_t size);

private:
    friend class DeviceMemoryUse;
    static void begin_use();
    static void end_use();
};

/// One lives while a thread of ours uses device memory. May be nested; one thread's.
class DeviceMemoryUse {
public:
    DeviceMemoryUse() {
        if (HostAccess::is_guarded()) HostAccess::begin_use();
    }
    ~DeviceMemoryUse() {
        if (HostAccess::is_guarded()) HostAccess::end_use();
    }
    DeviceMemoryUse(const DeviceMemoryUse&) = delete;
    DeviceMemoryUse& operator=(const DeviceMemoryUse&) = delete;

    /// The same where no object can live: kernels are left by jumps.
    static void begin() {
        if (HostAccess::is_guarded()) HostAccess::begin_use();
    }
    static void end() {
        if (HostAccess::is_guarded()) HostAccess::end_use();
    }
};

} // namespace ptarmigan::runtime
