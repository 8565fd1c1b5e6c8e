// SPDX-License-Identifier: Apache-2.0
// A grid that runs: its launch context, the counter that hands out CTA numbers, and the workers
// that draw from it.
#pragma once

#include "runtime/code/fault.h"
#include "runtime/context/green_context.h"
#include "runtime/exec/map_history.h"
#include "runtime/launch/cta_arena.h"
#include "runtime/launch/cta_walk.h"
#include "runtime/launch/goal_waits.h"
#include "runtime/launch/helper_count.h"
#include "runtime/module/kernel_cache.h"
#include "translator/kernel_abi.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ptarmigan::runtime {

class ChildWork;
class Context;
class Kernel;
class Module;
class TieredCode;
class WaitingGrids;

/// What a grid's CTAs run, and what it takes of the host. Constant once a worker uses it.
struct GridCode {
    std::shared_ptr<const LoadedKernel> code;
    CtaNeeds needs;
    std::size_t fiber_stack = 0;
    bool needs_own_stack = false; ///< whole CTAs too run on a stack of that size instead of the thread's
    bool streams = false;         ///< writes more than caches hold: CtaContext::streams
};

/// Shared by the threads that run it. Filled in by launch(), then constant but for the atomics, the fault and the good
/// code. As a GridCode it is what it begins with.
struct Grid : std::enable_shared_from_this<Grid>, GridCode {
    abi::LaunchContext launch{};
    std::vector<std::uint8_t> params; ///< launch.params points here
    std::shared_ptr<Module> module;   ///< keeps variables and names alive; may be null in tests
    Context* context = nullptr;
    /// What cooperative_groups keeps of a cooperative grid: its size in bytes, and the counter of grid.sync().
    struct alignas(8) Workspace {
        std::uint32_t size = sizeof(Workspace), barrier = 0;
    } workspace;
    std::uint64_t async_seed = 0;   ///< of AsyncMode::random
    MapHistory maps;                ///< of copies that are late
    SmRange multiprocessors;        ///< that its CTAs are dealt out to in turn, as they count
    bool in_pairs = false;          ///< CTAs are counted as cta_order.h says
    CtaWalk walk;                   ///< or as cta_walk.h says
    bool cooperative = false;       ///< every CTA must get its turns although others have not exited
    std::uint32_t cluster_size = 1; ///< CTAs of a cluster, which are alive at the same time, on one worker
    std::uint64_t cta_count = 0;    ///< to draw: of clusters where they have several CTAs
    std::uint64_t chunk = 1;
    unsigned max_workers = 1;
    /// Nanoseconds of one worker that a CTA of this kernel took last time; 0: unknown. Null: not
    /// kept. Relaxed: a hint.
    std::shared_ptr<std::atomic<std::uint32_t>> cta_cost;

    /// Helpers that were not called because the grid was expected to be short; touched by the
    /// grid's own thread only.
    std::uint64_t late_helpers = 0;
    std::uint64_t short_ns = 0; ///< what is short
    std::chrono::steady_clock::time_point start;

    int priority = 0;                           ///< of its stream
    WaitingGrids* queue = nullptr;              ///< of its device; null: its CTAs are drawn whatever others do
    std::atomic<bool> waits_in_queue{false};    ///< counted there
    std::atomic<std::uint32_t> left_helpers{0}; ///< that grids of a greater priority have taken; come back after them

    std::atomic<std::uint64_t> next_cta{0};
    HelperCount helpers; ///< inside run_share()
    std::atomic<std::uint32_t> next_worker{0};

    std::chrono::nanoseconds hang_limit{0}; ///< PTARMIGAN_HANG_TIMEOUT; 0: none
    std::atomic<std::uint64_t> progress{0}; ///< changes when a worker that others may wait for gets on; relaxed: a hint
    GoalWaits goal_waits;
    std::once_flag children_once;
    const void* graph_launch = nullptr;  ///< of graph/, whose node the grid is; null: none
    std::shared_ptr<ChildWork> children; ///< null: its threads launched nothing; see child_work_of()

    const Kernel* kernel = nullptr;     ///< null in tests; of `module`
    std::shared_ptr<TieredCode> tiered; ///< not null: `code` is quick, and better code may come
    /// Whether a helper is to leave its CPU to those who make the good code, which a long grid waits for.
    enum class SpareCpu : std::uint8_t { not_wanted, wanted, left };
    std::atomic<SpareCpu> spare_cpu{SpareCpu::not_wanted};
    std::uint64_t held_helpers = 0;   ///< come back with the good code; of the grid's own thread
    std::uint64_t quick_start_ns = 0; ///< CPU time of the grid's own thread when it began, if `tiered`
    std::uint64_t swap_at = 0;        ///< CTAs below this number run the code that the grid began with
    std::once_flag good_once;
    std::unique_ptr<const GridCode> good; ///< what later CTAs run: see good_code()

    std::mutex fault_mutex;
    FaultRecord fault; ///< first one; its `cta` points to fault_cta
    abi::CtaContext fault_cta{};
    std::shared_ptr<const LoadedKernel> fault_code; ///< that it was in
    std::string waits; ///< of a hang or deadlock: who waits where, a line each; guarded by fault_mutex

    /// %smid of the CTA with that number.
    std::uint32_t smid(std::uint64_t cta) const {
        return multiprocessors.first + static_cast<std::uint32_t>(cta % multiprocessors.count);
    }
    bool stopped() const { return __atomic_load_n(&launch.fault, __ATOMIC_RELAXED) != 0; }
};

/// Runs the grid's CTAs: on this thread, and on oneTBB workers as far as they come. Returns when
/// every CTA has exited or a fault ended the grid; the fault is in the context then, and reported.
/// `start`: now, where the caller knows it: reading the clock is a tenth of an empty grid. Returns when it ended, which
/// is zero where nobody looked.
std::chrono::steady_clock::time_point run_ctas(const std::shared_ptr<Grid>& grid,
                                               std::chrono::steady_clock::time_point start = {});
/// run_ctas(), then the work that its threads launched.
std::chrono::steady_clock::time_point run_grid(const std::shared_ptr<Grid>& grid,
                                               std::chrono::steady_clock::time_point start = {});

/// Of a grid that began with quick code: the good code that takes over from CTA (cluster) `next` on, null if there is
/// none yet or it can't. On the grid's own thread (`own_thread`) asks for it where the grid takes long. Thread-safe.
const GridCode* good_code(Grid& grid, std::uint64_t next, bool own_thread);
/// For a helper, before it draws again: is it the one that is to leave? Thread-safe.
bool leaves_cpu(Grid& grid);
/// Calls the held helpers. On the grid's own thread.
void call_held_helpers(Grid& grid);
/// What launches with `code` take of the host, `grid` being filled in but for that.
GridCode prepare_code(const Grid& grid, std::shared_ptr<const LoadedKernel> code);
/// True if the parameters meet what `code` takes for granted.
bool meets_demands(const Grid& grid, const LoadedKernel& code);

/// Before a CTA is drawn: false on a helper's thread if CTAs of a greater priority are to be drawn first. The grid's
/// own thread (`own_thread`) waits for that, but not for ever, because they may wait for what this grid does.
bool is_next(Grid& grid, bool own_thread);
/// All its CTAs are drawn, or it has ended.
void leave_queue(Grid& grid);

/// Calls the late helpers if the grid has taken longer than expected. On the grid's own thread,
/// between CTAs.
void call_late_helpers(Grid& grid);

/// Runs CTAs of `grid` on the calling thread until none is left to draw and its own have exited.
/// Part of run_grid().
void run_share(Grid& grid);

} // namespace ptarmigan::runtime
