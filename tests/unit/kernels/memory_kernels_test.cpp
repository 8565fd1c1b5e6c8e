// SPDX-License-Identifier: Apache-2.0
// Memory instructions in whole kernels: types, vectors, spaces, orderings.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <numeric>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

template <class T> std::vector<T> iota(std::size_t size, T first = 0) {
    std::vector<T> values(size);
    std::iota(values.begin(), values.end(), first);
    return values;
}

constexpr unsigned threads = 100; ///< not a multiple of the warp

} // namespace

TEST_CASE("narrow loads extend by their type, narrow stores truncate", "[kernels][memory]") {
    std::vector<std::uint8_t> bytes(threads * 2);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::uint8_t(i * 37 + 11);
    Array<std::uint8_t> in(bytes), out8(threads * 2);
    Array<std::int32_t> out(threads * 4);
    run(R"(
        mul.wide.u32 %l0, %r62, 2;
        add.u64 %l1, %l60, %l0;
        ld.global.u8 %r0, [%l1];
        ld.global.s8 %r1, [%l1];
        ld.global.u16 %r2, [%l1];
        ld.global.s16 %r3, [%l1];
        mul.wide.u32 %l2, %r62, 16;
        add.u64 %l3, %l61, %l2;
        st.global.v4.b32 [%l3], {%r0, %r1, %r2, %r3};
        add.u64 %l4, %l62, %l0;
        st.global.u8 [%l4], %r2;
        st.global.b8 [%l4+1], %r1;
    )", {1}, {threads}, {in.address(), out.address(), out8.address()});
    auto results = out.values();
    auto stored = out8.values();
    for (unsigned i = 0; i < threads; ++i) {
        std::uint16_t half = std::uint16_t(bytes[2 * i] | bytes[2 * i + 1] << 8);
        CHECK(results[4 * i] == bytes[2 * i]);
        CHECK(results[4 * i + 1] == std::int8_t(bytes[2 * i]));
        CHECK(results[4 * i + 2] == half);
        CHECK(results[4 * i + 3] == std::int16_t(half));
        CHECK(stored[2 * i] == std::uint8_t(half));
        CHECK(stored[2 * i + 1] == bytes[2 * i]);
    }
}

TEST_CASE("vector loads and stores keep their elements in order", "[kernels][memory]") {
    Array<std::uint16_t> in(iota<std::uint16_t>(threads * 4)), out(threads * 4);
    Array<double> in2(iota<double>(threads * 2)), out2(threads * 2);
    run(R"(
        mul.wide.u32 %l0, %r62, 8;
        add.u64 %l1, %l60, %l0;
        add.u64 %l2, %l61, %l0;
        ld.global.v4.u16 {%h0, %h1, %h2, %h3}, [%l1];
        st.global.v4.u16 [%l2], {%h3, %h2, %h1, %h0};
        mul.wide.u32 %l0, %r62, 16;
        add.u64 %l1, %l62, %l0;
        add.u64 %l2, %l63, %l0;
        ld.global.v2.f64 {_, %d1}, [%l1];
        ld.global.f64 %d0, [%l1];
        st.global.v2.f64 [%l2], {%d1, %d0};
    )", {1}, {threads}, {in.address(), out.address(), in2.address(), out2.address()});
    auto halves = out.values();
    auto doubles = out2.values();
    for (unsigned i = 0; i < threads; ++i) {
        for (unsigned k = 0; k < 4; ++k) CHECK(halves[4 * i + k] == 4 * i + 3 - k);
        CHECK(doubles[2 * i] == 2 * i + 1);
        CHECK(doubles[2 * i + 1] == 2 * i);
    }
}

TEST_CASE("128-bit values move whole, and mov packs and unpacks", "[kernels][memory]") {
    Array<std::uint64_t> in(iota<std::uint64_t>(threads * 2, 1)), out(threads * 4);
    run(R"(
        mul.wide.u32 %l0, %r62, 16;
        add.u64 %l1, %l60, %l0;
        mul.wide.u32 %l0, %r62, 32;
        add.u64 %l2, %l61, %l0;
        ld.global.b128 %q0, [%l1];
        st.global.b128 [%l2], %q0;
        mov.b128 {%l3, %l4}, %q0;
        mov.b64 {%r0, %r1}, %l3;
        mov.b32 {%h0, %h1}, %r0;
        mov.b32 %r2, {%h1, %h0};
        mov.b64 %l5, {%r1, %r2};
        mov.b128 %q1, {%l4, %l5};
        st.global.b128 [%l2+16], %q1;
    )", {1}, {threads}, {in.address(), out.address()});
    auto results = out.values();
    for (unsigned i = 0; i < threads; ++i) {
        std::uint64_t low = 2 * i + 1, high = 2 * i + 2;
        CHECK(results[4 * i] == low);
        CHECK(results[4 * i + 1] == high);
        CHECK(results[4 * i + 2] == high);
        CHECK(results[4 * i + 3] == (low << 16 | low >> 16) << 32);
    }
}

