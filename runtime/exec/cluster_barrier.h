// SPDX-License-Identifier: Apache-2.0
// barrier.cluster (PTX manual 9.7.13.3): who of a cluster's steps has arrived, and who waits. A phase is complete when
// every step that lives has arrived with all its lanes that live.
#pragma once

#include <cstdint>
#include <vector>

namespace ptarmigan::runtime {

class FiberScheduler;
struct StepFiber;

/// Of one cluster that runs on one worker. Not thread-safe.
class ClusterBarrier {
public:
    /// For a cluster of `steps` steps, all alive.
    void start(std::uint32_t steps, FiberScheduler& scheduler);

    /// Lanes of the current step arrive. `live`: its lanes that have not exited, as far as is known.
    void arrive(StepFiber& step, std::uint64_t lanes, std::uint64_t live);
    /// Suspends the current step until the phase that these lanes have arrived at is complete.
    void wait(StepFiber& step, std::uint64_t lanes, std::uint64_t live);
    /// A step that exits is not waited for any more.
    void exit_step(StepFiber& step);

private:
    void count(StepFiber& step);
    void complete_if_all_came();

    FiberScheduler* scheduler_ = nullptr;
    std::uint32_t live_ = 0, arrived_ = 0;
    std::vector<StepFiber*> touched_; ///< steps with lanes that have arrived in this phase
    std::vector<StepFiber*> waiting_;
};

} // namespace ptarmigan::runtime
