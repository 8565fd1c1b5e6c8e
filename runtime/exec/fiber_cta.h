// SPDX-License-Identifier: Apache-2.0
// One CTA whose steps are fibers: its named barriers and its warps' collectives. Or one that is a single fiber and runs
// its steps by turns itself. All fibers of a CTA run on one worker, so nothing here is atomic.
#pragma once

#include "runtime/exec/cluster_barrier.h"
#include "runtime/exec/fiber_scheduler.h"
#include "runtime/exec/reconvergence.h"
#include "runtime/exec/warpgroup_products.h"
#include "translator/kernel_abi.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace ptarmigan::runtime {

/// What a collective gives, from the values of the lanes of one warp that take part; see the PTX
/// manual, 9.7.9 and 9.7.13.
struct WarpValues {
    std::uint32_t present = 0; ///< lanes that take part
    std::uint64_t source[32]{}, result[32]{};
    std::uint32_t b[32]{}, c[32]{}, predicate[32]{};
};

/// One CTA whose steps are fibers (or which is one fiber as a whole), on one worker's thread: nothing of it is
/// thread-safe. The scheduler chooses which of its fibers runs; the services below suspend the fiber that calls them.
class FiberCta {
public:
    /// Named ones; behind them those of the warpgroups (kind 5 of barrier()).
    static constexpr std::uint32_t barrier_count = 16;

    /// Starts `step_count` fibers of `entry` for `cta`. Returns false if there are no stacks. The
    /// object is reused for CTA after CTA.
    bool start(abi::CtaContext& cta, abi::RunStep entry, std::uint32_t step_count, std::uint32_t lane_width,
               FiberScheduler& scheduler);
    /// Starts one fiber of `entry` for the whole CTA, whose steps are counted for reports only. None of the services
    /// below is called then.
    bool start_whole(abi::CtaContext& cta, abi::RunCta entry, std::uint32_t step_count, std::uint32_t lane_width,
                     FiberScheduler& scheduler);
    /// Makes the CTA one of a cluster; to be called between start() and its first step.
    void join(ClusterBarrier& cluster) { cluster_ = &cluster; }
    /// Who multiplies for its warpgroups: the worker's.
    void set_products(WarpgroupProducts& products) { products_ = &products; }
    /// True if lanes of one warp wait at different barriers, which ends in an illegal instruction on an H200.
    bool has_split_warp() const;
    /// True when all steps have exited; their stacks are back in the pool then.
    bool finished() const { return live_steps_ == 0; }
    /// Forgets suspended fibers, and gives their stacks back: the grid is over.
    void abandon();

    abi::CtaContext& context() { return *cta_; }
    FiberScheduler& scheduler() { return *scheduler_; }
    std::uint32_t step_count() const { return step_count_; }
    std::uint32_t lane_width() const { return lane_width_; }
    Reconvergence& reconvergence() { return reconvergence_; }
    bool is_whole() const { return run_whole_ != nullptr; }
    bool has_exited(std::uint32_t step) const { return is_whole() ? finished() : steps_[step].finished; }
    /// What a step waits for, for reports of hangs.
    Wait wait_of(std::uint32_t step) const;
    /// Of a CTA that is one fiber: a step waits, until the fiber goes on from where it gives its turn away next.
    void note_wait(std::uint32_t step, const Wait& wait) { noted_.emplace_back(step, wait); }
    bool has_noted_waits() const { return !noted_.empty(); }
    /// Likewise: where steps that don't wait have come to their barrier; 0: none has.
    void note_barrier(std::uint32_t line) { noted_barrier_ = line; }
    void forget_waits() { noted_.clear(); }