TEST_CASE("indices that wrap in 32 bits reach the wrapped elements", "[kernels][memory]") {
    // Element (thread - 5) mod 2^32, zero-extended, of an array whose base is moved back accordingly: lanes of one warp
    // lie on both sides of the wrap.
    Array<std::uint32_t> in(iota<std::uint32_t>(threads)), out(threads);
    run(R"(
        sub.u32 %r0, %r62, 5;
        setp.lt.u32 %p0, %r62, 5;
        mul.wide.u32 %l0, %r0, 4;
        mov.u64 %l1, 17179869184;
        selp.u64 %l2, %l1, 0, %p0;
        sub.u64 %l0, %l0, %l2;
        add.u64 %l0, %l0, %l60;
        ld.global.u32 %r1, [%l0+20];
        mul.wide.u32 %l3, %r62, 4;
        add.u64 %l3, %l3, %l61;
        st.global.u32 [%l3], %r1;
    )", {1}, {threads}, {in.address(), out.address()});
    CHECK(out.values() == iota<std::uint32_t>(threads));
    // A guarded access: the plain affine form would be wrong for the first lanes, which stay inactive.
    Array<std::uint32_t> shifted(threads);
    run(R"(
        sub.u32 %r0, %r62, 5;
        setp.lt.u32 %p0, %r62, 5;
        mul.wide.u32 %l0, %r0, 4;
        add.u64 %l1, %l0, %l60;
        add.u64 %l2, %l0, %l61;
        @%p0 bra DONE;
        ld.global.u32 %r1, [%l1];
        st.global.u32 [%l2], %r1;
    DONE:
    )", {1}, {threads}, {in.address(), shifted.address()});
    auto values = shifted.values();
    for (unsigned i = 0; i + 5 < threads; ++i) CHECK(values[i] == i);
    for (unsigned i = threads - 5; i < threads; ++i) CHECK(values[i] == 0);
}

TEST_CASE("local arrays belong to the thread, through local and generic addresses", "[kernels][memory]") {
    Array<std::uint32_t> out(threads * 2);
    run(R"(
        .local .align 16 .b8 array[64];
        mov.u64 %l0, array;
        mov.u32 %r0, 0;
    FILL:
        mad.lo.u32 %r1, %r62, 100, %r0;
        mul.wide.u32 %l1, %r0, 4;
        add.u64 %l2, %l0, %l1;
        st.local.u32 [%l2], %r1;
        add.u32 %r0, %r0, 1;
        setp.lt.u32 %p0, %r0, 16;
        @%p0 bra FILL;
        and.b32 %r2, %r62, 15;
        mul.wide.u32 %l1, %r2, 4;
        add.u64 %l2, %l0, %l1;
        cvta.local.u64 %l3, %l2;
        ld.u32 %r3, [%l3];
        cvta.to.local.u64 %l4, %l3;
        ld.local.u32 %r4, [array+60];
        st.local.u32 [%l4], 7;
        ld.local.u32 %r5, [%l2];
        add.u32 %r4, %r4, %r5;
        mul.wide.u32 %l5, %r62, 8;
        add.u64 %l5, %l5, %l60;
        st.global.v2.u32 [%l5], {%r3, %r4};
    )", {2}, {threads / 2}, {out.address()});
    auto results = out.values();
    for (unsigned i = 0; i < threads; ++i) {
        CHECK(results[2 * i] == i * 100 + (i & 15));
        CHECK(results[2 * i + 1] == i * 100 + 15 + 7);
    }
}

