// SPDX-License-Identifier: Apache-2.0
// Functions of libcudadevrt that programs seldom call: groups of threads by handle, launches by the pair before CUDA 5,
// copies and fills in three dimensions, the last error. All answers are an H100's (driver 580).
#include "driver.h"

#include <vector>

extern "C" CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**);

using namespace driver_test;

namespace {

const char* const text = R"(
.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 s);
.extern .func (.param .b32 r) cudaCGGetSize(.param .b64 n, .param .b64 g, .param .b64 h);
.extern .func (.param .b32 r) cudaCGGetRank(.param .b64 n, .param .b64 g, .param .b64 h);
.extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 h, .param .b32 f);
.extern .func (.param .b32 r) cudaCGSynchronizeGrid(.param .b64 h, .param .b32 f);
.extern .func (.param .b32 r) cudaGetLastError();
.extern .func (.param .b32 r) __cuda_syscall_cnpv2SetLastError(.param .b32 e);
.extern .func (.param .b32 r) __cudaDeviceSynchronizeDeprecationAvoidance();
.extern .func (.param .b32 r) __cudaCDP2DeviceGetSharedMemConfig(.param .b64 c);
.extern .func (.param .b64 r) cudaGetParameterBuffer(.param .b64 a, .param .b64 s);
.extern .func (.param .b32 r) cudaLaunchDevice(.param .b64 f, .param .b64 p, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 m, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2Memcpy3DAsync(.param .b64 p, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2Memset3DAsync(.param .align 8 .b8 p[32], .param .b32 v, .param .align 8 .b8 e[24], .param .b64 s);

// out: size, grids, how often a barrier was missed; from 64 on each thread's rank. flags: of cudaCGSynchronize, 4: cudaCGSynchronizeGrid.
.visible .entry groups(.param .u64 p0, .param .u32 p1)
{
.reg .b64 %l<9>; .reg .b32 %r<16>; .reg .pred %p<6>;
ld.param.u64 %l1, [p0]; ld.param.u32 %r9, [p1];
{ .param .b32 s; st.param.b32 [s], 1; .param .b64 r; call.uni (r), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %l2, [r]; }
add.u64 %l3, %l1, 4;
{ .param .b64 n; st.param.b64 [n], %l1; .param .b64 g; st.param.b64 [g], %l3; .param .b64 h; st.param.b64 [h], %l2; .param .b32 r; call.uni (r), cudaCGGetSize, (n, g, h); ld.param.b32 %r1, [r]; }
mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;
mul.wide.u32 %l4, %r5, 4; add.u64 %l4, %l4, %l1; add.u64 %l4, %l4, 64;
{ .param .b64 n; st.param.b64 [n], %l4; .param .b64 g; st.param.b64 [g], 0; .param .b64 h; st.param.b64 [h], %l2; .param .b32 r; call.uni (r), cudaCGGetRank, (n, g, h); ld.param.b32 %r6, [r]; }
or.b32 %r1, %r1, %r6;
mov.u32 %r10, %nctaid.x; mul.lo.u32 %r10, %r10, %r2; mov.u32 %r11, 0;
setp.eq.u32 %p3, %r9, 4;
again:
atom.global.add.u32 %r12, [%l1+12], 1;
@%p3 bra by_grid;
{ .param .b64 h; st.param.b64 [h], %l2; .param .b32 f; st.param.b32 [f], %r9; .param .b32 r; call.uni (r), cudaCGSynchronize, (h, f); ld.param.b32 %r6, [r]; }
bra.uni met;
by_grid:
{ .param .b64 h; st.param.b64 [h], %l2; .param .b32 f; st.param.b32 [f], 0; .param .b32 r; call.uni (r), cudaCGSynchronizeGrid, (h, f); ld.param.b32 %r6, [r]; }
met:
or.b32 %r1, %r1, %r6;
add.u32 %r11, %r11, 1; mul.lo.u32 %r13, %r11, %r10;
ld.volatile.global.u32 %r14, [%l1+12];
setp.lt.u32 %p1, %r14, %r13;
@%p1 atom.global.add.u32 %r12, [%l1+8], 1;
setp.lt.u32 %p2, %r11, 5;
@%p2 bra again;
st.global.u32 [%l1+16], %r1;
ret;
}
// Without a handle.
.visible .entry no_group(.param .u64 p0)
{
.reg .b64 %l<4>; .reg .b32 %r<4>;
ld.param.u64 %l1, [p0];
{ .param .b32 s; st.param.b32 [s], 1; .param .b64 r; call.uni (r), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %l2, [r]; }
st.global.u64 [%l1+8], %l2;
add.u64 %l3, %l1, 4;
{ .param .b64 n; st.param.b64 [n], %l1; .param .b64 g; st.param.b64 [g], %l3; .param .b64 h; st.param.b64 [h], 0; .param .b32 r; call.uni (r), cudaCGGetSize, (n, g, h); ld.param.b32 %r1, [r]; }
st.global.u32 [%l1+16], %r1;
{ .param .b64 h; st.param.b64 [h], 0; .param .b32 f; st.param.b32 [f], 0; .param .b32 r; call.uni (r), cudaCGSynchronize, (h, f); ld.param.b32 %r1, [r]; }
st.global.u32 [%l1+20], %r1;
ret;
}
.func (.param .b32 r) code() { .reg .b32 %r1; { .param .b32 e; call.uni (e), cudaGetLastError; ld.param.b32 %r1, [e]; } st.param.b32 [r], %r1; ret; }
.visible .entry errors(.param .u64 p0)
{
.reg .b64 %l<4>; .reg .b32 %r<4>;
ld.param.u64 %l1, [p0];
{ .param .b32 e; st.param.b32 [e], 719; .param .b32 r; call.uni (r), __cuda_syscall_cnpv2SetLastError, (e); ld.param.b32 %r1, [r]; }
st.global.u32 [%l1], %r1;
{ .param .b32 e; st.param.b32 [e], 2; .param .b32 r; call.uni (r), __cuda_syscall_cnpv2SetLastError, (e); ld.param.b32 %r1, [r]; }
{ .param .b32 r; call.uni (r), code; ld.param.b32 %r1, [r]; } st.global.u32 [%l1+4], %r1;
{ .param .b32 e; st.param.b32 [e], 1; .param .b32 r; call.uni (r), __cuda_syscall_cnpv2SetLastError, (e); ld.param.b32 %r1, [r]; }
{ .param .b32 e; st.param.b32 [e], 0; .param .b32 r; call.uni (r), __cuda_syscall_cnpv2SetLastError, (e); ld.param.b32 %r1, [r]; }
{ .param .b32 r; call.uni (r), code; ld.param.b32 %r1, [r]; } st.global.u32 [%l1+8], %r1;
{ .param .b32 r; call.uni (r), __cudaDeviceSynchronizeDeprecationAvoidance; ld.param.b32 %r1, [r]; } st.global.u32 [%l1+12], %r1;
{ .param .b32 r; call.uni (r), code; ld.param.b32 %r1, [r]; } st.global.u32 [%l1+16], %r1;
add.u64 %l2, %l1, 20;
{ .param .b64 c; st.param.b64 [c], %l2; .param .b32 r; call.uni (r), __cudaCDP2DeviceGetSharedMemConfig, (c); ld.param.b32 %r1, [r]; } st.global.u32 [%l1+24], %r1;
{ .param .b64 c; st.param.b64 [c], 0; .param .b32 r; call.uni (r), __cudaCDP2DeviceGetSharedMemConfig, (c); ld.param.b32 %r1, [r]; } st.global.u32 [%l1+28], %r1;
ret;
}
.visible .entry child(.param .u64 p0, .param .u32 p1)
{
.reg .b64 %l1; .reg .b32 %r<4>;
ld.param.u64 %l1, [p0]; ld.param.u32 %r1, [p1]; mov.u32 %r2, %ntid.x; mov.u32 %r3, %nctaid.x; mad.lo.u32 %r2, %r2, 1000, %r3;
st.global.u32 [%l1+8], %r1; st.global.u32 [%l1+12], %r2;
ret;
}
.visible .entry old_launch(.param .u64 p0, .param .u32 p1)
{
.reg .b64 %l<5>; .reg .b32 %r<4>;
ld.param.u64 %l1, [p0]; ld.param.u32 %r3, [p1];
{ .param .b64 a; st.param.b64 [a], 64; .param .b64 s; st.param.b64 [s], 16; .param .b64 r; call.uni (r), cudaGetParameterBuffer, (a, s); ld.param.b64 %l2, [r]; }
mov.u32 %r1, 42; st.u64 [%l2], %l1; st.u32 [%l2+8], %r1; mov.u64 %l3, child;
{ .param .b64 f; st.param.b64 [f], %l3; .param .b64 p; st.param.b64 [p], %l2; .param .align 4 .b8 g[12]; st.param.b32 [g], 3; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;
  .param .align 4 .b8 b[12]; st.param.b32 [b], %r3; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1; .param .b32 m; st.param.b32 [m], 0; .param .b64 s; st.param.b64 [s], 0;
  .param .b32 r; call.uni (r), cudaLaunchDevice, (f, p, g, b, m, s); ld.param.b32 %r1, [r]; }
st.global.u32 [%l1], %r1;
ret;
}
// A cudaMemcpy3DParms at p1, filled in by the host.
.visible .entry copy(.param .u64 p0, .param .u64 p1)
{
.reg .b64 %l<3>; .reg .b32 %r1;
ld.param.u64 %l1, [p0]; ld.param.u64 %l2, [p1];
{ .param .b64 p; st.param.b64 [p], %l2; .param .b64 s; st.param.b64 [s], 0; .param .b32 r; call.uni (r), __cudaCDP2Memcpy3DAsync, (p, s); ld.param.b32 %r1, [r]; }
st.global.u32 [%l1], %r1;
ret;
}
.visible .entry fill(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)
{
.reg .b64 %l<6>; .reg .b32 %r1;
ld.param.u64 %l1, [p0]; ld.param.u64 %l2, [p1]; ld.param.u64 %l3, [p2]; ld.param.u64 %l4, [p3];
{ .param .align 8 .b8 p[32]; st.param.b64 [p], %l2; st.param.b64 [p+8], %l3; st.param.b64 [p+16], 16; st.param.b64 [p+24], 2; .param .b32 v; st.param.b32 [v], 90;
  .param .align 8 .b8 e[24]; st.param.b64 [e], 8; st.param.b64 [e+8], %l4; st.param.b64 [e+16], 3; .param .b64 s; st.param.b64 [s], 0;
  .param .b32 r; call.uni (r), __cudaCDP2Memset3DAsync, (p, v, e, s); ld.param.b32 %r1, [r]; }
st.global.u32 [%l1], %r1;
ret;
}
)";

struct Launcher {
    CUdeviceptr memory = 0;
    CUmodule module = nullptr;
    Launcher() {
        context();
        memory = allocate(1 << 16);
        REQUIRE(cuModuleLoadData(&module, text) == 0);
    }
    ~Launcher() {
        cuModuleUnload(module);
        cuMemFree_v2(memory);
    }
    /// The launch's code; memory begins as zeros. Parameters but the first, which is the memory.
    template <class... Rest> int run(const char* name, bool cooperative, unsigned blocks, unsigned threads, Rest... rest) {
        CUfunction kernel = nullptr;
        REQUIRE(cuModuleGetFunction(&kernel, module, name) == 0);
        const std::vector<std::uint8_t> zeros(1 << 15);
        REQUIRE(cuMemcpyHtoD_v2(memory, zeros.data(), zeros.size()) == 0);
        void* parameters[] = {&memory, &rest...};
        const int code = cooperative ? cuLaunchCooperativeKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, nullptr, parameters)
                                     : cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr);
        REQUIRE(cuCtxSynchronize() == 0);
        return code;
    }
    std::vector<std::uint32_t> words(std::size_t count) {
        std::vector<std::uint32_t> result(count);
        REQUIRE(cuMemcpyDtoH_v2(result.data(), memory, count * 4) == 0);
        return result;
    }
};

