// SPDX-License-Identifier: Apache-2.0
// A grid's threads: the one that asked for it, and helpers.
#include "runtime/launch/grid.h"

#include "runtime/base/log.h"
#include "runtime/base/thread_time.h"
#include "runtime/base/tuning.h"
#include "runtime/context/context.h"
#include "runtime/device/device.h"
#include "runtime/device/device_use.h"
#include "runtime/exec/unfenced_writes.h"
#include "runtime/launch/child_work.h"
#include "runtime/launch/helpers.h"
#include "runtime/launch/stuck_grids.h"
#include "runtime/launch/waiting_grids.h"
#include "runtime/launch/worker.h"
#include "runtime/memory/outside_writes.h"
#include "runtime/memory/virtual_memory.h"
#include "runtime/module/module.h"
#include "runtime/module/tiers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>
#include <memory>
#include <thread>

namespace ptarmigan::runtime {
namespace {

/// The text first: who sees the code may end the process at once.
void report(Grid& grid) {
    if (grid.fault.fault == abi::Fault::none) return; // another grid's fault ended this one
    if (grid.fault.has_address && !grid.fault.rule) grid.fault.rule = VirtualMemory::get().describe(grid.fault.address);
    const std::string place = grid.module ? grid.module->source().place_of(grid.fault.line) : std::string();
    const LoadedKernel& code = grid.fault_code ? *grid.fault_code : *grid.code;
    const char* tier = is_quick(code.form) ? ", in quick code" : "";
    publish_fault_report(describe_fault(grid.fault, code.name, place, code.properties.lane_width) + tier + grid.waits);
    grid.context->set_fault(fault_status(grid.fault));
}

} // namespace

MapHistory& map_history(const abi::CtaContext& cta) {
    return static_cast<Grid*>(cta.launch->owner)->maps;
}

void run_share(Grid& grid) {
    const std::uint32_t number = grid.next_worker.fetch_add(1, std::memory_order_relaxed);
    WorkerLease worker;
    (*worker).run(grid, number);
}

namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t nanoseconds_since(Clock::time_point start) {
    return static_cast<std::uint64_t>((Clock::now() - start) / std::chrono::nanoseconds(1));
}

/// Waking helpers costs more than a small grid does. A kernel that waits on memory may wait for
/// another CTA: it always gets them.
bool is_too_small_to_share(const Grid& grid) {
    if (!grid.cta_cost || grid.cooperative || grid.code->properties.spins) return false;
    const std::uint64_t cost = grid.cta_cost->load(std::memory_order_relaxed);
    return cost != 0 && cost * grid.cta_count < grid.short_ns;
}

/// When the last grid of the process ended; relaxed: a hint.
std::atomic<Clock::time_point> last_end{};

/// How short a grid must be to run on one thread.
std::uint64_t short_grid_ns() {
    const bool lone = nanoseconds_since(last_end.load(std::memory_order_relaxed)) > tuning::grid_succession_ns;
    return lone ? tuning::lone_grid_ns : tuning::unshared_grid_ns;
}

void remember_cost(Grid& grid, std::uint64_t elapsed) {
    if (!grid.cta_cost || grid.stopped()) return;
    const std::uint64_t workers = grid.next_worker.load(std::memory_order_relaxed);
    const std::uint64_t cost = elapsed * workers / grid.cta_count + 1;
    constexpr std::uint64_t most = 0xffffffffu;
    grid.cta_cost->store(static_cast<std::uint32_t>(cost < most ? cost : most), std::memory_order_relaxed);
}

std::string tier_of(const Grid& grid) {
    return grid.good ? "quick, then good" : tier_name(grid.code->form);
}

void log_ended(Grid& grid) {
    const abi::LaunchContext& launch = grid.launch;
    const std::string clusters = grid.cluster_size > 1 ? fmt::format(" in clusters of {}", grid.cluster_size) : "";
    log(LogLevel::trace,
        fmt::format("grid {}: {}, {} code, {} CTAs of {} threads{}, {} shared bytes each, {} workers; {} {}",
                    launch.grid_id, grid.code->name, tier_of(grid), fmt::join(launch.nctaid, "x"),
                    fmt::join(launch.ntid, "x"), clusters, launch.shared_size,
                    grid.next_worker.load(std::memory_order_relaxed), grid.stopped() ? "fault after" : "ran for",
                    elapsed(grid.start)));
}

/// Of quick code's time, what this thread took.
class QuickTime {
public:
    explicit QuickTime(Grid& grid) : grid_(grid) {
        if (counts()) grid.quick_start_ns = thread_nanoseconds();
    }
    ~QuickTime() {
        if (!counts() || grid_.good || grid_.stopped()) return;
        const std::uint64_t workers = grid_.next_worker.load(std::memory_order_relaxed);
        grid_.kernel->note_quick_run(*grid_.tiered, (thread_nanoseconds() - grid_.quick_start_ns) * workers);
    }
    QuickTime(const QuickTime&) = delete;
    QuickTime& operator=(const QuickTime&) = delete;

private:
    bool counts() const { return grid_.tiered && grid_.kernel; }
    const Grid& grid_;
};

/// On the grid's own thread: if it has all CPUs, one helper is to leave.
void want_cpu(Grid& grid) {
    const bool has_all = grid.max_workers > 1 && grid.max_workers == Device::get().workers();
    if (!has_all || grid.held_helpers != 0) return;
    grid.held_helpers = 1;
    grid.spare_cpu.store(Grid::SpareCpu::wanted, std::memory_order_relaxed);
}

} // namespace