    /// Services of the same name (kernel_abi.h), called on a step's fiber. `pc`: where they return to.
    std::uint32_t barrier(std::uint32_t step, std::uint32_t id, std::uint32_t threads, std::uint32_t kind,
                          std::uint64_t arriving, std::uint64_t predicate, std::uintptr_t pc);
    void collective(std::uint32_t step, abi::CollectiveCall& call, std::uintptr_t pc);
    /// Services::lane_collective's arguments.
    struct LaneCall {
        std::uint32_t what, members;
        std::uint64_t source, operands;
    };
    std::uint64_t lane_collective(std::uint32_t step, const LaneCall& call, std::uintptr_t pc);
    void cluster_barrier(std::uint32_t step, bool wait, std::uint64_t active, std::uint64_t live);
    /// `frame`: an address in the service's stack frame.
    void reconverge(std::uint32_t step, std::uint32_t point, bool in_wait, const void* frame) {
        reconvergence_.wait(steps_[step], point, in_wait, steps_[step].fiber.depth(frame));
    }
    [[noreturn]] void exit_thread(std::uint32_t step) { exit_step(steps_[step]); }

private:
    static constexpr std::uint32_t warpgroup_count = 8, warps_of_group = 4;

    struct Waiting {
        StepFiber* step;
        std::uint32_t kind; ///< of barrier()
    };
    struct Barrier {
        std::uint32_t expected_lanes = 0; ///< 0: all live warps
        std::uint32_t arrived_warps = 0;
        std::uint32_t population = 0;
        bool all = true;
        std::vector<Waiting> waiting;
        bool used() const { return arrived_warps != 0; }
    };
    /// Steps of a warp that have come to a barrier, the others have not yet: a warp arrives as a whole.
    struct Gathering {
        std::uint32_t warp = 0, barrier = 0, threads = 0, steps = 0, population = 0;
        bool arrives_only = false, all = true;
        std::vector<Waiting> waiting;
    };
    struct Participant {
        StepFiber* step;
        abi::CollectiveCall* call;
        std::uint32_t lanes; ///< of the warp
    };
    /// The steps of a warp that have come to the same collective with the same member mask, wherever they stand in the
    /// code.
    struct Group {
        std::uint32_t warp = 0, members = 0, kind = 0, operation = 0;
        std::uint32_t came = 0; ///< lanes of the steps that have come
        std::uintptr_t pc = 0;  ///< activemask: only those at one place and in one round of its loops; else 0
        std::uint64_t round = 0;
        std::vector<Participant> participants;
        std::uint32_t line = 0; ///< activemask: of the PTX text; 0: unknown
    };

    /// Likewise of steps of one lane, with their values.
    struct LaneGroup {
        std::uint32_t warp = 0, members = 0, what = 0;
        WarpValues values;
    };

    void set_up(abi::CtaContext& cta, std::uint32_t step_count, std::uint32_t lane_width, FiberScheduler& scheduler);
    bool start_fibers(std::uint32_t count);
    static void step_entry(StackTransfer from);
    [[noreturn]] void exit_step(StepFiber& step);
    [[noreturn]] void exit_whole(StepFiber& fiber);
    [[noreturn]] void refuse_warpgroup(const StepFiber& step) const;
    [[noreturn]] void end_fiber(StepFiber& fiber);
    bool complete(const Barrier& barrier) const;
    void release(Barrier& barrier);
    void gather(StepFiber& step, const Gathering& arrival, std::uint32_t kind);
    void arrive(Gathering& arrival);
    std::uint32_t live_steps_of(std::uint32_t warp) const;
    std::uint32_t live_warps() const;
    std::uint64_t existing_lanes(std::uint32_t step) const;
    std::uint32_t first_lane(std::uint32_t step) const { return step * lane_width_ % abi::warp_size; }
    std::uint32_t warp_of(std::uint32_t step) const { return step * lane_width_ / abi::warp_size; }
    bool complete(const Group& group) const;
    std::uint32_t lanes_of(std::uint32_t step) const;
    /// True if the current step is among those that go on: it is runnable then and has to give way.
    bool release(Group& group);
    void evaluate(const Group& group, WarpValues& warp);
    [[noreturn]] void refuse_lanes(const StepFiber& step, std::uint64_t lanes, std::uintptr_t pc) const;
    Group& join_group(const Group& key, const Participant& participant);
    bool release_and_forget(Group& group);
    Group& group_for(const Group& key);
    void release_complete_groups();
    LaneGroup& lane_group_for(std::uint32_t warp, std::uint32_t members, std::uint32_t what);
    LaneGroup& further_lane_group(std::uint32_t warp, std::uint32_t members, std::uint32_t what);
    bool complete(const LaneGroup& group) const {
        return (group.members & live_lanes_[group.warp] & ~group.values.present) == 0;
    }
    void release(LaneGroup& group);
    void note_results(LaneGroup& group);
    void suspend(StepFiber& self, const Wait& wait);
    void ask_who_is_here(StepFiber& step, abi::CollectiveCall& call, std::uintptr_t pc);
    bool others_may_come(const Group& group, bool waiting_too) const;

