// SPDX-License-Identifier: Apache-2.0
// CTAs that wait for one that has not started, in loops in which something happens all the time: a barrier completes, a
// counter goes up. A GPU has all of them resident. Hidden: ctest runs them by themselves, with a limit of time.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <string>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

/// Each CTA (cluster) waits until the next one's flag is set (`poll` jumps back to `wait` until then; %l0 is the flag's address,
/// %p7 holds in thread 0), then sets its own.
std::string chain(const std::string& poll, const std::string& before) {
    return R"(
        setp.eq.u32 %p7, %r60, 0;
    )" + before + R"(
        mov.u32 %r50, %nctaid.x;
        mov.u32 %r51, %cluster_nctaid.x;
        sub.u32 %r50, %r50, %r51;
        mad.wide.u32 %l0, %r61, 4, %l60;
        add.u64 %l0, %l0, 4;
        setp.ge.u32 %p6, %r61, %r50;
        mov.u32 %r0, 0;
        @%p6 bra go;
    wait:
    )" + poll + R"(
    go:
        bar.sync 0;
        @!%p7 bra done;
        membar.gl;
        st.volatile.global.u32 [%l0 + -4], 1;
    done:
    )";
}

/// CUTLASS's Semaphore::wait().
const std::string reduction = R"(
        mov.u32 %r1, 0;
        @!%p7 bra look;
        ld.acquire.gpu.global.u32 %r0, [%l0];
        setp.eq.u32 %p0, %r0, 0;
        selp.u32 %r1, 1, 0, %p0;
    look:
        setp.ne.u32 %p1, %r1, 0;
        bar.red.or.pred %p2, 0, %p1;
        @%p2 bra wait;
    )";

/// Thread 0 tells the others through shared memory.
const std::string broadcast = R"(
        @!%p7 bra look;
        ld.volatile.global.u32 %r0, [%l0];
        st.shared.u32 [word], %r0;
    look:
        bar.sync 0;
        ld.shared.u32 %r1, [word];
        bar.sync 0;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra wait;
    )";

/// The same, and all count their looks in global memory.
const std::string counted = R"(
        @!%p7 bra look;
        ld.volatile.global.u32 %r0, [%l0];
        st.shared.u32 [word], %r0;
        red.global.add.u32 [%l61], 1;
    look:
        bar.sync 0;
        ld.shared.u32 %r1, [word];
        bar.sync 0;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra wait;
    )";

/// Thread 0 of the first of two CTAs tells both, and they meet at the cluster's barrier.
const std::string in_cluster = R"(
        mov.u32 %r10, %cluster_ctarank;
        setp.eq.and.u32 %p0, %r10, 0, %p7;
        @!%p0 bra look;
        ld.volatile.global.u32 %r0, [%l0 + 4];
        st.shared.u32 [word], %r0;
        mov.u32 %r11, word;
        mapa.shared::cluster.u32 %r12, %r11, 1;
        st.shared::cluster.u32 [%r12], %r0;
    look:
        barrier.cluster.arrive;
        barrier.cluster.wait;
        ld.shared.u32 %r1, [word];
        barrier.cluster.arrive;
        barrier.cluster.wait;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra wait;
    )";

void check_chain(const std::string& poll, std::uint32_t ctas, std::uint32_t threads, const Frame& frame = {}, const std::string& before = "") {
    Array<std::uint32_t> flags(ctas + 1), count(1);
    run(chain(poll, before), {ctas}, {threads}, {flags.address(), count.address()}, ".shared .align 4 .b32 word;\n.shared .align 8 .b64 object;\n", 0, frame);
    std::vector<std::uint32_t> expected(ctas + 1, 1);
    expected[ctas] = 0;
    CHECK(flags.values() == expected);
}

} // namespace

TEST_CASE("a CTA waits for the next one in a loop with a reduction of the CTA", "[.][resident]") {
    check_chain(reduction, 40, 96);
}

TEST_CASE("a CTA waits for the next one in a loop with two barriers", "[.][resident]") {
    check_chain(broadcast, 40, 96);
}

TEST_CASE("a CTA waits for the next one in a loop that writes", "[.][resident]") {
    check_chain(counted, 40, 96);
}

TEST_CASE("each of a thousand CTAs waits for the next one", "[.][resident][many]") {
    check_chain(reduction, 1000, 64);
}

TEST_CASE("as many CTAs as a GPU holds at once wait for all of them", "[.][resident][many]") {
    constexpr std::uint32_t ctas = 132 * 32;
    Array<std::uint32_t> count(1);
    run(R"(
        setp.ne.u32 %p0, %r60, 0;
        @%p0 bra met;
        red.global.add.u32 [%l60], 1;
    wait:
        ld.volatile.global.u32 %r0, [%l60];
        setp.lt.u32 %p1, %r0, 4224;
        @%p1 bra wait;
    met:
        bar.sync 0;
    )", {ctas}, {32}, {count.address()});
    CHECK(count.values()[0] == ctas);
}

TEST_CASE("a cluster waits for the next one in a loop with the cluster's barrier", "[.][resident]") {
    Frame frame;
    frame.directives = " .reqnctapercluster 2";
    check_chain(in_cluster, 40, 64, frame);
}

TEST_CASE("a CTA waits for the next one in a loop with a phase of an mbarrier", "[.][resident]") {
    check_chain(R"(
        @!%p7 bra look;
        ld.volatile.global.u32 %r0, [%l0];
        st.shared.u32 [word], %r0;
    look:
        mbarrier.arrive.shared.b64 %l1, [object];
    first:
        mbarrier.try_wait.shared.b64 %p2, [object], %l1;
        @!%p2 bra first;
        ld.shared.u32 %r1, [word];
        mbarrier.arrive.shared.b64 %l1, [object];
    second:
        mbarrier.try_wait.shared.b64 %p2, [object], %l1;
        @!%p2 bra second;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra wait;
    )", 40, 64, {}, R"(
        @!%p7 bra ready;
        mbarrier.init.shared.b64 [object], 64;
    ready:
        bar.sync 0;
    )");
}
