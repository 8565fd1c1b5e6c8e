// SPDX-License-Identifier: Apache-2.0
// In which form kernels run whose threads wait for memory, or that a cooperative launch asks for.
#include "frontend/module_loader.h"
#include "translator/compile.h"

#include <catch2/catch.hpp>

#include <string>

using namespace ptarmigan;

namespace {

translator::KernelProperties properties_of(const std::string& body, bool cooperative = false) {
    const std::string text = R"(
.version 7.0
.target sm_70
.address_size 64
.entry k(.param .u64 p)
{
    .reg .pred %p<8>;
    .reg .b32 %r<16>;
    .reg .b64 %l<4>;
    .shared .b32 shared[32];
    mov.u32 %r0, %tid.x;
    ld.param.u64 %l0, [p];
    mul.wide.u32 %l1, %r0, 4;
    add.u64 %l2, %l0, %l1;
    setp.ne.u32 %p0, %r0, 0;
)" + body + "    ret;\n}\n";
    const auto loader = ptx::ModuleLoader::load(text, "waits.ptx");
    translator::CompileOptions options;
    options.target = translator::named_target("x86-64-v3");
    options.cooperative = cooperative;
    translator::BlockShape shape;
    shape.ntid = {128, 1, 1};
    return translator::compile(*loader, "k", shape, options).properties;
}

bool is_whole(const translator::KernelProperties& properties) {
    return properties.gives_turns && !properties.uses_fibers;
}
bool is_of_fibers(const translator::KernelProperties& properties) {
    return !properties.gives_turns && properties.uses_fibers;
}

const std::string look = "look: ld.volatile.global.u32 %r1, [%l0]; setp.eq.u32 %p1, %r1, 0; @%p1 bra look;\n";

} // namespace

TEST_CASE("one thread waits between two barriers: regions, and a fiber for each CTA") {
    CHECK(is_whole(properties_of("bar.sync 0; @%p0 bra met; red.global.add.u32 [%l0], 1;\n" + look + "met: bar.sync 0;")));
}

TEST_CASE("all lanes wait for one word: regions") {
    CHECK(is_whole(properties_of("bar.sync 0;\n" + look + "st.global.u32 [%l2+4096], %r1; bar.sync 0;")));
}

TEST_CASE("each lane waits for a word of its own, behind a barrier or another lane's write") {
    const std::string own = "look: ld.volatile.global.u32 %r1, [%l2]; setp.eq.u32 %p1, %r1, 0; @%p1 bra look;\n";
    CHECK(is_whole(properties_of("bar.sync 0;\n" + own + "bar.sync 0; st.global.u32 [%l2], %r1;")));
    CHECK(is_of_fibers(properties_of("bar.sync 0;\n" + own + "st.global.u32 [%l2+4], %r1; bar.sync 0;")));
}

TEST_CASE("two arms wait for what the other one writes") {
    const std::string other = "other: st.volatile.global.u32 [%l0], 1; wait: ld.volatile.global.u32 %r1, [%l0+8]; setp.eq.u32 %p1, "
                              "%r1, 0; @%p1 bra wait;\n";
    CHECK(is_of_fibers(properties_of("bar.sync 0; @%p0 bra other; st.volatile.global.u32 [%l0+8], 1;\n" + look + "bra met;\n" +
                                     other + "met: bar.sync 0;")));
}

TEST_CASE("one thread takes a lock, or takes back what it has added") {
    CHECK(is_whole(properties_of("@%p0 bra met; look: atom.global.cas.b32 %r1, [%l0], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 "
                                 "bra look; met: bar.sync 0; @!%p0 st.volatile.global.u32 [%l0], 0;")));
    CHECK(is_of_fibers(properties_of("@%p0 bra met; bra look; again: red.global.add.u32 [%l0], -1; look: atom.global.add.u32 %r1, "
                                     "[%l0], 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra again; met: bar.sync 0;")));
}

TEST_CASE("a barrier of some threads, and a race of warps, between waits: fibers") {
    CHECK(is_of_fibers(properties_of("bar.sync 0;\n" + look + "bar.sync 1, 64;")));
    CHECK(is_of_fibers(properties_of("bar.sync 0;\n" + look + "ld.shared.u32 %r2, [shared]; st.shared.u32 [shared+4], %r2; "
                                     "bar.sync 0; ld.shared.u32 %r3, [shared]; st.global.u32 [%l2], %r3; @%p0 bra met; "
                                     "st.shared.u32 [shared], %r0; met: bar.sync 0;")));
}

TEST_CASE("cooperative launches: whole CTAs, which give turns where they have barriers") {
    const std::string barrier = "st.shared.u32 [shared], %r0; bar.sync 0; st.global.u32 [%l2], %r0;";
    CHECK(is_whole(properties_of(barrier, true)));
    const auto ordinary = properties_of(barrier), plain = properties_of("st.global.u32 [%l2], %r0;", true);
    CHECK_FALSE(ordinary.gives_turns);
    CHECK_FALSE(ordinary.uses_fibers);
    CHECK_FALSE(plain.gives_turns);
    CHECK_FALSE(plain.uses_fibers);
}
