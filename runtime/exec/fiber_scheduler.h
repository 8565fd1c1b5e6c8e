// SPDX-License-Identifier: Apache-2.0
// Runs steps of CTAs as fibers on one worker: round robin among those that can go on.
#pragma once

#include "runtime/base/schedule.h"
#include "runtime/code/fiber.h"
#include "runtime/exec/wait.h"
#include "translator/kernel_abi.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ptarmigan::runtime {

class FiberCta;

/// A step of a CTA: W lanes in one fiber. What each switch needs comes first, in one line of the cache: a warp may be
/// 32 of these, which switch at each of its collectives.
struct alignas(64) StepFiber {
    Fiber fiber;
    Wait wait;               ///< why it is suspended; kind `nothing` while it runs
    bool queued = false;     ///< suspended, and can go on
    bool at_barrier = false; ///< has come to one that is not complete
    bool finished = false;
    std::uint32_t step = 0;
    FiberCta* cta = nullptr;
    std::uint32_t barrier_result = 0;
    std::uint32_t pending_groups = 0;  ///< collectives of wider steps: groups of its lanes that are not complete
    std::uint64_t cluster_arrived = 0; ///< lanes that have arrived at the cluster's barrier in this phase
    bool cluster_counted = false;      ///< and it counts as arrived
    // Reconvergence:
    bool place_waits = false;        ///< `place` is in a loop that may wait
    std::uint64_t place = 0;         ///< where it waits; lower ones go on first
    std::uint32_t turns = 0;         ///< weighted: given away in a loop while others waited; 0: none
    std::uintptr_t turn_pc = 0;      ///< where it did last
    std::uint64_t turn_progress = 0; ///< of the scheduler then
};

/// Guarded stacks of one size in one mapping; grows, and lives as long as its worker.
class StackPool {
public:
    ~StackPool();
    /// Sets the size of later stacks; gives all of another size back. No fiber may be suspended on
    /// one.
    void set_stack_size(std::size_t bytes);
    /// A stack, or null if the process can have no more.
    void* take();
    void give(void* stack) { free_.push_back(stack); }
    /// Gives all back if there are more than `most`. No fiber may be suspended on one.
    void trim(std::size_t most) {
        if (all_.size() > most) clear();
    }
    std::size_t stack_size() const { return size_; }

private:
    void clear();
    std::size_t size_ = 0;
    std::size_t counted_ = 0; ///< of all_, for the limit of mappings
    std::vector<void*> free_, all_;
};

/// One worker's fibers. Not thread-safe.
class FiberScheduler {
public:
    /// Queues a step that can go on.
    void make_runnable(StepFiber& step) {
        step.wait = {.kind = Wait::Kind::turn};
        push(&step);
    }
    /// Queues steps of one warp that have met, in their order and in front of all others, so that the warp goes on
    /// while its memory is in the caches; behind the others now and then, lest it goes round a loop for ever.
    void make_runnable_first(std::span<StepFiber* const> steps);
    /// The step that runs now; null on the worker's own stack.
    StepFiber* current() const { return current_; }
    /// Suspends the current step, which waits for `wait`, until make_runnable(). Called on its fiber.
    void block(const Wait& wait) {
        current_->wait = wait; // here, so that it is made in place
        stop();
    }
    /// The same once its `wait` says why, and without a look at who else of its warp can run: goes on with the next in
    /// the ring, or with the worker if there is none.
    void leave() {
        StepFiber* const self = current_;
        StepFiber* const next = has_runnable() ? pop() : nullptr;
        if (next == self) return;
        current_ = next;
        Fiber::switch_to(self ? self->fiber : root_, next ? next->fiber : root_);
    }
    /// Lets the others run once. False if there was nobody else.
    bool yield(const Wait& wait);
    /// The same for a step that waits for nothing: what counts turns of those that wait does not see it.
    void let_others_run();
    /// Where a step could as well be overtaken by others: under a random schedule it may be.
    void reorder();
    /// From now on chance decides which step goes on next (see Schedule).
    void choose_by(const Choices& choices) {
        random_ = true;
        choices_ = choices;
    }
    void choose_in_order() { random_ = false; }
    bool is_random() const { return random_; }
    Choices& choices() { return choices_; }
    /// Something happened that others may have waited for: a barrier completed, a step exited. Counted for the
    /// detection of hangs and for drawing further CTAs.
    void note_progress() { ++progress_; }
    /// A CTA's barrier completed. In a loop that waits that alone is no progress, see CtaContext::worked.
    void note_barrier(abi::CtaContext& cta) {
        if (take_mark(cta, barrier_mark)) note_progress();
    }
    /// Likewise: a phase of an mbarrier, by the step that runs, if any does.
    void note_phase();
    /// A step gives its turn away in a loop. If the CTA works there, that counts too. Whether it does.
    bool note_turn(abi::CtaContext& cta) {
        const bool works = take_mark(cta, turn_mark);
        if (works) ++work_;
        return works;
    }
    std::uint64_t progress_and_work() const { return progress_ + work_; }
    /// Ends the current step's fiber.
    [[noreturn]] void finish();
    /// Called on the worker's own stack: runs fibers until none can go on. With `once`, each that
    /// can go on now gets one turn at most.
    void run(bool once);
    bool has_runnable() const { return head_ != tail_; }
    /// Steps of the CTA that have not begun are not to run. Called on the worker's own stack.
    void withdraw(const FiberCta& cta);
    /// Forgets everything; suspended fibers are abandoned.
    void reset();

    StackPool stacks;

private:
    static constexpr std::uint32_t barrier_mark = 1, turn_mark = 2,
                                   phase_mark = 4; ///< each reader of CtaContext::worked has a bit
    static bool take_mark(abi::CtaContext& cta, std::uint32_t bit) {
        const bool marked = (cta.worked & bit) != 0;
        cta.worked &= ~bit;
        return marked;
    }
    void push(StepFiber* step);
    StepFiber* pop() {
        if (random_ && tail_ - head_ > 1) choose();
        StepFiber* const step = ring_[head_++ & (ring_.size() - 1)];
        if (step) step->queued = false;
        return step;
    }
    void choose();
    void stop();

    std::vector<StepFiber*> ring_ = std::vector<StepFiber*>(64); ///< power of two; null: the worker itself
    std::size_t head_ = 0, tail_ = 0;
    std::uint32_t overtakings_ = 0;
    StepFiber* current_ = nullptr;
    Fiber root_;
    bool random_ = false;
    Choices choices_;
    std::uint64_t progress_ = 0, work_ = 0;
};

} // namespace ptarmigan::runtime
