// SPDX-License-Identifier: Apache-2.0
// What ptxas 13.0 takes and overlooks: bound to what its machine code does, with a warning.
// tests/agreement/README.md.
#include "frontend/isa/words.h"
#include "tests/unit/frontend/load.h"

namespace ptarmigan::test {

namespace {

const ptx::Instruction& first(ptx::ModuleLoader& loader) {
    return body_of(loader).instructions.front();
}

std::string warnings(const ptx::ModuleLoader& loader) {
    return loader.diagnostics().render_all();
}

/// The instruction with the overlooked words is the one without them.
void same_as(const std::string& written, const std::string& plain) {
    INFO(written);
    auto a = load_kernel(written), b = load_kernel(plain);
    CHECK(first(*a).form == first(*b).form);
    CHECK(first(*a).modifiers == first(*b).modifiers);
    CHECK(first(*a).types == first(*b).types);
    CHECK(warnings(*a).find("overlooked") != std::string::npos);
    CHECK(warnings(*b).empty());
}

bool is_refused(const std::string& statement) {
    return !ptx::ModuleLoader::load(header +
                                        ".entry k() {\n.reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b64 "
                                        "%d<8>; .reg .pred %p<8>;\n" +
                                        statement + "\n}\n",
                                    "test.ptx", {.bind_all_bodies = true})
                ->ok();
}

} // namespace

TEST_CASE("words of other instructions change nothing", "[overlooked]") {
    same_as("add.s32.box_dim %r0, %r1, %r2;", "add.s32 %r0, %r1, %r2;");
    same_as("fma.rn.subnormal.f32 %f0, %f1, %f2, %f3;", "fma.rn.f32 %f0, %f1, %f2, %f3;");
    same_as("fence.proxy.global.tensormap::generic.release.cta;",
            "fence.proxy.tensormap::generic.release.cta;");
    same_as(
        "mma.sync.aligned.m8n8k4.tf32.row.col.f64.f64.f64.f64 {%e0, %e1}, {%e2}, {%e3}, {%e4, "
        "%e5};",
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%e0, %e1}, {%e2}, {%e3}, {%e4, %e5};");
}

TEST_CASE("words that an opcode uses are never overlooked in it", "[overlooked]") {
    CHECK(is_refused("testp.infinite.finite.f32 %p0, %f1;"));
    CHECK(is_refused("multimem.ld_reduce.relaxed.acc::f32.cta.or.b32 %r0, [%d0];"));
    CHECK(is_refused("add.s32.gpu %r0, %r1, %r2;"));
    CHECK(is_refused("fence.sc.global.cta;"));
    CHECK(
        is_refused("fence.sync_restrict::shared::cluster.proxy.async.global;")); // a part of the
                                                                                 // name comes later
}

TEST_CASE("the depth to compare with", "[overlooked]") {
    const std::string texture = ".global .texref t;\n";
    const auto depth = [&](const std::string& operand) {
        auto loader = load_kernel(
            "tex.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [t, {%f0, %f1}], " + operand + ";", texture);
        return first(*loader)[ptx::Role::f];
    };
    CHECK(depth("0f40200000").value == 0x40200000);
    CHECK(depth("0d4004000000000000").value == 0x40200000); // a double: its value
    CHECK(depth("%f2").kind == ptx::Operand::Kind::reg);
    CHECK(depth("%r4").kind == ptx::Operand::Kind::reg);
    CHECK(depth("%u4").kind == ptx::Operand::Kind::none); // an integer compares nothing
    CHECK(depth("1").kind == ptx::Operand::Kind::none);
}

TEST_CASE("suggestions are slips of the hand", "[overlooked]") {
    const auto suggests = [](std::string_view written, std::string_view other) {
        ptx::NearestSpelling nearest(written);
        nearest.offer(other);
        return !nearest.best().empty();
    };
    CHECK(suggests("L10000", "L1000"));
    CHECK_FALSE(suggests("L100000", "L90000")); // counted names
    CHECK_FALSE(suggests("a", "b"));
    CHECK(suggests("A", "a"));
    CHECK(suggests("lable", "label"));
}

} // namespace ptarmigan::test
