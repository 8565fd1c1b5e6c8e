// SPDX-License-Identifier: Apache-2.0
// Lanes of one warp that wait for each other: they need program counters, whatever form is asked for.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

TEST_CASE("lanes of a warp take turns at a spin lock", "[kernels][spin]") {
    Array<std::uint32_t> lock(1), count(1);
    run(R"(
    try:
        atom.acquire.gpu.global.cas.b32 %r0, [%l60], 0, 1;
        setp.ne.u32 %p0, %r0, 0;
        @%p0 bra try;
        ld.volatile.global.u32 %r1, [%l61];
        add.u32 %r1, %r1, 1;
        st.volatile.global.u32 [%l61], %r1;
        membar.gl;
        atom.release.gpu.global.exch.b32 %r2, [%l60], 0;
    )", {3}, {70}, {lock.address(), count.address()});
    CHECK(count.values()[0] == 210);
    CHECK(lock.values()[0] == 0);
}

// Hidden: ctest runs these two by themselves, with the default order and with random ones, and with a limit of time: whoever holds
// what the others wait for must get its turn among thousands that only look.
TEST_CASE("three blocks of 1,024 threads take turns at one spin lock", "[.][crowd]") {
    Array<std::uint32_t> lock(1), count(1);
    run(R"(
        mov.u32 %r3, 2;
    try:
        atom.acquire.gpu.global.cas.b32 %r0, [%l60], 0, 1;
        setp.ne.u32 %p0, %r0, 0;
        @%p0 bra try;
        ld.volatile.global.u32 %r1, [%l61];
        add.u32 %r1, %r1, 1;
        st.volatile.global.u32 [%l61], %r1;
        membar.gl;
        atom.release.gpu.global.exch.b32 %r2, [%l60], 0;
        sub.u32 %r3, %r3, 1;
        setp.ne.u32 %p0, %r3, 0;
        @%p0 bra try;
    )", {3}, {1024}, {lock.address(), count.address()});
    CHECK(count.values()[0] == 2 * 3 * 1024);
    CHECK(lock.values()[0] == 0);
}

TEST_CASE("each of 1,024 threads of four blocks waits for the next one", "[.][crowd]") {
    Array<std::uint32_t> flags(1025);
    run(R"(
        sub.u32 %r3, 1023, %r62;
        mad.wide.u32 %l0, %r62, 4, %l60;
        setp.eq.u32 %p0, %r3, 0;
        mov.u32 %r0, 0;
        @%p0 bra go;
    wait:
        ld.volatile.global.u32 %r0, [%l0+4];
        setp.eq.u32 %p1, %r0, 0;
        @%p1 bra wait;
    go:
        add.u32 %r0, %r0, 1;
        st.volatile.global.u32 [%l0], %r0;
    )", {4}, {256}, {flags.address()});
    std::vector<std::uint32_t> expected(1025);
    for (std::uint32_t i = 0; i < 1024; ++i) expected[i] = 1024 - i;
    CHECK(flags.values() == expected);
}
