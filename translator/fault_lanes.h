// SPDX-License-Identifier: Apache-2.0
// Which lanes of a step made the access that the CPU refused: from the machine's registers at the faulting instruction
// and what the emitter noted about it (AccessForm). Nothing is executed again.
#pragma once

#include "translator/compile.h"

#include <cstddef>
#include <cstdint>

namespace ptarmigan::translator {

/// Registers of the CPU, in the order of their numbers. Those that it lacks are zero, and on AArch64 masks and vectors,
/// which no address is made of there.
struct MachineState {
    std::uint64_t general[32]; ///< x86-64: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 ... r15; AArch64: x0 ... x30, sp
    std::uint64_t masks[8];
    std::uint8_t vectors[32][64];
};

struct FaultPlace {
    const MachineState* state = nullptr;
    const std::uint8_t* code = nullptr; ///< the instruction, readable for `code_size` bytes
    std::size_t code_size = 0;
    std::uint64_t pc = 0;         ///< where it was executed
    std::uint64_t address = 0;    ///< that could not be accessed (AArch64: the first), or a byte of the page
    bool has_address = false;     ///< false: the CPU did not name one, because it was not canonical
    std::uint32_t noted_lane = 0; ///< CtaContext::noted_lane
};

/// Bit mask of lanes that are known to have made the access: one, or all of a uniform access. 0 where the instruction
/// is not what `form` promises (LLVM may have split or merged accesses), or is not known.
std::uint64_t faulting_lanes(const AccessForm& form, const FaultPlace& place);

} // namespace ptarmigan::translator
