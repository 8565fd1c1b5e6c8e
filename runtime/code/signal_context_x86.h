// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ucontext.h>

namespace ptarmigan::runtime {

inline std::uintptr_t program_counter(const ucontext_t& context) {
    return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
}
inline std::uintptr_t stack_pointer(const ucontext_t& context) {
    return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
}
inline bool was_write(const ucontext_t& context) {
    return (context.uc_mcontext.gregs[REG_ERR] & 2) != 0;
}

} // namespace ptarmigan::runtime
