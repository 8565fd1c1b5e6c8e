// SPDX-License-Identifier: Apache-2.0
// Which accumulators of products stay packed over the rounds of a loop.
#include "graph_fixture.h"

#include "translator/analysis/build/loop_accumulators.h"
#include "translator/analysis/plans/barrier_regions.h"
#include "translator/analysis/plans/plan_linearization.h"

#include <algorithm>
#include <ostream>

using namespace ptarmigan;
using namespace ptarmigan::translator;

namespace {

const std::string begin = "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2;\n"
                          "mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n"
                          "mov.f32 %f4, %f0; mov.f32 %f5, %f0; mov.f32 %f6, %f0; mov.f32 %f7, %f0;\n"
                          "ld.global.b32 %r10, [%rd1]; ld.global.b32 %r11, [%rd1+128]; ld.global.b32 %r12, [%rd1+256];\n";
std::string product(const std::string& d) {
    return "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " + d + ", {%r10, %r11, %r10, %r11}, {%r12, %r12}, " + d + ";\n";
}
/// Two accumulators that make a pair.
const std::string products = product("{%f0, %f1, %f2, %f3}") + product("{%f4, %f5, %f6, %f7}");
const std::string round_end = "add.u32 %r1, %r1, -1; setp.ne.u32 %p1, %r1, 0; @%p1 bra ROUND;\n";
const std::string results = "st.global.f32 [%rd1], %f0; st.global.f32 [%rd1+128], %f3; st.global.f32 [%rd1+256], %f4;\n";

struct Kept {
    std::size_t banks = 0, accumulators = 0, groups = 0;
    bool operator==(const Kept&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Kept& kept) {
    return out << kept.banks << " banks, " << kept.accumulators << " accumulators, " << kept.groups << " groups";
}

/// What a kernel's loops keep. Lanes wait for others at no header that begins what is kept, whatever the region.
Kept kept(const std::string& body, unsigned warps = 1) {
    test::AnalysedKernel kernel(begin + body + " ret;", {32 * warps, 1, 1}, 32);
    const FunctionGraph& graph = kernel.graph;
    const ProductGroups groups(graph);
    const LoopAccumulators accumulators(graph, groups, [](BlockId) { return false; });
    Kept result{accumulators.banks().size(), 0, 0};
    for (const LoopAccumulators::Bank& bank : accumulators.banks()) {
        result.accumulators += bank.phis.size();
        for (const RegionView& view : plan_barriers(graph, kernel.shape).regions) {
            const LinearPlan plan = plan_linearization(graph, view);
            const std::vector<bool>& blends = plan.blocks.at(graph.forest.loops[bank.loop].header).blend;
            CHECK(std::count(blends.begin(), blends.end(), true) == 0);
        }
    }
    for (const Block& block : graph.blocks)
        for (const GraphInstruction& instruction : block.instructions) {
            const ProductGroup* group = groups.with(instruction.inst);
            result.groups += group && group->products.front() == &instruction.inst && accumulators.use(*group);
        }
    return result;
}

const Kept none{};

} // namespace

TEST_CASE("loop accumulators: chains that feed only each other", "[loop_accumulators]") {
    CHECK(kept("ROUND: " + products + round_end + results) == Kept{1, 1, 1});
    CHECK(kept("ROUND: bar.sync 0; " + products + "bar.sync 0; " + round_end + results, 4) == Kept{1, 1, 1});
    // One group after the other, with something between that keeps them apart.
    CHECK(kept("ROUND: " + products + "bar.sync 0; ld.global.b32 %r12, [%rd1]; " + products + round_end + results, 4) == Kept{1, 1, 2});
    // The test comes first: what the header has leaves the loop.
    CHECK(kept("ROUND: setp.eq.u32 %p2, %r1, 0; @%p2 bra DONE; add.u32 %r1, %r1, -1; " + products + "bra ROUND;\nDONE: " + results) == Kept{1, 1, 1});
    // A barrier on one side only, as with two stages of which the last is not filled.
    CHECK(kept("ROUND: setp.eq.u32 %p2, %r1, 1; @%p2 bra LAST; bar.sync 0; LAST: " + products + "bar.sync 0; " + round_end + results, 4) == Kept{1, 1, 1});
    // Tiles one after the other.
    CHECK(kept("TILE: mov.u32 %r3, 4; ROUND: " + products + "add.u32 %r3, %r3, -1; setp.ne.u32 %p2, %r3, 0; @%p2 bra ROUND;\n" + results +
               "add.u32 %r1, %r1, -1; setp.ne.u32 %p1, %r1, 0; @%p1 bra TILE;\n") == Kept{1, 1, 1});
}

TEST_CASE("loop accumulators: a product by itself", "[loop_accumulators]") {
    const std::string one = product("{%f0, %f1, %f2, %f3}");
    CHECK(kept("ROUND: " + one + round_end + results) == Kept{1, 1, 1});
    // Between two of them warps meet.
    CHECK(kept("ROUND: " + one + "bar.sync 0; " + one + round_end + results) == Kept{1, 1, 2});
    CHECK(kept("ROUND: mul.f32 %f3, %f3, 0f3f000000; " + one + round_end + results) == none);
}

TEST_CASE("loop accumulators: what others read stays in registers", "[loop_accumulators]") {
    CHECK(kept(products + results) == none);
    CHECK(kept("ROUND: " + products + "mul.f32 %f3, %f3, 0f3f000000; " + round_end + results) == none);
    CHECK(kept("ROUND: mul.f32 %f3, %f3, 0f3f000000; " + products + round_end + results) == none);
    CHECK(kept("ROUND: " + products + "st.global.f32 [%rd1], %f5; " + round_end + results) == none);
    CHECK(kept("ROUND: " + products + "add.f32 %f8, %f8, %f1; " + round_end + results + "st.global.f32 [%rd1], %f8;") == none);
    // Lanes leave in different rounds.
    CHECK(kept("ROUND: " + products + "add.u32 %r1, %r1, -1; setp.gt.u32 %p1, %r1, %r2; @%p1 bra ROUND;\n" + results) == none);
    // What an earlier round had leaves behind a product of the next one.
    CHECK(kept("ROUND: mov.f32 %f8, %f1; " + products + round_end + results + "st.global.f32 [%rd1], %f8;") == none);
    // The registers of an accumulator change places.
    CHECK(kept("ROUND: " + products + "mov.f32 %f8, %f0; mov.f32 %f0, %f1; mov.f32 %f1, %f8; " + round_end + results) == none);
    // Accumulators change places: a pair of them with another.
    const std::string four = "mov.f32 %f8, %f0; mov.f32 %f9, %f0; mov.f32 %f10, %f0; mov.f32 %f11, %f0; mov.f32 %f12, %f0; mov.f32 %f13, %f0;\n"
                             "mov.f32 %f14, %f0; mov.f32 %f15, %f0; ROUND: " + products + product("{%f8, %f9, %f10, %f11}") +
                             product("{%f12, %f13, %f14, %f15}");
    CHECK(kept(four + round_end + results + "st.global.f32 [%rd1], %f8;") == Kept{1, 2, 1});
    std::string swaps;
    for (int i = 0; i < 8; ++i) {
        const std::string first = "%f" + std::to_string(i), second = "%f" + std::to_string(i + 8);
        swaps += "mov.f32 %f16, " + first + "; mov.f32 " + first + ", " + second + "; mov.f32 " + second + ", %f16;\n";
    }
    CHECK(kept(four + swaps + round_end + results + "st.global.f32 [%rd1], %f8;") == none);
    // Only some rounds multiply.
    CHECK(kept("ROUND: and.b32 %r3, %r1, 1; setp.eq.u32 %p2, %r3, 0; @%p2 bra NEXT; " + products + "NEXT: " + round_end + results) == none);
}

TEST_CASE("loop accumulators: a warp's tile of 64 x 64, two products deep, is one group", "[loop_accumulators]") {
    const auto braced = [](const char* name, int first, int count) {
        std::string text = "{";
        for (int i = 0; i < count; ++i) text += (i ? ", %" : "%") + std::string(name) + std::to_string(first + i);
        return text + "}";
    };
    std::string text = ".reg .b32 %a<32>; .reg .b32 %b<32>; .reg .f32 %d<128>;\n";
    for (int i = 0; i < 128; ++i) text += "mov.f32 %d" + std::to_string(i) + ", 0f00000000;\n";
    text += "ROUND: ";
    for (int i = 0; i < 64; ++i)
        text += std::string("ld.global.b32 %") + (i < 32 ? "a" : "b") + std::to_string(i % 32) + ", [%rd1+" + std::to_string(128 * i) + "];\n";
    for (int depth = 0; depth < 2; ++depth)
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 8; ++j) {
                const std::string d = braced("d", 4 * (8 * i + j), 4);
                text += "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " + d + ", " + braced("a", 4 * (4 * depth + i), 4) + ", " +
                        braced("b", 2 * (8 * depth + j), 2) + ", " + d + ";\n";
            }
    text += round_end;
    for (int i = 0; i < 128; ++i) text += "st.global.f32 [%rd1+" + std::to_string(128 * i) + "], %d" + std::to_string(i) + ";\n";
    CHECK(kept(text) == Kept{1, 16, 1});
}
