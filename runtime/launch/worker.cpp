// SPDX-License-Identifier: Apache-2.0
// The loops that run CTAs, in their three forms: whole CTAs, CTAs (clusters) of fibers one after the other, and several
// at once.
#include "runtime/launch/worker.h"

#include "runtime/base/log.h"
#include "runtime/base/processor.h"
#include "runtime/base/thread_time.h"
#include "runtime/base/tuning.h"
#include "runtime/exec/hang_report.h"
#include "runtime/launch/cta_order.h"
#include "runtime/launch/helpers.h"
#include "runtime/module/late_functions.h"
#include "runtime/module/module.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <sched.h>
#include <vector>

namespace ptarmigan::runtime {

bool Worker::draw(std::uint64_t& first, std::uint64_t& end, bool may_move_on) {
    Grid& grid = *grid_;
    if (grid.stopped()) return false;
    if (grid.tiered && use_ == grid_ && may_move_on) {
        const std::uint64_t next = grid.next_cta.load(std::memory_order_relaxed);
        next_code_ = next < grid.cta_count ? good_code(grid, next, number_ == 0) : nullptr;
        if (next_code_ || (number_ != 0 && leaves_cpu(grid))) return false;
    }
    if (grid.queue && !is_next(grid, number_ == 0)) return false;
    if (number_ == 0 && grid.late_helpers != 0) call_late_helpers(grid);
    first = grid.next_cta.fetch_add(grid.chunk, std::memory_order_relaxed);
    if (first + grid.chunk >= grid.cta_count) leave_queue(grid);
    if (first >= grid.cta_count) return false;
    end = first + grid.chunk < grid.cta_count ? first + grid.chunk : grid.cta_count;
    return true;
}

void Worker::place(abi::CtaContext& context, std::uint64_t cta) const {
    const std::uint32_t* size = grid_->launch.nctaid;
    const std::uint64_t rest = cta / size[0];
    context.ctaid[0] = static_cast<std::uint32_t>(cta % size[0]);
    context.ctaid[1] = static_cast<std::uint32_t>(rest % size[1]);
    context.ctaid[2] = static_cast<std::uint32_t>(rest / size[1]);
    context.linear_ctaid = cta;
    context.smid = grid_->smid(cta);
    context.step = 0;
}

/// Clusters tile the grid; ranks count a cluster's CTAs, x fastest.
void Worker::place(abi::CtaContext& context, std::uint64_t cluster, std::uint32_t rank) const {
    const std::uint32_t *extent = grid_->launch.ncluster, *size = grid_->launch.nctaid;
    std::uint64_t number = cluster;
    std::uint32_t inside = rank;
    for (unsigned i = 0; i < 3; ++i) {
        const std::uint32_t clusters = size[i] / extent[i];
        const auto first = static_cast<std::uint32_t>(i < 2 ? number % clusters : number) * extent[i];
        context.ctaid[i] = first + inside % extent[i];
        number /= clusters;
        inside /= extent[i];
    }
    context.linear_ctaid =
        context.ctaid[0] + std::uint64_t{size[0]} * (context.ctaid[1] + std::uint64_t{size[1]} * context.ctaid[2]);
    context.smid = grid_->smid(context.linear_ctaid);
    context.step = 0;
    context.cluster_ctarank = rank;
}

Worker::Slot* Worker::prepare_slot(std::size_t index) {
    while (slots_.size() <= index) slots_.emplace_back();
    Slot& slot = slots_[index];
    const std::uint32_t size = grid_->cluster_size;
    const auto rank = static_cast<std::uint32_t>(index % size);
    if (!(size == 1 ? slot.arena.prepare(use_->needs)
                    : slot.arena.prepare(use_->needs, slots_[index - rank].arena, rank, size)))
        return nullptr;
    const abi::LaunchContext& launch = grid_->launch;
    abi::CtaContext& context = slot.arena.context;
    context.launch = &launch;
    context.variables = launch.variables;
    context.params = launch.params;
    context.params_size = launch.params_size;
    context.services = launch.services;
    std::memcpy(context.nctaid, launch.nctaid, sizeof context.nctaid);
    std::memcpy(context.ntid, launch.ntid, sizeof context.ntid);
    context.dynamic_shared = launch.dynamic_shared;
    context.shared_size = launch.shared_size;
    context.cluster_ctarank = 0;
    context.ctas_in_row = 1;
    context.streams = use_->streams;
    context.worker = this;
    slot.fibers.set_products(products_);
    return &slot;
}

static void finish_streaming_stores(const abi::CtaContext& context) {
    if (context.streams) order_streaming_stores();
}

void Worker::run_whole_ctas() {
    Slot* slot = prepare_slot(0);
    if (!slot) return out_of_memory();
    abi::CtaContext& context = slot->arena.context;
    scope_.cta = &context;
    const auto entry = reinterpret_cast<abi::RunCta>(const_cast<void*>(use_->code->entry));
    std::uint64_t cta = 0, end = 0;
    const bool in_pairs = grid_->in_pairs;
    while (draw(cta, end)) {
        for (; in_pairs && cta != end && !grid_->stopped(); ++cta) {
            place(context, cta_in_pairs(cta, context.nctaid));
            entry(&context);
            finish_copies();
        }
        if (use_->code->properties.ctas_in_row > 1)
            run_in_rows(context, entry, cta, end);
        else if (!in_pairs)
            run_in_order(context, entry, cta, end);
    }
    finish_streaming_stores(context);
}

void Worker::run_in_order(abi::CtaContext& context, abi::RunCta entry, std::uint64_t cta, std::uint64_t end) {
    place(context, cta);
    for (;;) {
        entry(&context);
        finish_copies();
        if (++cta == end || grid_->stopped()) return;
        context.linear_ctaid = cta;
        context.step = 0;
        const SmRange& sms = grid_->multiprocessors;
        if (++context.smid == sms.first + sms.count) context.smid = sms.first;
        if (++context.ctaid[0] < context.nctaid[0]) continue;
        context.ctaid[0] = 0;
        if (++context.ctaid[1] < context.nctaid[1]) continue;
        context.ctaid[1] = 0;
        ++context.ctaid[2];
    }
}

void Worker::run_in_rows(abi::CtaContext& context, abi::RunCta entry, std::uint64_t cta, std::uint64_t end) {
    const std::uint64_t most = use_->code->properties.ctas_in_row;
    for (; cta != end && !grid_->stopped(); cta += context.ctas_in_row) {
        place(context, cta);
        const std::uint64_t left_in_grid = context.nctaid[0] - context.ctaid[0];
        context.ctas_in_row = static_cast<std::uint32_t>(std::min({most, left_in_grid, end - cta}));
        entry(&context);
    }
}

namespace {

/// The thread's own stack, and the other one.
struct OtherStack : Fiber {
    Fiber fiber;
    Worker* worker = nullptr;
};

} // namespace

void Worker::other_stack_entry(StackTransfer from) {
    auto& stacks = *static_cast<OtherStack*>(Fiber::switch_of(from).from);
    Fiber::arrived(from, stacks.fiber);
    stacks.worker->run_whole_ctas();
    Fiber::switch_to(stacks.fiber, stacks);
    __builtin_unreachable(); // nobody switches here again
}

/// Threads' stacks are as large as whoever made them wanted: kernels that may need more get one of theirs.
void Worker::run_whole_ctas_on_other_stack() {
    scheduler_.stacks.set_stack_size(use_->fiber_stack);
    OtherStack stacks;
    stacks.become_thread();
    stacks.worker = this;
    other_stack_ = stacks.fiber.stack = scheduler_.stacks.take();
    if (!other_stack_) return out_of_memory();
    stacks.fiber.stack_size = scheduler_.stacks.stack_size();
    stacks.fiber.start(&Worker::other_stack_entry);
    Fiber::switch_to(stacks, stacks.fiber);
}

/// Runs steps until none can go on, and none that waits for a time.
void Worker::run_steps() {
    do {
        if (grid_->stopped()) leave_kernel();
        check_for_hang();
        scheduler_.run(false);
    } while (mbarriers_.expire(true));
}

void Worker::run_fiber_ctas() {
    std::uint64_t cta = 0, end = 0;
    while (draw(cta, end)) {
        for (; cta < end && !grid_->stopped(); ++cta) {
            if (!start(0, cta)) return out_of_memory();
            run_steps();
            check_finished(1);
            finish_copies();
        }
    }
}

/// Starts the steps of a CTA. False if there is no memory.
bool Worker::start(std::size_t index, std::uint64_t cta) {
    Slot* slot = prepare_slot(index);
    if (!slot) return false;
    const translator::KernelProperties& properties = use_->code->properties;
    void* const entry = const_cast<void*>(use_->code->entry);
    abi::CtaContext& context = slot->arena.context;
    if (grid_->cluster_size == 1)
        place(context, cta);
    else
        place(context, cta, static_cast<std::uint32_t>(index % grid_->cluster_size));
    if (scheduler_.is_random()) context.schedule_seed = static_cast<std::uint32_t>(scheduler_.choices().bits());
    slot->busy = true;
    scheduler_.note_progress();
    if (properties.gives_turns)
        return slot->fibers.start_whole(context, reinterpret_cast<abi::RunCta>(entry), properties.step_count,
                                        properties.lane_width, scheduler_);
    return slot->fibers.start(context, reinterpret_cast<abi::RunStep>(entry), properties.step_count,
                              properties.lane_width, scheduler_);
}

/// Starts the CTAs of a cluster in the slots from `index` on.
bool Worker::start_cluster(std::size_t index, std::uint64_t cluster) {
    const std::uint32_t size = grid_->cluster_size;
    for (std::size_t rank = 0; rank < size; ++rank)
        if (!start(index + rank, cluster)) return false;
    ClusterBarrier& barrier = slots_[index].cluster;
    barrier.start(size * use_->code->properties.step_count, scheduler_);
    for (std::size_t rank = 0; rank < size; ++rank) slots_[index + rank].fibers.join(barrier);
    return true;
}

/// What a draw gives: a CTA or a cluster.
bool Worker::start_drawn(std::size_t index, std::uint64_t number) {
    return grid_->cluster_size == 1 ? start(index, number) : start_cluster(index, number);
}

/// What start_drawn() began and had no memory to end.
void Worker::take_back(std::size_t unit) {
    first_free_ = std::min(first_free_, unit);
    for (std::size_t i = unit; i < slots_.size() && i < unit + grid_->cluster_size; ++i) {
        if (!slots_[i].busy) continue;
        scheduler_.withdraw(slots_[i].fibers);
        slots_[i].fibers.abandon();
        slots_[i].busy = false;
    }
}

/// Steps that can't go on any more are deadlocked.
void Worker::check_finished(std::size_t slots) {
    for (std::size_t i = 0; i < slots; ++i) {
        if (!slots_[i].fibers.finished()) raise_deadlock();
        slots_[i].busy = false;
    }
}

/// A cluster's CTAs live at the same time, as fibers of one worker: they meet without atomics and without other
/// threads, which would all have to come before the first could go on. Workers take different clusters.
void Worker::run_clusters() {
    std::uint64_t cluster = 0, end = 0;
    while (draw(cluster, end)) {
        for (; cluster < end && !grid_->stopped(); ++cluster) {
            if (!start_cluster(0, cluster)) return out_of_memory();
            run_steps();
            check_finished(grid_->cluster_size);
            finish_copies();
        }
    }
}

/// CTAs (clusters) that a worker keeps alive at once although none of them is stuck.
std::uint64_t Worker::resident_units() const {
    if (grid_->cooperative) return grid_->cta_count;
    return scheduler_.is_random() ? random_schedule_ctas : 1;
}

std::uint64_t Worker::most_resident_units() const {
    const std::uint32_t* block = grid_->launch.ntid;
    const std::uint64_t threads = std::uint64_t{block[0]} * block[1] * block[2];
    const std::uint64_t ctas = std::min(tuning::most_resident_ctas, tuning::most_resident_threads / threads);
    return std::max(resident_units(), ctas / grid_->cluster_size);
}

/// Gives the slots of CTAs that have exited back. How many CTAs (clusters) are left.
std::uint64_t Worker::release_finished() {
    std::uint64_t live = 0;
    for (std::size_t unit = 0; unit < slots_.size(); unit += grid_->cluster_size) {
        const std::size_t end = std::min<std::size_t>(unit + grid_->cluster_size, slots_.size());
        bool was_busy = false, busy = false;
        for (std::size_t i = unit; i < end; ++i) {
            was_busy = was_busy || slots_[i].busy;
            slots_[i].busy = slots_[i].busy && !slots_[i].fibers.finished();
            busy = busy || slots_[i].busy;
        }
        for (std::size_t i = unit; was_busy && !busy && i < end; ++i) {
            if (copies_.pending()) copies_.finish(&slots_[i].arena.context);
            if (products_.pending()) products_.finish(&slots_[i].arena.context);
            if (tensor_memories_.pending()) tensor_memories_.finish(&slots_[i].arena.context);
        }
        if (was_busy && !busy) first_free_ = std::min(first_free_, unit);
        live += busy;
    }
    return live;
}

/// The first slot of a CTA (cluster) that may start. A cluster's slots are used again when all its CTAs have exited.
std::size_t Worker::free_unit() {
    std::size_t& unit = first_free_;
    const auto is_busy = [&] {
        for (std::size_t i = unit; i < slots_.size() && i < unit + grid_->cluster_size; ++i)
            if (slots_[i].busy) return true;
        return false;
    };
    while (is_busy()) unit += grid_->cluster_size;
    return unit;
}

/// How many more CTAs (clusters) of a cooperative grid to draw now. All must live at once, and they begin to wait for
/// each other at once: more at a time the more there are, so that the turns until the last one begins are in proportion
/// to their number, not to its square. A worker that has its share leaves the others' to them while they draw, and for
/// as long as they may take to come.
std::uint64_t Worker::further_cooperative_units(const Supply& supply) const {
    const std::uint64_t more = 1 + supply.live / 4;
    const std::uint64_t share = (grid_->cta_count + grid_->max_workers - 1) / grid_->max_workers;
    if (supply.live < share) return std::min(more, share - supply.live);
    if (grid_->next_cta.load(std::memory_order_relaxed) != supply.drawn_by_all) return 0;
    const auto patience = helpers_started() ? tuning::helper_patience : tuning::first_helper_patience;
    return std::chrono::steady_clock::now() - grid_->start < patience ? 0 : more;
}

/// How many more CTAs (clusters) than the live ones are worth having now, of a grid whose CTAs wait for each other.
/// Of one that is not cooperative a worker runs one after the other, and has more, as a GPU would have them resident,
/// when those it has do nothing but wait; also when none has exited for long whatever they do, because no loop can be
/// told from one that waits for sure. More at a time the more there are: a chain in which each waits for the next one
/// takes turns in proportion to its length, not to its square.
std::uint64_t Worker::further_units(const Supply& supply) const {
    const std::uint64_t live = supply.live;
    if (live < resident_units()) return grid_->cooperative ? further_cooperative_units(supply) : 1;
    const bool stuck = !scheduler_.has_runnable() || idle_turns_ >= tuning::idle_turns_before_draw;
    if (stuck) return 1 + live / 2;
    return turns_without_exit_ >= tuning::turns_before_draw ? 1 + live / 8 : 0;
}

/// Starts what further_units() asks for, as far as there are any and the process has memory for them. False if it has
/// none for those that there must be.
bool Worker::start_further_units(Supply& supply) {
    for (std::uint64_t wanted = further_units(supply); wanted != 0 && supply.may_start(); --wanted) {
        supply.drawing = supply.next != supply.end || draw(supply.next, supply.end, supply.live == 0);
        if (!supply.drawing) return true;
        const std::size_t unit = free_unit();
        if (!start_drawn(unit, supply.next)) {
            if (supply.live < resident_units()) return false;
            take_back(unit);
            supply.room = false; // until one exits
            log_once("resident", "kernel " + use_->code->name + ": memory or mappings (vm.max_map_count) for " +
                                     std::to_string(supply.live) +
                                     " of its blocks at once and no more: if these wait for later ones, it hangs");
            return true;
        }
        ++supply.next;
        ++supply.live;
        idle_turns_ = turns_without_exit_ = 0;
    }
    supply.drawn_by_all = grid_->next_cta.load(std::memory_order_relaxed);
    return true;
}

/// Runs several CTAs (clusters) by turns.
void Worker::run_resident_ctas() {
    Supply supply;
    supply.most = most_resident_units();
    first_free_ = 0;
    std::uint64_t seen = scheduler_.progress_and_work();
    idle_turns_ = turns_without_exit_ = 0;
    for (;;) {
        if (!start_further_units(supply)) return out_of_memory();
        if (supply.live == 0 && !supply.drawing) return;
        if (grid_->stopped()) leave_kernel();
        check_for_hang();
        if (!scheduler_.has_runnable() && !mbarriers_.expire(true) && !supply.may_start()) {
            if (!supply.room) return out_of_memory();
            raise_deadlock();
        }
        scheduler_.run(true);
        looks_.begin_turn();
        mbarriers_.expire(false);
        const std::uint64_t live = release_finished();
        if (live == 0) finish_copies();
        turns_without_exit_ = live == supply.live ? turns_without_exit_ + 1 : 0;
        supply.room = supply.room || live < supply.live;
        supply.live = live;
        idle_turns_ = scheduler_.progress_and_work() == seen ? idle_turns_ + 1 : 0;
        seen = scheduler_.progress_and_work();
        if (idle_turns_ > tuning::idle_turns_before_draw && idle_turns_ % 16 == 0)
            sched_yield(); // what they wait for is on another thread
    }
}

void Worker::note_wait_for_goal() {
    if (!looks_are_known_) grid_->goal_waits.add(looks_);
    looks_are_known_ = true;
    looks_.note_wait();
}

void Worker::let_others_look() {
    const GoalWaits& waits = grid_->goal_waits;
    const GoalWaits::Marks marks = waits.waiting();
    const std::uint64_t limit = thread_nanoseconds() + tuning::longest_look_ns;
    const auto latest = std::chrono::steady_clock::now() + 50 * std::chrono::nanoseconds(tuning::longest_look_ns);
    while (!waits.have_looked(marks) && thread_nanoseconds() < limit && std::chrono::steady_clock::now() < latest) {
        if (grid_->stopped()) leave_kernel();
        if (!scheduler_.yield({.kind = Wait::Kind::turn})) sched_yield();
    }
}

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

void Worker::clean_up() {
    scheduler_.reset();
    mbarriers_.reset();
    copies_.reset();
    products_.finish();
    tensor_memories_.reset();
    if (other_stack_) scheduler_.stacks.give(other_stack_);
    other_stack_ = nullptr;
    for (Slot& slot : slots_) {
        if (slot.busy) slot.fibers.abandon();
        slot.busy = false;
    }
    scheduler_.stacks.trim(tuning::kept_stacks);
    while (slots_.size() > tuning::kept_slots) slots_.pop_back();
}

/// Until there is nothing left to draw, or better code is there.
void Worker::run_code() {
    next_code_ = nullptr;
    cta_of_fibers_ = use_->code->properties.uses_fibers || use_->code->properties.gives_turns;
    if (other_stack_) scheduler_.stacks.give(other_stack_);
    other_stack_ = nullptr;
    if (cta_of_fibers_) scheduler_.stacks.set_stack_size(use_->fiber_stack);
    if (!cta_of_fibers_ && use_->needs_own_stack)
        run_whole_ctas_on_other_stack();
    else if (!cta_of_fibers_)
        run_whole_ctas();
    else if (grid_->cooperative || use_->code->properties.spins || scheduler_.is_random())
        run_resident_ctas();
    else if (grid_->cluster_size > 1)
        run_clusters();
    else
        run_fiber_ctas();
}

void Worker::run(Grid& grid, std::uint32_t number) {
    grid_ = &grid;
    number_ = number;
    use_ = &grid;
    spins = 0;
    waited_at_ = ~std::uint64_t{0};
    copies_.seed(grid.async_seed);
    products_.seed(grid.async_seed);
    tensor_memories_.seed(grid.async_seed);
    scope_.cta = nullptr;
    if (grid.hang_limit != std::chrono::nanoseconds{0}) progress_time_ = std::chrono::steady_clock::now();
    if (const Schedule& schedule = Schedule::of_process(); schedule.random)
        scheduler_.choose_by(Choices(schedule.seed * 0x100000001b3u ^ grid.launch.grid_id));
    ensure_signal_stack();
    if (sigsetjmp(scope_.jump, 0) == 0) {
        scope_.enter();
        run_code();
        while (next_code_) {
            use_ = next_code_;
            if (number_ == 0 && grid.held_helpers != 0) call_held_helpers(grid);
            run_code();
        }
        scope_.leave();
    } else {
        scope_.leave();
        record_fault();
    }
    clean_up();
    if (looks_are_known_) grid.goal_waits.remove(looks_);
    looks_are_known_ = false;
    grid_ = nullptr;
}

namespace {

struct WorkerPool {
    std::atomic<Worker*> last{nullptr}; ///< the last one that came back, without the mutex; owned
    std::mutex mutex;
    std::vector<std::unique_ptr<Worker>> idle; ///< the others
    static WorkerPool& get() {
        static auto* pool = new WorkerPool; // never destroyed: workers may outlive static destructors
        return *pool;
    }
};

} // namespace

WorkerLease::WorkerLease() {
    WorkerPool& pool = WorkerPool::get();
    worker_.reset(pool.last.exchange(nullptr, std::memory_order_acquire));
    if (worker_) return;
    std::lock_guard lock(pool.mutex);
    if (pool.idle.empty()) {
        worker_ = std::make_unique<Worker>();
    } else {
        worker_ = std::move(pool.idle.back()); // last in, first out: its memory is warm
        pool.idle.pop_back();
    }
}

WorkerLease::~WorkerLease() {
    WorkerPool& pool = WorkerPool::get();
    Worker* none = nullptr;
    if (pool.last.compare_exchange_strong(none, worker_.get(), std::memory_order_release, std::memory_order_relaxed)) {
        static_cast<void>(worker_.release());
        return;
    }
    std::lock_guard lock(pool.mutex);
    pool.idle.push_back(std::move(worker_));
}

} // namespace ptarmigan::runtime
