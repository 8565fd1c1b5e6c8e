// SPDX-License-Identifier: Apache-2.0
// Warpgroups that are not whole, descriptors that lead elsewhere: the codes are an H100's (driver 580).
#include "fault_child.h"

namespace {

/// A product of 64 x 16 by 16 x 8 halves in 4096 bytes of shared memory, behind `before`, which may change %b (B's
/// descriptor), and under its conditions. %t: thread.
int code_of(const std::string& before, unsigned threads) {
    const std::string text = R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k()
{
    .shared .align 1024 .b8 tile[4096];
    .reg .b64 %a, %b; .reg .f32 %d<4>; .reg .b32 %t, %r<4>; .reg .pred %p;
    mov.u32 %t, %tid.x; mov.u32 %r0, tile; shr.u32 %r0, %r0, 4; cvt.u64.u32 %a, %r0;
    or.b64 %b, %a, 0x1000080080; or.b64 %a, %a, 0x800400000;
    mov.f32 %d0, 0f00000000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;
)" + before + R"(
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %a, %b, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
DONE:
    ret;
}
)";
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    CUcontext primary = nullptr;
    if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&primary, 0) != 0 || cuCtxSetCurrent(primary) != 0) return -1;
    if (cuModuleLoadData(&module, text.c_str()) != 0 || cuModuleGetFunction(&kernel, module, "k") != 0) return -1;
    if (cuLaunchKernel(kernel, 1, 1, 1, threads, 1, 1, 0, nullptr, nullptr, nullptr) != 0) return -1;
    return cuCtxSynchronize();
}

struct Case {
    const char* before;
    unsigned threads;
    int code;
};
const Case cases[] = {
    {"", 32, 715},
    {"", 64, 715},
    {"", 96, 715},
    {"", 160, 715}, // the last warp is alone
    {"", 100, 0},   // four warps, the last one of four lanes
    {"", 128, 0},
    {"", 1024, 0},
    {"and.b32 %r1, %t, 31; setp.ge.u32 %p, %r1, 16; @%p bra DONE;", 128, 0}, // half of each warp
    {"or.b64 %b, %b, 0x3ff1c000c000c000;", 128, 0},                          // bits without a meaning, and a base offset without a swizzle
    {"mov.b64 %b, 0x1000080280;", 128, 700},                                 // starts outside
    {"or.b64 %b, %b, 0x3fff0000;", 128, 700},                                // leading offset of 256 KB
    {"mov.b64 %b, 0x00000800ff;", 128, 700},                // ends outside
};

} // namespace

TEST_CASE("fault: warpgroups", "[.]") {
    for (const Case& one : cases) {
        INFO(one.before << " threads " << one.threads);
        const std::string said = driver_test::said_by_child([&] { return code_of(one.before, one.threads); });
        CHECK(said.ends_with("\ncode " + std::to_string(one.code) + "\n"));
    }
}
