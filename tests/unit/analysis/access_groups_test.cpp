// SPDX-License-Identifier: Apache-2.0
// Which loads and stores of a block are made together, and where.
#include "graph_fixture.h"

#include "translator/analysis/memory/access_groups.h"

using namespace ptarmigan;

namespace {

/// %rd1: p + `bytes` * thread, %rd2: q + the same, %r1: shared memory + the same. As "L<number>@<place>" and "S<number>@<place>", places counted in the loads or
/// stores of the kernel.
std::string groups_of(const std::string& body, unsigned bytes = 16) {
    const std::string b = std::to_string(bytes);
    test::AnalysedKernel kernel("ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, " + b +
                                    "; mul.lo.u32 %r1, %r1, " + b + ";\nadd.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;\n" + body +
                                    "add.u32 %r2, %r2, %r3; add.u32 %r4, %r4, %r5; add.u32 %r2, %r2, %r4; st.volatile.global.u32 [%rd2], %r2; ret;",
                                {32, 1, 1}, 32);
    std::string result;
    for (std::uint32_t block = 0; block < kernel.graph.blocks.size(); ++block) {
        const translator::AccessGroups groups = translator::find_access_groups(kernel.graph, block);
        const auto tell = [&](const std::vector<translator::AccessGroup>& all, ptx::FormId form, char letter) {
            for (const translator::AccessGroup& group : all) {
                unsigned number = 0;
                for (const translator::GraphInstruction& instruction : kernel.graph.blocks[block].instructions) {
                    if (instruction.inst.form != form || instruction.inst.space == ptx::StateSpace::param) continue;
                    if (&instruction.inst == group.place)
                        result += std::string(result.empty() ? "" : " ") + letter + std::to_string(group.accesses.size()) + "@" + std::to_string(number);
                    ++number;
                }
            }
        };
        tell(groups.loads, ptx::FormId::ld, 'L');
        tell(groups.stores, ptx::FormId::st, 'S');
    }
    return result;
}

const std::string load[] = {"ld.global.u32 %r2, [%rd1];", "ld.global.u32 %r3, [%rd1+4];", "ld.global.u32 %r4, [%rd1+8];", "ld.global.u32 %r5, [%rd1+12];"};
const std::string store[] = {"st.global.u32 [%rd1], %r1;", "st.global.u32 [%rd1+4], %r1;", "st.global.u32 [%rd1+8], %r1;", "st.global.u32 [%rd1+12], %r1;"};
const std::string loads = load[0] + load[1] + load[2] + load[3], stores = store[0] + store[1] + store[2] + store[3];

} // namespace

TEST_CASE("access groups: neighbouring elements", "[access_groups]") {
    CHECK(groups_of(loads) == "L4@0");
    CHECK(groups_of(stores) == "S4@3");
    CHECK(groups_of(store[2] + store[0] + store[1]) == "S3@2");
    CHECK(groups_of(store[0] + store[2]).empty());
    CHECK(groups_of(load[0] + load[1] + load[2]) == "L3@0");
    CHECK(groups_of(load[0] + load[1] + load[2], 132) == "L2@0"); // three would read a fourth
    CHECK(groups_of(loads, 4) == "L4@0");                         // lanes share words
    CHECK(groups_of(stores, 4).empty());                          // and the order of the stores decides
    CHECK(groups_of(store[0] + store[1], 8) == "S2@1");
}

TEST_CASE("access groups: what comes between", "[access_groups]") {
    // Other elements, other memory.
    CHECK(groups_of(load[0] + store[0] + load[1] + store[1]) == "L2@0 S2@1");
    CHECK(groups_of(load[0] + "st.shared.u32 [%r1], %r2;" + load[1] + "st.shared.u32 [%r1+4], %r3;") == "L2@0 S2@1");
    CHECK(groups_of(store[0] + "ld.param.u32 %r5, [n];" + store[1]) == "S2@1");
    CHECK(groups_of(store[0] + "ld.global.nc.u32 %r5, [%rd2];" + store[1]) == "S2@1");
    // What may be the same.
    CHECK(groups_of(load[0] + "st.global.u32 [%rd2], %r1;" + load[1]).empty());
    CHECK(groups_of(store[0] + "ld.global.u32 %r5, [%rd2];" + store[1]).empty());
    CHECK(groups_of(store[0] + "ld.u32 %r5, [%rd2];" + store[1]).empty());
    CHECK(groups_of(store[0] + load[0] + store[1]).empty());
    CHECK(groups_of(store[0] + store[1] + store[0]) == "S2@1");
    CHECK(groups_of(store[1] + load[0] + store[2] + load[1]) == "L2@0"); // the second load must not pass the first store
    // What orders memory.
    for (const char* between : {"membar.gl;", "bar.sync 0;", "bar.warp.sync -1;", "ld.volatile.global.u32 %r5, [%rd2];", "atom.shared.add.u32 %r5, [%r1], 1;"}) {
        INFO(between);
        CHECK(groups_of(store[0] + between + store[1]).empty());
        CHECK(groups_of(load[0] + between + load[1]).empty());
    }
    CHECK(groups_of("setp.eq.u32 %p1, %r1, 0; @%p1 " + store[0] + "@%p1 " + store[1]).empty());
}
