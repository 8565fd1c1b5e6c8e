// SPDX-License-Identifier: Apache-2.0
// Arrivals at a cluster's barrier.
#include "runtime/exec/cluster_barrier.h"

#include "runtime/exec/fiber_cta.h"

namespace ptarmigan::runtime {

void ClusterBarrier::start(std::uint32_t steps, FiberScheduler& scheduler) {
    scheduler_ = &scheduler;
    live_ = steps;
    arrived_ = 0;
    touched_.clear();
    waiting_.clear();
}

void ClusterBarrier::count(StepFiber& step) {
    if (step.cluster_counted) return;
    step.cluster_counted = true;
    ++arrived_;
}

void ClusterBarrier::complete_if_all_came() {
    if (arrived_ < live_ || arrived_ == 0) return;
    for (StepFiber* step : touched_) {
        scheduler_->note_barrier(step->cta->context());
        step->cluster_arrived = 0;
        step->cluster_counted = false;
    }
    touched_.clear();
    arrived_ = 0;
    for (StepFiber* step : waiting_) scheduler_->make_runnable(*step);
    waiting_.clear();
}

void ClusterBarrier::arrive(StepFiber& step, std::uint64_t lanes, std::uint64_t live) {
    if (step.cluster_arrived == 0) touched_.push_back(&step);
    step.cluster_arrived |= lanes;
    if ((live & ~step.cluster_arrived) != 0) return;
    count(step);
    complete_if_all_came();
}

void ClusterBarrier::wait(StepFiber& step, std::uint64_t lanes, std::uint64_t live) {
    if ((step.cluster_arrived & lanes) == 0) return; // that phase is complete
    // While the step waits none of its other lanes can come: where their exits are not known, they have exited.
    if (live == ~std::uint64_t{0}) {
        count(step);
        complete_if_all_came();
    }
    if ((step.cluster_arrived & lanes) == 0) return;
    waiting_.push_back(&step);
    scheduler_->block({.kind = Wait::Kind::cluster_barrier, .lanes = lanes});
}

void ClusterBarrier::exit_step(StepFiber& step) {
    --live_;
    if (step.cluster_counted) --arrived_;
    for (std::size_t i = 0; i < touched_.size(); ++i) {
        if (touched_[i] != &step) continue;
        touched_[i] = touched_.back();
        touched_.pop_back();
        break;
    }
    step.cluster_arrived = 0;
    step.cluster_counted = false;
    complete_if_all_came();
}

} // namespace ptarmigan::runtime
