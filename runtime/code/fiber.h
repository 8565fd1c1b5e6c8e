// SPDX-License-Identifier: Apache-2.0
// Fibers, with guarded stacks and the sanitizers' annotations. The only file that switches.
#pragma once

#include "runtime/code/stack_switch.h"

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace ptarmigan::runtime {

/// One flow of control: a fiber on its own stack, or the thread itself (then `stack` is null). It
/// may only be resumed on the thread that started it. Abandoning a suspended fiber is fine: its
/// stack is reused as it is.
struct Fiber {
    void* context = nullptr; ///< while it is suspended: where
    void* stack = nullptr;   ///< lowest usable address
    std::size_t stack_size = 0;
#if defined(__SANITIZE_ADDRESS__)
    void* fake_stack = nullptr;
#endif
#if defined(__SANITIZE_THREAD__)
    void* tsan = nullptr;
#endif

    /// Makes the fiber start with `entry` when it is switched to for the first time. entry must
    /// call arrived() first and must never return.
    void start(StackEntry entry) {
        auto* top = static_cast<char*>(stack) + stack_size - top_offset();
#if defined(__SANITIZE_ADDRESS__)
        __asan_unpoison_memory_region(stack, stack_size); // frames of an abandoned fiber
#endif
        context = start_stack(top, stack_size, entry);
#if defined(__SANITIZE_THREAD__)
        if (!tsan) tsan = __tsan_create_fiber(0);
#endif
    }
    /// Stacks lie at equal places of their pages, and a crowd of fibers that each touch a few lines there would share a
    /// few sets of the caches: they begin at different lines.
    std::size_t top_offset() const {
        constexpr std::size_t lines = 128, places = 24; // two lines each, less than a page in all
        const std::size_t number = reinterpret_cast<std::uintptr_t>(stack) / stack_size;
        return number % places * lines;
    }
    /// Bytes of its stack in use below `frame`, which is the address of something on it.
    std::size_t depth(const void* frame) const {
        return static_cast<std::size_t>(static_cast<const char*>(stack) + stack_size - top_offset() -
                                        static_cast<const char*>(frame));
    }
    /// Makes this object stand for the calling thread's own stack.
    void become_thread() {
#if defined(__SANITIZE_THREAD__)
        tsan = __tsan_get_current_fiber();
        thread_of_fibers() = tsan;
#endif
    }
    /// To be called before a jump from a fiber to the stack of its thread.
    static void before_jump_to_thread() {
#if defined(__SANITIZE_THREAD__)
        if (thread_of_fibers()) __tsan_switch_to_fiber(thread_of_fibers(), 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
        __asan_handle_no_return();
#endif
    }
#if defined(__SANITIZE_THREAD__)
    static void*& thread_of_fibers() {
        static thread_local void* fiber = nullptr;
        return fiber;
    }
#endif
    /// Who switches to whom: on the stack that is left, until it is resumed.
    struct Switch {
        Fiber *from, *to;
    };
    static const Switch& switch_of(StackTransfer from) {
        return *static_cast<Switch*>(from.data);
    }
    /// Saves who switched here, as its place to be resumed.
    static void arrived(StackTransfer from, [[maybe_unused]] Fiber& self) {
#if defined(__SANITIZE_ADDRESS__)
        Fiber* const previous = switch_of(from).from;
        const void* bottom = nullptr;
        std::size_t size = 0;
        __sanitizer_finish_switch_fiber(self.fake_stack, &bottom, &size);
        if (!previous->stack) {
            previous->asan_bottom = bottom;
            previous->asan_size = size;
        }
#endif
        switch_of(from).from->context = from.fctx;
    }
    /// Suspends `self`, which runs now, and goes on with `next`.
    static void switch_to(Fiber& self, Fiber& next) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(&self.fake_stack, next.stack ? next.stack : next.asan_bottom,
                                       next.stack ? next.stack_size : next.asan_size);
#endif
#if defined(__SANITIZE_THREAD__)
        __tsan_switch_to_fiber(next.tsan, 0);
#endif
        Switch both{&self, &next};
        arrived(switch_stack(next.context, &both), self);
    }
#if defined(__SANITIZE_ADDRESS__)
    const void* asan_bottom = nullptr;
    std::size_t asan_size = 0;
#endif
};

} // namespace ptarmigan::runtime