TEST_CASE("shared memory: static, dynamic, rows with a run-time pitch, generic addresses", "[kernels][memory]") {
    Array<std::uint32_t> out(256);
    std::uint64_t pitch = 17 * 4;
    run(R"(
        cvt.u32.u64 %r0, %l61;
        and.b32 %r1, %r60, 15;
        shr.u32 %r2, %r60, 4;
        mul.lo.u32 %r3, %r2, %r0;
        shl.b32 %r4, %r1, 2;
        add.u32 %r5, %r3, %r4;
        mov.u32 %r6, dynamic;
        add.u32 %r6, %r6, %r5;
        st.shared.u32 [%r6], %r60;
        mov.u32 %r7, fixed;
        shl.b32 %r8, %r60, 2;
        add.u32 %r7, %r7, %r8;
        st.shared.u32 [%r7], 1000;
        bar.sync 0;
        mul.lo.u32 %r9, %r1, %r0;
        shl.b32 %r10, %r2, 2;
        add.u32 %r11, %r9, %r10;
        mov.u32 %r12, dynamic;
        add.u32 %r12, %r12, %r11;
        cvt.u64.u32 %l1, %r12;
        cvta.shared.u64 %l2, %l1;
        ld.u32 %r13, [%l2];
        cvta.to.shared.u64 %l3, %l2;
        ld.shared.u32 %r14, [%l3];
        sub.u32 %r13, %r13, %r14;
        ld.shared.u32 %r15, [%r7];
        add.u32 %r13, %r13, %r14;
        add.u32 %r13, %r13, %r15;
        mul.wide.u32 %l4, %r60, 4;
        add.u64 %l4, %l4, %l60;
        st.global.u32 [%l4], %r13;
    )", {1}, {256}, {out.address(), pitch}, ".extern .shared .align 16 .b8 dynamic[];\n.shared .u32 fixed[256];", 16 * 17 * 4);
    auto results = out.values();
    for (unsigned i = 0; i < 256; ++i) CHECK(results[i] == 1000 + (i & 15) * 16 + (i >> 4));
}

TEST_CASE("module variables: initialisers, constants, and their addresses", "[kernels][memory]") {
    Array<std::uint32_t> out(threads);
    run(R"(
        and.b32 %r0, %r62, 3;
        mul.wide.u32 %l0, %r0, 4;
        mov.u64 %l1, table;
        add.u64 %l1, %l1, %l0;
        ld.const.u32 %r1, [%l1];
        ld.global.u64 %l2, [pointer];
        add.u64 %l2, %l2, %l0;
        ld.u32 %r2, [%l2];
        cvta.global.u64 %l3, %l2;
        ld.global.nc.u32 %r3, [numbers+4];
        add.u32 %r1, %r1, %r2;
        add.u32 %r1, %r1, %r3;
        mul.wide.u32 %l4, %r62, 4;
        add.u64 %l4, %l4, %l60;
        st.global.u32 [%l4], %r1;
    )", {1}, {threads}, {out.address()},
        ".const .u32 table[4] = {1, 2, 3, 4};\n.global .u32 numbers[4] = {10, 20, 30, 40};\n"
        ".global .u64 pointer = generic(numbers);");
    auto results = out.values();
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == 1 + i % 4 + 10 + i % 4 * 10 + 20);
}

TEST_CASE("isspacep tells the windows apart", "[kernels][memory]") {
    Array<std::uint32_t> out(3);
    run(R"(
        .local .u32 own;
        mov.u64 %l0, own;
        cvta.local.u64 %l0, %l0;
        mov.u64 %l1, tile;
        cvta.shared.u64 %l1, %l1;
        mov.u32 %r10, 0;
    NEXT:
        setp.eq.u32 %p0, %r10, 1;
        selp.b64 %l2, %l1, %l0, %p0;
        setp.eq.u32 %p0, %r10, 2;
        selp.b64 %l2, %l60, %l2, %p0;
        isspacep.local %p1, %l2;
        isspacep.shared %p2, %l2;
        isspacep.global %p3, %l2;
        selp.u32 %r1, 1, 0, %p1;
        selp.u32 %r2, 2, 0, %p2;
        selp.u32 %r3, 4, 0, %p3;
        or.b32 %r1, %r1, %r2;
        or.b32 %r1, %r1, %r3;
        mul.wide.u32 %l3, %r10, 4;
        add.u64 %l3, %l3, %l60;
        st.global.u32 [%l3], %r1;
        add.u32 %r10, %r10, 1;
        setp.lt.u32 %p0, %r10, 3;
        @%p0 bra NEXT;
    )", {1}, {32}, {out.address()}, ".shared .u32 tile[4];");
    CHECK(out.values() == std::vector<std::uint32_t>{1, 2, 4});
}

TEST_CASE("volatile, relaxed, acquire and release accesses of every width and shape", "[kernels][memory]") {
    Array<std::uint32_t> in(iota<std::uint32_t>(threads * 4)), out(threads * 4);
    run(R"(
        mul.wide.u32 %l0, %r62, 4;
        add.u64 %l1, %l60, %l0;
        add.u64 %l2, %l61, %l0;
        ld.volatile.global.u32 %r0, [%l1];
        ld.relaxed.gpu.global.u32 %r1, [%l1];
        ld.acquire.sys.global.u8 %r2, [%l1];
        ld.acquire.gpu.u32 %r3, [%l60+40];
        add.u32 %r0, %r0, %r1;
        add.u32 %r0, %r0, %r2;
        add.u32 %r0, %r0, %r3;
        st.release.gpu.global.u32 [%l2], %r0;
        st.volatile.global.u32 [%l2+400], %r1;
        st.relaxed.sys.u16 [%l2+800], %r1;
        fence.acq_rel.gpu;
        fence.sc.sys;
        membar.gl;
    )", {1}, {threads}, {in.address(), out.address()});
    auto results = out.values();
    for (unsigned i = 0; i < threads; ++i) {
        CHECK(results[i] == 2 * i + (i & 255) + 10);
        CHECK(results[100 + i] == i);
        CHECK(results[200 + i] == i);
    }
}

