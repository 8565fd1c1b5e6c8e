// SPDX-License-Identifier: Apache-2.0
// Who of a grid waits for a counter to have just one value, and whether they have looked.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace ptarmigan::runtime {

/// For abi::Services::await_goal: a step that has seen the goal lets all others look before it goes on and moves the
/// counter. Thread-safe.
class GoalWaits {
public:
    /// What one worker says of the steps that it runs by turns; written by it alone.
    struct Looks {
        std::atomic<std::uint64_t> turns{1};     ///< of its ring that have begun: in each all that can run do
        std::atomic<std::uint64_t> last_wait{0}; ///< the last one in which a step began to wait, or went on

        /// Release: who sees the next turn knows that the loads of this one are done.
        void begin_turn() { turns.store(turns.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
        void note_wait() { last_wait.store(turns.load(std::memory_order_relaxed), std::memory_order_relaxed); }
    };
    /// A worker whose steps may still wait, and the turn in which that was so.
    using Marks = std::vector<std::pair<const Looks*, std::uint64_t>>;

    /// `looks` must live until remove().
    void add(const Looks& looks);
    void remove(const Looks& looks);

    Marks waiting() const;
    /// All steps that waited when `marks` were made have had a turn since, or have gone.
    bool have_looked(const Marks& marks) const;

private:
    mutable std::mutex mutex_;
    std::vector<const Looks*> all_; ///< guarded by mutex_; of workers that have had such a step
};

} // namespace ptarmigan::runtime
