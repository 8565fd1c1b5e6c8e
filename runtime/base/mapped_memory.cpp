// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/mapped_memory.h"

#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

namespace ptarmigan::runtime {

bool is_mapped(const void* begin, std::size_t size) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    const std::uintptr_t first = address / page * page;
    if (size > UINTPTR_MAX - address) return false;
    // Starts nothing on Linux, and says ENOMEM where nothing is mapped.
    return size == 0 || msync(reinterpret_cast<void*>(first), address + size - first, MS_ASYNC) == 0;
}

} // namespace ptarmigan::runtime
