// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <ucontext.h>

namespace ptarmigan::runtime {

inline std::uintptr_t program_counter(const ucontext_t& context) {
    return context.uc_mcontext.pc;
}
inline std::uintptr_t stack_pointer(const ucontext_t& context) {
    return context.uc_mcontext.sp;
}

/// WnR of the syndrome, if the system tells it (a record among __reserved); else what the instruction is.
inline bool was_write(const ucontext_t& context) {
    constexpr std::uint32_t syndrome_magic = 0x45535201; // ESR_MAGIC
    const unsigned char* at = context.uc_mcontext.__reserved;
    const unsigned char* end = at + sizeof context.uc_mcontext.__reserved;
    struct {
        std::uint32_t magic, size;
    } record;
    for (; end - at >= 16; at += record.size) {
        std::memcpy(&record, at, sizeof record);
        if (record.magic == syndrome_magic) {
            std::uint64_t syndrome = 0;
            std::memcpy(&syndrome, at + sizeof record, sizeof syndrome);
            return (syndrome >> 6 & 1) != 0;
        }
        if (record.magic == 0 || record.size < sizeof record || record.size > std::size_t(end - at)) break;
    }
    std::uint32_t instruction = 0;
    std::memcpy(&instruction, reinterpret_cast<const void*>(context.uc_mcontext.pc), sizeof instruction);
    const bool is_access = (instruction >> 25 & 5) == 4, loads = (instruction >> 22 & 1) != 0;
    return is_access && !loads;
}

} // namespace ptarmigan::runtime
