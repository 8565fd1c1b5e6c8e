// SPDX-License-Identifier: Apache-2.0
// What a signal handler finds in the context of the interrupted code: program_counter(), stack_pointer(), and of an
// access that faulted was_write().
#pragma once

#if defined(__x86_64__)
#include "runtime/code/signal_context_x86.h" // IWYU pragma: export
#elif defined(__aarch64__)
#include "runtime/code/signal_context_aarch64.h" // IWYU pragma: export
#endif

namespace ptarmigan::runtime {

/// Generated code touches every 4 KiB of a frame on its way down, whatever the size of pages, and LLVM's frames are
/// small, so where a stack ends the fault is that near to its pointer; nothing else faults there.
inline bool is_stack_overflow(const ucontext_t& context, std::uintptr_t address) {
    constexpr std::uintptr_t reach = 2 * 4096;
    const std::uintptr_t pointer = stack_pointer(context);
    return address + reach >= pointer && address < pointer + reach;
}

} // namespace ptarmigan::runtime
