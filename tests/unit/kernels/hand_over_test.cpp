// SPDX-License-Identifier: Apache-2.0
// Lanes that run one by one, since they meet at a collective from two places, and wait for each other at hand-over points: whoever
// another lane waits for goes on, wherever it stands. What they hand over without a barrier is in tests/recordings/divergence.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 64;
/// Lanes come to a shuffle from two places, once. %r1 is the lane, %r8 the warp's 16 bytes of shared memory, zeros.
const std::string two_places = R"(
    and.b32 %r1, %r60, 31; shr.u32 %r8, %r60, 5; mov.u32 %r9, tile; mad.lo.u32 %r8, %r8, 16, %r9;
    setp.eq.u32 %p7, %r1, 0; @%p7 st.shared.v4.u32 [%r8], {0, 0, 0, 0};
    setp.lt.u32 %p0, %r1, 16; @%p0 bra LOW;
    mul.lo.u32 %r2, %r1, 5; shfl.sync.bfly.b32 %r2, %r2, 31, 31, 0xffffffff; bra.uni MET;
LOW: add.u32 %r2, %r1, 7; shfl.sync.bfly.b32 %r2, %r2, 31, 31, 0xffffffff;
MET:
)";

/// What `body` leaves in %r7 of each thread.
std::vector<std::uint32_t> results_of(const std::string& body, const std::string& functions = "") {
    Array<std::uint32_t> out(threads);
    run(two_places + body + "\nmad.wide.u32 %l0, %r60, 4, %l60; st.global.u32 [%l0], %r7;", {1}, {threads}, {out.address()},
        ".shared .align 16 .b8 tile[32];\n" + functions);
    return out.values();
}

} // namespace

TEST_CASE("lanes in step: one that holds a lock is not kept from giving it back", "[kernels][spin]") {
    // The others go round without a point; in the section that the lock guards there are some.
    const auto results = results_of(R"(
    TRY: atom.shared.cas.b32 %r3, [%r8], 0, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra TRY;
    ld.volatile.shared.u32 %r4, [%r8 + 4]; add.u32 %r4, %r4, 1; st.volatile.shared.u32 [%r8 + 4], %r4;
    ld.volatile.shared.u32 %r5, [%r8 + 8]; add.u32 %r5, %r5, %r4; st.volatile.shared.u32 [%r8 + 8], %r5;
    membar.cta; atom.shared.exch.b32 %r3, [%r8], 0;
    bar.warp.sync 0xffffffff; ld.volatile.shared.u32 %r7, [%r8 + 8];
    )");
    for (std::uint32_t result : results) CHECK(result == 32 * 33 / 2);
}

TEST_CASE("lanes in step: each waits for the one before it in one loop", "[kernels][spin]") {
    const auto results = results_of(R"(
    WAIT: ld.volatile.shared.u32 %r3, [%r8]; setp.ne.u32 %p1, %r3, %r1; @%p1 bra WAIT;
    ld.volatile.shared.u32 %r4, [%r8 + 4]; mad.lo.u32 %r7, %r4, 3, %r1; st.volatile.shared.u32 [%r8 + 4], %r7;
    add.u32 %r3, %r3, 1; membar.cta; st.volatile.shared.u32 [%r8], %r3;
    )");
    std::uint32_t value = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
        value = value * 3 + lane;
        CHECK(results[lane] == value);
        CHECK(results[lane + 32] == value);
    }
}

TEST_CASE("lanes in step: each waits for the one behind it, which comes further on", "[kernels][spin]") {
    // Arms of four lanes, the first of which waits for the second, and so on; the last one sets all off.
    std::string body = "shr.u32 %r3, %r1, 3; mov.u32 %r7, 0;\n";
    for (unsigned arm = 0; arm < 4; ++arm) {
        const std::string n = std::to_string(arm), expected = std::to_string(3 - arm);
        body += "setp.ne.u32 %p1, %r3, " + n + "; @%p1 bra NEXT" + n + ";\n";
        body += "WAIT" + n + ": ld.volatile.shared.u32 %r4, [%r8]; setp.lt.u32 %p2, %r4, " + expected + "; @%p2 bra WAIT" + n + ";\n";
        body += "ld.volatile.shared.u32 %r5, [%r8 + 4]; st.volatile.shared.u32 [%r8 + 4], %r1; add.u32 %r7, %r7, %r4;\n";
        body += "membar.cta; st.volatile.shared.u32 [%r8], " + std::to_string(4 - arm) + ";\nNEXT" + n + ":\n";
    }
    const auto results = results_of(body);
    for (unsigned thread = 0; thread < threads; ++thread) CHECK(results[thread] >= 3 - thread % 32 / 8);
}

TEST_CASE("lanes in step: a lane waits for one that is at a point in a function", "[kernels][spin][calls]") {
    const auto results = results_of(R"(
    setp.eq.u32 %p1, %r1, 9; @%p1 bra SET;
    WAIT: ld.volatile.shared.u32 %r7, [%r8]; setp.eq.u32 %p2, %r7, 0; @%p2 bra WAIT;
    bra.uni JOIN;
    SET: call (%r7), f, (%r8, %r1);
    JOIN:
    )",
        ".func (.reg .b32 r) f(.reg .b32 at, .reg .b32 n) { .reg .pred p; .reg .b32 m;\n"
        "ld.volatile.shared.u32 m, [at + 4]; add.u32 m, m, 1; st.volatile.shared.u32 [at + 4], m; ld.volatile.shared.u32 r, [at + 4];\n"
        "setp.eq.u32 p, n, 0; @p bra END; sub.u32 m, n, 1; call (r), f, (at, m); ret;\nEND: st.volatile.shared.u32 [at], r; ret; }\n");
    for (std::uint32_t result : results) CHECK(result == 10);
}

TEST_CASE("lanes in step: a loop of many rounds that one lane alone makes", "[kernels]") {
    const auto results = results_of(R"(
    mov.u32 %r7, 0; setp.ne.u32 %p1, %r1, 3; @%p1 bra JOIN;
    ROUND: st.volatile.shared.u32 [%r8], %r7; ld.volatile.shared.u32 %r3, [%r8 + 4]; add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 50000; @%p2 bra ROUND;
    JOIN: bar.warp.sync 0xffffffff; ld.volatile.shared.u32 %r7, [%r8];
    )");
    for (std::uint32_t result : results) CHECK(result == 49999);
}
