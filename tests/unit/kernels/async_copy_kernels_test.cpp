// SPDX-License-Identifier: Apache-2.0
// cp.async in whole kernels: sizes, padding with zeros, predicated sources, what other threads see after the wait.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <cstring>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 64;

/// Each thread copies 16 bytes to shared memory with `copy` (to [%r2] from [%l1], thread number in %r60), and its
/// neighbour writes them out.
std::vector<std::uint8_t> copied(const std::string& copy) {
    std::vector<std::uint8_t> bytes(threads * 16);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::uint8_t(i * 29 + 7) | 1;
    Array<std::uint8_t> in(bytes), out(threads * 16);
    run(R"(
        mul.wide.u32 %l0, %r60, 16;
        add.u64 %l1, %l60, %l0;
        add.u64 %l2, %l61, %l0;
        mov.u32 %r1, tile;
        shl.b32 %r3, %r60, 4;
        add.u32 %r2, %r1, %r3;
        mov.b32 %r4, 0;
        st.shared.v4.b32 [%r2], {%r4, %r4, %r4, %r4};
        )" + copy + R"(
        cp.async.commit_group;
        cp.async.wait_group 0;
        bar.sync 0;
        xor.b32 %r5, %r3, 16;
        add.u32 %r6, %r1, %r5;
        ld.shared.v4.b32 {%r8, %r9, %r10, %r11}, [%r6];
        xor.b64 %l3, %l0, 16;
        add.u64 %l2, %l61, %l3;
        st.global.v4.b32 [%l2], {%r8, %r9, %r10, %r11};
    )", {1}, {threads}, {in.address(), out.address()}, ".shared .align 16 .b8 tile[1024];");
    std::vector<std::uint8_t> result = out.values();
    // What was copied must be the source's; the caller looks at where zeros are.
    for (std::size_t i = 0; i < result.size(); ++i)
        if (result[i] != 0) CHECK(result[i] == bytes[i]);
    return result;
}

std::size_t copied_bytes(const std::vector<std::uint8_t>& result, unsigned thread) {
    std::size_t count = 0;
    while (count < 16 && result[thread * 16 + count] != 0) ++count;
    for (std::size_t i = count; i < 16; ++i) CHECK(result[thread * 16 + i] == 0);
    return count;
}

} // namespace

TEST_CASE("cp.async copies 4, 8 and 16 bytes", "[kernels][async]") {
    auto all = copied("cp.async.cg.shared.global [%r2], [%l1], 16;");
    auto eight = copied("cp.async.ca.shared::cta.global.L2::128B [%r2], [%l1], 8;");
    auto four = copied("cp.async.ca.shared.global [%r2], [%l1], 4;");
    for (unsigned t = 0; t < threads; ++t) {
        CHECK(copied_bytes(all, t) == 16);
        CHECK(copied_bytes(eight, t) == 8);
        CHECK(copied_bytes(four, t) == 4);
    }
}

TEST_CASE("cp.async pads with zeros behind src-size", "[kernels][async]") {
    auto result = copied("rem.u32 %r7, %r60, 17; cp.async.cg.shared.global [%r2], [%l1], 16, %r7;");
    for (unsigned t = 0; t < threads; ++t) CHECK(copied_bytes(result, t) == t % 17);
}

TEST_CASE("cp.async ignores its source where the predicate says so", "[kernels][async]") {
    auto result = copied("and.b32 %r7, %r60, 1; setp.ne.u32 %p1, %r7, 0;"
                         "cp.async.ca.shared.global [%r2], [%l1], 16, %p1;");
    for (unsigned t = 0; t < threads; ++t) CHECK(copied_bytes(result, t) == (t % 2 ? 0 : 16));
}