TEST_CASE("a block waits for another one's flag", "[kernels][memory]") {
    Array<std::uint32_t> flags(2), out(64);
    run(R"(
        setp.ne.u32 %p0, %r61, 1;
        @%p0 bra PRODUCE;
    WAIT:
        ld.acquire.gpu.global.u32 %r0, [%l60];
        setp.eq.u32 %p1, %r0, 0;
        @%p1 bra WAIT;
        ld.global.u32 %r1, [%l60+4];
        mul.wide.u32 %l0, %r60, 4;
        add.u64 %l0, %l0, %l61;
        st.global.u32 [%l0], %r1;
        bra DONE;
    PRODUCE:
        setp.ne.u32 %p2, %r60, 0;
        @%p2 bra DONE;
        st.global.u32 [%l60+4], 4711;
        st.release.gpu.global.u32 [%l60], 1;
    DONE:
    )", {2}, {64}, {flags.address(), out.address()});
    CHECK(out.values() == std::vector<std::uint32_t>(64, 4711));
}

TEST_CASE("neighbouring loads from scattered rows", "[kernels][memory]") {
    // Thread i reads four words and two doublewords from rows that start anywhere; every third thread has a wild
    // address and reads nothing. A store between two loads of a row is seen by the second.
    std::vector<std::uint32_t> words = iota<std::uint32_t>(threads * 8, 1000), starts(threads);
    for (unsigned i = 0; i < threads; ++i) starts[i] = i % 3 == 2 ? 0x7ff00000u : i * 37 % (threads * 4) * 2;
    Array<std::uint32_t> in(words), rows(starts), out(threads * 8);
    run(R"(
        mul.wide.u32 %l0, %r62, 4;
        add.u64 %l1, %l61, %l0;
        ld.global.u32 %r0, [%l1];
        mul.wide.u32 %l2, %r0, 4;
        add.u64 %l3, %l60, %l2;
        setp.gt.u32 %p0, %r0, 100000;
        @%p0 bra done;
        ld.global.u32 %r4, [%l3+12];
        ld.global.f32 %f1, [%l3+4];
        ld.global.s32 %r1, [%l3];
        ld.global.b32 %r3, [%l3+8];
        ld.global.u64 %l5, [%l3+8];
        ld.global.u64 %l4, [%l3];
        mov.b32 %r2, %f1;
        mul.wide.u32 %l6, %r62, 32;
        add.u64 %l7, %l62, %l6;
        st.global.v4.b32 [%l7], {%r1, %r2, %r3, %r4};
        st.global.v2.b64 [%l7+16], {%l4, %l5};
        ld.global.b32 %r5, [%l7];
        ld.global.b32 %r6, [%l7+4];
        ld.global.b32 %r7, [%l7+8];
        st.global.b32 [%l7+12], %r5;
        ld.global.b32 %r8, [%l7+12];
        sub.u32 %r9, %r8, %r5;
        add.u32 %r9, %r9, %r4;
        st.global.b32 [%l7+12], %r9;
    done:
        ret;
    )", {1}, {threads}, {in.address(), rows.address(), out.address()});
    auto results = out.values();
    for (unsigned i = 0; i < threads; ++i)
        for (unsigned k = 0; k < 8; ++k)
            CHECK(results[8 * i + k] == (i % 3 == 2 ? 0 : 1000 + starts[i] + k % 4));
}

TEST_CASE("neighbouring loads from evenly spaced rows that are aligned to their elements only", "[kernels][memory]") {
    for (unsigned first : {0u, 1u}) {
        Array<std::uint32_t> in(iota<std::uint32_t>(threads * 15 + 8)), out(threads * 4);
        run(R"(
            mad.lo.u32 %r0, %r62, 60, )" + std::to_string(first * 4) + R"(;
            cvt.u64.u32 %l0, %r0;
            add.u64 %l1, %l60, %l0;
            ld.global.u32 %r1, [%l1];
            ld.global.u32 %r2, [%l1+4];
            ld.global.u32 %r3, [%l1+8];
            ld.global.u32 %r4, [%l1+12];
            mul.wide.u32 %l2, %r62, 16;
            add.u64 %l3, %l61, %l2;
            st.global.v4.b32 [%l3], {%r1, %r2, %r3, %r4};
        )", {1}, {threads}, {in.address(), out.address()});
        auto results = out.values();
        for (unsigned i = 0; i < threads; ++i)
            for (unsigned k = 0; k < 4; ++k) CHECK(results[4 * i + k] == first + 15 * i + k);
    }
}

