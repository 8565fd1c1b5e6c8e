// SPDX-License-Identifier: Apache-2.0
// Signal handlers, the way out of a kernel, and the text of the report.
#include "runtime/code/fault.h"

#include "runtime/base/host_access.h"
#include "runtime/base/log.h"
#include "runtime/base/per_thread.h"
#include "runtime/base/shared_pages.h"
#include "runtime/code/crash_scope.h"
#include "runtime/code/fiber.h"
#include "runtime/code/image_loader.h"
#include "runtime/code/machine_state.h"
#include "runtime/code/signal_context.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

namespace ptarmigan::runtime {
namespace {

constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
struct sigaction previous_actions[std::size(signals)];

/// Read by signal handlers: no lazy allocation of thread-local storage there.
__attribute__((tls_model("initial-exec"))) thread_local FaultScope* innermost = nullptr;
__attribute__((tls_model("initial-exec"))) thread_local bool is_passing_on = false;

std::mutex report_mutex;
std::array<char, 2048> last_report{}; ///< stable address for last_fault_report()

abi::Fault fault_of_signal(int number) {
    switch (number) {
    case SIGILL: return abi::Fault::illegal_instruction;
    case SIGFPE: return abi::Fault::trap;
    default: return abi::Fault::illegal_address;
    }
}

/// A fault that is none of ours goes where it would have gone without us.
void pass_on(int number, siginfo_t* info, void* context) {
    const struct sigaction* previous = nullptr;
    for (std::size_t i = 0; i < std::size(signals); ++i)
        if (signals[i] == number) previous = &previous_actions[i];
    // A handler that was installed after ours passes its faults on to us: that ends the round.
    if (is_passing_on) {
        signal(number, SIG_DFL);
        return;
    }
    is_passing_on = true;
    if (previous->sa_flags & SA_SIGINFO) {
        previous->sa_sigaction(number, info, context);
    } else if (previous->sa_handler != SIG_DFL && previous->sa_handler != SIG_IGN) {
        previous->sa_handler(number);
    } else {
        // Returning repeats the instruction, now with the default action.
        signal(number, SIG_DFL);
    }
    is_passing_on = false;
}

void handle_signal(int number, siginfo_t* info, void* context_pointer) {
    if (number == SIGSEGV && wait_while_moved(reinterpret_cast<std::uintptr_t>(info->si_addr))) return; // again
    FaultScope* scope = innermost;
    if (!scope) {
        if (number == SIGSEGV && HostAccess::is_guarded())
            HostAccess::tell(reinterpret_cast<std::uintptr_t>(info->si_addr));
        CrashScope::leave_after(number, info, context_pointer);
        return pass_on(number, info, context_pointer);
    }
    const auto& context = *static_cast<const ucontext_t*>(context_pointer);
    FaultRecord& record = scope->record;
    record = FaultRecord{};
    record.fault = fault_of_signal(number);
    record.cta = scope->cta;
    record.step = scope->cta ? scope->cta->step : 0;
    record.pc = program_counter(context);
    // The kernel reports no address for non-canonical ones (SI_KERNEL).
    record.has_address = (number == SIGSEGV || number == SIGBUS) && info->si_code != SI_KERNEL;
    record.address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    record.is_write = was_write(context);
    if (number == SIGSEGV && record.has_address && is_stack_overflow(context, record.address))
        record.fault = abi::Fault::stack_overflow;
    CodeLocation location;
    if (find_code(record.pc, location)) {
        record.in_generated_code = true;
        record.line = location.line;
        record.access = location.access;
        if (record.access != 0) save_registers(context, scope->state);
    }
    Fiber::before_jump_to_thread();
    siglongjmp(scope->jump, 1);
}

bool is_ours(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) && action.sa_sigaction == handle_signal;
}

/// The calling thread's alternate stack, given back when the thread ends.
struct SignalStack {
    static constexpr std::size_t size = 128 << 10;
    void* memory = nullptr;
    SignalStack() {
        stack_t current{};
        if (sigaltstack(nullptr, &current) != 0 || !(current.ss_flags & SS_DISABLE)) return;
        memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            memory = nullptr;
            return;
        }
        stack_t mine{};
        mine.ss_sp = memory;
        mine.ss_size = size;
        sigaltstack(&mine, nullptr);
    }
    ~SignalStack() {
        if (!memory) return;
        stack_t none{};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
        munmap(memory, size);
    }
};

const char* fault_name(abi::Fault fault) {
    switch (fault) {
    case abi::Fault::none: return "no fault";
    case abi::Fault::illegal_address: return "illegal address";
    case abi::Fault::misaligned_address: return "misaligned address";
    case abi::Fault::trap: return "trap";
    case abi::Fault::assertion: return "assertion failed";
    case abi::Fault::stack_overflow: return "stack overflow";
    case abi::Fault::invalid_call_target: return "call through an invalid function pointer";
    case abi::Fault::illegal_instruction: return "illegal instruction";
    case abi::Fault::mbarrier_overflow:
        return "an mbarrier's count left its range (more arrivals than it expects, or no mbarrier at all) at";
    case abi::Fault::barrier_deadlock:
        return "deadlock: every live thread of the block waits at a barrier or collective";
    }
    return "unknown fault";
}

std::string thread_text(std::uint64_t thread, const std::uint32_t (&ntid)[3]) {
    const std::uint64_t x = thread % ntid[0], rest = thread / ntid[0];
    return "(" + std::to_string(x) + "," + std::to_string(rest % ntid[1]) + "," + std::to_string(rest / ntid[1]) + ")";
}

} // namespace

void FaultScope::enter() {
    outer = innermost;
    innermost = this;
    DeviceMemoryUse::begin();
}

