// SPDX-License-Identifier: Apache-2.0
// The loops that run CTAs: whole ones, and CTAs (clusters) of fibers one after the other; several at once:
// worker_residents.cpp.
#include "runtime/launch/worker.h"

#include "runtime/base/processor.h"
#include "runtime/base/tuning.h"
#include "runtime/launch/cta_order.h"
#include "runtime/launch/helpers.h"

#include <algorithm>
#include <chrono>
#include <cstring>

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
    const CtaWalk walk = grid_->walk;
    const bool in_pairs = grid_->in_pairs, permuted = in_pairs || walk;
    while (draw(cta, end)) {
        for (; permuted && cta != end && !grid_->stopped(); ++cta) {
            place(context, walk ? cta_in_walk(cta, walk, grid_->cta_count) : cta_in_pairs(cta, context.nctaid));
            entry(&context);
            finish_copies();
        }
        if (use_->code->properties.ctas_in_row > 1)
            run_in_rows(context, entry, cta, end);
        else if (!permuted)
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

} // namespace ptarmigan::runtime
