// SPDX-License-Identifier: Apache-2.0
// malloc, free and registers of the system, as an H100 with driver 580 answers (2026-11-22).
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

const char* const heap_functions = ".extern .func (.param .b64 result) malloc(.param .b64 size);\n.extern .func free(.param .b64 pointer);\n";

std::string call_malloc(const std::string& result, const std::string& size) {
    return "{ .param .b64 p; .param .b64 r; st.param.b64 [p], " + size + "; call (r), malloc, (p); ld.param.b64 " + result + ", [r]; }\n";
}
std::string call_free(const std::string& pointer) { return "{ .param .b64 p; st.param.b64 [p], " + pointer + "; call free, (p); }\n"; }

} // namespace

TEST_CASE("malloc: nothing is something, too much is null, places are aligned and reused", "[kernels][heap]") {
    Array<std::uint64_t> out(6);
    run(call_malloc("%l0", "0") + call_malloc("%l1", "1") + call_malloc("%l2", "0x10000000000") + call_malloc("%l3", "1048576") +
            "st.global.u64 [%l60], %l0; st.global.u64 [%l60+8], %l1; st.global.u64 [%l60+16], %l2; st.global.u64 [%l60+24], %l3;\n"
            "st.b8 [%l0], 1; st.b8 [%l1], 1; st.b64 [%l3+1048568], %l1;\n" +
            call_free("%l0") + call_free("%l1") + call_free("%l3") + call_malloc("%l4", "8000000") + call_free("%l4") +
            "st.global.u64 [%l60+32], %l4;\n",
        {1}, {1}, {out.address()}, heap_functions);
    const std::vector<std::uint64_t> values = out.values();
    CHECK(values[0] != 0);
    CHECK(values[0] != values[1]);
    CHECK(values[2] == 0);
    for (const std::uint64_t pointer : values) CHECK(pointer % 16 == 0);
    CHECK(values[3] != 0);
    CHECK(values[4] != 0);
}

TEST_CASE("free: null and foreign pointers are ignored", "[kernels][heap]") {
    Array<std::uint64_t> out(1);
    run(call_free("0") + call_free("%l60") +
            ".local .align 8 .b8 own[8]; mov.u64 %l0, own; cvta.local.u64 %l0, %l0;\n" + call_free("%l0") + "st.global.u64 [%l60], 7;\n",
        {1}, {1}, {out.address()}, heap_functions);
    CHECK(out.values()[0] == 7);
}

TEST_CASE("sizes of shared memory: asked for, in units, with the system's", "[kernels]") {
    Array<std::uint32_t> out(7);
    run("mov.u32 %r0, %dynamic_smem_size; mov.u32 %r1, %total_smem_size; mov.u32 %r2, %aggr_smem_size; mov.u32 %r3, %reserved_smem_offset_begin;\n"
        "mov.u32 %r4, %reserved_smem_offset_end; mov.u32 %r5, %reserved_smem_offset_cap; mov.u64 %l0, %current_graph_exec; cvt.u32.u64 %r6, %l0;\n"
        "st.global.v2.u32 [%l60], {%r0, %r1}; st.global.v2.u32 [%l60+8], {%r2, %r3}; st.global.v2.u32 [%l60+16], {%r4, %r5}; st.global.u32 [%l60+24], %r6;\n",
        {1}, {1}, {out.address()}, "", 1000);
    CHECK(out.values() == std::vector<std::uint32_t>{1000, 1024, 2024, 0, 288, 1024, 0});
}
