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
