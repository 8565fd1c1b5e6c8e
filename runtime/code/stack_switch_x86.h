// SPDX-License-Identifier: Apache-2.0
// Boost.Context's switch also saves and loads the control words of x87 and SSE, which takes four fifths of its time,
// and ours are the same on all stacks of a thread. Inlined it saves but the registers that its caller uses.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptarmigan::runtime {

/// A place to go on, and what was passed to it.
struct StackTransfer {
    void *fctx, *data;
};
using StackEntry = void (*)(StackTransfer);

/// What a place is: on the stack that it belongs to.
struct StackPlace {
    void *stack_pointer, *frame_pointer, *instruction;
};

/// The place where `entry`, which must not return, begins on the stack that ends at `top`.
inline void* start_stack(void* top, [[maybe_unused]] std::size_t size, StackEntry entry) {
    constexpr std::uintptr_t alignment = 16;
    auto* const end = reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(top) / alignment * alignment);
    auto* const place = reinterpret_cast<StackPlace*>(end - 4);
    end[-5] = nullptr; // as if called from nowhere: the pointer is 8 below a multiple of 16
    place->stack_pointer = end - 5;
    place->frame_pointer = nullptr;
    place->instruction = reinterpret_cast<void*>(entry);
    return place;
}

/// Goes on at `place` with `data`. Returns when somebody goes on at the place that he found in his StackTransfer.
inline StackTransfer switch_stack(void* place, void* data) {
    StackPlace here;
    void* left = &here; // of who switches back: where he left
    asm volatile("movq %%rsp, (%%rdi)\n\t"
                 "movq %%rbp, 8(%%rdi)\n\t"
                 "leaq 1f(%%rip), %%rcx\n\t"
                 "movq %%rcx, 16(%%rdi)\n\t"
                 "movq (%%rax), %%rsp\n\t"
                 "movq 8(%%rax), %%rbp\n\t"
                 "jmpq *16(%%rax)\n"
                 "1:"
                 : "+a"(place), "+D"(left), "+S"(data)
                 :
                 : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
                   "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                   "xmm15", "cc", "memory");
    return {left, data};
}

} // namespace ptarmigan::runtime
