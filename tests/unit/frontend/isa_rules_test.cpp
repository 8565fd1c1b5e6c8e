// SPDX-License-Identifier: Apache-2.0
// The rules beside the rows: words, targets, directives, numbers of elements, constraints, video
// selectors.
#include "frontend/isa/constraint_decoder.h"
#include "frontend/isa/directives.h"
#include "frontend/isa/form_matcher.h"
#include "frontend/isa/list_sizes.h"
#include "frontend/isa/special_registers.h"
#include "frontend/isa/targets.h"
#include "frontend/isa/video_selectors.h"
#include "frontend/isa/word_rules.h"
#include "tests/support/instruction_head.h"

#include <catch2/catch.hpp>

#include <set>

using namespace ptarmigan::ptx;
using ptarmigan::test::syntax_of;

namespace {

std::string rule(std::string_view head, Version version = {9, 0}, Target target = {90, 0}) {
    const InstructionSyntax syntax = syntax_of(head);
    return broken_word_rule(syntax.opcode, syntax.words, version, target);
}

/// Elements of an operand of the first row that takes the head; 99 if none does.
unsigned elements(std::string_view head, Role role) {
    FormMatcher matcher;
    const InstructionSyntax syntax = syntax_of(head);
    const auto& heads = matcher.heads(syntax);
    return heads.empty() ? 99 : list_size(heads.front(), role);
}

} // namespace

TEST_CASE("word rules: versions and targets") {
    CHECK(rule("ld.shared::cta.u32", {7, 8}) == "");
    CHECK(rule("ld.shared::cta.u32", {7, 7}) == "'.shared::cta' needs .version 7.8 or later");
    CHECK(rule("ld.shared::cluster.u32", {7, 8}, {80, 0}) ==
          "'.shared::cluster' needs .target sm_90 or later");
    CHECK(rule("st.shared::cluster.u32") == "");
}

TEST_CASE("word rules: words that exclude or need others") {
    CHECK(rule("ld.global.L1::no_allocate.ca.u32") != "");
    CHECK(rule("ld.global.L1::no_allocate.u32") == "");
    CHECK(rule("ld.shared.L2::128B.u32") != "");
    CHECK(rule("ld.L2::128B.u32") == "");
    CHECK(rule("mbarrier.arrive.release.b64").find("needs .cta or .cluster") != std::string::npos);
    CHECK(rule("mbarrier.arrive.release.cta.b64") == "");
    CHECK(rule("shfl.up.b32").find("needs .sync on sm_70") != std::string::npos);
    CHECK(rule("shfl.up.b32", {6, 3}) == "");
}

TEST_CASE("word rules: the order of words") {
    CHECK(rule("mma.sync.aligned.m16n8k8.col.row.f32.f16.f16.f32").find("'.col before .row'") == 0);
    CHECK(rule("mma.sync.aligned.row.m16n8k8.col.f32.f16.f16.f32") == "");
    CHECK(rule("mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32") == "");
    CHECK(rule("mma.sync.aligned.m8n8k4.col.row.f64.f64.f64.f64") != "");
    CHECK(rule("wmma.mma.sync.aligned.col.row.m8n8k32.s32.s4.s4.s32") != "");
    CHECK(rule("wmma.mma.sync.aligned.col.row.m16n16k16.f32.f32") == "");
    CHECK(rule("st.async.cluster.shared::cta.mbarrier::complete_tx::bytes.b32") != "");
    CHECK(rule("st.async.cluster.shared::cluster.mbarrier::complete_tx::bytes.b32") == "");
    CHECK(rule("st.async.shared::cta.mbarrier::complete_tx::bytes.b32") == "");
}

TEST_CASE("word rules: the first and the last type, and words that are missing") {
    CHECK(rule("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16") == "");
    CHECK(rule("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32") == "");
    CHECK(rule("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f32") != "");
    CHECK(rule("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f16") != "");
    CHECK(rule("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16") == "");
    CHECK(rule("atom.min.u64", {2, 3}, {20, 0}).find("without .global") != std::string::npos);
    CHECK(rule("atom.global.min.u64", {2, 3}, {20, 0}) == "");
    CHECK(rule("tex.cube.v4.f32.s32") != "");
    CHECK(rule("tex.cube.v4.s32.f32") == "");
}

TEST_CASE("word rules: results that must be dropped") {
    const auto sinks = [](std::string_view head) {
        const InstructionSyntax syntax = syntax_of(head);
        return result_must_sink(syntax.opcode, syntax.words);
    };
    CHECK(sinks("mbarrier.arrive.shared::cluster.b64"));
    CHECK_FALSE(sinks("mbarrier.arrive.shared::cta.b64"));
    CHECK_FALSE(sinks("ld.shared::cluster.b64"));
}

