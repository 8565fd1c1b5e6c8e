// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/goal_waits.h"

#include <algorithm>

namespace ptarmigan::runtime {
namespace {

/// A step that waits says so in each turn: if none has in this turn and the one before, none is left.
bool may_wait(const GoalWaits::Looks& looks, std::uint64_t turn) {
    return looks.last_wait.load(std::memory_order_relaxed) + 1 >= turn;
}

} // namespace

void GoalWaits::add(const Looks& looks) {
    std::lock_guard lock(mutex_);
    all_.push_back(&looks);
}

void GoalWaits::remove(const Looks& looks) {
    std::lock_guard lock(mutex_);
    std::erase(all_, &looks);
}

GoalWaits::Marks GoalWaits::waiting() const {
    Marks marks;
    std::lock_guard lock(mutex_);
    for (const Looks* looks : all_)
        if (const std::uint64_t turn = looks->turns.load(std::memory_order_acquire); may_wait(*looks, turn))
            marks.emplace_back(looks, turn);
    return marks;
}

bool GoalWaits::have_looked(const Marks& marks) const {
    std::lock_guard lock(mutex_);
    return std::all_of(marks.begin(), marks.end(), [&](const auto& mark) {
        const auto& [looks, then] = mark;
        if (std::find(all_.begin(), all_.end(), looks) == all_.end()) return true;
        const std::uint64_t turn = looks->turns.load(std::memory_order_acquire);
        return turn >= then + 2 || !may_wait(*looks, turn); // the turn of the mark was under way
    });
}

} // namespace ptarmigan::runtime
