// SPDX-License-Identifier: Apache-2.0
// What a step keeps in memory while it waits at a barrier.
#include "frontend/module_loader.h"
#include "translator/compile.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;

TEST_CASE("values that barriers never keep at the same time share their places") {
    // Four sums, which the loop hands from interval to interval under three names each.
    const char* text = R"(
.version 7.0
.target sm_70
.address_size 64
.entry k(.param .u64 p)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %l<4>;
    .reg .f32 %f<8>;
    mov.u32 %r0, %tid.x;
    ld.param.u64 %l0, [p];
    mul.wide.u32 %l1, %r0, 4;
    add.u64 %l2, %l0, %l1;
    mov.f32 %f0, 0f00000000;
    mov.f32 %f1, 0f00000000;
    mov.f32 %f2, 0f00000000;
    mov.f32 %f3, 0f00000000;
    mov.u32 %r1, 0;
again:
    ld.global.f32 %f4, [%l2];
    bar.sync 0;
    fma.rn.f32 %f0, %f4, 0f40000000, %f0;
    fma.rn.f32 %f1, %f4, 0f40400000, %f1;
    bar.sync 0;
    fma.rn.f32 %f2, %f4, 0f40800000, %f2;
    fma.rn.f32 %f3, %f4, 0f40A00000, %f3;
    bar.sync 0;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, 10;
    @%p bra again;
    add.f32 %f0, %f0, %f1;
    add.f32 %f2, %f2, %f3;
    add.f32 %f0, %f0, %f2;
    st.global.f32 [%l2], %f0;
    ret;
}
)";
    const auto loader = ptx::ModuleLoader::load(text, "sums.ptx");
    translator::CompileOptions options;
    options.target = translator::named_target("x86-64-v4");
    options.lane_width = 32;
    options.barriers = translator::BarrierForm::regions; // all of them
    translator::BlockShape shape;
    shape.ntid = {256, 1, 1};
    const auto kernel = translator::compile(*loader, "k", shape, options);
    REQUIRE_FALSE(kernel.properties.uses_fibers);
    // Four sums and the loaded value, 128 bytes each, and an address.
    CHECK(kernel.properties.frame_size == 5 * 128 + 64);
}
