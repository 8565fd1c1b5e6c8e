// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share. The name makes it part of the executable; it has no cases.
#include "driver.h"

namespace driver_test {

const char* const kernels = R"(
.version 8.0
.target sm_75
.address_size 64

.visible .global .align 4 .u32 counter = 7;
.visible .const .align 4 .u32 table[4] = {1, 2, 3, 4};

.visible .entry add_one(.param .u64 data, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra done;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.u32 %r2, [%rd4];
    add.s32 %r2, %r2, 1;
    st.global.u32 [%rd4], %r2;
done:
    ret;
}

.visible .entry store(.param .u64 address, .param .u32 value)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [address];
    ld.param.u32 %r1, [value];
    st.global.u32 [%rd1], %r1;
    ret;
}

.visible .entry trap()
{
    trap;
    ret;
}
)";

CUcontext context() {
    static CUcontext primary = [] {
        CUcontext made = nullptr;
        REQUIRE(cuInit(0) == 0);
        REQUIRE(cuDevicePrimaryCtxRetain(&made, 0) == 0);
        return made;
    }();
    REQUIRE(cuCtxSetCurrent(primary) == 0);
    return primary;
}

CUfunction function(const char* name) {
    context();
    static CUmodule module = [] {
        CUmodule made = nullptr;
        REQUIRE(cuModuleLoadData(&made, kernels) == 0);
        return made;
    }();
    CUfunction found = nullptr;
    REQUIRE(cuModuleGetFunction(&found, module, name) == 0);
    return found;
}

CUdeviceptr allocate(std::size_t size) {
    context();
    CUdeviceptr pointer = 0;
    REQUIRE(cuMemAlloc_v2(&pointer, size) == 0);
    return pointer;
}

} // namespace driver_test
