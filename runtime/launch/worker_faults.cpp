// SPDX-License-Identifier: Apache-2.0
// How a worker ends a grid that can't go on, and what it tells of the fault: deadlocks, hangs, memory that is not
// there, accesses that the CPU refused.
#include "runtime/launch/worker.h"

#include "runtime/exec/hang_report.h"
#include "runtime/module/late_functions.h"
#include "runtime/module/module.h"

#include <chrono>
#include <string>

namespace ptarmigan::runtime {

/// Every step that has not exited waits for another one of its CTA.
void Worker::raise_deadlock() {
    FaultRecord record;
    record.fault = abi::Fault::barrier_deadlock;
    record.is_deadlock = true;
    for (Slot& slot : slots_) {
        if (!slot.busy || slot.fibers.finished()) continue;
        record.cta = &slot.arena.context;
        if (slot.fibers.has_split_warp()) record.fault = abi::Fault::illegal_instruction;
    }
    raise_fault(record);
}

bool Worker::has_waited_long() {
    const auto now = std::chrono::steady_clock::now();
    const std::uint64_t progress = scheduler_.progress_and_work();
    if (progress != waited_at_) {
        waited_at_ = progress;
        wait_began_ = now;
    }
    return now - wait_began_ > std::chrono::milliseconds(1);
}

void Worker::check_for_hang() {
    Grid& grid = *grid_;
    if (grid.hang_limit == std::chrono::nanoseconds{0}) return;
    const auto now = std::chrono::steady_clock::now();
    const std::uint64_t own = scheduler_.progress_and_work();
    if (own != seen_progress_) grid.progress.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t all = grid.progress.load(std::memory_order_relaxed);
    // Who waits for a function's code goes on when it is made, and others may wait for him, in other grids too.
    if (own != seen_progress_ || all != seen_grid_progress_ || makes_late_functions()) {
        seen_progress_ = own;
        seen_grid_progress_ = all;
        progress_time_ = now;
        return;
    }
    if (now - progress_time_ < grid.hang_limit) return;
    FaultRecord record;
    record.fault = abi::Fault::barrier_deadlock;
    record.is_deadlock = true;
    record.hang_limit = grid.hang_limit;
    raise_fault(record);
}

/// To other workers it looks like a trap.
void Worker::out_of_memory() {
    FaultRecord record;
    record.fault = abi::Fault::trap;
    record.host_memory = true;
    raise_fault(record);
}

/// Which of the step's lanes made the access that the CPU refused; 0 if that can't be told. Loads the translator, which
/// knows its instructions.
std::uint64_t Worker::lanes_of_fault(const FaultRecord& record) const {
    const LoadedKernel& code = *use_->code;
    if (record.fault != abi::Fault::illegal_address || record.access == 0 || !code.image ||
        record.access > code.properties.accesses.size() || record.pc < code.image->code_begin() ||
        record.pc >= code.image->code_end()) // in a function that is called late, by steps of one lane
        return 0;
    translator::FaultPlace place;
    place.state = &scope_.state;
    place.code = reinterpret_cast<const std::uint8_t*>(record.pc);
    place.code_size = code.image->code_end() - record.pc;
    place.pc = record.pc;
    place.address = record.address;
    place.has_address = record.has_address;
    place.noted_lane = record.cta ? record.cta->noted_lane : 0;
    try {
        const std::string library = CacheSettings::from_environment().translator_library;
        return translator_api(library).faulting_lanes(code.properties.accesses[record.access - 1u], place);
    } catch (const std::exception&) {
        return 0; // no translator where all code came from the cache: the report names the step's threads
    }
}

/// Adds this worker's CTAs to the report of a hang. Called with the grid's fault mutex held.
void Worker::describe_waiting_ctas() {
    constexpr std::size_t most_text = 3000;
    const auto place_of = [&](std::uint32_t line) {
        return grid_->module ? grid_->module->source().place_of(line) : "PTX line " + std::to_string(line);
    };
    for (Slot& slot : slots_)
        if (slot.busy && !slot.fibers.finished() && grid_->waits.size() < most_text)
            grid_->waits += describe_waits(slot.fibers, place_of, 16);
}

void Worker::record_fault() {
    Grid& grid = *grid_;
    FaultRecord& record = scope_.record;
    if (const StepFiber* fiber = scheduler_.current()) {
        if (!fiber->cta->is_whole())
            record.step = fiber->step; // more precise than what the CTA's context says
        else if (!record.cta)
            record.step = fiber->cta->context().step; // of several CTAs a signal handler knows none
        record.cta = &fiber->cta->context();
    }
    copies_.describe(record);
    std::lock_guard lock(grid.fault_mutex);
    const bool is_first = record.fault != abi::Fault::none && !grid.stopped();
    if (is_first ? record.is_deadlock : grid.fault.is_deadlock) describe_waiting_ctas();
    if (!is_first) return; // another worker's fault ended this one
    grid.fault_code = use_->code;
    record.lanes = record.lanes ? record.lanes : lanes_of_fault(record);
    grid.fault = record;
    if (record.cta) {
        grid.fault_cta = *record.cta;
        grid.fault.cta = &grid.fault_cta;
    }
    __atomic_store_n(&grid.launch.fault, static_cast<std::uint32_t>(record.fault), __ATOMIC_RELEASE);
}

} // namespace ptarmigan::runtime
