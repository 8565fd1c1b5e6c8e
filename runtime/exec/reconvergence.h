// SPDX-License-Identifier: Apache-2.0
// Keeps the lanes of a warp in step where each of them is a step of its own, at the points that generated code names
// (translator/analysis/waits/hand_over_points.h): a lane waits there until no other lane of its warp can run, then
// those at the lowest point go on together. So what lanes did before a point all have done before one does what is
// behind it, and lanes that took different ways meet where these join, as with the convergence barriers of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptarmigan::runtime {

struct StepFiber;
class FiberScheduler;

/// Of one CTA, on one worker. Lanes that are blocked elsewhere (at barriers and collectives) are not waited for. Nobody
/// waits for ever: lanes at higher points are let overtake those that go round in loops, as are all for lanes that give
/// way in a loop again and again.
class Reconvergence {
public:
    /// `steps`: of the CTA, warp by warp.
    void start(StepFiber* steps, std::uint32_t step_count, std::uint32_t steps_per_warp, FiberScheduler& scheduler);
    /// Some lane waits: only then the notes below are of interest.
    bool any() const { return waiting_ != 0; }
    /// Suspends the step that runs. `depth`: bytes of its stack in use; of lanes at equal points those that are deeper
    /// in calls go first. `in_wait`: the point is in a loop that may wait for other lanes.
    void wait(StepFiber& step, std::uint32_t point, bool in_wait, std::size_t depth);
    /// The step that runs is about to be suspended, or has finished.
    void note_stop(const StepFiber& step);
    /// It gives way at `pc` and can go on. `progress`: a number that changes when something happens.
    void note_turn(StepFiber& step, std::uintptr_t pc, std::uint64_t progress);

private:
    struct Warp {
        std::vector<StepFiber*> waiting;
        std::uint32_t rounds = 0;    ///< weighted: gone on at the lowest point while others waited at higher ones
        std::uint64_t overtaker = 0; ///< the place of those that last overtook
    };
    Warp& warp_of(const StepFiber& step);
    std::uint64_t place_to_go_on(Warp& warp, std::uint32_t weight) const;
    void release(Warp& warp, std::uint32_t weight);

    StepFiber* steps_ = nullptr;
    FiberScheduler* scheduler_ = nullptr;
    std::uint32_t step_count_ = 0, steps_per_warp_ = 1, waiting_ = 0;
    std::vector<Warp> warps_;
};

} // namespace ptarmigan::runtime
