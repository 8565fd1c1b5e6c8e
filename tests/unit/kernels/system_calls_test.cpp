// SPDX-License-Identifier: Apache-2.0
// malloc, free and registers of the system, as an H100 with driver 580 answers (2026-11-22).
#include "kernel.h"

#include <catch2/catch.hpp>

#include <algorithm>

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
    CHECK(out.values() == std::vector<std::uint32_t>{1000, 1024, 2024, 1024, 1312, 1024, 0});
}

// cooperative_groups synchronises its tiles of several warps through memory at %reserved_smem_offset_1.
TEST_CASE("reserved shared memory is behind the kernel's own, to its last byte", "[kernels]") {
    constexpr std::uint32_t threads = 64, own = 4096; // a whole page: what lies behind it is not accessible otherwise
    Array<std::uint32_t> out(threads * 2);
    run("mov.u32 %r0, %tid.x; mov.u32 %r1, %reserved_smem_offset_1; mov.u32 %r2, dynamic;\n"
        "add.u32 %r3, %r2, 4092; st.shared.u32 [%r3], 77;\n"
        "shl.b32 %r4, %r0, 2; add.u32 %r4, %r4, %r1; xor.b32 %r5, %r0, 5; st.shared.u32 [%r4], %r5;\n"
        "cvt.u64.u32 %l0, %r1; cvta.shared.u64 %l0, %l0; bar.sync 0;\n"
        "xor.b32 %r6, %r0, 63; mul.wide.u32 %l1, %r6, 4; add.u64 %l0, %l0, %l1; ld.u32 %r7, [%l0]; ld.shared.u32 %r8, [%r3];\n"
        "mul.wide.u32 %l1, %r0, 8; add.u64 %l1, %l1, %l60; st.global.v2.u32 [%l1], {%r7, %r8};\n",
        {1}, {threads}, {out.address()}, ".extern .shared .align 16 .b8 dynamic[];\n", own);
    for (std::uint32_t t = 0; t < threads; ++t) {
        CHECK(out.values()[t * 2] == ((t ^ 63) ^ 5));
        CHECK(out.values()[t * 2 + 1] == 77);
    }
}

TEST_CASE("system registers: each of the table can be read", "[kernels]") {
    struct Entry {
        std::string spelling;
        const char* type;
        bool is_vector;
        unsigned count; ///< 0: no number in its name
    };
    constexpr int scalar = 0, vector = -1;
    const auto numbered = [](int count) { return count; };
    const std::vector<Entry> table = {
#define X(name, spelling, type, layout, major, minor, sm) {spelling, #type, (layout) == vector, unsigned(std::max(layout, 0))},
#include "frontend/isa/special_registers.def"
#undef X
    };
    std::string body;
    unsigned registers = 0;
    for (const Entry& entry : table) {
        std::vector<std::string> names;
        const std::size_t number = entry.spelling.find('#');
        for (unsigned i = 0; i < entry.count; ++i) names.push_back(std::string(entry.spelling).replace(number, 1, std::to_string(i)));
        if (entry.is_vector) names = {entry.spelling + ".x", entry.spelling + ".y", entry.spelling + ".z", entry.spelling + ".w"};
        if (names.empty()) names = {entry.spelling};
        for (const std::string& name : names) {
            if (entry.type == std::string("pred")) body += "mov.pred %p0, " + name + "; selp.u64 %l0, 1, 0, %p0;\n";
            else if (entry.type == std::string("u64")) body += "mov.u64 %l0, " + name + ";\n";
            else body += "mov.u32 %r0, " + name + "; cvt.u64.u32 %l0, %r0;\n";
            body += "st.global.u64 [%l60+" + std::to_string(8 * registers++) + "], %l0;\n";
        }
    }
    CHECK(registers > 80);
    Array<std::uint64_t> out(std::vector<std::uint64_t>(registers, 0x7777777777777777));
    run(body, {1}, {1}, {out.address()});
    for (std::uint64_t value : out.values()) CHECK(value != 0x7777777777777777);
    Array<std::uint64_t> counters({1, 1});
    run("mov.u32 %r0, %pm3; cvt.u64.u32 %l0, %r0; mov.u64 %l1, %pm7_64; st.global.v2.u64 [%l60], {%l0, %l1};", {1}, {1}, {counters.address()});
    CHECK(counters.values() == std::vector<std::uint64_t>{0, 0}); // undefined by the manual; nobody counts
}
