// SPDX-License-Identifier: Apache-2.0
// What a thread needs to run CTAs, kept between launches.
#pragma once

#include "runtime/exec/async_copies.h"
#include "runtime/exec/fiber_cta.h"
#include "runtime/exec/fiber_scheduler.h"
#include "runtime/exec/mbarriers.h"
#include "runtime/exec/warpgroup_products.h"
#include "runtime/launch/cta_arena.h"
#include "runtime/launch/grid.h"
#include "runtime/tensor_memory/tensor_memories.h"

#include <chrono>
#include <deque>
#include <memory>

namespace ptarmigan::runtime {

/// One thread's work on one grid at a time. Not thread-safe. CtaContext::worker points to it.
class Worker {
public:
    /// Draws and runs CTAs of `grid` until it is exhausted or stopped. `number` counts the grid's workers.
    void run(Grid& grid, std::uint32_t number);

    Grid& grid() const { return *grid_; }
    /// That it runs.
    const LoadedKernel& code() const { return *use_->code; }
    FiberScheduler& scheduler() { return scheduler_; }
    Mbarriers& mbarriers() { return mbarriers_; }
    AsyncCopies& copies() { return copies_; }
    WarpgroupProducts& products() { return products_; }
    TensorMemories& tensor_memories() { return tensor_memories_; }
    bool in_fibers() const { return cta_of_fibers_; }
    /// The fiber CTA that `context` belongs to.
    FiberCta& fiber_cta(abi::CtaContext*) {
        return *scheduler_.current()->cta;
    } // services are called by the step that runs
    /// For yield(): spins since something happened.
    unsigned spins = 0;
    /// Called by a step that waits: whether nothing has happened on this worker for so long that others should have its
    /// CPU, who may be making the code that is waited for.
    bool has_waited_long();
    /// Called by a step that waits: ends the grid if nobody has done anything but wait for the time of
    /// PTARMIGAN_HANG_TIMEOUT.
    void check_for_hang();
    /// Called by a step whose wait for a counter to have one value begins or goes on, and by one whose wait is over.
    void note_wait_for_goal();
    void let_others_look();

private:
    struct Slot {
        CtaArena arena;
        FiberCta fibers;
        ClusterBarrier cluster; ///< of the CTA of rank 0: the cluster's
        bool busy = false;
    };
    /// CTAs (clusters) of a worker that runs several by turns.
    struct Supply {
        std::uint64_t next = 0, end = 0; ///< drawn, not started
        std::uint64_t live = 0;
        std::uint64_t drawn_by_all = 0; ///< by all workers, when this one drew last
        bool drawing = true;            ///< there may be more to draw
        bool room = true;               ///< the process has memory for another one, as far as is known
        std::uint64_t most = 1;         ///< that may live
        bool may_start() const { return drawing && room && live < most; }
    };
    void finish_copies() {
        if (copies_.pending()) copies_.finish();
        if (products_.pending()) products_.finish();
        if (tensor_memories_.pending()) tensor_memories_.finish();
    }
    bool draw(std::uint64_t& first, std::uint64_t& end, bool may_move_on = true);
    void place(abi::CtaContext& context, std::uint64_t cta) const;
    void place(abi::CtaContext& context, std::uint64_t cluster, std::uint32_t rank) const;
    void run_code();
    void run_whole_ctas();
    void run_in_rows(abi::CtaContext& context, abi::RunCta entry, std::uint64_t cta, std::uint64_t end);
    void run_in_order(abi::CtaContext& context, abi::RunCta entry, std::uint64_t cta, std::uint64_t end);
    void run_whole_ctas_on_other_stack();
    static void other_stack_entry(StackTransfer from);
    void run_fiber_ctas();
    void run_clusters();
    void run_resident_ctas();
    std::uint64_t further_units(const Supply& supply) const;
    bool start_further_units(Supply& supply);
    void run_steps();
    std::uint64_t resident_units() const;
    std::uint64_t further_cooperative_units(const Supply& supply) const;
    std::uint64_t most_resident_units() const;
    std::uint64_t release_finished();
    std::size_t free_unit();
    [[noreturn]] void raise_deadlock();
    Slot* prepare_slot(std::size_t index);
    bool start(std::size_t index, std::uint64_t cta);
    bool start_cluster(std::size_t index, std::uint64_t cluster);
    bool start_drawn(std::size_t index, std::uint64_t number);
    void take_back(std::size_t unit);
    void check_finished(std::size_t slots);
    void out_of_memory();
    std::uint64_t lanes_of_fault(const FaultRecord& record) const;
    void describe_waiting_ctas();
    void record_fault();
    void clean_up();

    Grid* grid_ = nullptr;
    const GridCode* use_ = nullptr;       ///< what it runs: the grid's first code, or the good code that took over
    const GridCode* next_code_ = nullptr; ///< not null: what it goes on with when it has run what it drew
    std::size_t first_free_ = 0;          ///< no unit before this slot is free
    std::uint32_t number_ = 0;
    bool cta_of_fibers_ = false;
    void* other_stack_ = nullptr; ///< of scheduler_.stacks, while whole CTAs run there
    FaultScope scope_;
    FiberScheduler scheduler_;
    AsyncCopies copies_{mbarriers_};
    Mbarriers mbarriers_{scheduler_, copies_};
    WarpgroupProducts products_{copies_};
    TensorMemories tensor_memories_{mbarriers_};
    std::deque<Slot> slots_; ///< [0] but where several CTAs are alive at once; addresses are stable
    GoalWaits::Looks looks_;
    bool looks_are_known_ = false;                             ///< to the grid
    unsigned idle_turns_ = 0, turns_without_exit_ = 0;         ///< of the ring, in run_resident_ctas()
    std::uint64_t seen_progress_ = 0, seen_grid_progress_ = 0; ///< for check_for_hang()
    std::uint64_t waited_at_ = 0;                              ///< for has_waited_long()
    std::chrono::steady_clock::time_point wait_began_{};
    std::chrono::steady_clock::time_point progress_time_;
};

/// A worker for the calling thread to use for a while; given back on destruction.
class WorkerLease {
public:
    WorkerLease();
    ~WorkerLease();
    Worker& operator*() const { return *worker_; }

private:
    std::unique_ptr<Worker> worker_;
};

} // namespace ptarmigan::runtime
