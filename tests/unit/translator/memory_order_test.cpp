// SPDX-License-Identifier: Apache-2.0
// The CPU's instructions for loads, stores, atomics and fences by their semantics and scope: a weaker one than asked for is a
// bug that tests on x86 never see.
#include "frontend/module_loader.h"
#include "translator/compile.h"

#include <catch2/catch.hpp>

#include <regex>
#include <string>

using namespace ptarmigan;

namespace {

/// Assembly of a kernel that runs `statement` on the global word at its parameter, one lane per step.
std::string assembly(const std::string& statement, const char* target) {
    const std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 p)\n{\n.reg .b32 %r<4>; .reg .b64 %l<2>;\n"
                             "ld.param.u64 %l0, [p]; ld.param.u32 %r0, [p];\n" + statement + "\nst.global.u32 [%l0+8], %r1;\nret;\n}\n";
    const auto loader = ptx::ModuleLoader::load(text, "order.ptx");
    translator::CompileOptions options;
    options.target = translator::named_target(target);
    options.lane_width = 1;
    translator::BlockShape shape;
    return translator::dump(*loader, "k", shape, options, "asm");
}

bool contains(const std::string& text, const std::string& pattern) { return std::regex_search(text, std::regex(pattern)); }

struct Row {
    const char* statement;
    const char *wanted, *unwanted; ///< regular expressions; null: anything goes
};

void check(const char* target, std::initializer_list<Row> rows) {
    for (const Row& row : rows) {
        const std::string code = assembly(row.statement, target);
        INFO(target << ": " << row.statement << "\n" << code);
        if (row.wanted) CHECK(contains(code, row.wanted));
        if (row.unwanted) CHECK_FALSE(contains(code, row.unwanted));
    }
}

} // namespace

TEST_CASE("memory order: AArch64") {
    const char* const ordered = "\\b(ldar|ldapr|stlr|ldaxr|stlxr|dmb|dsb)\\b|\\b(ldadd|swp|cas|ldset)(a|l|al)\\b";
    const char *const acquires = "\\b(ldaxr|ldadda|ldaddal|swpa|swpal|casa|casal)\\b", *const releases = "\\b(stlxr|ldaddl|ldaddal|swpl|swpal|casl|casal)\\b";
    check("aarch64", {
        {"ld.global.u32 %r1, [%l0];", nullptr, ordered},
        {"ld.relaxed.gpu.global.u32 %r1, [%l0];", nullptr, ordered},
        {"ld.volatile.global.u32 %r1, [%l0];", nullptr, ordered},
        {"ld.acquire.gpu.global.u32 %r1, [%l0];", "\\b(ldar|ldapr)\\b", nullptr},
        {"ld.acquire.sys.global.u32 %r1, [%l0];", "\\b(ldar|ldapr)\\b", nullptr},
        {"st.relaxed.gpu.global.u32 [%l0], %r0;", nullptr, ordered},
        {"st.release.gpu.global.u32 [%l0], %r0;", "\\bstlr\\b", nullptr},
        {"st.release.sys.global.u32 [%l0], %r0;", "\\bstlr\\b", nullptr},
        {"atom.relaxed.gpu.global.add.u32 %r1, [%l0], %r0;", "\\b(ldxr|ldadd)\\b", ordered},
        {"atom.global.add.u32 %r1, [%l0], %r0;", "\\b(ldxr|ldadd)\\b", ordered},
        {"atom.acquire.gpu.global.add.u32 %r1, [%l0], %r0;", acquires, nullptr},
        {"atom.release.gpu.global.add.u32 %r1, [%l0], %r0;", releases, nullptr},
        {"atom.acq_rel.gpu.global.add.u32 %r1, [%l0], %r0;", acquires, nullptr},
        {"atom.acq_rel.sys.global.add.u32 %r1, [%l0], %r0;", releases, nullptr},
        {"atom.acq_rel.gpu.global.exch.b32 %r1, [%l0], %r0;", acquires, nullptr},
        {"atom.acq_rel.gpu.global.exch.b32 %r1, [%l0], %r0;", releases, nullptr},
        {"atom.acq_rel.gpu.global.cas.b32 %r1, [%l0], %r0, 7;", acquires, nullptr},
        {"atom.acq_rel.gpu.global.cas.b32 %r1, [%l0], %r0, 7;", releases, nullptr},
        {"red.release.gpu.global.add.u32 [%l0], %r0;", releases, nullptr},
        {"fence.acq_rel.gpu;", "\\bdmb\\s+ish\\b", nullptr},
        {"fence.sc.gpu;", "\\bdmb\\s+ish\\b", nullptr},
        {"fence.sc.cta;", "\\bdmb\\s+ish\\b", nullptr},
        {"membar.gl;", "\\bdmb\\s+ish\\b", nullptr},
        {"membar.sys;", "\\bdmb\\s+ish\\b", nullptr},
        {"membar.cta;", "\\bdmb\\s+ish\\b", nullptr},
        {"fence.acq_rel.cta;", nullptr, ordered}, // a CTA runs on one thread at a time
    });
}

TEST_CASE("memory order: x86-64") {
    const char *const locked = "\\block\\b|\\bxchg", *const fenced = "\\bmfence\\b|\\block\\b";
    check("x86-64-v3", {
        {"ld.acquire.gpu.global.u32 %r1, [%l0];", nullptr, fenced},
        {"st.release.gpu.global.u32 [%l0], %r0;", nullptr, "\\bmfence\\b|\\block\\b|\\bxchg"},
        {"atom.relaxed.gpu.global.add.u32 %r1, [%l0], %r0;", locked, nullptr},
        {"atom.acq_rel.sys.global.exch.b32 %r1, [%l0], %r0;", locked, nullptr},
        {"atom.acq_rel.gpu.global.cas.b32 %r1, [%l0], %r0, 7;", locked, nullptr},
        {"fence.acq_rel.gpu;", nullptr, fenced},
        {"fence.sc.gpu;", fenced, nullptr},
        {"fence.sc.sys;", fenced, nullptr},
        {"membar.gl;", fenced, nullptr},
        {"membar.sys;", fenced, nullptr},
    });
}
