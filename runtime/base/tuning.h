// SPDX-License-Identifier: Apache-2.0
// Constants that trade one thing for another, with what each trades.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ptarmigan::runtime::tuning {

/// Threads that serve streams. Each kernel that waits for another stream's or the host's memory
/// needs one; more cost nothing until they are used.
inline constexpr unsigned max_dispatcher_threads = 256;

/// An operation that its program is expected to wait for is left to that thread for so long: running it there costs no
/// wake-up, neither of a dispatcher thread nor of the waiting one (10 us each on a 2-core VM).
inline constexpr std::chrono::microseconds prompt_wait{50};
/// While operations are left so, an idle dispatcher thread looks for forgotten ones this often, ...
inline constexpr std::chrono::microseconds watch_interval{200};
/// ... until there were none for this long.
inline constexpr std::chrono::milliseconds watch_time{5};
/// Prompt waits in a row after which the next is expected, and how many a late one takes back.
inline constexpr int expect_prompt_wait = 2, late_wait_penalty = 16;

/// A grid that is shared before oneTBB runs waits so long for helpers: starting it takes 0.6 ms and two threads, and
/// many a program has only short grids.
inline constexpr std::chrono::microseconds helper_start_delay{200};

/// A worker of a cooperative grid that has its share of the CTAs takes those of helpers who have not come by then, so
/// long after the grid's start: less, and one core does what two could; more, and a grid waits for who never comes.
inline constexpr std::chrono::microseconds helper_patience{50}, first_helper_patience{1000};

/// A grid that begins no CTA for so long may hang (launch/stuck_grids.h). Longer than most kernels' CTAs run, shorter
/// than people and test runners wait.
inline constexpr std::chrono::seconds stuck_grid{24};

/// Looks at the helpers' counter before a grid's thread sleeps until they are done: about 3 us.
inline constexpr int close_spins = 200;

/// A grid that writes this much stores past the caches where it can: its results would push out each other before the
/// next kernel reads them. Not asked of the CPU, because virtual machines report the last-level cache of whole sockets
/// (256 MB for two cores that share 32).
inline constexpr std::uint64_t least_streamed_bytes = std::uint64_t{32} << 20;

/// CTAs that a worker draws at once when the CTAs are small: the counter's cache line moves less
/// often. Ordered draws keep decoupled look-back alive at any chunk, because a chunk runs in order.
inline constexpr std::uint64_t small_cta_chunk = 16;
/// Grids of very many small CTAs draw more at once, but so that each worker still draws this often: neighbouring CTAs
/// use neighbouring memory, and workers that take turns every few kilobytes get in each other's way (saxpy of 16M
/// floats on two cores, 2026-11-21: 4.6 ms with chunks of 16, 3.9 with 64, 3.6 with 256).
inline constexpr std::uint64_t large_grid_draws = 64;
inline constexpr std::uint64_t large_grid_chunk = 512;
/// A grid that took less than this last time, on one thread, is cut into one piece per worker: launch after launch a
/// core then finds its part of the data in its own cache. In smaller pieces the lines move between the cores, and saxpy
/// of 128K floats takes longer on two (25 us) than on one (16; in halves 11). Longer grids need the balance more.
inline constexpr std::uint64_t undivided_grid_ns = 50000;
/// A CTA of at most so many threads is small.
inline constexpr std::uint64_t small_cta_threads = 256;
/// Chunks that each worker should get at least, so that the grid's tail stays balanced.
inline constexpr std::uint64_t chunks_per_worker = 8;

/// A grid that took less than this last time (all CTAs on one thread) runs on one thread: waking
/// helpers takes 10 us on a 2-core VM. If it takes longer this time, they are called between two
/// draws.
inline constexpr std::uint64_t unshared_grid_ns = 8000;
/// The same if no grid has run for the time of grid_succession_ns: helpers sleep deeply and their caches are cold
/// (saxpy of 128K floats every 500 us: 16 us on one thread, 30 with a helper).
inline constexpr std::uint64_t lone_grid_ns = 40000, grid_succession_ns = 50000;

/// Turns in which every step of a worker only waited, after which it draws another CTA of a grid that waits on memory:
/// perhaps they wait for that one. Each turn is 64 iterations of a waiting loop or more.
inline constexpr unsigned idle_turns_before_draw = 64;
/// Turns in which no CTA of a worker exited, after which it draws more of such a grid although barriers complete: they
/// may be those of a loop that waits.
inline constexpr unsigned turns_before_draw = 1024;
/// How long a step that has seen the value that it waited for lets others look at most (GoalWaits): some time slices of
/// the operating system, for workers that do not run. CPU time of the thread that lets them: others that want to run
/// get as much meanwhile, however loaded the machine is. On the clock at most 50 times that.
inline constexpr std::uint64_t longest_look_ns = 100'000'000;
/// Stacks of suspended steps, and CTAs' memory, that a worker keeps between grids; what a crowd needed beyond is given
/// back.
inline constexpr std::size_t kept_stacks = 4096, kept_slots = 128;
/// CTAs and threads of one grid that a worker keeps alive: what an H200 does on its 132 multiprocessors. Each costs its
/// steps' stacks and its memory.
inline constexpr std::uint64_t most_resident_ctas = 132 * 32, most_resident_threads = 132 * 2048;

/// Stack of a fiber. Only touched pages cost memory; a step of 32 lanes with spilled vectors mostly
/// needs some 10 KiB, and device printf formats numbers on it, but one frame of a kernel of 6500
/// lines took 316 KiB (program counters, 32 lanes, x86-64-v3). Below 2 MiB no huge page backs it.
inline constexpr std::size_t fiber_stack = 1 << 20;
/// Of a kernel that recurses or calls through pointers.
inline constexpr std::size_t deep_fiber_stack = 4 << 20;
/// What recursion may add to a stack at most, whatever the stack limit says: address space, and memory where it is
/// touched.
inline constexpr std::size_t deepest_fiber_stack = std::size_t{256} << 20;
/// For what generated code calls: device printf formats numbers on the stack.
inline constexpr std::size_t service_stack = 256 << 10;

/// Address space of one shared memory window: shared addresses have 32 bits, so that none reaches
/// another mapping.
inline constexpr std::size_t shared_window = std::size_t{1} << 32;

/// A try_wait gives up after this long, whatever its hint says, as on the H200 (1.05 ms at most with a hint of 100 ms).
inline constexpr std::uint64_t mbarrier_wait_ns = 1 << 20;

/// A host thread copies up to this much itself, in the call, when the stream is idle.
inline constexpr std::size_t staging_limit = 1 << 20;

} // namespace ptarmigan::runtime::tuning
