// SPDX-License-Identifier: Apache-2.0
// Says on stderr, once per process, that a kernel may be hanging because its loops were not seen to wait.
#pragma once

namespace ptarmigan::runtime {

struct Grid;

/// A grid that runs. If it has drawn no CTA for tuning::stuck_grid, and its code could wait for other threads in loops
/// that the translator takes for none that do (KernelProperties::could_spin), stderr names it and what to try. Makes a
/// thread at first, where the process can have one.
class WatchedGrid {
public:
    explicit WatchedGrid(const Grid& grid);
    ~WatchedGrid();
    WatchedGrid(const WatchedGrid&) = delete;
    WatchedGrid& operator=(const WatchedGrid&) = delete;

private:
    const Grid* grid_; ///< null: nothing to watch
};

} // namespace ptarmigan::runtime
