// SPDX-License-Identifier: Apache-2.0
#include "runtime/code/crash_scope.h"

#include "runtime/code/fault.h"
#include "runtime/code/signal_context.h"

#include <pthread.h>
#include <unistd.h>

#include <elf.h>
#include <iterator>
#include <link.h>
#include <mutex>

namespace ptarmigan::runtime {
namespace {

/// Those that code/fault.cpp has no handler for.
constexpr int own_signals[] = {SIGABRT, SIGTRAP};

std::mutex handlers_mutex; ///< guards what follows
unsigned scopes = 0;
struct sigaction previous_actions[std::size(own_signals)];

/// Read by signal handlers: no lazy allocation of thread-local storage there.
__attribute__((tls_model("initial-exec"))) thread_local CrashScope* innermost = nullptr;

/// Sent by CrashScope::stop().
bool is_stop(int number, const siginfo_t& info) {
    return number == SIGABRT && info.si_code == SI_QUEUE && info.si_pid == getpid();
}

void handle_signal(int number, siginfo_t* info, void* context) {
    CrashScope::leave_after(number, info, context);
    if (is_stop(number, *info)) return; // another time
    // Another thread's, or another process's. abort() ends the process when this returns with the default action.
    for (std::size_t i = 0; i < std::size(own_signals); ++i) {
        if (own_signals[i] != number) continue;
        const struct sigaction& previous = previous_actions[i];
        if (previous.sa_flags & SA_SIGINFO) return previous.sa_sigaction(number, info, context);
        if (previous.sa_handler == SIG_IGN) return;
        if (previous.sa_handler != SIG_DFL) return previous.sa_handler(number);
        signal(number, SIG_DFL);
        if (info->si_code <= 0) raise(number); // was sent; else the instruction is repeated
    }
}

bool is_ours(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) && action.sa_sigaction == handle_signal;
}

void install_own_handlers() {
    const std::lock_guard lock(handlers_mutex);
    ++scopes;
    for (std::size_t i = 0; i < std::size(own_signals); ++i) {
        struct sigaction current {};
        if (sigaction(own_signals[i], nullptr, &current) != 0 || is_ours(current)) continue;
        previous_actions[i] = current;
        struct sigaction action {};
        action.sa_sigaction = handle_signal;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER; // it may leave by a jump
        sigemptyset(&action.sa_mask);
        sigaction(own_signals[i], &action, nullptr);
    }
}

void remove_own_handlers() {
    const std::lock_guard lock(handlers_mutex);
    if (--scopes != 0) return;
    for (std::size_t i = 0; i < std::size(own_signals); ++i) {
        struct sigaction current {};
        // What the program has put over ours meanwhile stays.
        if (sigaction(own_signals[i], nullptr, &current) == 0 && is_ours(current))
            sigaction(own_signals[i], &previous_actions[i], nullptr);
    }
}

struct CodeSearch {
    std::uintptr_t address;
    CodeRange found;
};

int find_code_segment(dl_phdr_info* object, std::size_t, void* argument) {
    auto& search = *static_cast<CodeSearch*>(argument);
    for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
        const auto& segment = object->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
        const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
        const CodeRange range{begin, begin + segment.p_memsz};
        if (!range.contains(search.address)) continue;
        search.found = range;
        return 1;
    }
    return 0;
}

/// Sent by this process to the thread itself, as abort() and raise() do, or made by an instruction.
bool is_own_doing(const siginfo_t& info) {
    return info.si_code > 0 || (info.si_code == SI_TKILL && info.si_pid == getpid());
}

} // namespace

CodeRange code_around(const void* address) {
    CodeSearch search{reinterpret_cast<std::uintptr_t>(address), {}};
    dl_iterate_phdr(find_code_segment, &search);
    return search.found;
}

CrashScope::CrashScope(CodeRange code) : code_(code) {
    install_fault_handlers();
    install_own_handlers();
}

CrashScope::~CrashScope() {
    remove_own_handlers();
}

bool CrashScope::run(void (*work)(void*), void* argument) {
    outer_ = innermost;
    if (sigsetjmp(jump_, 0) != 0) {
        innermost = outer_;
        return false;
    }
    innermost = this;
    work(argument);
    innermost = outer_;
    return true;
}

void CrashScope::stop(pthread_t thread, bool anywhere) {
    anywhere_ = anywhere;
    install_own_handlers(); // the program may have put its own over them
    pthread_sigqueue(thread, SIGABRT, sigval{});
    const std::lock_guard lock(handlers_mutex);
    --scopes;
}

void CrashScope::leave(int number, bool stack_overflow) {
    crash_ = {number, stack_overflow};
    siglongjmp(jump_, 1);
}

void CrashScope::leave_after(int number, const siginfo_t* info, const void* context) {
    CrashScope* scope = innermost;
    if (!scope) return;
    const auto& state = *static_cast<const ucontext_t*>(context);
    if (is_stop(number, *info)) {
        if (scope->anywhere_ || scope->code_.contains(program_counter(state))) scope->leave(0, false);
        return;
    }
    if (!is_own_doing(*info)) return;
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    scope->leave(number, number == SIGSEGV && info->si_code != SI_KERNEL && is_stack_overflow(state, address));
}

} // namespace ptarmigan::runtime
