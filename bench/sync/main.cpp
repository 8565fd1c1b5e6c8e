// SPDX-License-Identifier: Apache-2.0
// What synchronisation costs: barriers, mbarriers, cluster barriers and atomics of kernels, in
// nanoseconds for a warp, beside what the host's own atomics and barriers take. Each kernel repeats
// one operation; the time of the empty loop is taken off.
#include "ptarmigan/ptarmigan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double nanoseconds(const std::function<void()>& run) {
    const auto start = Clock::now();
    run();
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

double best_of(int rounds, const std::function<double()>& measure) {
    double best = measure();
    for (int i = 1; i < rounds; ++i) best = std::min(best, measure());
    return best;
}

struct Case {
    std::string name;
    std::string body; ///< of the loop; %r1 thread, %r2 shared address of the thread's word, %rd2
                      ///< global one, %rd1 the first
    unsigned warps = 4, ctas = 1;
    std::string directives{}; ///< behind the parameters
    unsigned count = 0;       ///< of arrivals for the mbarrier object `bar`; 0: none
    int iterations = 20000;
};

std::string text_of(const Case& given) {
    const std::string init =
        given.count ? "    @%p1 mbarrier.init.shared.b64 [bar], " + std::to_string(given.count) + ";\n" : "";
    const std::string cluster = given.directives.empty() ? "" : "    barrier.cluster.arrive; barrier.cluster.wait;\n";
    return ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 data, "
           ".param .u32 n)" +
           given.directives +
           R"( {
    .shared .align 8 .b64 bar; .shared .align 16 .b32 words[4096];
    .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<5>; .reg .f32 %f<4>; .reg .b128 %q<3>;
    ld.param.u64 %rd1,[data]; ld.param.u32 %r9,[n];
    mov.u32 %r1,%tid.x; setp.eq.u32 %p1,%r1,0; mov.u32 %r2,words; shl.b32 %r3,%r1,4; add.u32 %r2,%r2,%r3;
    mul.wide.u32 %rd2,%r1,16; add.u64 %rd2,%rd2,%rd1; mov.u32 %r8,0; mov.f32 %f1,0f3f800000;
)" + init + "    bar.sync 0;\n" +
           cluster + "    setp.ge.u32 %p2,%r8,%r9; @%p2 bra DONE;\nLOOP:\n" + given.body +
           "\n    add.u32 %r8,%r8,1; setp.lt.u32 %p2,%r8,%r9; @%p2 bra LOOP;\nDONE:\n" + cluster + "    ret;\n}\n";
}

/// ns of one operation for one warp.
double cost(const Case& given, int rounds) {
    ptarmigan::Module module(text_of(given), given.name);
    ptarmigan::Buffer data(1 << 16);
    const auto run = [&](unsigned iterations) {
        module.launch("k", {given.ctas}, {given.warps * 32}, {data.address(), iterations});
        ptarmigan::synchronize();
    };
    run(1);
    const auto loops = static_cast<unsigned>(given.iterations);
    const double all = best_of(rounds, [&] { return nanoseconds([&] { run(loops); }); });
    const double none = best_of(rounds, [&] { return nanoseconds([&] { run(0); }); });
    return (all - none) / given.iterations / given.warps;
}

const std::string wait = "W: mbarrier.try_wait.shared.b64 %p3,[bar],%rd3; @!%p3 bra W;";
const std::string wait_parity = "and.b32 %r4,%r8,1; W: mbarrier.try_wait.parity.shared.b64 %p3,[bar],%r4; @!%p3 bra W;";
const std::string pair = ".reqnctapercluster 2,1,1", four = ".reqnctapercluster 4,1,1";

