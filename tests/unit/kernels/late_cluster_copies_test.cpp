// SPDX-License-Identifier: Apache-2.0
// Pairs of right programs and of programs that forget something, of clusters of two CTAs: what one prepares in the other's shared memory is
// copied from there.
#include "copy_pairs.h"
#include "kernel.h"

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 128, words = 2 * 4 * threads;
using Words = std::vector<std::uint32_t>;

/// %l60, %l61: 512 words of input and output for each CTA. %r1, %r2: tile and mbarrier (1 arrival); %r3: this thread's 16 bytes of the tile;
/// %r4, %r5, %r6: the same three in the other CTA's; %l1, %l2: this CTA's input and output, %l3: this thread's 16 bytes of input; %p0: thread 0.
Words run_program(const std::string& body, const std::string& schedule) {
    const Schedule scope(schedule);
    Words values(words);
    for (unsigned i = 0; i < words; ++i) values[i] = i * 2654435761u + 12345;
    Array<std::uint32_t> in(values), out(words);
    run(R"(
        mov.u32 %r1, tile; mov.u32 %r2, bar; setp.eq.u32 %p0, %r60, 0; mov.u32 %r10, %cluster_ctarank; xor.b32 %r11, %r10, 1;
        shl.b32 %r3, %r60, 4; mul.wide.u32 %l4, %r60, 16; mul.wide.u32 %l5, %r10, 2048;
        add.u32 %r3, %r3, %r1; add.u64 %l1, %l60, %l5; add.u64 %l2, %l61, %l5; add.u64 %l3, %l1, %l4;
        mapa.shared::cluster.u32 %r4, %r1, %r11; mapa.shared::cluster.u32 %r5, %r2, %r11; mapa.shared::cluster.u32 %r6, %r3, %r11;
        mov.b32 %r12, 0; st.shared.v4.b32 [%r3], {%r12, %r12, %r12, %r12}; st.shared.v4.b32 [%r3+2048], {%r12, %r12, %r12, %r12};
        @%p0 mbarrier.init.shared.b64 [%r2], 1;
        fence.proxy.async;
        barrier.cluster.arrive; barrier.cluster.wait;
    )" + body + "barrier.cluster.arrive; barrier.cluster.wait;", {2}, {threads}, {in.address(), out.address()},
        ".shared .align 1024 .b8 tile[4096]; .shared .align 8 .b64 bar;", 0, {"sm_90", "9.0", " .reqnctapercluster 2,1,1"});
    return out.values();
}

const std::string meet = "barrier.cluster.arrive; barrier.cluster.wait;\n", proxy = "fence.proxy.async;\n";
const std::string read = "ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%l3];\n", fill = read + "st.shared.v4.b32 [%r3], {%r20, %r21, %r22, %r23};\n";
const std::string fill_other = read + "st.shared::cluster.v4.b32 [%r6], {%r20, %r21, %r22, %r23};\n";
/// Thread 0 stores the tile to the output.
std::string store(unsigned from = 0) {
    return "add.u32 %r7, %r1, " + std::to_string(from) + R"(;
        @%p0 cp.async.bulk.global.shared::cta.bulk_group [%l2], [%r7], 2048;
        @%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;
    )";
}
std::string expect(unsigned bytes) {
    return "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], " + std::to_string(bytes) + ";\n";
}
const std::string wait = "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra WAIT;\n";
/// Thread 0 copies the tile to the second half of the other CTA's.
const std::string move = "bar.sync 0; add.u32 %r8, %r4, 2048;\n"
                         "@%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8], [%r1], 2048, [%r5];\n";
/// Each CTA's thread 0 loads half of the first CTA's input for both.
const std::string multicast = R"(
    shl.b32 %r13, %r10, 10; add.u32 %r14, %r1, %r13; cvt.u64.u32 %l6, %r13; add.u64 %l6, %l6, %l60; mov.b16 %h1, 3;
    @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r14], [%l6], 1024, [%r2], %h1;
)";
const std::string add_other = read + "atom.shared::cluster.add.u32 %r24, [%r6], %r20; red.shared::cluster.add.u32 [%r6+4], %r21;\n";
const std::string generic_other = read + "cvt.u64.u32 %l7, %r3; cvta.shared.u64 %l7, %l7; mapa.u64 %l8, %l7, %r11;\n"
                                         "st.v4.b32 [%l8], {%r20, %r21, %r22, %r23};\n";
const std::string send = read + "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r6], {%r20, %r21, %r22, %r23}, [%r5];\n";

const std::string release = "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;\n",
                  acquire = "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;\n";