TEST_CASE("nearest spelling: the fewest changes, then what goes on") {
    CHECK(FormTable::get().nearest_opcode("addd").best() == "add");
    CHECK(FormTable::get().nearest_opcode("mowv").best() == "mov");
    CHECK(FormTable::get().nearest_opcode("frobnicate").best() == "");
    const std::string_view words[] = {"eq", "u32"};
    CHECK(FormTable::get().nearest_opcode("cmp", words).best() == ""); // cp takes no .eq
    CHECK(FormTable::get().nearest_opcode("SETP", words).best() == "setp");
}

TEST_CASE("nearest spelling: what is as near is offered too") {
    NearestSpelling nearest("i32");
    CHECK(nearest.question(".").empty());
    for (std::string_view word : {"b8", "u32", "s32", "u32"}) nearest.offer(word);
    CHECK(nearest.question(".") == " (did you mean '.u32' or '.s32'?)");
}

TEST_CASE("targets: plain ones, one architecture, families") {
    CHECK(has_target("80", 80, 0));
    CHECK(has_target("80", 121, 'a'));
    CHECK_FALSE(has_target("80", 75, 0));
    CHECK(has_target("90a", 90, 'a'));
    CHECK_FALSE(has_target("90a", 90, 0));
    CHECK_FALSE(has_target("90a", 100, 'a'));
    CHECK(has_target("100f", 100, 'f'));
    CHECK(has_target("100f", 100, 'a'));
    CHECK(has_target("100f", 103, 'a'));
    CHECK_FALSE(has_target("100f", 100, 0));
    CHECK_FALSE(has_target("103f", 100, 'f'));
    CHECK_FALSE(has_target("100f", 120, 'f'));
    CHECK(has_target("110a", 101, 'a')); // its name before PTX 9.0
    CHECK(has_target("90a|120f", 121, 'f'));
    CHECK(describe_targets("80") == "sm_80 or later");
    CHECK(describe_targets("90a|100f") == "sm_90a or sm_100f");
}

TEST_CASE("directives: versions, targets and their names") {
    CHECK(broken_directive("weak", {3, 0}, {30, 0}) == "'.weak' needs .version 3.1 or later");
    CHECK(broken_directive("weak", {3, 1}, {30, 0}) == "");
    CHECK(broken_directive("maxclusterrank", {8, 0}, {80, 0}) ==
          "'.maxclusterrank' needs .target sm_90 or later");
    CHECK(broken_directive("generic()", {3, 0}, {30, 0}) ==
          "'generic()' needs .version 3.1 or later");
    CHECK(broken_directive("visible", {1, 0}, {10, 0}) == "");
    CHECK(broken_target({90, 'a'}, {8, 0}) == "");
    CHECK(broken_target({90, 'a'}, {7, 8}) == "sm_90a needs .version 8.0 or later");
    CHECK(broken_target({90, 'f'}, {9, 0}) == "unknown target 'sm_90f' (did you mean 'sm_90'?)");
    CHECK(broken_version({7, 9}) == "there is no PTX version 7.9");
    CHECK(broken_version({9, 2}) == "");
}

TEST_CASE("special registers: all of the manual's chapter 10") {
    constexpr const char* words[] = {"%tid",
                                     "%ntid",
                                     "%laneid",
                                     "%warpid",
                                     "%nwarpid",
                                     "%ctaid",
                                     "%nctaid",
                                     "%smid",
                                     "%nsmid",
                                     "%clusterid",
                                     "%nclusterid",
                                     "%cluster_ctaid",
                                     "%cluster_nctaid",
                                     "%cluster_ctarank",
                                     "%cluster_nctarank",
                                     "%lanemask_eq",
                                     "%lanemask_le",
                                     "%lanemask_lt",
                                     "%lanemask_ge",
                                     "%lanemask_gt",
                                     "%clock",
                                     "%clock_hi",
                                     "%pm0",
                                     "%pm7",
                                     "%envreg0",
                                     "%envreg31",
                                     "%globaltimer_lo",
                                     "%globaltimer_hi",
                                     "%reserved_smem_offset_begin",
                                     "%reserved_smem_offset_end",
                                     "%reserved_smem_offset_cap",
                                     "%reserved_smem_offset_0",
                                     "%reserved_smem_offset_1",
                                     "%total_smem_size",
                                     "%aggr_smem_size",
                                     "%dynamic_smem_size"};
    const auto type_of = [](const char* name) {
        const SpecialRegisterName found = find_special_register(name);
        INFO(name);
        REQUIRE(found.found);
        return special_register_info(found.id).type;
    };
    for (const char* name : words) CHECK(type_of(name) == ScalarType::u32);
    for (const char* name :
         {"%gridid", "%clock64", "%pm0_64", "%pm7_64", "%globaltimer", "%current_graph_exec"})
        CHECK(type_of(name) == ScalarType::u64);
    CHECK(type_of("%is_explicit_cluster") == ScalarType::pred);
    for (const char* name : {"%pm8", "%envreg32", "%reserved_smem_offset_2", "%tidx", "%pm0_32"})
        CHECK_FALSE(find_special_register(name).found);
}

