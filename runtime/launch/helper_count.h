// SPDX-License-Identifier: Apache-2.0
// How many helpers are inside a grid, and whether it still takes any.
#pragma once

#include "runtime/base/processor.h"

#include <atomic>
#include <cstdint>

namespace ptarmigan::runtime {

/// One thread, the grid's own, closes; any number of others enter and leave.
class HelperCount {
public:
    /// Counts a helper in; false if the grid takes none any more.
    bool enter() {
        if (count_in()) return true;
        turn_back();
        return false;
    }

    /// Release: what the helper wrote is visible to who returns from close().
    void leave() {
        if (state_.fetch_sub(1, std::memory_order_release) == (closed | 1u)) state_.notify_one();
    }

    /// Returns when those inside have left. Looks `spins` times before it sleeps.
    void close(int spins) {
        std::uint32_t state = state_.fetch_or(closed, std::memory_order_acq_rel) | closed;
        for (int i = 0; state != closed && i < spins; ++i) {
            relax_cpu();
            state = state_.load(std::memory_order_acquire);
        }
        while (state != closed) {
            state_.wait(state, std::memory_order_acquire);
            state = state_.load(std::memory_order_acquire);
        }
    }

    /// After close(): takes helpers again.
    void reopen() { state_.fetch_and(~closed, std::memory_order_release); }

protected: // the two steps of enter(), between which others may come and go
    bool count_in() { return (state_.fetch_add(1, std::memory_order_acquire) & closed) == 0; }

    /// The grid's thread may have gone to sleep on a state that counts this helper, while those
    /// inside left: whoever is last wakes it.
    void turn_back() { leave(); }

private:
    static constexpr std::uint32_t closed = 0x80000000u;
    std::atomic<std::uint32_t> state_{0}; ///< helpers inside, and `closed`
};

} // namespace ptarmigan::runtime