bool leaves_cpu(Grid& grid) {
    using enum Grid::SpareCpu;
    if (grid.spare_cpu.load(std::memory_order_relaxed) != wanted) return false;
    return grid.spare_cpu.exchange(left, std::memory_order_relaxed) == wanted;
}

const GridCode* good_code(Grid& grid, std::uint64_t next, bool own_thread) {
    if (next < grid.swap_at) return nullptr;
    TieredCode& tiered = *grid.tiered;
    if (!tiered.has_good()) {
        const std::uint64_t length = tiered.long_grid_ns();
        const bool may_be_long = own_thread && nanoseconds_since(grid.start) >= length;
        const std::uint64_t ran = may_be_long ? thread_nanoseconds() - grid.quick_start_ns : 0;
        if (ran >= length) {
            tiered.ask(ran >= tiered.overdue_ns() ? TieredCode::Urgency::overdue : TieredCode::Urgency::high);
            want_cpu(grid);
        }
        return nullptr;
    }
    std::call_once(grid.good_once, [&] {
        std::shared_ptr<const LoadedKernel> code = tiered.good();
        const bool same_layout = code->properties.static_shared == grid.code->properties.static_shared;
        if (same_layout && meets_demands(grid, *code))
            grid.good = std::make_unique<GridCode>(prepare_code(grid, std::move(code)));
    });
    return grid.good.get();
}

/// How long a grid stands back before each draw at most, and how often it looks.
constexpr std::chrono::microseconds priority_patience{5000}, priority_look{50};