TEST_CASE("list sizes: fragments of matrices") {
    CHECK(elements("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", Role::d) == 4);
    CHECK(elements("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", Role::a) == 4);
    CHECK(elements("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", Role::b) == 2);
    CHECK(elements("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", Role::d) == 8);
    CHECK(elements("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", Role::d) == 2);
    CHECK(elements("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", Role::a) == 4);
    CHECK(elements("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", Role::a) == 4);
    CHECK(elements("wmma.load.a.sync.aligned.row.m16n16k16.f16", Role::d) == 8);
    CHECK(elements("wmma.load.c.sync.aligned.row.m16n16k16.f32", Role::d) == 8);
    CHECK(elements("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", Role::d) == 128);
    CHECK(elements("ldmatrix.sync.aligned.m8n8.x4.shared.b16", Role::d) == 4);
}

TEST_CASE("list sizes: coordinates, tensors, tensor memory") {
    CHECK(elements("tex.2d.v4.f32.f32", Role::c) == 2);
    CHECK(elements("tex.3d.v4.f32.f32", Role::c) == 4);
    CHECK(elements("tex.grad.a2d.v4.f32.f32", Role::dpdx) == 2);
    CHECK(elements("suld.b.1d.b32.trap", Role::b) == 1);
    CHECK(elements("cp.async.bulk.prefetch.tensor.5d.L2.global", Role::c) == 5);
    CHECK(elements("cp.async.bulk.prefetch.tensor.4d.L2.global.im2col", Role::offsets) == 2);
    CHECK(elements("tcgen05.ld.sync.aligned.16x256b.x4.b32", Role::d) == 16);
}

TEST_CASE("list sizes: more coordinates than needed, but no more gradients") {
    FormMatcher matcher;
    const auto required = [&](std::string_view head, Role role, unsigned written) {
        const HeadMatch match = matcher.heads(syntax_of(head)).front();
        for (const OperandPattern& pattern : FormTable::get().pattern(match.form).operands)
            if (pattern.role == role) return required_elements(match, pattern, written);
        return 99u;
    };
    CHECK(required("tex.1d.v4.f32.f32", Role::c, 1) == 1);
    CHECK(required("tex.1d.v4.f32.f32", Role::c, 4) == 4);
    CHECK(required("tex.1d.v4.f32.f32", Role::c, 3) == 1);
    CHECK(required("tex.grad.1d.v4.f32.f32", Role::dpdx, 2) == 1);
}

TEST_CASE("constraints: what rows say of operands") {
    std::string fault;
    const auto decode = [&](std::string_view text) { return decode_constraint(text, {}, fault); };
    CHECK(decode("pred").kind == Constraint::Kind::pred);
    CHECK(decode("raw(.b16)").untyped);
    CHECK(decode("rawlist(.b32)").kind == Constraint::Kind::list);
    CHECK(decode("or_pred(.u32)").or_predicate);
    CHECK(decode("wider(.u8)").literal == ScalarType::u8);
    CHECK(decode("frag(.f16)").fragment);
    CHECK(fault.empty());
    decode("wider(.u7)");
    CHECK(fault == "unknown type 'u7' in a constraint");
    fault.clear();
    decode("sideways");
    CHECK(fault == "unknown constraint 'sideways'");
}

TEST_CASE("video selectors: which parts an operand may name") {
    const auto text = [](SelectorRule rule, std::string_view spelt) {
        const auto selector = find_video_selector(rule, spelt);
        return selector ? spelling(*selector) : "refused";
    };
    for (const char* part : {"b0", "b3", "h0", "h1"}) CHECK(text(SelectorRule::part, part) == part);
    for (const char* part : {"b4", "h2", "b", "b01", "x", "c0", ""})
        CHECK(text(SelectorRule::part, part) == "refused");
    for (const char* parts : {"h10", "h01", "h33"})
        CHECK(text(SelectorRule::halves, parts) == parts);
    for (const char* parts : {"h1", "h40", "b10"})
        CHECK(text(SelectorRule::halves, parts) == "refused");
    for (const char* parts : {"b3210", "b7777"}) CHECK(text(SelectorRule::bytes, parts) == parts);
    for (const char* parts : {"b8210", "b32", "h3210"})
        CHECK(text(SelectorRule::bytes, parts) == "refused");
    for (const char* mask : {"h1", "h0", "h10"}) CHECK(text(SelectorRule::half_mask, mask) == mask);
    for (const char* mask : {"h01", "h2", "h11"})
        CHECK(text(SelectorRule::half_mask, mask) == "refused");
    for (const char* mask : {"b3", "b20", "b3210"})
        CHECK(text(SelectorRule::byte_mask, mask) == mask);
    for (const char* mask : {"b02", "b4", "b22"})
        CHECK(text(SelectorRule::byte_mask, mask) == "refused");
    CHECK(text(SelectorRule::none, "b0") == "refused");
}
