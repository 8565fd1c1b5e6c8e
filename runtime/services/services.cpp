// SPDX-License-Identifier: Apache-2.0
// Services of kernel_abi.h on top of the worker that runs the CTA.
#include "runtime/launch/kernel_services.h"

#include "runtime/base/log.h"
#include "runtime/base/processor.h"
#include "runtime/code/fault.h"
#include "runtime/context/context.h"
#include "runtime/context/printf_buffer.h"
#include "runtime/exec/multimem.h"
#include "runtime/exec/unfenced_writes.h"
#include "runtime/launch/launch_control.h"
#include "runtime/launch/worker.h"
#include "runtime/services/access_check.h"
#include "runtime/services/device_heap.h"
#include "runtime/services/device_runtime.h"
#include "runtime/services/printf.h"
#include "runtime/tensor_core/warp_product.h"
#include "runtime/texture/texture_service.h"

#include <chrono>
#include <cstdio>
#include <sched.h>
#include <time.h>
#include <unistd.h>

namespace ptarmigan::runtime {
namespace {

Worker& worker_of(abi::CtaContext* cta) {
    return *static_cast<Worker*>(cta->worker);
}

/// Where the service that says so returns to, in generated code.
#define PTM_RETURN_ADDRESS() reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

std::uint32_t barrier(abi::CtaContext* cta, std::uint32_t step, std::uint32_t id, std::uint32_t threads,
                      std::uint32_t kind, std::uint64_t arriving, std::uint64_t predicate) {
    Worker& worker = worker_of(cta);
    worker.spins = 0;
    return worker.fiber_cta(cta).barrier(step, id, threads, kind, arriving, predicate, PTM_RETURN_ADDRESS());
}

void collective(abi::CtaContext* cta, std::uint32_t step, abi::CollectiveCall* call) {
    worker_of(cta).fiber_cta(cta).collective(step, *call, PTM_RETURN_ADDRESS());
}

/// Nothing else of this worker can go on: give the CPU away more and more.
void back_off(Worker& worker, std::uint64_t nanoseconds) {
    constexpr unsigned pauses = 16;
    if (nanoseconds >= 50'000) {
        const timespec time{0, static_cast<long>(nanoseconds < 1'000'000 ? nanoseconds : 1'000'000)};
        nanosleep(&time, nullptr);
    } else if (worker.spins < pauses) {
        relax_cpu();
    } else if (worker.has_waited_long()) {
        const timespec time{0, 20'000};
        nanosleep(&time, nullptr);
    } else {
        sched_yield();
    }
}

/// The step that runs waits for memory: others get their turn.
void give_way(abi::CtaContext* cta, const Wait& wait, std::uint64_t nanoseconds) {
    Worker& worker = worker_of(cta);
    if (worker.grid().stopped()) leave_kernel();
    StepFiber* const self = worker.in_fibers() ? worker.scheduler().current() : nullptr;
    const bool worked = worker.scheduler().note_turn(*cta);
    if (worked && self && self->cta->is_whole()) worker.spins = 0; // steps on fibers pass barriers
    if (self) self->wait = wait;                                   // for the report of a hang: this step waits too
    worker.check_for_hang();
    if (self) self->wait = Wait{};
    ++worker.spins;
    constexpr unsigned turns_between_looks = 64;
    if (worker.spins % turns_between_looks == 0) worker.mbarriers().expire(false);
    // When every fiber only spins, what it waits for is on another thread: let that run now and
    // then.
    constexpr unsigned ring_turns = 256;
    const bool others = worker.in_fibers() && worker.scheduler().yield(wait);
    if (!others || worker.spins % ring_turns == 0) back_off(worker, nanoseconds);
}

/// A CTA that is one fiber, between two steps: all wait or are done up to a barrier, or all have passed one, which
/// stands at `line`.
void give_way_as_cta(abi::CtaContext* cta, std::uint32_t line) {
    FiberCta& whole = worker_of(cta).fiber_cta(cta);
    whole.note_barrier(line);
    Wait wait{.kind = Wait::Kind::memory};
    if (!whole.has_noted_waits()) wait = {.kind = Wait::Kind::passed, .line = line};
    give_way(cta, wait, 0);
    whole.forget_waits();
}

void note_wait(abi::CtaContext* cta, std::uint32_t step, std::uint64_t lanes) {
    worker_of(cta).fiber_cta(cta).note_wait(step,
                                            {.kind = Wait::Kind::memory, .lanes = lanes, .pc = PTM_RETURN_ADDRESS()});
}

void yield(abi::CtaContext* cta, std::uint32_t step, std::uint64_t lanes, std::uint64_t nanoseconds) {
    if (step == abi::whole_cta) return give_way_as_cta(cta, std::uint32_t(lanes));
    give_way(cta, {.kind = Wait::Kind::memory, .lanes = lanes, .pc = PTM_RETURN_ADDRESS()}, nanoseconds);
}

void await_goal(abi::CtaContext* cta, std::uint32_t number, std::uint64_t lanes) {
    const auto event = static_cast<abi::GoalEvent>(number);
    if (event == abi::GoalEvent::reaches) return worker_of(cta).let_others_look();
    worker_of(cta).note_wait_for_goal();
    if (event == abi::GoalEvent::waits)
        give_way(cta, {.kind = Wait::Kind::memory, .lanes = lanes, .pc = PTM_RETURN_ADDRESS()}, 0);
}

void trap(abi::CtaContext* cta, std::uint32_t step, std::uint64_t lanes, std::uint32_t fault, std::uint32_t line) {
    FaultRecord record;
    record.fault = static_cast<abi::Fault>(fault);
    if (record.fault == abi::Fault::none) record.fault = abi::Fault::trap;
    record.cta = cta;
    record.step = step;
    record.lanes = lanes;
    record.line = line;
    raise_fault(record);
}

std::int32_t device_vprintf(abi::CtaContext* cta, const char* format, const void* arguments) {
    if (!format) return -1;
    Context& context = *worker_of(cta).grid().context;
    int count = 0;
    // Formatting may fault on the kernel's pointers: it is done before the buffer's lock is taken.
    const std::string text = format_device_printf(format, arguments, count);
    context.fix_printf_limit();
    context.printf_buffer().append(text);
    return count;
}

void* device_malloc(abi::CtaContext* cta, std::uint64_t size) {
    return worker_of(cta).grid().context->kernel_heap().allocate(size);
}

void device_free(abi::CtaContext* cta, void* pointer, std::uint32_t step, std::uint32_t lane, std::uint32_t line) {
    switch (worker_of(cta).grid().context->kernel_heap().free(pointer)) {
    case KernelHeap::Freed::yes: return;
    case KernelHeap::Freed::not_ours:
        log_once("device free", "a kernel frees memory that malloc() did not give: ignored, as on a GPU");
        return;
    case KernelHeap::Freed::dead: log_once("device free twice", "a kernel frees memory that is freed already");
    }
    FaultRecord record;
    // As on a GPU: the allocator looks at what lies before the pointer; of a block freed twice it ends in a launch
    // failure (H100, 2026-11-22).
    record.fault =
        reinterpret_cast<std::uintptr_t>(pointer) % 16 != 0 ? abi::Fault::misaligned_address : abi::Fault::trap;
    record.cta = cta;
    record.step = step;
    record.lanes = std::uint64_t{1} << lane;
    record.line = line;
    raise_fault(record);
}

void assert_fail(abi::CtaContext* cta, std::uint32_t step, std::uint32_t lane, const char* message, const char* file,
                 std::uint32_t line, const char* function, std::uint64_t) {
    const std::uint32_t width = worker_of(cta).code().properties.lane_width;
    const std::uint64_t thread = std::uint64_t{step} * width + lane;
    const std::uint64_t x = thread % cta->ntid[0], rest = thread / cta->ntid[0];
    char text[2048];
    const int length =
        std::snprintf(text, sizeof text, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
                      file ? file : "", line, function ? function : "", cta->ctaid[0], cta->ctaid[1], cta->ctaid[2],
                      static_cast<unsigned>(x), static_cast<unsigned>(rest % cta->ntid[1]),
                      static_cast<unsigned>(rest / cta->ntid[1]), message ? message : "");
    if (length > 0) {
        const auto size = static_cast<std::size_t>(length);
        const ssize_t written = write(STDERR_FILENO, text, size < sizeof text ? size : sizeof text - 1);
        static_cast<void>(written); // nowhere to report it
    }
}

void misaligned(abi::CtaContext* cta, std::uint32_t step, std::uint64_t lanes, std::uint64_t address,
                std::uint32_t is_write, std::uint32_t line) {
    FaultRecord record;
    record.fault = abi::Fault::misaligned_address;
    record.cta = cta;
    record.step = step;
    record.lanes = lanes;
    record.line = line;
    record.address = static_cast<std::uintptr_t>(address);
    record.has_address = true;
    record.is_write = is_write != 0;
    raise_fault(record);
}

void mbarrier(abi::CtaContext* cta, std::uint32_t step, abi::MbarrierCall* call) {
    Worker& worker = worker_of(cta);
    worker.mbarriers().run(*cta, step, worker.code().properties.lane_width, *call);
}

void cluster_barrier(abi::CtaContext* cta, std::uint32_t step, std::uint32_t wait, std::uint64_t active,
                     std::uint64_t live) {
    Worker& worker = worker_of(cta);
    worker.spins = 0;
    worker.fiber_cta(cta).cluster_barrier(step, wait != 0, active, live);
}

[[noreturn]] void exit_thread(abi::CtaContext* cta, std::uint32_t step) {
    worker_of(cta).fiber_cta(cta).exit_thread(step);
}

void async_copy(abi::CtaContext* cta, std::uint32_t step, abi::AsyncCall* call) {
    Worker& worker = worker_of(cta);
    worker.copies().run(*cta, step, worker.code().properties.lane_width, *call);
}

void warpgroup(abi::CtaContext* cta, std::uint32_t step, abi::WarpgroupCall* call) {
    worker_of(cta).products().run({*cta, step, step, static_cast<std::uint32_t>(call->active)}, *call);
}

void note_write(abi::CtaContext* cta, const std::uint64_t* addresses, std::uint64_t lanes, std::uint32_t bytes) {
    UnfencedWrites::get().note(*cta, addresses, lanes, bytes);
}

void multimem(abi::CtaContext* cta, std::uint32_t step, abi::MultimemCall* call) {
    run_multimem(*cta, step, *call);
}

std::uint64_t clock_ticks(abi::CtaContext*) {
    return cpu_ticks();
}

std::uint64_t global_timer(abi::CtaContext*) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

/// An allocation of tensor memory waits for one that is freed.
void wait_for_tensor_memory(abi::CtaContext& cta, const Wait& wait) {
    give_way(&cta, wait, 0);
}

void tensor_memory(abi::CtaContext* cta, std::uint32_t step, abi::TensorMemoryCall* call) {
    Worker& worker = worker_of(cta);
    worker.tensor_memories().run(*cta, step, worker.code().properties.lane_width, *call, wait_for_tensor_memory);
}

std::uint64_t lane_collective(abi::CtaContext* cta, std::uint32_t step, std::uint32_t what, std::uint32_t members,
                              std::uint64_t source, std::uint64_t operands) {
    return worker_of(cta).fiber_cta(cta).lane_collective(step, {what, members, source, operands}, PTM_RETURN_ADDRESS());
}

void reconverge(abi::CtaContext* cta, std::uint32_t step, std::uint32_t point, std::uint32_t waits) {
    worker_of(cta).fiber_cta(cta).reconverge(step, point, waits != 0, __builtin_frame_address(0));
}

} // namespace

const abi::Services& kernel_services() {
    static const abi::Services services = {barrier,
                                           collective,
                                           yield,
                                           trap,
                                           device_vprintf,
                                           device_malloc,
                                           device_free,
                                           assert_fail,
                                           clock_ticks,
                                           global_timer,
                                           misaligned,
                                           texture_service,
                                           mbarrier,
                                           cluster_barrier,
                                           device_runtime,
                                           async_copy,
                                           cancel_launch,
                                           exit_thread,
                                           await_goal,
                                           note_write,
                                           note_wait,
                                           tensor_core::matrix_service,
                                           reconverge,
                                           warpgroup,
                                           tensor_memory,
                                           lane_collective,
                                           tensor_core::matrix_group_service,
                                           multimem,
                                           check_access};
    return services;
}

} // namespace ptarmigan::runtime