TEST_CASE("a guarded load over a constant: the loaded value decides comparisons too", "[kernels][memory]") {
    Array<std::uint32_t> in(iota<std::uint32_t>(threads)), out(threads);
    run(R"(
        mul.wide.u32 %l0, %r62, 4;
        add.u64 %l1, %l60, %l0;
        add.u64 %l2, %l61, %l0;
        setp.gt.u32 %p0, %r62, 10;
        mov.u32 %r0, 0;
        @%p0 ld.global.u32 %r0, [%l1];
        and.b32 %r1, %r0, 7;
        setp.le.u32 %p1, %r1, 2;
        selp.u32 %r2, 1, 2, %p1;
        st.global.u32 [%l2], %r2;
    )", {1}, {threads}, {in.address(), out.address()});
    auto results = out.values();
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == (i <= 10 || i % 8 <= 2 ? 1u : 2u));
}

TEST_CASE("a guarded result may be laid over bits of another type", "[kernels][memory]") {
    Array<float> in(iota<float>(threads)), out(threads);
    Array<double> in2(iota<double>(threads)), out2(threads);
    run(R"(
        mul.wide.u32 %l0, %r62, 4;
        add.u64 %l1, %l60, %l0;
        add.u64 %l2, %l61, %l0;
        mul.wide.u32 %l3, %r62, 8;
        add.u64 %l4, %l62, %l3;
        add.u64 %l5, %l63, %l3;
        setp.gt.u32 %p0, %r62, 10;
        mov.b32 %r0, 0;
        mov.b32 %f0, %r0;
        @%p0 ld.global.f32 %f0, [%l1];
        st.global.f32 [%l2], %f0;
        mov.b64 %d0, %l4;
        @%p0 ld.global.f64 %d0, [%l4];
        @!%p0 mov.f64 %d0, 0d0000000000000000;
        st.global.f64 [%l5], %d0;
    )", {1}, {threads}, {in.address(), out.address(), in2.address(), out2.address()});
    auto results = out.values();
    auto results2 = out2.values();
    for (unsigned i = 0; i < threads; ++i) {
        CHECK(results[i] == (i <= 10 ? 0.0f : float(i)));
        CHECK(results2[i] == (i <= 10 ? 0.0 : double(i)));
    }
}

TEST_CASE("a vector load under a guard that all threads share, used in other blocks", "[kernels][memory]") {
    Array<std::uint64_t> in(iota<std::uint64_t>(2 * threads)), out(2 * threads);
    for (std::uint64_t taken : {0u, 1u}) {
        run(R"(
            mul.wide.u32 %l0, %r62, 16;
            add.u64 %l1, %l60, %l0;
            add.u64 %l2, %l61, %l0;
            mov.u64 %l3, 7;
            mov.u64 %l4, 9;
            setp.ne.u64 %p0, %l62, 0;
            @%p0 ld.global.v2.u64 {%l3, %l4}, [%l1];
            setp.gt.u32 %p1, %r62, 10;
            @%p1 bra skip;
            add.u64 %l3, %l3, 1000;
        skip:
            st.global.v2.u64 [%l2], {%l3, %l4};
        )", {1}, {threads}, {in.address(), out.address(), taken});
        auto results = out.values();
        for (unsigned i = 0; i < threads; ++i) {
            CHECK(results[2 * i] == (taken ? 2 * i : 7) + (i <= 10 ? 1000 : 0));
            CHECK(results[2 * i + 1] == (taken ? 2 * i + 1 : 9));
        }
    }
}

