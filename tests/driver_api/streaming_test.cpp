// SPDX-License-Identifier: Apache-2.0
// Grids that write more than the caches hold store past them, whole lines only. What is there afterwards is the same.
#include "driver.h"

#include <vector>

namespace {

/// q[i] = p[i] + 1 for i < n.
const char* const text = R"(
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [q];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r2, 256, %r3;
    setp.ge.u32 %p1, %r4, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd3, %r4, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.u32 %r5, [%rd4];
    add.u32 %r5, %r5, 1;
    st.global.u32 [%rd5], %r5;
DONE:
    ret;
}
)";

} // namespace

TEST_CASE("streaming: large grids write what small ones write") {
    driver_test::context();
    CUmodule module = nullptr;
    REQUIRE(cuModuleLoadData(&module, text) == 0);
    CUfunction kernel = nullptr;
    REQUIRE(cuModuleGetFunction(&kernel, module, "k") == 0);
    // The last-level cache may be large: 64 MB are above the limit of most, and never wrong.
    const unsigned most = 16u << 20;
    std::vector<unsigned> in(most + 16), out(most + 16);
    for (unsigned i = 0; i < most; ++i) in[i] = i * 2654435761u;
    const auto p = CUdeviceptr(in.data());
    for (unsigned offset : {0u, 1u}) // of q: whole lines, and none
        for (unsigned n : {1000u, most - 7}) {
            std::fill(out.begin(), out.end(), 7u);
            CUdeviceptr source = p, target = CUdeviceptr(out.data() + offset);
            unsigned count = n;
            void* arguments[] = {&source, &target, &count};
            REQUIRE(cuLaunchKernel(kernel, (n + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr) == 0);
            REQUIRE(cuCtxSynchronize() == 0);
            unsigned wrong = 0;
            for (unsigned i = 0; i < n; ++i) wrong += out[i + offset] != in[i] + 1;
            CHECK(wrong == 0);
            CHECK(out[n + offset] == 7u);
        }
    CHECK(cuModuleUnload(module) == 0);
}
