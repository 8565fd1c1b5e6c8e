// SPDX-License-Identifier: Apache-2.0
// Several CTAs (clusters) of a worker alive at once: how many, and the loop that runs them by turns.
#include "runtime/launch/worker.h"

#include "runtime/base/log.h"
#include "runtime/base/thread_time.h"
#include "runtime/base/tuning.h"
#include "runtime/launch/helpers.h"

#include <algorithm>
#include <chrono>
#include <sched.h>
#include <string>

namespace ptarmigan::runtime {

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

} // namespace ptarmigan::runtime
