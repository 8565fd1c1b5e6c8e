// SPDX-License-Identifier: Apache-2.0
// The addresses that a launch can work out are those that threads come to.
#include "graph_fixture.h"

#include "translator/analysis/loops/trace_addresses.h"

#include <array>
#include <cstring>

using namespace ptarmigan;

namespace {

constexpr std::uint64_t p = 0x10000000, q = 0x20000000;

translator::AddressProgram trace(const std::string& body) {
    test::AnalysedKernel kernel("ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r1, [n];"
                                "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r2, 128, %r3;" +
                                    body,
                                {128, 1, 1}, 32);
    translator::AddressProgram program = translator::trace_addresses(kernel.graph);
    REQUIRE(translator::is_consistent(program));
    return program;
}

/// Of a thread's accesses, those that are known.
std::vector<std::int64_t> addresses(const translator::AddressProgram& program, std::uint32_t n, std::uint32_t cta, std::uint32_t thread) {
    std::array<std::uint8_t, 20> parameters{};
    std::memcpy(parameters.data(), &p, 8);
    std::memcpy(parameters.data() + 8, &q, 8);
    std::memcpy(parameters.data() + 16, &n, 4);
    translator::AddressFinder finder(program, parameters);
    std::vector<std::int64_t> found;
    for (const translator::KnownAddress& access : finder.of({{1000, 1, 1}, {cta, 0, 0}, {thread, 0, 0}})) found.push_back(access.address);
    return found;
}

using Addresses = std::vector<std::int64_t>;

/// %rd3 = p + 4 * (element % n * 1000 + element / n), %rd4 = q + 4 * element.
const std::string transposed = "rem.u32 %r5, %r4, %r1; div.u32 %r6, %r4, %r1; mad.lo.u32 %r7, %r5, 1000, %r6;"
                               "mad.wide.u32 %rd3, %r7, 4, %rd1; mad.wide.u32 %rd4, %r4, 4, %rd2;";
const std::string copy = "ld.global.f32 %f1, [%rd3]; st.global.f32 [%rd4], %f1;";

} // namespace

TEST_CASE("trace: quotients and remainders of the thread's number", "[trace]") {
    const auto program = trace(transposed + copy + "ret;");
    CHECK(addresses(program, 300, 0, 0) == Addresses{p, q});
    CHECK(addresses(program, 300, 5, 7) == Addresses{p + 4 * (647 % 300 * 1000 + 647 / 300), q + 4 * 647});
}

TEST_CASE("trace: branches, guards and loops are followed", "[trace]") {
    const auto bounded = trace(transposed + "setp.ge.u32 %p1, %r4, %r1; @%p1 bra END;" + copy + "END: ret;");
    CHECK(addresses(bounded, 300, 2, 3).size() == 2);
    CHECK(addresses(bounded, 300, 2, 100).empty());
    const auto guarded = trace(transposed + "setp.lt.u32 %p1, %r4, %r1; mov.u64 %rd5, %rd3; @!%p1 mov.u64 %rd5, %rd2;"
                                            "@%p1 ld.global.f32 %f1, [%rd3]; st.global.f32 [%rd5], %f1; ret;");
    CHECK(addresses(guarded, 300, 0, 0) == Addresses{p, p});
    CHECK(addresses(guarded, 300, 9, 0) == Addresses{q});
    const auto loop = trace("mov.u32 %r8, 0; mov.u32 %r9, %r4; L: rem.u32 %r9, %r9, %r1; add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 3; @%p1 bra L;"
                            "mad.wide.u32 %rd3, %r9, 4, %rd1; mad.wide.u32 %rd4, %r8, 4, %rd2;" + copy + "ret;");
    CHECK(addresses(loop, 100, 1, 30) == Addresses{p + 4 * 58, q + 12});
}

TEST_CASE("trace: halves, reciprocals and selections", "[trace]") {
    // element / 3 by its reciprocal
    const auto program = trace("mul.hi.u32 %r5, %r4, 0xaaaaaaab; shr.u32 %r5, %r5, 1; min.u32 %r6, %r5, 1000; setp.gt.s32 %p1, %r6, 10;"
                               "selp.b32 %r7, %r6, 77, %p1; mov.b64 %rd5, {%r7, 0}; shl.b64 %rd5, %rd5, 2; add.u64 %rd3, %rd1, %rd5;"
                               "mov.b64 {%r8, %r9}, %rd3; mov.b64 %rd4, {%r8, %r9};" + copy + "ret;");
    CHECK(addresses(program, 1, 1, 2) == Addresses{p + 4 * 43, p + 4 * 43});
    CHECK(addresses(program, 1, 0, 9) == Addresses{p + 4 * 77, p + 4 * 77});
    CHECK(addresses(program, 1, 900, 9) == Addresses{p + 4 * 1000, p + 4 * 1000});
}

TEST_CASE("trace: what is loaded is not known", "[trace]") {
    const auto program = trace(transposed + "ld.global.u32 %r8, [%rd3]; mad.wide.u32 %rd5, %r8, 4, %rd2; st.global.u32 [%rd5], %r8;"
                                            "st.global.u32 [%rd4], %r8; ret;");
    CHECK(addresses(program, 300, 0, 1) == Addresses{p + 4000, q + 4});
}

TEST_CASE("trace: kernels whose CTAs go on evenly, or may see each other, have no program", "[trace]") {
    CHECK(trace("mad.wide.u32 %rd3, %r4, 4, %rd1; mad.wide.u32 %rd4, %r4, 4, %rd2;" + copy + "ret;").steps.empty());
    // rows of two-dimensional blocks
    CHECK(trace("mov.u32 %r5, %ctaid.y; mad.lo.u32 %r6, %r5, %r1, %r4; mad.wide.u32 %rd3, %r6, 4, %rd1; mov.u64 %rd4, %rd3;" + copy + "ret;").steps.empty());
    CHECK_FALSE(trace(transposed + copy + "ret;").steps.empty());
    CHECK(trace(transposed + copy + "atom.global.add.u32 %r8, [%rd2], 1; ret;").steps.empty());
    CHECK(trace(transposed + copy + "ld.volatile.global.u32 %r8, [%rd2]; st.global.u32 [%rd4], %r8; ret;").steps.empty());
    CHECK(trace(transposed + copy + "membar.gl; ret;").steps.empty());
    CHECK(trace(transposed + copy + "mov.u32 %r8, %smid; st.global.u32 [%rd4], %r8; ret;").steps.empty());
}
