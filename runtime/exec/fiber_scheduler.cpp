// SPDX-License-Identifier: Apache-2.0
// The ring of runnable steps and the stacks that they run on.
#include "runtime/exec/fiber_scheduler.h"

#include <sys/mman.h>

#include <utility>

namespace ptarmigan::runtime {
namespace {

constexpr std::size_t guard = 4096 * 16;

thread_local StepFiber* switch_target = nullptr;

} // namespace

StepFiber* FiberScheduler::starting() {
    return switch_target;
}

StackPool::~StackPool() {
    clear();
}

void StackPool::clear() {
    for (void* stack : all_) munmap(static_cast<char*>(stack) - guard, size_ + guard);
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
        void* memory = mmap(nullptr, size_ + guard, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (memory == MAP_FAILED) return nullptr;
        mprotect(memory, guard, PROT_NONE);
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
    if (tail_ - head_ < ring_.size()) return;
    std::vector<StepFiber*> larger(ring_.size() * 2);
    for (std::size_t i = head_; i < tail_; ++i) larger[i - head_] = ring_[i & mask];
    tail_ -= head_;
    head_ = 0;
    ring_ = std::move(larger);
}

StepFiber* FiberScheduler::pop() {
    if (random_ && tail_ - head_ > 1) {
        const std::size_t mask = ring_.size() - 1;
        std::swap(ring_[head_ & mask], ring_[(head_ + choices_.below(tail_ - head_)) & mask]);
    }
    return ring_[head_++ & (ring_.size() - 1)];
}

/// Goes on with the next in the ring, or with the worker if there is none.
void FiberScheduler::leave() {
    StepFiber* self = current_;
    StepFiber* next = has_runnable() ? pop() : nullptr;
    if (next == self) return;
    current_ = next;
    switch_target = next;
    Fiber::switch_to(self ? self->fiber : root_, next ? next->fiber : root_);
}

void FiberScheduler::block(const Wait& wait) {
    StepFiber& self = *current_;
    self.wait = wait;
    leave();
    self.wait = Wait{};
}

bool FiberScheduler::yield(const Wait& wait) {
    if (!has_runnable()) return false;
    push(current_);
    block(wait);
    return true;
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
