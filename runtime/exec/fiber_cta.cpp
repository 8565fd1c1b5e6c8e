// SPDX-License-Identifier: Apache-2.0
// Barriers and rendezvous of a CTA's fibers.
#include "runtime/exec/fiber_cta.h"

#include "runtime/code/fault.h"
#include "runtime/code/image_loader.h"

#include <algorithm>
#include <type_traits>

namespace ptarmigan::runtime {

void FiberCta::set_up(abi::CtaContext& cta, std::uint32_t step_count, std::uint32_t lane_width,
                      FiberScheduler& scheduler) {
    cta_ = &cta;
    cta.worked = 0;
    scheduler_ = &scheduler;
    lane_width_ = lane_width;
    step_count_ = step_count;
    noted_.clear();
    // The CTA before may have ended with arrivals that nobody waited for.
    for (Barrier& barrier : barriers_)
        if (barrier.used()) barrier = Barrier{};
}

bool FiberCta::start(abi::CtaContext& cta, abi::RunStep entry, std::uint32_t step_count, std::uint32_t lane_width,
                     FiberScheduler& scheduler) {
    set_up(cta, step_count, lane_width, scheduler);
    entry_ = entry;
    run_whole_ = nullptr;
    alone_.start(step_count, scheduler);
    cluster_ = &alone_;
    live_lanes_.assign((step_count * lane_width + abi::warp_size - 1) / abi::warp_size, 0);
    for (std::uint32_t index = 0; index < step_count; ++index) live_lanes_[warp_of(index)] |= lanes_of(index);
    if (lane_width == 1) {
        if (lane_groups_.size() < live_lanes_.size()) lane_groups_.resize(live_lanes_.size());
        waiting_lanes_.assign(live_lanes_.size(), 0);
        lane_results_.resize(live_lanes_.size() * abi::warp_size);
        vote_words_.resize(live_lanes_.size() * abi::warp_size);
    }
    return start_fibers(step_count);
}

bool FiberCta::start_whole(abi::CtaContext& cta, abi::RunCta entry, std::uint32_t step_count, std::uint32_t lane_width,
                           FiberScheduler& scheduler) {
    set_up(cta, step_count, lane_width, scheduler);
    run_whole_ = entry;
    return start_fibers(1);
}

bool FiberCta::start_fibers(std::uint32_t count) {
    fiber_count_ = live_steps_ = count;
    if (steps_.size() < count) steps_.resize(count);
    for (std::uint32_t index = 0; index < count; ++index) {
        StepFiber& step = steps_[index];
        step.fiber.stack = scheduler_->stacks.take();
        if (!step.fiber.stack) return false;
        step.fiber.stack_size = scheduler_->stacks.stack_size();
        step.cta = this;
        step.step = index;
        step.finished = false;
        step.pending_groups = 0;
        step.cluster_arrived = 0;
        step.cluster_counted = false;
        step.at_barrier = false;
        step.queued = false;
        step.turns = 0;
        step.wait = {.kind = Wait::Kind::turn};
        step.fiber.start(&FiberCta::step_entry);
    }
    reconvergence_.start(steps_.data(), count, abi::warp_size / lane_width_, *scheduler_);
    for (std::uint32_t index = 0; index < count; ++index) scheduler_->make_runnable(steps_[index]);
    return true;
}

Wait FiberCta::wait_of(std::uint32_t step) const {
    if (!is_whole()) return steps_[step].wait;
    if (noted_.empty()) return steps_[0].wait;
    for (const auto& [number, wait] : noted_)
        if (number == step) return wait;
    return {.kind = Wait::Kind::others, .line = noted_barrier_};
}

void FiberCta::step_entry(StackTransfer from) {
    // A step begins with its fiber.
    static_assert(std::is_standard_layout_v<StepFiber>);
    StepFiber& self = *reinterpret_cast<StepFiber*>(Fiber::switch_of(from).to);
    Fiber::arrived(from, self.fiber);
    self.wait = Wait{};
    FiberCta& cta = *self.cta;
    if (cta.is_whole()) {
        cta.run_whole_(cta.cta_);
        cta.exit_whole(self);
    }
    cta.entry_(cta.cta_, self.step);
    cta.exit_step(self);
}

void FiberCta::exit_whole(StepFiber& fiber) {
    fiber.finished = true;
    live_steps_ = 0;
    scheduler_->note_progress();
    end_fiber(fiber);
}

void FiberCta::abandon() {
    for (std::uint32_t index = 0; index < fiber_count_; ++index) {
        StepFiber& step = steps_[index];
        if (step.fiber.stack) scheduler_->stacks.give(step.fiber.stack);
        step.fiber.stack = nullptr;
    }
    for (Barrier& barrier : barriers_) barrier = Barrier{};
    gatherings_.clear();
    groups_.clear();
    lane_groups_.clear();
    live_steps_ = 0;
}

/// A warp has exited that others of its warpgroup wait for: 715 on an H100.
void FiberCta::refuse_warpgroup(const StepFiber& step) const {
    FaultRecord record;
    record.fault = abi::Fault::illegal_instruction;
    record.cta = cta_;
    record.step = step.step;
    record.rule = "a warp has exited before its warpgroup's wgmma.commit_group";
    raise_fault(record);
}

/// A step that exits arrives at nothing any more: what waited only for it goes on.
void FiberCta::exit_step(StepFiber& step) {
    step.finished = true;
    --live_steps_;
    live_lanes_[warp_of(step.step)] &= ~lanes_of(step.step);
    scheduler_->note_progress();
    const std::uint32_t warp = warp_of(step.step);
    if (live_lanes_[warp] == 0 && barriers_[barrier_count + warp / warps_of_group].used()) refuse_warpgroup(step);
    for (std::size_t i = 0; i < gatherings_.size();) {
        if (gatherings_[i].steps < live_steps_of(gatherings_[i].warp)) {
            ++i;
            continue;
        }
        Gathering whole = std::move(gatherings_[i]);
        gatherings_.erase(gatherings_.begin() + static_cast<std::ptrdiff_t>(i));
        arrive(whole);
    }
    for (Barrier& barrier : barriers_)
        if (barrier.used() && complete(barrier)) release(barrier);
    release_complete_groups();
    cluster_->exit_step(step);
    if (reconvergence_.any()) reconvergence_.note_stop(step);
    end_fiber(step);
}

void FiberCta::end_fiber(StepFiber& fiber) {
    // The stack is in use until the switch; nobody takes one before, because only the worker starts
    // CTAs.
    scheduler_->stacks.give(fiber.fiber.stack);
    fiber.fiber.stack = nullptr;
    scheduler_->finish();
}

/// Lanes of the step that have a thread.
std::uint64_t FiberCta::existing_lanes(std::uint32_t step) const {
    const std::uint64_t threads = std::uint64_t{cta_->ntid[0]} * cta_->ntid[1] * cta_->ntid[2];
    const std::uint64_t left = threads - std::uint64_t{step} * lane_width_;
    return left >= lane_width_ ? (std::uint64_t{1} << lane_width_) - 1 : (std::uint64_t{1} << left) - 1;
}

void FiberCta::cluster_barrier(std::uint32_t step, bool wait, std::uint64_t active, std::uint64_t live) {
    if (wait)
        cluster_->wait(steps_[step], active, live);
    else
        cluster_->arrive(steps_[step], active, live & existing_lanes(step));
}

std::uint32_t FiberCta::live_steps_of(std::uint32_t warp) const {
    return static_cast<std::uint32_t>(__builtin_popcount(live_lanes_[warp])) / lane_width_;
}

std::uint32_t FiberCta::live_warps() const {
    if (lane_width_ == abi::warp_size) return live_steps_;
    return static_cast<std::uint32_t>(live_lanes_.size()) -
           static_cast<std::uint32_t>(std::count(live_lanes_.begin(), live_lanes_.end(), 0u));
}

/// A warp's count is 32 even if the block ends inside it, or lanes of it have exited.
bool FiberCta::complete(const Barrier& barrier) const {
    if (barrier.expected_lanes == 0) return barrier.arrived_warps >= live_warps();
    return barrier.arrived_warps * abi::warp_size >= barrier.expected_lanes;
}

namespace {

std::uint32_t barrier_value(std::uint32_t kind, std::uint32_t population, bool all) {
    switch (kind) {
    case 2: return population;
    case 3: return all;
    case 4: return population != 0;
    default: return 0;
    }
}

} // namespace

/// Lets everybody go on.
void FiberCta::release(Barrier& barrier) {
    for (const Waiting& waiting : barrier.waiting) {
        waiting.step->barrier_result = barrier_value(waiting.kind, barrier.population, barrier.all);
        waiting.step->at_barrier = false;
        if (waiting.step == scheduler_->current()) continue;
        Wait passed = waiting.step->wait;
        passed.kind = Wait::Kind::passed;
        scheduler_->make_runnable(*waiting.step);
        waiting.step->wait = passed;
    }
    scheduler_->note_barrier(*cta_);
    barrier.waiting.clear();
    barrier.expected_lanes = barrier.arrived_warps = 0;
    barrier.population = 0;
    barrier.all = true;
}

/// All live steps of a warp have come.
void FiberCta::arrive(Gathering& arrival) {
    Barrier& barrier = barriers_[arrival.barrier];
    barrier.expected_lanes = (arrival.threads + abi::warp_size - 1) / abi::warp_size * abi::warp_size;
    ++barrier.arrived_warps;
    barrier.population += arrival.population;
    barrier.all = barrier.all && arrival.all;
    for (const Waiting& waiting : arrival.waiting) {
        if (!arrival.arrives_only) {
            barrier.waiting.push_back(waiting);
            continue;
        }
        waiting.step->at_barrier = false;
        if (waiting.step != scheduler_->current()) scheduler_->make_runnable(*waiting.step);
    }
    if (complete(barrier)) release(barrier);
}

/// Joins the steps of its warp that have come already.
void FiberCta::gather(StepFiber& step, const Gathering& arrival, std::uint32_t kind) {
    const auto same = [&](const Gathering& other) {
        return other.warp == arrival.warp && other.barrier == arrival.barrier &&
               other.arrives_only == arrival.arrives_only;
    };
    auto found = std::find_if(gatherings_.begin(), gatherings_.end(), same);
    if (found == gatherings_.end())
        found = gatherings_.insert(
            found, Gathering{arrival.warp, arrival.barrier, arrival.threads, 0, 0, arrival.arrives_only, true, {}});
    ++found->steps;
    found->population += arrival.population;
    found->all = found->all && arrival.all;
    found->waiting.push_back({&step, kind});
    if (found->steps < live_steps_of(arrival.warp)) return;
    Gathering whole = std::move(*found);
    gatherings_.erase(found);
    arrive(whole);
}

std::uint32_t FiberCta::barrier(std::uint32_t step_index, std::uint32_t id, std::uint32_t threads, std::uint32_t kind,
                                std::uint64_t arriving, std::uint64_t predicate, std::uintptr_t pc) {
    constexpr std::uint32_t arrive_kind = 1, warpgroup_kind = 5;
    StepFiber& step = steps_[step_index];
    if (kind == warpgroup_kind) {
        const std::uint32_t group = warp_of(step_index) / warps_of_group,
                            first = group * warps_of_group * abi::warp_size;
        const std::uint32_t all = cta_->ntid[0] * cta_->ntid[1] * cta_->ntid[2];
        id = barrier_count + group;
        for (std::uint32_t warp = group * warps_of_group; warp < live_lanes_.size() && warp / warps_of_group == group;
             ++warp)
            if (live_lanes_[warp] == 0) refuse_warpgroup(step);
        threads = std::min(all - first, warps_of_group * abi::warp_size);
    } else if (id >= barrier_count) {
        FaultRecord record;
        record.fault = abi::Fault::trap;
        record.cta = cta_;
        record.step = step_index;
        raise_fault(record);
    }
    Gathering arrival;
    arrival.warp = warp_of(step_index);
    arrival.barrier = id;
    arrival.threads = threads;
    arrival.population = static_cast<std::uint32_t>(__builtin_popcountll(predicate & arriving));
    arrival.all = (predicate & arriving) == arriving;
    arrival.arrives_only = kind == arrive_kind;
    step.at_barrier = true;
    if (lane_width_ == abi::warp_size) {
        arrival.waiting.push_back({&step, kind});
        arrive(arrival);
    } else {
        gather(step, arrival, kind);
    }
    if (!step.at_barrier) {
        scheduler_->reorder();
        return step.barrier_result;
    }
    while (step.at_barrier) scheduler_->block({.kind = Wait::Kind::barrier, .number = id, .lanes = arriving, .pc = pc});
    return step.barrier_result;
}

bool FiberCta::has_split_warp() const {
    for (const Gathering& gathering : gatherings_)
        for (const Gathering& other : gatherings_)
            if (other.warp == gathering.warp && other.barrier != gathering.barrier) return true;
    return false;
}

/// Lanes of the warp that the step's lanes are.
std::uint32_t FiberCta::lanes_of(std::uint32_t step) const {
    return (lane_width_ == abi::warp_size ? ~0u : (1u << lane_width_) - 1) << first_lane(step);
}

/// Complete when every step of the warp that has member lanes has come or has exited. Lanes of a
/// step that came without them have exited: the step can't bring them while it waits.
bool FiberCta::complete(const Group& group) const {
    return (group.members & live_lanes_[group.warp] & ~group.came) == 0;
}

/// The step's lanes join the group that waits for the same, or open one.
FiberCta::Group& FiberCta::join_group(const Group& key, const Participant& participant) {
    Group& group = group_for(key);
    group.participants.push_back(participant);
    group.came |= lanes_of(participant.step->step);
    return group;
}

bool FiberCta::release_and_forget(Group& group) {
    Group done = std::move(group);
    std::swap(group, groups_.back());
    groups_.pop_back();
    const bool current_queued = release(done);
    done.participants.clear();
    spare_.push_back(std::move(done.participants));
    return current_queued;
}

FiberCta::Group& FiberCta::group_for(const Group& key) {
    for (Group& group : groups_)
        if (group.warp == key.warp && group.members == key.members && group.kind == key.kind &&
            group.operation == key.operation && group.pc == key.pc && group.round == key.round)
            return group;
    groups_.push_back(key);
    if (!spare_.empty()) {
        groups_.back().participants = std::move(spare_.back());
        spare_.pop_back();
    }
    return groups_.back();
}

void FiberCta::release_complete_groups() {
    for (std::size_t i = 0; i < groups_.size();) {
        if (groups_[i].pc != 0 || !complete(groups_[i]))
            ++i;
        else
            release_and_forget(groups_[i]);
    }
    for (LaneGroup& group : lane_groups_)
        if (group.values.present != 0 && complete(group)) release(group);
}

FiberCta::LaneGroup& FiberCta::further_lane_group(std::uint32_t warp, std::uint32_t members, std::uint32_t what) {
    LaneGroup* empty = lane_groups_[warp].values.present == 0 ? &lane_groups_[warp] : nullptr;
    const auto is_wanted = [&](LaneGroup& group) {
        if (group.values.present == 0 && !empty) empty = &group;
        return group.values.present != 0 && group.warp == warp && group.members == members && group.what == what;
    };
    for (std::size_t i = live_lanes_.size(); i < lane_groups_.size(); ++i)
        if (is_wanted(lane_groups_[i])) return lane_groups_[i];
    LaneGroup& group = empty ? *empty : lane_groups_.emplace_back();
    group.warp = warp;
    group.members = members;
    group.what = what;
    return group;
}

void FiberCta::note_results(LaneGroup& group) {
    WarpValues& values = group.values;
    const auto kind = static_cast<abi::Collective>(group.what & 0xff);
    const std::uint32_t operation = group.what >> 8;
    const std::size_t first = std::size_t{group.warp} * abi::warp_size;
    const auto for_each_lane = [&](auto&& visit) {
        for (std::uint32_t lanes = values.present; lanes != 0; lanes &= lanes - 1)
            visit(static_cast<std::uint32_t>(__builtin_ctz(lanes)));
    };
    if (kind != abi::Collective::vote_ballot || operation < 2) {
        evaluate_collective(kind, operation, values);
        for_each_lane([&](std::uint32_t lane) {
            lane_results_[first + lane] = (values.result[lane] & 0xffffffffu) | std::uint64_t{values.predicate[lane]}
                                                                                    << 32;
        });
        return;
    }
    VoteWords votes{};
    for_each_lane([&](std::uint32_t lane) {
        for (std::uint32_t i = 0; i < operation; ++i)
            votes.words[i] |= static_cast<std::uint32_t>(values.source[lane] >> i & 1) << lane;
    });
    for_each_lane([&](std::uint32_t lane) {
        vote_words_[first + lane] = votes;
        lane_results_[first + lane] = reinterpret_cast<std::uintptr_t>(vote_words_[first + lane].words.data());
    });
}

void FiberCta::release(LaneGroup& group) {
    WarpValues& values = group.values;
    note_results(group);
    std::array<StepFiber*, abi::warp_size> released;
    std::size_t count = 0;
    const std::size_t first = std::size_t{group.warp} * abi::warp_size;
    for (std::uint32_t lanes = values.present; lanes != 0; lanes &= lanes - 1) {
        const auto lane = static_cast<std::uint32_t>(__builtin_ctz(lanes));
        released[count++] = &steps_[first + lane];
    }
    waiting_lanes_[group.warp] &= ~values.present;
    values.present = 0;
    if (count == 1 && released[0] == scheduler_->current()) return;
    if (!reconvergence_.any()) return scheduler_->make_runnable_first({released.data(), count});
    for (std::size_t i = 0; i < count; ++i) scheduler_->make_runnable(*released[i]);
}

void FiberCta::evaluate(const Group& group, WarpValues& warp) {
    const abi::CollectiveCall& call = *group.participants.front().call;
    const auto kind = static_cast<abi::Collective>(call.kind);
    if (kind == abi::Collective::warpgroup)
        products_->run_collective({*cta_, group.warp, group.participants.front().step->step, warp.present},
                                  warp.source);
    else
        evaluate_collective(kind, call.operation, warp);
}

bool FiberCta::release(Group& group) {
    WarpValues warp;
    bool current_queued = false;
    for (const Participant& participant : group.participants) {
        const std::uint32_t base = first_lane(participant.step->step);
        warp.present |= participant.lanes;
        for (std::uint32_t lanes = participant.lanes; lanes != 0; lanes &= lanes - 1) {
            const auto lane = static_cast<std::uint32_t>(__builtin_ctz(lanes));
            warp.source[lane] = participant.call->source[lane - base];
            warp.b[lane] = participant.call->b[lane - base];
            warp.c[lane] = participant.call->c[lane - base];
        }
    }
    // All go on in the order of their lanes, the one that came last too. Programs count on that where one lane (mostly
    // the first) does something for the others behind a collective; a GPU runs such a short branch for all at once.
    std::sort(group.participants.begin(), group.participants.end(),
              [](const Participant& a, const Participant& b) { return a.step->step < b.step->step; });
    evaluate(group, warp);
    for (const Participant& participant : group.participants) {
        const std::uint32_t base = first_lane(participant.step->step);
        for (std::uint32_t lanes = participant.lanes; lanes != 0; lanes &= lanes - 1) {
            const auto lane = static_cast<std::uint32_t>(__builtin_ctz(lanes));
            participant.call->result[lane - base] = warp.result[lane];
            participant.call->predicate[lane - base] = warp.predicate[lane];
        }
        StepFiber& step = *participant.step;
        const bool alone = &step == scheduler_->current() && group.participants.size() == 1;
        if (--step.pending_groups != 0 || alone || group.pc != 0) continue; // who asks with a pc is runnable anyway
        scheduler_->make_runnable(step);
        current_queued = current_queued || &step == scheduler_->current();
    }
    return current_queued;
}

/// A lane's member mask does not name it.
void FiberCta::refuse_lanes(const StepFiber& step, std::uint64_t lanes, std::uintptr_t pc) const {
    FaultRecord record;
    CodeLocation location;
    if (find_code(pc - 1, location)) record.line = location.line;
    record.fault = abi::Fault::illegal_instruction;
    record.cta = cta_;
    record.step = step.step;
    record.lanes = lanes;
    raise_fault(record);
}

void FiberCta::collective(std::uint32_t step_index, abi::CollectiveCall& call, std::uintptr_t pc) {
    StepFiber& step = steps_[step_index];
    const std::uint32_t base = first_lane(step_index), warp = warp_of(step_index);
    auto left = static_cast<std::uint32_t>(call.active);
    if (static_cast<abi::Collective>(call.kind) == abi::Collective::activemask) return ask_who_is_here(step, call, pc);
    // Lanes with different member masks belong to different rendezvous.
    std::uint32_t masks[32], lanes_of_mask[32], count = 0;
    while (left != 0) {
        const auto first = static_cast<std::uint32_t>(__builtin_ctz(left));
        const std::uint32_t members = call.members[first];
        if (!(members >> (first + base) & 1)) refuse_lanes(step, call.active, pc);
        std::uint32_t same = 0;
        for (std::uint32_t lanes = left; lanes != 0; lanes &= lanes - 1) {
            const auto lane = static_cast<unsigned>(__builtin_ctz(lanes));
            if (call.members[lane] == members) same |= 1u << lane;
        }
        masks[count] = members;
        lanes_of_mask[count++] = same << base;
        left &= ~same;
    }
    step.pending_groups = count;
    bool queued = false;
    for (std::uint32_t i = 0; i < count; ++i) {
        Group& group =
            join_group({warp, masks[i], call.kind, call.operation, 0, 0, 0, {}}, {&step, &call, lanes_of_mask[i]});
        if (complete(group)) queued = release_and_forget(group);
    }
    if (queued) scheduler_->block({.kind = Wait::Kind::turn});
    while (step.pending_groups != 0)
        scheduler_->block({.kind = Wait::Kind::collective, .number = masks[0], .lanes = call.active, .pc = pc});
    scheduler_->reorder();
}

/// Some step of the warp may still come to the place where `group` asks who is here: it runs, or waits for its turn
/// only. Who asks further down in the code is behind it, and who looks at memory again and again may wait for `group`:
/// `waiting_too` counts them.
bool FiberCta::others_may_come(const Group& group, bool waiting_too) const {
    const std::uint32_t steps_per_warp = abi::warp_size / lane_width_, first = group.warp * steps_per_warp;
    for (std::uint32_t index = first; index < first + steps_per_warp && index < step_count_; ++index) {
        const StepFiber& step = steps_[index];
        if (step.finished || step.wait.kind == Wait::Kind::barrier || step.wait.kind == Wait::Kind::collective ||
            step.wait.kind == Wait::Kind::reconvergence || (step.wait.kind == Wait::Kind::memory && !waiting_too))
            continue;
        const bool asks = step.wait.kind == Wait::Kind::turn && step.wait.pc != 0;
        if (asks && step.wait.number > group.line) continue;
        if ((group.came & lanes_of(index)) == 0) return true;
    }
    return false;
}

/// activemask: any set of lanes that execute it together would do. As on hardware, lanes that come along different ways
/// and are about to meet do so first: the step lets the others of its warp come as far as they get.
void FiberCta::ask_who_is_here(StepFiber& step, abi::CollectiveCall& call, std::uintptr_t pc) {
    constexpr int patience = 256, patience_with_waiting = 4; // turns, of the latter each is 64 rounds of a loop
    const std::uint32_t warp = warp_of(step.step);
    CodeLocation location;
    const std::uint64_t round = call.source[__builtin_ctzll(call.active)];
    Group key{warp, 0, call.kind, call.operation, 0, pc, round, {}};
    if (find_code(pc - 1, location)) key.line = location.line;
    step.pending_groups = 1;
    join_group(key, {&step, &call, static_cast<std::uint32_t>(call.active) << first_lane(step.step)});
    for (int turn = 0; step.pending_groups != 0; ++turn) {
        if (turn < patience && others_may_come(group_for(key), turn < patience_with_waiting) &&
            scheduler_->yield({.kind = Wait::Kind::turn, .number = key.line, .pc = pc}))
            continue;
        if (step.pending_groups == 0) break;
        release_and_forget(group_for(key));
    }
}

} // namespace ptarmigan::runtime