using Words = std::vector<std::uint32_t>;

} // namespace

TEST_CASE("device groups: a cooperative grid has sizes, ranks and a barrier by handle") {
    Launcher launcher;
    for (const unsigned flags : {0u, 4u})
        for (const auto& [blocks, threads] : {std::pair{1u, 1u}, {7u, 64u}, {20u, 96u}}) {
            INFO(flags << " " << blocks << " " << threads);
            REQUIRE(launcher.run("groups", true, blocks, threads, flags) == 0);
            const Words words = launcher.words(16 + blocks * threads);
            CHECK(Words(words.begin(), words.begin() + 5) == Words{blocks * threads, 1, 0, 5 * blocks * threads, 0});
            for (unsigned thread = 0; thread < blocks * threads; ++thread) REQUIRE(words[16 + thread] == thread);
        }
    REQUIRE(launcher.run("groups", true, 5, 1, 1u) == 0); // one thread comes for its block
    CHECK(launcher.words(5) == Words{5, 1, 0, 25, 0});
    REQUIRE(launcher.run("groups", true, 5, 64, 2u) == 0); // no such flag
    CHECK(launcher.words(5)[4] == 999);
}

TEST_CASE("device groups: other grids have no handle") {
    Launcher launcher;
    REQUIRE(launcher.run("no_group", false, 1, 1) == 0);
    CHECK(launcher.words(6) == Words{0, 0, 0, 0, 999, 999});
    REQUIRE(launcher.run("groups", false, 3, 32, 0u) == 0);
    CHECK(launcher.words(5)[4] == 999);
}

