// SPDX-License-Identifier: Apache-2.0
// Barriers and rendezvous of a CTA's fibers.
#include "runtime/exec/fiber_cta.h"

#include "runtime/exec/fault.h"

namespace ptarmigan::runtime {

bool FiberCta::start(abi::CtaContext &cta, abi::RunStep entry, std::uint32_t step_count,
                     std::uint32_t lane_width, FiberScheduler &scheduler) {
    cta_ = &cta;
    entry_ = entry;
    scheduler_ = &scheduler;
    lane_width_ = lane_width;
    live_steps_ = step_count_ = step_count;
    alone_.start(step_count, scheduler);
    cluster_ = &alone_;
    if (steps_.size() < step_count)
        steps_.resize(step_count);
    for (std::uint32_t index = 0; index < step_count; ++index) {
        StepFiber &step = steps_[index];
        step.fiber.stack = scheduler.stacks.take();
        if (!step.fiber.stack)
            return false;
        step.fiber.stack_size = scheduler.stacks.stack_size();
        step.cta = this;
        step.step = index;
        step.finished = false;
        step.pending_groups = 0;
        step.cluster_arrived = 0;
        step.cluster_counted = false;
        step.fiber.start(&FiberCta::step_entry);
    }
    for (std::uint32_t index = 0; index < step_count; ++index)
        scheduler.make_runnable(steps_[index]);
    return true;
}

void FiberCta::step_entry(boost::context::detail::transfer_t from) {
    // Who switched here passed itself; who starts was noted by the scheduler before the switch.
    StepFiber &self = *FiberScheduler::starting();
    Fiber::arrived(from, self.fiber);
    FiberCta &cta = *self.cta;
    cta.entry_(cta.cta_, self.step);
    cta.exit_step(self);
}

void FiberCta::abandon() {
    for (std::uint32_t index = 0; index < step_count_; ++index) {
        StepFiber &step = steps_[index];
        if (step.fiber.stack)
            scheduler_->stacks.give(step.fiber.stack);
        step.fiber.stack = nullptr;
    }
    for (Barrier &barrier : barriers_)
        barrier = Barrier{};
    groups_.clear();
    live_steps_ = 0;
}

/// A step that exits arrives at nothing any more: what waited only for it goes on.
void FiberCta::exit_step(StepFiber &step) {
    step.finished = true;
    --live_steps_;
    for (Barrier &barrier : barriers_)
        if (barrier.used() && complete(barrier))
            release(barrier, 0);
    for (std::size_t i = 0; i < groups_.size();) {
        if (complete(groups_[i])) {
            Group done = std::move(groups_[i]);
            groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(i));
            release(done);
        } else {
            ++i;
        }
    }
    cluster_->exit_step(step);
    // The stack is in use until the switch; nobody takes one before, because only the worker starts
    // CTAs.
    scheduler_->stacks.give(step.fiber.stack);
    step.fiber.stack = nullptr;
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

/// Lanes that a step counts for at a barrier: a warp's count is 32 even if the block ends inside
/// it.
std::uint32_t FiberCta::lanes_of(std::uint32_t step) const {
    if (step + 1 < step_count_)
        return lane_width_;
    return abi::warp_size - first_lane(step);
}

bool FiberCta::complete(const Barrier &barrier) const {
    if (barrier.expected_lanes == 0)
        return barrier.arrived_steps >= live_steps_;
    return barrier.arrived_lanes >= barrier.expected_lanes;
}

namespace {

std::uint32_t barrier_value(std::uint32_t kind, std::uint32_t population, bool all) {
    switch (kind) {
    case 2:
        return population;
    case 3:
        return all;
    case 4:
        return population != 0;
    default:
        return 0;
    }
}

} // namespace

/// Lets everybody go on; the value for a step that does not wait itself.
std::uint32_t FiberCta::release(Barrier &barrier, std::uint32_t kind) {
    for (std::size_t i = 0; i < barrier.waiting.size(); ++i) {
        StepFiber &step = *barrier.waiting[i];
        step.barrier_result = barrier_value(barrier.kinds[i], barrier.population, barrier.all);
        scheduler_->make_runnable(step);
    }
    const std::uint32_t value = barrier_value(kind, barrier.population, barrier.all);
    barrier.waiting.clear();
    barrier.kinds.clear();
    barrier.expected_lanes = barrier.arrived_lanes = barrier.arrived_steps = 0;
    barrier.population = 0;
    barrier.all = true;
    return value;
}

std::uint32_t FiberCta::barrier(std::uint32_t step_index, std::uint32_t id, std::uint32_t threads,
                                std::uint32_t kind, std::uint64_t arriving,
                                std::uint64_t predicate) {
    constexpr std::uint32_t arrive = 1;
    StepFiber &step = steps_[step_index];
    if (id >= barrier_count) {
        FaultRecord record;
        record.fault = abi::Fault::trap;
        record.cta = cta_;
        record.step = step_index;
        raise_fault(record);
    }
    Barrier &barrier = barriers_[id];
    barrier.expected_lanes = (threads + abi::warp_size - 1) / abi::warp_size * abi::warp_size;
    barrier.arrived_lanes += lanes_of(step_index);
    ++barrier.arrived_steps;
    barrier.population += static_cast<std::uint32_t>(__builtin_popcountll(predicate & arriving));
    barrier.all = barrier.all && (predicate & arriving) == arriving;
    if (complete(barrier))
        return release(barrier, kind);
    if (kind == arrive)
        return 0;
    barrier.waiting.push_back(&step);
    barrier.kinds.push_back(static_cast<std::uint8_t>(kind));
    scheduler_->block();
    return step.barrier_result;
}

/// Complete when every step of the warp that has member lanes has come or has exited. Lanes of a
/// step that came without them have exited: the step can't bring them while it waits.
bool FiberCta::complete(const Group &group) const {
    const std::uint32_t steps_per_warp = abi::warp_size / lane_width_;
    const std::uint32_t first = group.warp * steps_per_warp;
    for (std::uint32_t index = first; index < first + steps_per_warp && index < step_count_;
         ++index) {
        const std::uint32_t lanes = (lane_width_ == 32 ? 0xffffffffu : (1u << lane_width_) - 1)
                                    << first_lane(index);
        if (!(group.members & lanes) || steps_[index].finished)
            continue;
        bool came = false;
        for (const Participant &participant : group.participants)
            came = came || participant.step == &steps_[index];
        if (!came)
            return false;
    }
    return true;
}

FiberCta::Group &FiberCta::group_for(std::uint32_t warp, std::uint32_t members) {
    for (Group &group : groups_)
        if (group.warp == warp && group.members == members)
            return group;
    groups_.push_back({warp, members, {}});
    return groups_.back();
}

void FiberCta::release(Group &group) {
    WarpValues warp;
    for (const Participant &participant : group.participants) {
        const std::uint32_t base = first_lane(participant.step->step);
        warp.present |= participant.lanes;
        for (std::uint32_t lanes = participant.lanes; lanes != 0; lanes &= lanes - 1) {
            const auto lane = static_cast<std::uint32_t>(__builtin_ctz(lanes));
            warp.source[lane] = participant.call->source[lane - base];
            warp.b[lane] = participant.call->b[lane - base];
            warp.c[lane] = participant.call->c[lane - base];
        }
    }
    const abi::CollectiveCall &first = *group.participants.front().call;
    evaluate_collective(static_cast<abi::Collective>(first.kind), first.operation, warp);
    for (const Participant &participant : group.participants) {
        const std::uint32_t base = first_lane(participant.step->step);
        for (std::uint32_t lanes = participant.lanes; lanes != 0; lanes &= lanes - 1) {
            const auto lane = static_cast<std::uint32_t>(__builtin_ctz(lanes));
            participant.call->result[lane - base] = warp.result[lane];
            participant.call->predicate[lane - base] = warp.predicate[lane];
        }
        StepFiber &step = *participant.step;
        if (--step.pending_groups == 0 && &step != scheduler_->current())
            scheduler_->make_runnable(step);
    }
}

void FiberCta::collective(std::uint32_t step_index, abi::CollectiveCall &call) {
    StepFiber &step = steps_[step_index];
    const std::uint32_t base = first_lane(step_index), warp = warp_of(step_index);
    auto left = static_cast<std::uint32_t>(call.active);
    if (static_cast<abi::Collective>(call.kind) == abi::Collective::activemask) {
        for (std::uint32_t lanes = left; lanes != 0; lanes &= lanes - 1)
            call.result[__builtin_ctz(lanes)] = call.active << base;
        return;
    }
    // Lanes with different member masks belong to different rendezvous.
    std::uint32_t masks[32], lanes_of_mask[32], count = 0;
    while (left != 0) {
        const std::uint32_t members = call.members[__builtin_ctz(left)];
        std::uint32_t same = 0;
        for (std::uint32_t lanes = left; lanes != 0; lanes &= lanes - 1) {
            const auto lane = static_cast<unsigned>(__builtin_ctz(lanes));
            if (call.members[lane] == members)
                same |= 1u << lane;
        }
        masks[count] = members;
        lanes_of_mask[count++] = same << base;
        left &= ~same;
    }
    step.pending_groups = count;
    for (std::uint32_t i = 0; i < count; ++i)
        group_for(warp, masks[i]).participants.push_back({&step, &call, lanes_of_mask[i]});
    for (std::size_t i = 0; i < groups_.size();) {
        if (groups_[i].warp != warp || !complete(groups_[i])) {
            ++i;
            continue;
        }
        Group done = std::move(groups_[i]);
        groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(i));
        release(done);
    }
    while (step.pending_groups != 0)
        scheduler_->block();
}

} // namespace ptarmigan::runtime
