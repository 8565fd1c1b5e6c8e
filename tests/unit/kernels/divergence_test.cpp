// SPDX-License-Identifier: Apache-2.0
// Functions that are called for real (recursion, pointers) whose lanes exit, wait for each other or meet inside; and who meets otherwise.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 100; ///< not a multiple of the warp

/// What `body` leaves in %r9 of each thread; %r8 is the thread's number and %l2 the address of 64 words of zeros. 77 where it
/// exits before.
std::vector<std::uint32_t> results_of(const std::string& functions, const std::string& body, unsigned count = threads) {
    Array<std::uint32_t> out(std::vector<std::uint32_t>(count, 77)), words(64);
    run("mul.wide.u32 %l0, %r62, 4; add.u64 %l1, %l60, %l0; mov.u32 %r8, %r62; mov.u64 %l2, %l61;\n" + body +
            "\nst.global.u32 [%l1], %r9;",
        {1}, {count}, {out.address(), words.address()}, functions);
    return out.values();
}

} // namespace

TEST_CASE("threads exit in a recursive function", "[kernels][calls]") {
    // A thread goes down (number % 8) levels; those with number % 3 == 0 exit at the bottom.
    const auto results = results_of(
        ".func (.reg .b32 r) f(.reg .b32 n, .reg .b32 leave) { .reg .pred p, q; .reg .b32 m;\n"
        "setp.eq.u32 p, n, 0; mov.u32 r, 0; @!p bra DOWN; setp.ne.u32 q, leave, 0; @q exit; ret;\n"
        "DOWN: sub.u32 m, n, 1; call (m), f, (m, leave); add.u32 r, m, n; ret; }\n",
        "and.b32 %r1, %r8, 7; rem.u32 %r2, %r8, 3; setp.eq.u32 %p1, %r2, 0; selp.u32 %r2, 1, 0, %p1; call (%r9), f, (%r1, %r2);");
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == (i % 3 == 0 ? 77 : (i & 7) * ((i & 7) + 1) / 2));
}

TEST_CASE("threads exit in a function called by a pointer, the others meet at barriers", "[kernels][calls]") {
    const auto results = results_of(
        ".shared .u32 sum;\n"
        ".func leaves(.reg .b32 a) { exit; }\n"
        ".func stays(.reg .b32 a) { red.shared.add.u32 [sum], a; ret; }\n",
        "setp.eq.u32 %p1, %r8, 0; @%p1 st.shared.u32 [sum], 0; bar.sync 0;\n"
        "and.b32 %r1, %r8, 1; setp.eq.u32 %p2, %r1, 0; mov.u64 %l4, leaves; mov.u64 %l5, stays; selp.b64 %l4, %l5, %l4, %p2;\n"
        "P: .callprototype _ (.reg .b32 _);\n"
        "call %l4, (%r8), P;\nbar.sync 0; vote.sync.ballot.b32 %r3, %p2, 0xffffffff; ld.shared.u32 %r9, [sum]; add.u32 %r9, %r9, %r3;");
    for (unsigned i = 0; i < threads; ++i) {
        const unsigned even = i < 96 ? 0x55555555u : 0x5u;
        CHECK(results[i] == (i % 2 ? 77 : 49 * 50 + even));
    }
}

TEST_CASE("a lane waits in one function for a lane in another", "[kernels][calls][spin]") {
    const auto results = results_of(
        ".func (.reg .b32 r) waits(.reg .b64 at) { .reg .pred p;\n"
        "AGAIN: ld.acquire.gpu.global.u32 r, [at]; setp.eq.u32 p, r, 0; @p bra AGAIN; ret; }\n"
        ".func (.reg .b32 r) sets(.reg .b64 at) { mov.u32 r, 5; st.release.gpu.global.u32 [at], 41; ret; }\n",
        // Thread 70 sets: others of its warp and of other warps wait.
        "setp.eq.u32 %p2, %r8, 70; mov.u64 %l4, waits; mov.u64 %l5, sets; selp.b64 %l4, %l5, %l4, %p2;\n"
        "P: .callprototype (.reg .b32 _) _ (.reg .b64 _);\n"
        "call (%r9), %l4, (%l2), P;\n");
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == (i == 70 ? 5 : 41));
}

