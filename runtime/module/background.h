// SPDX-License-Identifier: Apache-2.0
// Threads that compile while the program runs, made when there is something to do: for kernels that are likely to be
// launched soon one less than the process has CPUs, at least one, and one more for each launch that waits for what they
// make, and as many others for each kind of better code of kernels that run, which takes long and would stand in the
// way. They end with the process, which does not wait for them; in a forked child there are none at first.
#pragma once

#include <cstdint>
#include <functional>

namespace ptarmigan::runtime {

/// What has been wanted for too long, what a running grid waits for, what is likely to be launched soon (by threads of
/// its own), and what may be launched again, which goes behind the first two. Work of lower priority, which may get no
/// CPU, takes no thread from what is before it.
enum class BackgroundOrder : std::uint8_t { overdue, urgent, soon, later };

/// Has `work` done some time, unless the process ends before. `work` must not throw. Of `soon` the newest goes first.
/// Thread-safe; holds no lock while work is done.
void run_in_background(BackgroundOrder order, std::function<void()> work);

/// While it lives its thread, a launch's, only waits for what a background thread is making: its CPU does more of what
/// is likely to be launched `soon`.
class LaunchWaits {
public:
    LaunchWaits();
    ~LaunchWaits();
    LaunchWaits(const LaunchWaits&) = delete;
    LaunchWaits& operator=(const LaunchWaits&) = delete;
};

/// Forgets what was to be done `soon` and is not begun.
void forget_soon();

/// For tests: waits until nothing is left to do.
void wait_for_background();

} // namespace ptarmigan::runtime
