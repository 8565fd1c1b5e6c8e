// SPDX-License-Identifier: Apache-2.0
#include "runtime/exec/reconvergence.h"

#include "runtime/exec/fiber_scheduler.h"

#include <algorithm>

namespace ptarmigan::runtime {
namespace {

/// So many rounds are made by those at the lowest point before others overtake them: 64 in loops that may wait for
/// these, 65,536 in others, which lanes of a GPU wait for however long they take.
constexpr std::uint32_t fairness_period = 1 << 16, waiting_round = 1 << 10, other_round = 1;
/// What a turn that a lane gives away counts, mostly after 64 rounds of a loop: where nothing happens, and else.
constexpr std::uint32_t idle_turn = 1 << 14, busy_turn = 64;

} // namespace

void Reconvergence::start(StepFiber* steps, std::uint32_t step_count, std::uint32_t steps_per_warp,
                          FiberScheduler& scheduler) {
    steps_ = steps;
    step_count_ = step_count;
    steps_per_warp_ = steps_per_warp;
    scheduler_ = &scheduler;
    waiting_ = 0;
    for (Warp& warp : warps_) warp = Warp{};
}

Reconvergence::Warp& Reconvergence::warp_of(const StepFiber& step) {
    const std::size_t index = step.step / steps_per_warp_;
    if (index >= warps_.size()) warps_.resize(index + 1);
    return warps_[index];
}

void Reconvergence::wait(StepFiber& step, std::uint32_t point, bool in_wait, std::size_t depth) {
    step.place = std::uint64_t(UINT32_MAX - std::uint32_t(depth)) << 32 | point;
    step.place_waits = in_wait;
    step.turns = 0;
    warp_of(step).waiting.push_back(&step);
    ++waiting_;
    scheduler_->block({.kind = Wait::Kind::reconvergence});
}

void Reconvergence::note_stop(const StepFiber& step) {
    Warp& warp = warp_of(step);
    if (warp.waiting.empty()) return;
    // The next one is the likeliest to run.
    const std::uint32_t first = step.step / steps_per_warp_ * steps_per_warp_;
    const std::uint32_t count = std::min(steps_per_warp_, step_count_ - first);
    for (std::uint32_t i = 1, own = step.step - first; i < count; ++i)
        if (steps_[first + (own + i) % count].queued) return;
    release(warp, 0);
}

void Reconvergence::note_turn(StepFiber& step, std::uintptr_t pc, std::uint64_t progress) {
    Warp& warp = warp_of(step);
    if (warp.waiting.empty()) return;
    // A loop may give way at several places: it goes round where the code goes back.
    const bool again = step.turns != 0 && pc <= step.turn_pc, idle = step.turn_progress == progress;
    step.turn_pc = pc;
    step.turn_progress = progress;
    if (step.turns == 0)
        step.turns = 1;
    else if (again)
        step.turns += idle ? idle_turn : busy_turn;
    if (step.turns < fairness_period) return;
    step.turns = 1;
    release(warp, waiting_round);
}

/// The lowest, but a higher one where lanes have waited there for long: each in turn.
std::uint64_t Reconvergence::place_to_go_on(Warp& warp, std::uint32_t weight) const {
    const auto by_place = [](const StepFiber* a, const StepFiber* b) { return a->place < b->place; };
    const auto [low, high] = std::minmax_element(warp.waiting.begin(), warp.waiting.end(), by_place);
    const std::uint64_t lowest = (*low)->place;
    if (lowest == (*high)->place) {
        warp.rounds = 0;
        return lowest;
    }
    warp.rounds += std::max(weight, (*low)->place_waits ? waiting_round : other_round);
    if (warp.rounds < fairness_period) return lowest;
    warp.rounds = 0;
    std::uint64_t next = UINT64_MAX, first = UINT64_MAX; // behind who overtook last; of all that could
    for (const StepFiber* step : warp.waiting) {
        if (step->place == lowest) continue;
        first = std::min(first, step->place);
        if (step->place > warp.overtaker) next = std::min(next, step->place);
    }
    warp.overtaker = next != UINT64_MAX ? next : first;
    return warp.overtaker;
}

/// In the order of their lanes: where several write one word, the last one does in the end.
void Reconvergence::release(Warp& warp, std::uint32_t weight) {
    const std::uint64_t place = place_to_go_on(warp, weight);
    const auto rest = std::partition(warp.waiting.begin(), warp.waiting.end(),
                                     [&](const StepFiber* step) { return step->place != place; });
    std::sort(rest, warp.waiting.end(), [](const StepFiber* a, const StepFiber* b) { return a->step < b->step; });
    for (auto step = rest; step != warp.waiting.end(); ++step) scheduler_->make_runnable(**step);
    waiting_ -= std::uint32_t(warp.waiting.end() - rest);
    warp.waiting.erase(rest, warp.waiting.end());
}

} // namespace ptarmigan::runtime