TEST_CASE("elements of arrays by register, in every space", "[kernels][memory]") {
    Array<std::uint32_t> out(threads * 8);
    run(R"(
        .shared .u32 s[128];
        .local .u32 l[4];
        mul.wide.u32 %l0, %r62, 32;
        add.u64 %l1, %l60, %l0;
        and.b32 %r0, %r62, 3;
        ld.global.u32 %r1, table[%r0+1];
        add.u32 %r2, %r62, 7;
        st.shared.u32 s[%r62], %r2;
        bar.sync 0;
        xor.b32 %r3, %r62, 1;
        ld.shared.u32 %r4, s[%r3];
        ld.u32 %r5, s[%r62];
        cvt.u16.u32 %h0, %r0;
        ld.const.u16 %r6, small[%h0];
        st.local.u32 l[%r0], %r62;
        ld.local.u32 %r7, l[%r0];
        cvta.shared.u64 %l2, s[%r62];
        ld.u32 %r8, [%l2];
        mov.u64 %l3, table[%r0];
        ld.global.u32 %r9, [%l3+4];
        mov.u16 %h1, s;
        mov.u32 %r10, s;
        cvt.u32.u16 %r11, %h1;
        sub.u32 %r10, %r10, %r11;
        st.global.v4.f32 [%l1], {%r1, %r4, %r5, %r6};
        st.global.v4.u32 [%l1+16], {%r7, %r8, %r9, %r10};
    )", {1}, {threads}, {out.address()},
        ".global .u32 table[5] = {100, 101, 102, 103, 104};\n.const .u16 small[4] = {7, 8, 9, 10};\n");
    const auto results = out.values();
    for (unsigned i = 0; i < threads; ++i) {
        const unsigned n = i & 3;
        const std::vector<std::uint32_t> expected{101 + n, (i ^ 1) + 7, i + 7, 7 + n, i, i + 7, 101 + n, 0};
        const std::vector<std::uint32_t> got(results.begin() + 8 * i, results.begin() + 8 * i + 8);
        CHECK(got == expected);
    }
}

TEST_CASE("mov between vectors reads all elements first", "[kernels][memory]") {
    Array<std::uint32_t> out(threads * 4);
    run(R"(
        .reg .v4 .u32 %size;
        mul.wide.u32 %l0, %r62, 16;
        add.u64 %l1, %l60, %l0;
        mov.v4.u32 %size, %ntid;
        mov.u32 %r0, %r62;
        mov.u32 %r1, 5;
        mov.v2.u32 {%r0, %r1}, {%r1, %r0};
        st.global.v4.u32 [%l1], {%r0, %r1, %size.x, %size.y};
    )", {1}, {threads}, {out.address()});
    const auto results = out.values();
    for (unsigned i = 0; i < threads; ++i) {
        CHECK(results[4 * i] == 5);
        CHECK(results[4 * i + 1] == i);
        CHECK(results[4 * i + 2] == threads);
        CHECK(results[4 * i + 3] == 1);
    }
}

TEST_CASE("vectors of bytes and halfwords come back as they were stored", "[kernels][memory]") {
    // Stored and loaded at once, so that the compiler joins both; every second element is another in each thread.
    constexpr unsigned count = 64;
    Array<std::uint32_t> out(count * 4);
    run(R"(
        mov.u32 %r0, space;
        mad.lo.u32 %r1, %r60, 8, %r0;
        ld.global.u32 %r2, [%l60];
        add.u32 %r2, %r2, 9;
        mad.lo.u32 %r3, %r60, 7, 1;
        bar.sync 0;
        st.shared.v4.u8 [%r1], {%r2, %r3, %r2, %r60};
        ld.shared.v4.u8 {%r4, %r5, %r6, %r7}, [%r1];
        bar.sync 0;
        cvt.u16.u32 %h0, %r2;
        cvt.u16.u32 %h1, %r3;
        st.shared.v2.u16 [%r1+4], {%h0, %h1};
        ld.shared.v2.u16 {%h2, %h3}, [%r1+4];
        bar.sync 0;
        shl.b32 %r8, %r4, 8;
        or.b32 %r8, %r8, %r6;
        mov.b32 %r9, {%h2, %h3};
        mul.wide.u32 %l0, %r60, 16;
        add.u64 %l1, %l61, %l0;
        st.global.v4.b32 [%l1], {%r8, %r5, %r7, %r9};
    )", {1}, {count}, {Array<std::uint32_t>(1).address(), out.address()}, ".shared .align 16 .b8 space[512];");
    const auto results = out.values();
    for (std::uint32_t i = 0; i < count; ++i) {
        INFO(i);
        CHECK(results[4 * i] == 0x909);
        CHECK(results[4 * i + 1] == ((i * 7 + 1) & 0xff));
        CHECK(results[4 * i + 2] == i);
        CHECK(results[4 * i + 3] == ((i * 7 + 1) << 16 | 9));
    }
}

TEST_CASE("integers in sequence may get into a float's register", "[kernels]") {
    constexpr unsigned count = 64;
    Array<std::uint32_t> in(std::vector<std::uint32_t>{3, 4}), out(count * 2);
    run(R"(
        ld.global.u32 %r1, [%l60];
        ld.global.u32 %r2, [%l60+4];
        add.u32 %r3, %r60, 7;
        setp.eq.u32 %p0, %r1, 3;
        setp.eq.u32 %p1, %r2, 3;
        mov.b32 %f0, %r60;
        @%p0 bra first;
        mov.b32 %f0, %r3;
    first:
        mov.b32 %f1, %r60;
        @!%p1 mov.b32 %f1, %r3;
        neg.f32 %f2, %f0;
        neg.f32 %f3, %f1;
        mul.wide.u32 %l0, %r60, 8;
        add.u64 %l1, %l61, %l0;
        st.global.v2.f32 [%l1], {%f2, %f3};
    )", {1}, {count}, {in.address(), out.address()});
    const auto results = out.values();
    for (std::uint32_t i = 0; i < count; ++i) {
        CHECK(results[2 * i] == (i | 0x80000000));
        CHECK(results[2 * i + 1] == ((i + 7) | 0x80000000));
    }
}

