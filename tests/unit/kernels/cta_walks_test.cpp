// SPDX-License-Identifier: Apache-2.0
// Copies of permuted arrays, whose CTAs run in another order than they are numbered, leave what they leave in order.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <numeric>

using namespace ptarmigan::test;

namespace {

/// out[e] = in[e % rows * pitch + e / rows], two elements a thread, as element-wise kernels take them.
void copy_transposed(std::uint64_t rows, std::uint64_t columns, std::uint64_t pitch) {
    const std::uint64_t count = rows * columns;
    std::vector<std::uint32_t> values(rows * pitch);
    std::iota(values.begin(), values.end(), 1u);
    const Array<std::uint32_t> in(values), out(std::vector<std::uint32_t>(count + 64, 0xeeeeeeee));
    std::string body = "cvt.u32.u64 %r1, %l62; cvt.u32.u64 %r2, %l63; shr.u64 %l3, %l62, 32; cvt.u32.u64 %r3, %l3;"
                       "mad.lo.u32 %r4, %r61, 256, %r60;\n";
    for (const char* next : {"SECOND", "END"}) {
        body += "setp.ge.u32 %p1, %r4, %r2; @%p1 bra END; rem.u32 %r5, %r4, %r1; div.u32 %r6, %r4, %r1; mad.lo.u32 %r7, %r5, %r3, %r6;"
                "mad.wide.u32 %l0, %r7, 4, %l60; ld.global.u32 %r8, [%l0]; mad.wide.u32 %l1, %r4, 4, %l61; st.global.u32 [%l1], %r8;"
                "add.u32 %r4, %r4, 128;\n";
        if (std::string(next) == "END") body += "END: ret;\n";
    }
    run(body, {static_cast<std::uint32_t>((count + 255) / 256)}, {128}, {in.address(), out.address(), rows | pitch << 32, count});
    const std::vector<std::uint32_t> result = out.values();
    std::size_t wrong = 0;
    for (std::uint64_t e = 0; e < count; ++e) wrong += result[e] != values[e % rows * pitch + e / rows];
    CHECK(wrong == 0);
    for (std::uint64_t e = count; e < count + 64; ++e) CHECK(result[e] == 0xeeeeeeee);
}

} // namespace

TEST_CASE("permuted copies are whole in whatever order CTAs run", "[kernels][memory][cta_order]") {
    copy_transposed(1024, 520, 1024); // columns of 4 CTAs, some left behind the last walk
    copy_transposed(1280, 300, 1100); // of 5
    copy_transposed(320, 1000, 2048); // 5 CTAs are 4 columns
    copy_transposed(1000, 533, 1024); // CTAs that begin anywhere
    copy_transposed(1031, 520, 1024);
}
