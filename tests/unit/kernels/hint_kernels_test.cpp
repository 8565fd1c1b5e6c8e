// SPDX-License-Identifier: Apache-2.0
// Instructions that compute nothing: hints, profiler events, sleep; and rarely used kinds of loads and stores. They must leave alone
// what stands around them.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <numeric>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

std::string text_for_90a(const std::string& body, const std::string& globals = "") {
    const std::string usual = ".version 9.0\n.target sm_90\n";
    std::string text = kernel_text(body, globals);
    REQUIRE(text.rfind(usual, 0) == 0);
    return text.replace(0, usual.size(), ".version 9.0\n.target sm_90a\n");
}

/// The thread's own 8 bytes of `address`, or of p0, go through `statements` and stay what they were.
void check_harmless(const std::string& statements) {
    INFO(statements);
    std::vector<std::uint64_t> values(64);
    std::iota(values.begin(), values.end(), 0x1234567800000000u);
    Array<std::uint64_t> in(values), out(64);
    Module module(text_for_90a("mul.wide.u32 %l0, %r62, 8; add.u64 %l1, %l60, %l0; add.u64 %l2, %l61, %l0; and.b64 %l3, %l60, -128;\n"
                               "ld.global.b64 %l4, [%l1];\n" + statements + "\nst.global.b64 [%l2], %l4;\n",
                               ".const .align 128 .b8 map[128];"),
                  "test.ptx");
    module.launch("k", {2}, {32}, {in.address(), out.address(), std::uint64_t(0), std::uint64_t(0)}, 0);
    synchronize();
    CHECK(out.values() == values);
    CHECK(in.values() == values);
}

} // namespace

TEST_CASE("hints change nothing", "[kernels][memory]") {
    for (const char* hint :
         {"prefetch.global.L1 [%l1];", "prefetch.global.L2 [%l1];", "prefetch.L1 [%l1];", "prefetchu.L1 [%l1];",
          "prefetch.global.L2::evict_last [%l1];", "prefetch.L2::evict_normal [%l1];", "applypriority.global.L2::evict_normal [%l3], 128;",
          "mov.u64 %l5, map; prefetch.const.tensormap [%l5];", "mov.u64 %l5, map; cvta.const.u64 %l5, %l5; prefetch.tensormap [%l5];",
          "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %l5, [%l1], 128, 256; ld.global.L2::cache_hint.b64 %l4, [%l1], %l5;",
          "createpolicy.fractional.L2::evict_first.b64 %l5, 0.5; createpolicy.cvt.L2.b64 %l5, %l5; ld.global.L2::cache_hint.b64 %l4, [%l1], %l5;",
          "setmaxnreg.inc.sync.aligned.u32 240;", "setmaxnreg.dec.sync.aligned.u32 24;", "pmevent 15;", "pmevent.mask 0xf0f;", "nanosleep.u32 0;",
          "mov.u32 %r0, 3; nanosleep.u32 %r0;", "griddepcontrol.wait; griddepcontrol.launch_dependents;"})
        check_harmless(hint);
}

// What is discarded may be anything until it is written anew.
TEST_CASE("discarded memory can be written again", "[kernels][memory]") {
    Array<std::uint32_t> memory(64);
    run("and.b64 %l0, %l60, -128; discard.global.L2 [%l0], 128; discard.L2 [%l0+128], 128; bar.sync 0;\n"
        "mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l60; st.global.u32 [%l1], %r60;\n",
        {1}, {64}, {memory.address()});
    for (unsigned i = 0; i < 64; ++i) CHECK(memory.values()[i] == i);
}

TEST_CASE("mmio and uniform accesses", "[kernels][memory]") {
    check_harmless("st.mmio.relaxed.sys.global.b64 [%l2], %l4; ld.mmio.relaxed.sys.global.b64 %l4, [%l2]; ld.mmio.relaxed.sys.u16 %r0, [%l2+4];"
                   "setp.ne.u32 %p1, %r0, 0x5678; @%p1 trap;");
    check_harmless("ldu.global.b64 %l4, [%l1]; ldu.global.v2.u32 {%r0, %r1}, [%l1]; setp.ne.u32 %p1, %r1, 0x12345678; @%p1 trap;");
}

// The manual (9.7.19.2): between nothing and twice the time.
TEST_CASE("nanosleep sleeps, and no warp waits for another's", "[kernels]") {
    Array<std::uint64_t> out(256);
    const auto start = std::chrono::steady_clock::now();
    run("mov.u64 %l0, %globaltimer; nanosleep.u32 200000; mov.u64 %l1, %globaltimer; sub.u64 %l1, %l1, %l0;\n"
        "mul.wide.u32 %l2, %r62, 8; add.u64 %l2, %l2, %l60; st.global.u64 [%l2], %l1;\n",
        {1}, {256}, {out.address()});
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
    for (const std::uint64_t elapsed : out.values()) CHECK(elapsed < 5000000000u);
}

TEST_CASE("a change of the register count in an arm of a warp is none of its meetings", "[kernels][barriers]") {
    constexpr unsigned count = 64;
    Array<std::uint32_t> out(count);
    Module module(text_for_90a(R"(
        and.b32 %r0, %r60, 23; setp.eq.u32 %p0, %r0, 0; mov.u32 %r1, 1; @!%p0 bra OTHERS;
        mov.u32 %r1, 2; bra JOIN;
    OTHERS:
        setmaxnreg.inc.sync.aligned.u32 80; add.u32 %r1, %r60, 5;
    JOIN:
        setp.ne.u32 %p1, %r1, 2; bar.cta.red.popc.u32 %r2, 8, %p1; add.u32 %r2, %r2, %r1;
        mad.wide.u32 %l0, %r60, 4, %l60; st.global.u32 [%l0], %r2;
    )"), "test.ptx");
    module.launch("k", {1}, {count}, {out.address(), std::uint64_t(0), std::uint64_t(0), std::uint64_t(0)}, 0);
    synchronize();
    for (unsigned i = 0; i < count; ++i) CHECK(out.values()[i] == 60 + ((i & 23) == 0 ? 2 : i + 5));
}