// Symbols of ptxas' binaries say so: one variable per declaration, whatever calls or inlines the function.
TEST_CASE("variables declared in bodies live as long as the module", "[kernels][memory]") {
    Module module(R"(
        .version 9.0
        .target sm_90
        .address_size 64
        .global .u32 x = 1000;
        .func (.reg .u32 r) count() {
            .global .u32 x;
            atom.global.add.u32 r, [x], 1;
            ret;
        }
        .visible .entry k(.param .u64 out) {
            .reg .b64 %l<4>;
            .reg .b32 %r<8>;
            .global .u32 x[2] = {7, 8};
            .global .u64 at = x+4;
            .const .u32 c = 55;
            ld.param.u64 %l0, [out];
            call (%r0), count;
            call (%r0), count;
            ld.global.u64 %l1, [at];
            ld.global.u32 %r1, [%l1];
            add.u32 %r2, %r1, 1;
            st.global.u32 [x+4], %r2;
            ld.const.u32 %r2, [c];
            {
                .const .align 8 .b8 c[8] = {1, 2, 3, 4, 5};
                .global .u32 x = 99;
                ld.const.u32 %r3, [c+4];
                ld.u32 %r4, [x];
            }
            st.global.v4.u32 [%l0], {%r0, %r1, %r2, %r3};
            st.global.u32 [%l0+16], %r4;
            ret;
        }
        .visible .entry l(.param .u64 out) {
            .reg .b64 %l<4>;
            .reg .b32 %r<8>;
            ld.param.u64 %l0, [out];
            call (%r0), count;
            ld.global.u32 %r1, [x];
            st.global.v2.u32 [%l0], {%r0, %r1};
            ret;
        })", "statics.ptx");
    using Words = std::vector<std::uint32_t>;
    Array<std::uint32_t> out(5);
    for (std::uint32_t launch = 0; launch < 3; ++launch) {
        module.launch("k", {1}, {1}, {out.address()});
        synchronize();
        CHECK(out.values() == Words{2 * launch + 1, 8 + launch, 55, 5, 99});
    }
    module.launch("l", {1}, {1}, {out.address()});
    synchronize();
    CHECK((out.values()[0] == 6 && out.values()[1] == 1000));
}

TEST_CASE("lanes at a stride that is a parameter, narrowed to 32 bits", "[kernels][memory]") {
    // int(i * stride) as nvcc writes it: by shifts of the upper half, and by reading the lower half of the register.
    constexpr std::int64_t middle = 400;
    constexpr std::int64_t strides[] = {1, 0, 2, -1, -2, 3, std::int64_t{1} << 32, (std::int64_t{5} << 32) + 1, (std::int64_t{1} << 33) - 1};
    for (std::int64_t stride : strides) {
        Array<std::uint32_t> in(iota<std::uint32_t>(2 * middle)), out(2 * threads), stored(2 * middle);
        const auto bytes = std::uint64_t(middle * 4);
        run(R"(
            cvt.u64.u32 %l0, %r62;
            mul.lo.s64 %l1, %l0, %l63;
            shl.b64 %l2, %l1, 32;
            shr.s64 %l3, %l2, 30;
            add.s64 %l4, %l60, %l3;
            ld.global.u32 %r0, [%l4];
            cvt.s64.s32 %l5, %l1;
            shl.b64 %l6, %l5, 2;
            add.s64 %l7, %l60, %l6;
            ld.global.u32 %r1, [%l7];
            mul.wide.u32 %l8, %r62, 4;
            add.u64 %l9, %l61, %l8;
            st.global.u32 [%l9], %r0;
            st.global.u32 [%l9+400], %r1;
            add.s64 %l10, %l62, %l6;
            st.global.u32 [%l10], 7;
        )", {1}, {threads},
            {in.address() + bytes, out.address(), stored.address() + bytes, std::uint64_t(stride)});
        INFO("stride " << stride);
        std::vector<std::uint32_t> expected(2 * threads), marks(2 * middle);
        for (unsigned i = 0; i < threads; ++i) {
            const std::int64_t place = middle + std::int32_t(std::uint32_t(i * std::uint64_t(stride)));
            expected[i] = expected[threads + i] = std::uint32_t(place);
            marks[std::size_t(place)] = 7;
        }
        CHECK(out.values() == expected);
        CHECK(stored.values() == marks);
    }
}