const std::vector<Case> cases = {
    {"bar.sync 0", "bar.sync 0;"},
    {"bar.sync of half the warps", "shr.u32 %r4,%r1,6; add.u32 %r4,%r4,1; barrier.sync %r4,64;"},
    {"bar.red.popc", "bar.red.popc.u32 %r5,0,%p1; st.shared.u32 [%r2],%r5;"},
    {"bar.warp.sync", "bar.warp.sync 0xffffffff;"},
    {"mbarrier arrive, whole warp", "mbarrier.arrive.shared.b64 _,[bar];", 1, 1, "", 32},
    {"mbarrier arrive, one thread", "@%p1 mbarrier.arrive.shared.b64 _,[bar];", 1, 1, "", 1},
    {"mbarrier test_wait",
     "mbarrier.test_wait.parity.shared.b64 %p3,[bar],1; selp.u32 %r5,1,0,%p3; st.shared.u32 "
     "[%r2],%r5;",
     1, 1, "", 32},
    {"mbarrier arrive and try_wait, 4 warps", "mbarrier.arrive.shared.b64 %rd3,[bar]; " + wait, 4, 1, "", 128},
    {"mbarrier expect_tx and complete_tx",
     "@%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 [bar],16; @%p1 "
     "mbarrier.complete_tx.relaxed.cta.shared.b64 [bar],16;",
     1, 1, "", 1},
    {"barrier.cluster, 2 CTAs of 4 warps", "barrier.cluster.arrive; barrier.cluster.wait;", 4, 2, pair},
    {"barrier.cluster, 4 CTAs of 4 warps", "barrier.cluster.arrive; barrier.cluster.wait;", 4, 4, four},
    {"ld.shared::cluster of a neighbour",
     "xor.b32 %r4,%r8,1; and.b32 %r4,%r4,1; mapa.shared::cluster.u32 %r5,%r2,%r4; "
     "ld.volatile.shared::cluster.u32 %r6,[%r5];",
     4, 2, pair},
    {"atom.global.add, one address", "atom.global.add.u32 %r5,[%rd1],1; st.shared.u32 [%r2],%r5;"},
    {"red.global.add, own addresses", "red.global.add.u32 [%rd2],1;"},
    {"red.global.add, 2 CTAs at one address", "red.global.add.u32 [%rd1],1;", 4, 2},
    {"red.global.add.f32, own addresses", "red.global.add.f32 [%rd2],%f1;"},
    {"atom.global.cas, own addresses", "atom.global.cas.b32 %r5,[%rd2],0,1; st.shared.u32 [%r2],%r5;"},
    {"atom.global.exch.b128, own addresses", "mov.b128 %q1,{%rd1,%rd2}; atom.global.exch.b128 %q2,[%rd2],%q1;"},
    {"red.global.add.noftz.f16x2, own addresses", "red.global.add.noftz.f16x2 [%rd2],%r8;"},
    {"red.shared.add, one address", "red.shared.add.u32 [words],1;"},
    {"red.shared.add, own addresses", "red.shared.add.u32 [%r2],1;"},
    {"red.shared.add.f32, one address", "red.shared.add.f32 [words],%f1;"},
    {"cp.async, 16 bytes a thread, waited for", "cp.async.cg.shared.global [%r2],[%rd2],16; cp.async.wait_all;"},
    {"cp.async.bulk, 1 KiB, waited for",
     "@%p1 mbarrier.arrive.expect_tx.shared.b64 _,[bar],1024; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [words],[%rd1],1024,[bar]; " +
         wait_parity,
     1, 1, "", 1},
    {"cp.async.bulk, 16 KiB, waited for",
     "@%p1 mbarrier.arrive.expect_tx.shared.b64 _,[bar],16384; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [words],[%rd1],16384,[bar]; " +
         wait_parity,
     1, 1, "", 1},
    {"cp.async.bulk to global, 16 KiB, waited for",
     "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1],[words],16384; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
     1},
    {"fence.acq_rel.gpu", "fence.acq_rel.gpu;"},
    {"fence.sc.gpu", "fence.sc.gpu;"},
};

void print(const std::string& name, double ns) {
    fmt::print("| {:<45} | {:>9.2f} |\n", name, ns);
}

/// `threads` add to one atomic.
double host_atomic(int threads, int count) {
    std::atomic<unsigned> sum{0};
    std::vector<std::thread> all;
    const double time = nanoseconds([&] {
        for (int t = 0; t < threads; ++t)
            all.emplace_back([&] {
                for (int i = 0; i < count; ++i) sum.fetch_add(1);
            });
        for (std::thread& thread : all) thread.join();
    });
    return time / count;
}

double host_barrier(int count) {
    std::barrier<> barrier(2);
    const double time = nanoseconds([&] {
        std::thread other([&] {
            for (int i = 0; i < count; ++i) barrier.arrive_and_wait();
        });
        for (int i = 0; i < count; ++i) barrier.arrive_and_wait();
        other.join();
    });
    return time / count;
}

double host_copy(std::size_t bytes, int count) {
    std::vector<char> from(bytes, 1), to(bytes);
    char* volatile target = to.data(); // or the copies would be one
    return nanoseconds([&] {
               for (int i = 0; i < count; ++i) std::memcpy(target, from.data(), bytes);
           }) /
           count;
}

} // namespace

/// usage: bench_sync [ROUNDS [TEXT]]: only operations whose name contains TEXT
int main(int argc, char** argv) {
    setenv("PTARMIGAN_TIER", "best", 0); // what is timed is good code
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
    const std::string only = argc > 2 ? argv[2] : "";
    fmt::print("| operation of a warp                           | ns        |\n|---|---|\n");
    try {
        for (const Case& given : cases)
            if (given.name.find(only) != std::string::npos) print(given.name, cost(given, rounds));
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
    print("std::atomic::fetch_add", best_of(rounds, [] { return host_atomic(1, 1000000); }));
    print("std::atomic::fetch_add, 2 threads", best_of(rounds, [] { return host_atomic(2, 1000000); }));
    print("std::barrier, 2 threads", best_of(rounds, [] { return host_barrier(20000); }));
    for (const std::size_t bytes : {1024, 16384})
        print(fmt::format("memcpy, {} KiB", bytes / 1024), best_of(rounds, [&] { return host_copy(bytes, 100000); }));
    return 0;
}
