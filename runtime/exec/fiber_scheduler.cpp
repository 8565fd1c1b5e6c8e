// SPDX-License-Identifier: Apache-2.0
// The ring of runnable steps and the stacks that they run on.
#include "runtime/exec/fiber_scheduler.h"

#include "runtime/base/tuning.h"
#include "runtime/exec/fiber_cta.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <utility>

namespace ptarmigan::runtime {
namespace {

constexpr std::size_t guard = 4096 * 16;

/// Linux 6.13 and later: pages that fault inside of a mapping, so that stacks side by side are one.
bool guard_within_mapping(void* memory) {
    constexpr int madv_guard_install = 102;
    return madvise(memory, guard, madv_guard_install) == 0;
}

/// Stacks of the process whose guard is a mapping of its own. Relaxed: a count.
std::atomic<std::size_t> stack_count{0};

/// Such a stack takes two mappings, of which a process may have a limited number, others than these too.
std::size_t most_stacks() {
    static const std::size_t most = [] {
        std::size_t mappings = 65530;
        std::ifstream("/proc/sys/vm/max_map_count") >> mappings;
        return std::max(tuning::kept_stacks, mappings / 8 * 3);
    }();
    return most;
}

} // namespace

StackPool::~StackPool() {
    clear();
}

void StackPool::clear() {
    for (void* stack : all_) munmap(static_cast<char*>(stack) - guard, size_ + guard);
    stack_count.fetch_sub(counted_, std::memory_order_relaxed);
    counted_ = 0;
    all_.clear();
    free_.clear();
}

void StackPool::set_stack_size(std::size_t bytes) {
    if (bytes == size_) return;
    clear();
    size_ = bytes;
}

void* StackPool::take() {
    if (free_.empty()) {
        const std::size_t count = stack_count.load(std::memory_order_relaxed);
        if (count >= tuning::kept_stacks && count >= most_stacks()) return nullptr;
        void* memory = mmap(nullptr, size_ + guard, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (memory == MAP_FAILED) return nullptr;
        if (!guard_within_mapping(memory)) {
            mprotect(memory, guard, PROT_NONE);
            stack_count.fetch_add(1, std::memory_order_relaxed);
            ++counted_;
        }
        all_.push_back(static_cast<char*>(memory) + guard);
        return all_.back();
    }
    void* stack = free_.back();
    free_.pop_back();
    return stack;
}

void FiberScheduler::push(StepFiber* step) {
    const std::size_t mask = ring_.size() - 1;
    ring_[tail_++ & mask] = step;
    if (step) step->queued = true;
    if (tail_ - head_ < ring_.size()) return;
    std::vector<StepFiber*> larger(ring_.size() * 2);
    for (std::size_t i = head_; i < tail_; ++i) larger[i - head_] = ring_[i & mask];
    tail_ -= head_;
    head_ = 0;
    ring_ = std::move(larger);
}

void FiberScheduler::make_runnable_first(std::span<StepFiber* const> steps) {
    constexpr std::uint32_t most_overtakings = 64;
    if (random_ || ++overtakings_ % most_overtakings == 0 || tail_ - head_ + steps.size() >= ring_.size()) {
        for (StepFiber* step : steps) make_runnable(*step);
        return;
    }
    if (head_ < steps.size()) { // they only count up, but for this
        head_ += ring_.size();
        tail_ += ring_.size();
    }
    head_ -= steps.size();
    for (std::size_t i = 0; i < steps.size(); ++i) {
        steps[i]->wait = {.kind = Wait::Kind::turn};
        steps[i]->queued = true;
        ring_[(head_ + i) & (ring_.size() - 1)] = steps[i];
    }
}

/// Chance brings one of the ring to its head.
void FiberScheduler::choose() {
    const std::size_t mask = ring_.size() - 1;
    std::swap(ring_[head_ & mask], ring_[(head_ + choices_.below(tail_ - head_)) & mask]);
}

void FiberScheduler::stop() {
    StepFiber& self = *current_;
    if (self.cta->reconvergence().any() && !self.queued) self.cta->reconvergence().note_stop(self);
    leave();
    self.wait = Wait{};
}

bool FiberScheduler::yield(const Wait& wait) {
    if (current_ && current_->cta->reconvergence().any())
        current_->cta->reconvergence().note_turn(*current_, wait.pc, progress_and_work());
    if (!has_runnable()) return false;
    push(current_);
    block(wait);
    return true;
}

void FiberScheduler::let_others_run() {
    if (!current_ || !has_runnable()) return;
    push(current_);
    block({.kind = Wait::Kind::passed});
}

void FiberScheduler::note_phase() {
    if (!current_ || take_mark(current_->cta->context(), phase_mark)) note_progress();
}

void FiberScheduler::withdraw(const FiberCta& cta) {
    const std::size_t mask = ring_.size() - 1;
    std::size_t kept = head_;
    for (std::size_t i = head_; i < tail_; ++i) {
        StepFiber* step = ring_[i & mask];
        if (step->cta != &cta) ring_[kept++ & mask] = step;
    }
    tail_ = kept;
}

void FiberScheduler::reorder() {
    if (random_ && current_ && choices_.below(2) == 0) yield({.kind = Wait::Kind::turn});
}

void FiberScheduler::finish() {
    leave();
    __builtin_unreachable(); // nobody makes a finished step runnable
}

void FiberScheduler::run(bool once) {
    current_ = nullptr;
    root_ = Fiber{}; // a worker's thread may be another one than last time
    root_.become_thread();
    if (!has_runnable()) return;
    if (once) push(nullptr);
    leave();
}

void FiberScheduler::reset() {
    head_ = tail_ = 0;
    current_ = nullptr;
}

} // namespace ptarmigan::runtime