TEST_CASE("lanes that come out side by side, or not, by a quotient and a remainder", "[kernels][memory]") {
    // rows[i / width] [i % width] of a matrix whose strides are parameters, copied to one of other strides.
    constexpr unsigned width = 24;
    constexpr std::uint64_t strides[][4] = {{width, 1, width, 1}, {1, 5, width, 1}, {width, 1, 1, 5}, {0, 1, 40, 1}, {1, 0, 40, 1}};
    for (const auto& [row_in, column_in, row_out, column_out] : strides) {
        Array<std::uint64_t> in(iota<std::uint64_t>(256)), out(256);
        Array<std::uint64_t> table(std::vector{row_in, column_in, row_out, column_out});
        run(R"(
            ld.global.v2.u64 {%l10, %l11}, [%l62];
            ld.global.v2.u64 {%l12, %l13}, [%l62+16];
            div.u32 %r0, %r62, 24;
            mul.lo.u32 %r1, %r0, 24;
            sub.u32 %r2, %r62, %r1;
            cvt.u64.u32 %l0, %r0;
            cvt.u64.u32 %l1, %r2;
            mul.lo.u64 %l2, %l0, %l10;
            mul.lo.u64 %l3, %l1, %l11;
            add.u64 %l4, %l2, %l3;
            shl.b64 %l5, %l4, 3;
            add.u64 %l6, %l60, %l5;
            ld.global.u64 %l7, [%l6];
            mul.lo.u64 %l2, %l0, %l12;
            mul.lo.u64 %l3, %l1, %l13;
            add.u64 %l4, %l2, %l3;
            shl.b64 %l5, %l4, 3;
            add.u64 %l6, %l61, %l5;
            st.global.u64 [%l6], %l7;
        )", {1}, {threads}, {in.address(), out.address(), table.address()});
        std::vector<std::uint64_t> expected(256);
        for (unsigned i = 0; i < threads; ++i)
            expected[i / width * row_out + i % width * column_out] = i / width * row_in + i % width * column_in;
        CHECK(out.values() == expected);
    }
}

TEST_CASE("a long kernel goes to memory by groups of lanes", "[kernels][memory]") {
    constexpr unsigned count = 128, additions = 450; // translator/llvm/long_code.h
    Array<std::uint8_t> in([] {
        std::vector<std::uint8_t> bytes(count * 16);
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::uint8_t(i * 37 + i / 256 + 11);
        return bytes;
    }());
    Array<std::uint8_t> copy(count * 16);
    Array<std::uint32_t> out(count * 4);
    std::string body = R"(
        mul.lo.u32 %r0, %r60, 7;
        add.u32 %r0, %r0, 3;
        and.b32 %r0, %r0, 127;
        and.b32 %r1, %r0, 31;
        shfl.sync.idx.b32 %r2, %r60, %r1, 31, 0xffffffff;
        mul.wide.u32 %l0, %r0, 16;
        add.u64 %l1, %l60, %l0;
        ld.global.v2.u64 {%l2, %l3}, [%l1];
        and.b32 %r3, %r60, 1;
        setp.ne.u32 %p0, %r3, 0;
        mov.u32 %r4, 1000;
        @%p0 ld.global.u8 %r4, [%l1+5];
        mov.u32 %r5, 0;
    )";
    for (unsigned i = 0; i < additions; ++i) body += "add.u32 %r5, %r5, %r0; xor.b32 %r5, %r5, %r60;\n";
    body += R"(
        add.u64 %l4, %l61, %l0;
        st.global.v2.u64 [%l4], {%l2, %l3};
        add.u64 %l5, %l62, %l0;
        st.global.v4.u32 [%l5], {%r2, %r4, %r5, %r0};
        @%p0 st.global.u32 [%l5+12], %r60;
    )";
    run(body, {1}, {count}, {in.address(), copy.address(), out.address()});
    CHECK(copy.values() == in.values());
    const std::vector<std::uint8_t> bytes = in.values();
    const std::vector<std::uint32_t> results = out.values();
    for (unsigned thread = 0; thread < count; ++thread) {
        const unsigned place = (thread * 7 + 3) % count;
        std::uint32_t sum = 0;
        for (unsigned i = 0; i < additions; ++i) sum = (sum + place) ^ thread;
        CHECK(results[place * 4] == (thread & ~31u) + place % 32);
        CHECK(results[place * 4 + 1] == (thread % 2 ? bytes[place * 16 + 5] : 1000u));
        CHECK(results[place * 4 + 2] == sum);
        CHECK(results[place * 4 + 3] == (thread % 2 ? thread : place));
    }
}