bool is_next(Grid& grid, bool own_thread) {
    const auto stands_back = [&] { return grid.queue->any_before(grid.priority); };
    if (!own_thread) {
        if (!stands_back()) return true;
        grid.left_helpers.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
    if (stands_back()) {
        const Clock::time_point begin = Clock::now(), limit = begin + priority_patience;
        while (stands_back() && !grid.stopped() && Clock::now() < limit) std::this_thread::sleep_for(priority_look);
        grid.start += Clock::now() - begin; // it did not run meanwhile
    }
    if (grid.left_helpers.load(std::memory_order_relaxed) != 0 && !stands_back())
        call_helpers(grid.shared_from_this(), grid.left_helpers.exchange(0, std::memory_order_relaxed));
    return true;
}

void leave_queue(Grid& grid) {
    if (!grid.waits_in_queue.load(std::memory_order_relaxed)) return;
    if (grid.waits_in_queue.exchange(false, std::memory_order_relaxed)) grid.queue->remove(grid.priority);
}

void call_held_helpers(Grid& grid) {
    call_helpers(grid.shared_from_this(), grid.held_helpers);
    grid.held_helpers = 0;
}

void call_late_helpers(Grid& grid) {
    if (nanoseconds_since(grid.start) < grid.short_ns) return;
    call_helpers(grid.shared_from_this(), grid.late_helpers);
    grid.late_helpers = 0;
}

Clock::time_point run_grid(const std::shared_ptr<Grid>& grid, Clock::time_point start) {
    const Clock::time_point end = run_ctas(grid, start);
    if (!grid->children) return end;
    run_child_work(*grid);
    return {};
}

namespace {

/// Grids whose steps can be suspended may wait for what will not come any more when another one of their context ends
/// with a fault.
class StoppedByFaults {
    static bool may_wait(const Grid& grid) {
        const translator::KernelProperties& properties = grid.code->properties;
        return properties.uses_fibers || properties.gives_turns || grid.tiered;
    }

public:
    explicit StoppedByFaults(Grid& grid) : grid_(may_wait(grid) ? &grid : nullptr) {
        if (grid_ && !grid_->context->add_running(grid_->launch.fault)) grid_ = nullptr;
    }
    ~StoppedByFaults() {
        if (grid_) grid_->context->remove_running(grid_->launch.fault);
    }
    StoppedByFaults(const StoppedByFaults&) = delete;
    StoppedByFaults& operator=(const StoppedByFaults&) = delete;

private:
    Grid* grid_;
};

/// What others of its device stand back for while it has CTAs to draw.
class InQueue {
public:
    explicit InQueue(Grid& grid) : grid_(grid) {
        if (!grid.queue || grid.priority == 0) return;
        grid.queue->add(grid.priority);
        grid.waits_in_queue.store(true, std::memory_order_relaxed);
    }
    ~InQueue() { leave_queue(grid_); }
    InQueue(const InQueue&) = delete;
    InQueue& operator=(const InQueue&) = delete;

private:
    Grid& grid_;
};

Clock::time_point run_on_threads(const std::shared_ptr<Grid>& grid, Clock::time_point start) {
    const StoppedByFaults stopped(*grid);
    const WatchedGrid watched(*grid);
    if (grid->context->status() != Status::success) return {}; // an earlier fault: nothing runs any more
    const std::uint64_t draws = (grid->cta_count + grid->chunk - 1) / grid->chunk;
    std::uint64_t helpers = grid->max_workers - 1;
    if (helpers > draws - 1) helpers = draws - 1;
    if (static_cast<abi::AsyncMode>(grid->launch.async_mode) != abi::AsyncMode::eager)
        UnfencedWrites::get().fence(); // a grid's begin is one, too
    const InQueue in_queue(*grid);
    const QuickTime quick_time(*grid);
    grid->start = start != Clock::time_point{} ? start : Clock::now();
    DeviceUse& use = grid->context->used();
    use.grid_begins(grid->start.time_since_epoch() / std::chrono::nanoseconds(1));
    if (helpers > 0) grid->short_ns = short_grid_ns();
    if (is_too_small_to_share(*grid))
        grid->late_helpers = helpers;
    else
        call_helpers(grid, helpers);
    run_share(*grid);
    if (helpers > 0) close_to_helpers(*grid);
    const OutsideWrite ended; // what it wrote is there for everybody
    const Clock::time_point end = Clock::now();
    use.grid_ends(end.time_since_epoch() / std::chrono::nanoseconds(1));
    last_end.store(end, std::memory_order_relaxed);
    remember_cost(*grid, static_cast<std::uint64_t>((end - grid->start) / std::chrono::nanoseconds(1)));
    if (log_enabled(LogLevel::trace)) log_ended(*grid);
    return end;
}

} // namespace

Clock::time_point run_ctas(const std::shared_ptr<Grid>& grid, Clock::time_point start) {
    const Clock::time_point end = run_on_threads(grid, start);
    if (grid->stopped()) report(*grid);
    return end;
}

} // namespace ptarmigan::runtime