TEST_CASE("device groups: a kernel that asks the driver is no cooperative one") {
    Launcher launcher;
    CHECK(launcher.run("errors", true, 1, 1) == 800);
    CHECK(launcher.run("old_launch", true, 1, 1, 5u) == 800);
    CHECK(launcher.run("groups", true, 1, 1, 0u) == 0);
}

TEST_CASE("device runtime: the last error, and what is left of old functions") {
    Launcher launcher;
    REQUIRE(launcher.run("errors", false, 1, 1) == 0);
    CHECK(launcher.words(8) == Words{719, 2, 0, 68, 68, 1, 0, 1});
    REQUIRE(launcher.run("old_launch", false, 1, 1, 5u) == 0);
    CHECK(launcher.words(4) == Words{0, 0, 42, 5003});
    REQUIRE(launcher.run("old_launch", false, 1, 1, 2000u) == 0);
    CHECK(launcher.words(4) == Words{9, 0, 0, 0});
}

TEST_CASE("device runtime: copies and fills of slices") {
    Launcher launcher;
    const CUdeviceptr from = launcher.memory + 40000, to = launcher.memory + 64, parameters = launcher.memory + 50000 / 8 * 8;
    std::vector<std::uint64_t> numbers(32);
    for (std::uint64_t i = 0; i < numbers.size(); ++i) numbers[i] = i + 1;
    REQUIRE(cuMemcpyHtoD_v2(from, numbers.data(), numbers.size() * 8) == 0);
    struct Copy {
        std::uint64_t from_array = 0, from_position[3] = {}, from[4], to_array = 0, to_position[3] = {}, to[4], extent[3] = {8, 2, 2}, kind = 3;
    };
    const Copy good = {.from = {from, 16, 16, 2}, .to = {to, 24, 24, 3}};
    const auto copy = [&](const Copy& what) {
        REQUIRE(cuMemcpyHtoD_v2(parameters, &what, sizeof what) == 0);
        REQUIRE(launcher.run("copy", false, 1, 1, parameters) == 0);
        return launcher.words(1)[0];
    };
    const auto copied = [&](unsigned index) { return launcher.words(16 + 2 * index + 1)[16 + 2 * index]; };
    CHECK(copy(good) == 0);
    CHECK(Words{copied(0), copied(3), copied(9), copied(12), copied(6)} == Words{1, 3, 5, 7, 0});
    Copy other = good;
    other.from_position[0] = 8, other.from_position[2] = 1, other.extent[2] = 1;
    CHECK(copy(other) == 0);
    CHECK(Words{copied(0), copied(3), copied(9)} == Words{6, 8, 0});
    other = good, other.kind = 1;
    CHECK(copy(other) == 21);
    other = good, other.extent[0] = 0;
    CHECK(copy(other) == 0);
    other = good, other.from[1] = 4;
    CHECK(copy(other) == 12);
    other = good, other.extent[1] = 3;
    CHECK(copy(other) == 12);
    other = good, other.from_array = 4096;
    CHECK(copy(other) == 1);
    other = good, other.to[0] = 0;
    CHECK(copy(other) == 1);
    REQUIRE(launcher.run("fill", false, 1, 1, to, std::uint64_t{16}, std::uint64_t{2}) == 0);
    CHECK(Words{copied(0), copied(1), copied(2), copied(10), copied(12)} == Words{0x5a5a5a5a, 0, 0x5a5a5a5a, 0x5a5a5a5a, 0});
    REQUIRE(launcher.run("fill", false, 1, 1, to, std::uint64_t{4}, std::uint64_t{2}) == 0);
    CHECK(launcher.words(1) == Words{1});
    REQUIRE(launcher.run("fill", false, 1, 1, to, std::uint64_t{16}, std::uint64_t{3}) == 0);
    CHECK(launcher.words(1) == Words{1});
}