    abi::CtaContext* cta_ = nullptr;
    abi::RunStep entry_ = nullptr;
    abi::RunCta run_whole_ = nullptr; ///< null: the steps are fibers
    FiberScheduler* scheduler_ = nullptr;
    WarpgroupProducts* products_ = nullptr;
    ClusterBarrier *cluster_ = nullptr, alone_;
    Reconvergence reconvergence_;
    std::uint32_t lane_width_ = 32, step_count_ = 0;
    std::uint32_t fiber_count_ = 0, live_steps_ = 0; ///< the steps, or one
    std::vector<StepFiber> steps_;
    std::array<Barrier, barrier_count + warpgroup_count> barriers_;
    std::vector<Gathering> gatherings_;           ///< open ones
    std::vector<Group> groups_;                   ///< open ones
    std::vector<std::vector<Participant>> spare_; ///< memory of groups that were
    std::vector<LaneGroup> lane_groups_;          ///< by warp the one that was open last, then others; empty ones too
    std::vector<std::uint32_t> waiting_lanes_;    ///< by warp, of lane_collective()
    std::vector<std::uint64_t> lane_results_;     ///< by thread: as Services::lane_collective gives it
    struct alignas(64) VoteWords {
        std::array<std::uint32_t, abi::most_joined_votes> words;
    };
    std::vector<VoteWords> vote_words_;     ///< by thread: of votes made together
    std::vector<std::uint32_t> live_lanes_; ///< by warp: of a step that is alive all
    std::vector<std::pair<std::uint32_t, Wait>> noted_;
    std::uint32_t noted_barrier_ = 0;
};

// All that a lane does at a collective is inline, to be one frame on each of the stacks: it is what kernels of steps of
// one lane do most.

/// The open one, or a new one.
inline FiberCta::LaneGroup& FiberCta::lane_group_for(std::uint32_t warp, std::uint32_t members, std::uint32_t what) {
    LaneGroup& last = lane_groups_[warp];
    if (last.values.present != 0 && last.warp == warp && last.members == members && last.what == what) return last;
    return further_lane_group(warp, members, what);
}

/// FiberScheduler::block() where the CTA is known.
inline void FiberCta::suspend(StepFiber& self, const Wait& wait) {
    self.wait = wait;
    if (reconvergence_.any() && !self.queued) reconvergence_.note_stop(self);
    scheduler_->leave();
    self.wait = Wait{};
}

inline std::uint64_t FiberCta::lane_collective(std::uint32_t step_index, const LaneCall& call, std::uintptr_t pc) {
    StepFiber& step = steps_[step_index];
    const std::uint32_t warp = step_index / abi::warp_size, lane = step_index % abi::warp_size, bit = 1u << lane;
    if (!(call.members & bit)) refuse_lanes(step, 1, pc);
    LaneGroup& group = lane_group_for(warp, call.members, call.what);
    group.values.present |= bit;
    group.values.source[lane] = call.source;
    group.values.b[lane] = static_cast<std::uint32_t>(call.operands);
    group.values.c[lane] = static_cast<std::uint32_t>(call.operands >> 32);
    waiting_lanes_[warp] |= bit;
    if (complete(group)) release(group);
    if (step.queued) suspend(step, {.kind = Wait::Kind::turn});
    while ((waiting_lanes_[warp] & bit) != 0)
        suspend(step, {.kind = Wait::Kind::collective, .number = call.members, .lanes = 1, .pc = pc});
    if (scheduler_->is_random()) scheduler_->reorder();
    return lane_results_[step_index];
}

/// Pure: for tests too.
void evaluate_collective(abi::Collective kind, std::uint32_t operation, WarpValues& warp);

} // namespace ptarmigan::runtime