const Pair pairs[] = {
    {"the neighbour stores what was copied to it", expect(2048) + fill + proxy + move + wait + store(2048), expect(2048) + fill + proxy + move + store(2048), false},
    {"copied to the neighbour without proxy fence", expect(2048) + fill + proxy + move + wait + store(2048), expect(2048) + fill + move + wait + store(2048)},
    {"the neighbour stores what was loaded for both", expect(2048) + multicast + wait + store(), expect(2048) + multicast + "bar.sync 0;" + store(), false},
    {"written to the neighbour, no proxy fence", fill_other + proxy + meet + store(), fill_other + meet + store()},
    {"written to the neighbour behind the proxy fence", fill_other + proxy + meet + store(), proxy + fill_other + meet + store()},
    {"a proxy fence for the cluster's memory", fill_other + "fence.proxy.async.shared::cluster;\n" + meet + store(),
     fill_other + "fence.proxy.async.global;\n" + meet + store()},
    {"a proxy fence for the CTA's own memory", fill_other + meet + "fence.proxy.async.shared::cta;\nbar.sync 0;\n" + store(),
     fill_other + "fence.proxy.async.shared::cta;\n" + meet + store(), true, true},
    {"own writes, the neighbour fences its own memory", fill + "fence.proxy.async.shared::cta;\n" + meet + store(),
     fill + meet + "setp.eq.u32 %p2, %r10, 0; @%p2 fence.proxy.async.shared::cta;\nbar.sync 0;\n" + store()},
    {"released and acquired", fill + release + meet + acquire + "bar.sync 0;\n" + store(), release + fill + meet + store()},
    {"added to the neighbour's", add_other + proxy + meet + store(), add_other + meet + store()},
    {"written through generic addresses", generic_other + proxy + meet + store(), generic_other + meet + store()},
    {"sent by st.async", expect(2048) + send + wait + proxy + "bar.sync 0;\n" + store(), expect(2048) + send + wait + "bar.sync 0;\n" + store()},
};

} // namespace

TEST_CASE("async: clusters are right whenever copies are done, and fail if they forget something", "[kernels][async][pairs]") {
    for (const Pair& pair : pairs) check_pair(pair, run_program);
}

TEST_CASE("async: what a CTA sends before it exits arrives", "[kernels][async]") {
    // CTA 0 sends 128 words, loads 512 bytes and adds to what CTA 1 has, and exits.
    Words values(threads);
    for (unsigned i = 0; i < threads; ++i) values[i] = 77 * i + 5;
    for (const char* schedule : {"eager", "late", "random:1", "random:2", "random:3"}) {
        INFO(schedule);
        const Schedule scope(schedule);
        Array<std::uint32_t> in(values), out(3 * threads);
        run(R"(
            mov.u32 %r1, tile; mov.u32 %r2, bar; setp.eq.u32 %p0, %r60, 0; mov.u32 %r10, %cluster_ctarank; setp.eq.u32 %p2, %r10, 0;
            shl.b32 %r3, %r60, 2; add.u32 %r3, %r3, %r1; mul.wide.u32 %l4, %r60, 4;
            st.shared.u32 [%r3+1024], %r60;
            @%p0 mbarrier.init.shared.b64 [%r2], 1; @%p0 fence.mbarrier_init.release.cluster;
            @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 1536;
            barrier.cluster.arrive; barrier.cluster.wait;
            @!%p2 bra WAIT;
            mapa.shared::cluster.u32 %r4, %r3, 1; mapa.shared::cluster.u32 %r5, %r2, 1; mov.b16 %h1, 2;
            mad.lo.u32 %r6, %r60, 3, 1;
            st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4], %r6, [%r5];
            red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4+1024], %r6, [%r5];
            @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1+512], [%l60], 512, [%r2], %h1;
            exit;
        WAIT:
            mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0;
            @!%p1 bra WAIT;
            add.u64 %l4, %l4, %l61;
            ld.shared.u32 %r7, [%r3]; ld.shared.u32 %r8, [%r3+512]; ld.shared.u32 %r9, [%r3+1024];
            st.global.u32 [%l4], %r7; st.global.u32 [%l4+512], %r8; st.global.u32 [%l4+1024], %r9;
        )", {2}, {threads}, {in.address(), out.address()}, ".shared .align 128 .b8 tile[2048]; .shared .align 8 .b64 bar;", 0,
            {"sm_90", "9.0", " .reqnctapercluster 2,1,1"});
        const Words result = out.values();
        for (unsigned i = 0; i < threads; ++i) {
            REQUIRE(result[i] == 3 * i + 1);
            REQUIRE(result[threads + i] == values[i]);
            REQUIRE(result[2 * threads + i] == 4 * i + 1);
        }
    }
}
