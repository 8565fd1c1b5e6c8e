// SPDX-License-Identifier: Apache-2.0
// A crash in somebody else's code (LLVM) ends a piece of work instead of the process: signals of the thread that does
// it jump back to where it began. Beside code/fault.h, which is for kernels.
#pragma once

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>

namespace ptarmigan::runtime {

/// Executable addresses.
struct CodeRange {
    std::uintptr_t begin = 0, end = 0;
    bool contains(std::uintptr_t address) const { return address >= begin && address < end; }
};
/// The code of the library or program that `address` is in; empty if it is in none.
CodeRange code_around(const void* address);

/// What ended a piece of work before its time.
struct Crash {
    int signal = 0; ///< 0: it was stopped
    bool stack_overflow = false;
};

/// Work of one thread that may crash. Catches SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP and SIGABRT of that thread; what
/// the work owned is leaked, and locks that it held stay locked. Signals of other threads, and those that other
/// processes send, go to whoever was there before. The handlers of SIGTRAP and SIGABRT are put back when no scope is
/// left; those of the others stay (code/fault.h).
class CrashScope {
public:
    /// `code`: what the work spends its time in, and may be stopped in.
    explicit CrashScope(CodeRange code);
    ~CrashScope();
    CrashScope(const CrashScope&) = delete;
    CrashScope& operator=(const CrashScope&) = delete;

    /// Does the work on this thread, whose signal stack must be there. False if it crashed or was stopped: crash()
    /// tells.
    bool run(void (*work)(void*), void* argument);
    const Crash& crash() const { return crash_; }

    /// Asks `thread`, which is in run(), to stop where it is. It does only inside of `code`, so that no lock of the C
    /// library's is held; ask again, and at last with `anywhere`. Any other thread may call this.
    void stop(pthread_t thread, bool anywhere);

    /// For signal handlers: does not return if the calling thread is in run() and the signal is one of its own.
    static void leave_after(int number, const siginfo_t* info, const void* context);

private:
    [[noreturn]] void leave(int number, bool stack_overflow);

    const CodeRange code_;
    std::atomic<bool> anywhere_{false};
    Crash crash_;
    sigjmp_buf jump_;
    CrashScope* outer_ = nullptr;
};

} // namespace ptarmigan::runtime
