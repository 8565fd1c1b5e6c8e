// SPDX-License-Identifier: Apache-2.0
// From a fault inside a kernel to an error code: signals and traps unwind to the worker's loop,
// where the grid ends and a report is written. The host process lives on.
#pragma once

#include "runtime/base/status.h"
#include "translator/fault_lanes.h"
#include "translator/kernel_abi.h"

#include <chrono>
#include <csetjmp>
#include <cstdint>
#include <string>

namespace ptarmigan::runtime {

/// What is known of a fault at the place where it happens; filled in by a signal handler, so plain
/// data only.
struct FaultRecord {
    abi::Fault fault = abi::Fault::none;
    const abi::CtaContext* cta = nullptr;
    std::uint32_t step = 0;
    std::uint64_t lanes = 0;  ///< of the step; 0: unknown
    std::uint32_t line = 0;   ///< PTX line; 0: unknown
    std::uintptr_t pc = 0;    ///< 0 for traps
    std::uint16_t access = 0; ///< what the code notes about its access: translator::LineEntry::access
    std::uintptr_t address = 0;
    bool has_address = false;
    bool is_write = false;
    bool in_generated_code = false;
    const char* rule = nullptr; ///< static text: which rule was broken, if more is to be said than the fault's name
    bool is_deadlock = false;   ///< threads wait for each other: the report says who waits where
    /// PTARMIGAN_HANG_TIMEOUT, if it is a deadlock because that has passed; else 0.
    std::chrono::nanoseconds hang_limit{0};
    bool host_memory = false; ///< a trap of ours: the host has no memory or addresses for a CTA
};

/// Marks that the calling thread runs kernel code; a fault then jumps to `jump` with `record`
/// filled in. Use:
///     FaultScope scope;
///     if (sigsetjmp(scope.jump, 0) == 0) { scope.enter(); ...; } else { ... scope.record ... }
///     scope.leave();
/// Nothing that is live across the kernel code may need a destructor.
struct FaultScope {
    sigjmp_buf jump;
    FaultRecord record;
    translator::MachineState state;       ///< where record.access is not 0
    const abi::CtaContext* cta = nullptr; ///< the CTA that runs now; kept up to date by the worker
    FaultScope* outer = nullptr;

    void enter();
    void leave();
};

/// Installs the process's handlers for SIGSEGV, SIGBUS, SIGFPE and SIGILL, unless they are in
/// place; called at every launch, because programs (and test frameworks) put theirs over ours.
/// Faults outside kernels go to the handlers that were there before.
void install_fault_handlers();
/// Gives the calling thread an alternate signal stack if it has none, so that stack overflows are
/// caught too.
void ensure_signal_stack();

/// Ends the kernel on this thread: jumps to the innermost FaultScope. Must be called inside one.
[[noreturn]] void raise_fault(const FaultRecord& record);
/// Jumps out without a fault of its own: another thread's fault ends the grid.
[[noreturn]] void leave_kernel();

/// CUresult of a fault.
Status fault_status(const FaultRecord& record);
/// One line: kernel, PTX place, what, CTA and threads. `place` names PTX and line.
std::string describe_fault(const FaultRecord& record, const std::string& kernel, const std::string& place,
                           std::uint32_t lane_width);
/// Keeps `report` as the last one and logs it as an error.
void publish_fault_report(const std::string& report);
/// The text of the last kernel fault of the process ("" if none): kernel, PTX line, block, threads,
/// address.
const char* last_fault_report();

} // namespace ptarmigan::runtime
