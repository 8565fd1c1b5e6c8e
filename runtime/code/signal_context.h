// SPDX-License-Identifier: Apache-2.0
// What a signal handler finds in the context of the interrupted code.
#pragma once

#include <cstdint>
#include <ucontext.h>

namespace ptarmigan::runtime {

inline std::uintptr_t program_counter(const ucontext_t& context) {
#if defined(__x86_64__)
    return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return context.uc_mcontext.pc;
#endif
}

/// Generated code touches every page of a frame on its way down, and LLVM's frames are small, so where a stack ends the
/// fault is within a page of its pointer; nothing else faults there.
inline bool is_stack_overflow(const ucontext_t& context, std::uintptr_t address) {
#if defined(__x86_64__)
    const auto stack_pointer = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
    const std::uintptr_t stack_pointer = context.uc_mcontext.sp;
#endif
    constexpr std::uintptr_t reach = 2 * 4096;
    return address + reach >= stack_pointer && address < stack_pointer + reach;
}

} // namespace ptarmigan::runtime
