// SPDX-License-Identifier: Apache-2.0
// Shared memory at places that are computed from the threads' numbers, in order and close together or not
// (translator/lower/window_access.h), up to both of its ends.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <functional>

using namespace ptarmigan::test;

namespace {

constexpr std::uint32_t block = 256, words = 1024;

/// Where thread t goes: (a * t - (t & m) * b ^ x) + c.
struct Places {
    std::uint32_t a, m, b, x;
    std::uint32_t plain(std::uint32_t t) const { return (a * t - (t & m) * b) ^ x; }
};

} // namespace

TEST_CASE("words of shared memory in windows", "[kernels][memory]") {
    std::vector<Places> all;
    for (std::uint32_t reach = 1; reach <= 256; reach *= 2) all.push_back({2, reach - 1, 1, 0}); // a butterfly's
    for (std::uint32_t a : {1u, 2u, 3u, 4u}) all.push_back({a, 0, 0, 0});
    for (std::uint32_t x : {1u, 3u, 8u, 16u, 31u}) all.push_back({1, 0, 0, x});
    all.push_back({1, 1, 1, 0}); // pairs that share a word
    all.push_back({2, 15, 1, 0});
    all.push_back({3, 3, 2, 0});
    all.push_back({4, 31, 3, 0});
    const std::uint32_t active = GENERATE(256u, 250u, 17u);
    const bool at_end = GENERATE(false, true);
    for (const Places& places : all) {
        std::uint32_t c = 0;
        if (at_end) {
            std::uint32_t last = 0;
            for (std::uint32_t t = 0; t < block; ++t) last = std::max(last, places.plain(t));
            c = words - 1 - last;
        }
        // %r10: the place's address. The tile is read there, written there, and shown.
        const std::string body =
            "cvt.u32.u64 %r1, %l61; shr.u64 %l1, %l61, 32; cvt.u32.u64 %r2, %l1; cvt.u32.u64 %r3, %l62; shr.u64 %l1, %l62, 32; cvt.u32.u64 %r4, %l1;\n"
            "cvt.u32.u64 %r5, %l63; shr.u64 %l1, %l63, 32; cvt.u32.u64 %r6, %l1;\n"
            "mov.u32 %r7, tile; shl.b32 %r8, %r60, 2; add.u32 %r9, %r7, %r8;\n"
            "mad.lo.u32 %r20, %r60, 3, 5; st.shared.u32 [%r9], %r20; add.u32 %r20, %r20, 1000; st.shared.u32 [%r9+1024], %r20;\n"
            "add.u32 %r20, %r20, 1000; st.shared.u32 [%r9+2048], %r20; add.u32 %r20, %r20, 1000; st.shared.u32 [%r9+3072], %r20;\n"
            "mul.lo.u32 %r10, %r60, %r1; and.b32 %r11, %r60, %r2; mul.lo.u32 %r11, %r11, %r3; sub.u32 %r10, %r10, %r11; xor.b32 %r10, %r10, %r4;\n"
            "add.u32 %r10, %r10, %r5; shl.b32 %r10, %r10, 2; add.u32 %r10, %r7, %r10;\n"
            "mul.wide.u32 %l2, %r60, 4; add.u64 %l2, %l60, %l2; setp.ge.u32 %p1, %r60, %r6; bar.sync 0; @%p1 bra behind;\n"
            "ld.shared.u32 %r21, [%r10]; st.global.u32 [%l2], %r21;\n"
            "behind: bar.sync 0; @%p1 bra done; mad.lo.u32 %r22, %r60, 7, 100000; st.shared.u32 [%r10], %r22;\n"
            "done: bar.sync 0; ld.shared.u32 %r23, [%r9]; st.global.u32 [%l2+1024], %r23; ld.shared.u32 %r23, [%r9+1024]; st.global.u32 [%l2+2048], %r23;\n"
            "ld.shared.u32 %r23, [%r9+2048]; st.global.u32 [%l2+3072], %r23; ld.shared.u32 %r23, [%r9+3072]; st.global.u32 [%l2+4096], %r23;\n";
        std::vector<std::uint32_t> expected(block + words);
        for (std::uint32_t i = 0; i < words; ++i) expected[block + i] = i % block * 3 + 5 + i / block * 1000;
        for (std::uint32_t t = 0; t < active; ++t) expected[t] = expected[block + places.plain(t) + c];
        for (std::uint32_t t = 0; t < active; ++t) expected[block + places.plain(t) + c] = t * 7 + 100000;
        Array<std::uint32_t> out(block + words);
        run(body, {1}, {block},
            {out.address(), places.a | std::uint64_t(places.m) << 32, places.b | std::uint64_t(places.x) << 32,
             c | std::uint64_t(active) << 32},
            ".shared .align 4 .b8 tile[4096];\n");
        INFO("a " << places.a << " m " << places.m << " b " << places.b << " x " << places.x << " c " << c << " active " << active);
        CHECK((out.values() == expected));
    }
}
