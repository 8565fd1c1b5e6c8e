// SPDX-License-Identifier: Apache-2.0
// Which priorities have grids with CTAs still to draw: a GPU hands free multiprocessors to the highest one first.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ptarmigan::runtime {

/// Of the process, by device. Thread-safe; relaxed: what a grid sees late it does late. Priorities are those of
/// streams: 0 the least, -5 the greatest. Grids of the least one are not counted, since nothing stands back for them.
class WaitingGrids {
public:
    void add(int priority) { count_.fetch_add(unit(priority), std::memory_order_relaxed); }
    void remove(int priority) { count_.fetch_sub(unit(priority), std::memory_order_relaxed); }
    /// Whether any of a greater priority waits.
    bool any_before(int priority) const {
        return count_.load(std::memory_order_relaxed) >> bits * (level(priority) + 1) != 0;
    }

    static WaitingGrids& of_device(int ordinal) {
        static std::array<WaitingGrids, most_devices> all;
        return all[static_cast<std::size_t>(ordinal) % most_devices];
    }

private:
    static constexpr std::size_t most_devices = 16;
    static constexpr unsigned bits = 10; ///< of each level's count: more grids at once than there are threads
    static unsigned level(int priority) { return static_cast<unsigned>(-priority); }
    static std::uint64_t unit(int priority) { return std::uint64_t{1} << bits * level(priority); }
    std::atomic<std::uint64_t> count_{0};
};

} // namespace ptarmigan::runtime