TEST_CASE("a lane waits in a recursive function for a lane that did not call it", "[kernels][calls][spin]") {
    const auto results = results_of(
        ".func (.reg .b32 r) f(.reg .b64 at, .reg .b32 n) { .reg .pred p; .reg .b32 m;\n"
        "setp.eq.u32 p, n, 0; @p bra AGAIN; sub.u32 m, n, 1; call (r), f, (at, m); add.u32 r, r, 1; ret;\n"
        "AGAIN: ld.volatile.global.u32 r, [at]; setp.eq.u32 p, r, 0; @p bra AGAIN; ret; }\n",
        "and.b32 %r1, %r8, 7; setp.eq.u32 %p2, %r8, 3; mov.u32 %r9, 9; @%p2 bra SETS; call (%r9), f, (%l2, %r1); bra JOIN;\n"
        "SETS: membar.gl; st.volatile.global.u32 [%l2], 100;\nJOIN:");
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == (i == 3 ? 9 : 100 + (i & 7)));
}

TEST_CASE("lanes meet at a vote from different depths of a recursion", "[kernels][calls]") {
    // Each lane votes once, at its own depth, for all lanes of its warp.
    const auto results = results_of(
        ".func (.reg .b32 r) f(.reg .b32 n, .reg .b32 odd) { .reg .pred p, q; .reg .b32 m;\n"
        "setp.eq.u32 p, n, 0; @!p bra DOWN; setp.ne.u32 q, odd, 0; vote.sync.ballot.b32 r, q, 0xffffffff; ret;\n"
        "DOWN: sub.u32 m, n, 1; call (r), f, (m, odd); ret; }\n",
        "and.b32 %r1, %r8, 7; and.b32 %r2, %r8, 1; call (%r9), f, (%r1, %r2);");
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == (i < 96 ? 0xaaaaaaaau : 0xau));
}

TEST_CASE("lanes meet at a shuffle in different functions called by pointer", "[kernels][calls]") {
    const std::string body = " shfl.sync.bfly.b32 r, a, 1, 31, 0xffffffff;";
    const auto results = results_of(
        ".func (.reg .b32 r) f(.reg .b32 a) {" + body + " add.u32 r, r, 1000; ret; }\n"
        ".func (.reg .b32 r) g(.reg .b32 a) {" + body + " add.u32 r, r, 2000; ret; }\n",
        "and.b32 %r1, %r8, 1; setp.eq.u32 %p2, %r1, 0; mov.u64 %l4, f; mov.u64 %l5, g; selp.b64 %l4, %l4, %l5, %p2;\n"
        "P: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n"
        "call (%r9), %l4, (%r8), P;\n", 96);
    for (unsigned i = 0; i < 96; ++i) CHECK(results[i] == (i ^ 1) + (i & 1 ? 2000 : 1000));
}

TEST_CASE("a lane waits for another one and gives up after many rounds", "[kernels][spin]") {
    // The usual guard against hangs: count the rounds, trap when there are too many.
    const auto results = results_of("",
        "mov.u32 %r1, 0; setp.eq.u32 %p1, %r8, 40; @%p1 bra SETS;\n"
        "AGAIN: ld.volatile.global.u32 %r9, [%l2]; setp.ne.u32 %p2, %r9, 0; @%p2 bra JOIN; add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 1000000; @%p3 bra AGAIN;\n"
        "trap;\n"
        "SETS: mov.u32 %r9, 4; st.volatile.global.u32 [%l2], 6;\nJOIN:");
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == (i == 40 ? 4 : 6));
}

TEST_CASE("activemask behind an arm with another one sees the whole warp", "[kernels]") {
    // The manual promises no more than the lane itself; a GPU brings the lanes together, and so do all forms.
    const auto results = results_of("",
        "rem.u32 %r1, %r8, 3; setp.ne.u32 %p1, %r1, 1; mov.u32 %r2, 0; @%p1 bra JOIN;\n"
        "activemask.b32 %r2; popc.b32 %r2, %r2; mul.lo.u32 %r2, %r2, 100;\n"
        "JOIN: activemask.b32 %r3; popc.b32 %r3, %r3; add.u32 %r9, %r2, %r3;", 64);
    for (unsigned i = 0; i < 64; ++i) CHECK(results[i] == 32 + (i % 3 == 1 ? i < 32 ? 1100 : 1000 : 0));
}