void FaultScope::leave() {
    innermost = outer;
    DeviceMemoryUse::end();
}

void install_fault_handlers() {
    struct sigaction current {};
    if (sigaction(SIGSEGV, nullptr, &current) == 0 && is_ours(current)) return;
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < std::size(signals); ++i) {
        if (sigaction(signals[i], nullptr, &current) != 0 || is_ours(current)) continue;
        previous_actions[i] = current;
        struct sigaction action {};
        action.sa_sigaction = handle_signal;
        // Not blocked while it runs: it leaves by a jump that restores no mask.
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigemptyset(&action.sa_mask);
        sigaction(signals[i], &action, nullptr);
    }
}

void ensure_signal_stack() {
    static thread_local SignalStack* mine = nullptr;
    per_thread(mine);
}

void raise_fault(const FaultRecord& record) {
    FaultScope* scope = innermost;
    scope->record = record;
    Fiber::before_jump_to_thread();
    siglongjmp(scope->jump, 1);
}

void leave_kernel() {
    innermost->record = FaultRecord{};
    Fiber::before_jump_to_thread();
    siglongjmp(innermost->jump, 1);
}

namespace {

/// A shared address with a rank that the cluster does not have.
bool names_no_cta(const FaultRecord& record) {
    const abi::CtaContext* cta = record.cta;
    if (!cta || !record.has_address || !cta->launch) return false;
    const std::uint32_t* extent = cta->launch->ncluster;
    const std::uint64_t offset = record.address - reinterpret_cast<std::uintptr_t>(cta->shared);
    const std::uint64_t size = std::uint64_t{extent[0]} * extent[1] * extent[2];
    return offset < cta->shared_window_size && offset >> abi::cluster_rank_bit >= size;
}

/// What the H200 gives then: another code where there is no cluster at all.
Status rank_fault(const abi::CtaContext& cta) {
    return abi::cluster_size(*cta.launch) > 1 ? Status::launch_failed : Status::illegal_instruction;
}

} // namespace

Status fault_status(const FaultRecord& record) {
    if (record.host_memory) return Status::out_of_memory;
    if (record.hang_limit.count() != 0) return Status::launch_timeout;
    switch (record.fault) {
    case abi::Fault::none: return Status::success;
    case abi::Fault::illegal_address:
    case abi::Fault::stack_overflow: return names_no_cta(record) ? rank_fault(*record.cta) : Status::illegal_address;
    case abi::Fault::misaligned_address: return Status::misaligned_address;
    case abi::Fault::assertion: return Status::assert_failed;
    case abi::Fault::illegal_instruction: return Status::illegal_instruction;
    case abi::Fault::invalid_call_target: return Status::invalid_pc;
    case abi::Fault::trap:
    case abi::Fault::barrier_deadlock:
    case abi::Fault::mbarrier_overflow: return Status::launch_failed;
    }
    return Status::launch_failed;
}

std::string describe_fault(const FaultRecord& record, const std::string& kernel, const std::string& place,
                           std::uint32_t lane_width) {
    if (record.host_memory)
        return "kernel " + kernel +
               ": this process has no room for a block's memory; is its address space limited (ulimit -v)?";
    std::string text = "kernel " + kernel + ": ";
    if (record.hang_limit.count() != 0)
        text += fmt::format("hang: threads only waited for {:g} s, which is PTARMIGAN_HANG_TIMEOUT",
                            std::chrono::duration<double>(record.hang_limit).count());
    else
        text += fault_name(record.fault);
    if (record.has_address) {
        char address[48];
        std::snprintf(address, sizeof address, " 0x%llx (%s)", static_cast<unsigned long long>(record.address),
                      record.is_write ? "write" : "read");
        text += address;
    } else if (record.fault == abi::Fault::illegal_address && record.pc != 0) {
        text += " (not a canonical one)";
    }
    if (record.rule) text += std::string(": ") + record.rule;
    if (record.line != 0) text += ", " + place;
    if (record.pc != 0 && !record.in_generated_code) text += ", in a service called by the kernel";
    if (const abi::CtaContext* cta = record.cta) {
        text += ", block (" + std::to_string(cta->ctaid[0]) + "," + std::to_string(cta->ctaid[1]) + "," +
                std::to_string(cta->ctaid[2]) + ")";
        const std::uint64_t threads = std::uint64_t{cta->ntid[0]} * cta->ntid[1] * cta->ntid[2];
        std::uint64_t first = std::uint64_t{record.step} * lane_width;
        std::uint64_t last = first + lane_width - 1;
        if (record.lanes != 0) {
            last = first + 63 - static_cast<unsigned>(__builtin_clzll(record.lanes));
            first += static_cast<unsigned>(__builtin_ctzll(record.lanes));
        }
        if (last >= threads) last = threads - 1;
        if (first <= last && record.lanes != 0) {
            text += ", thread " + thread_text(first, cta->ntid);
            const int others = __builtin_popcountll(record.lanes) - 1;
            if (others > 0) text += " and " + std::to_string(others) + " more of its step";
        } else if (first <= last) {
            text += first == last ? ", thread " : ", threads ";
            text += thread_text(first, cta->ntid);
            if (first != last) text += " to " + thread_text(last, cta->ntid);
        }
    }
    return text;
}

void publish_fault_report(const std::string& report) {
    log(LogLevel::error, report);
    std::lock_guard lock(report_mutex);
    const std::size_t length = std::min(report.size(), last_report.size() - 1);
    std::memcpy(last_report.data(), report.data(), length);
    last_report[length] = 0;
}

const char* last_fault_report() {
    return last_report.data();
}

} // namespace ptarmigan::runtime
