// SPDX-License-Identifier: Apache-2.0
// What arithmetic instructions give, edge values crossed (NaN payloads, zeros of both signs, division by zero) and for
// pseudo-random operands: one line of checksums per instruction. Run on a GPU it makes the recording; run on Ptarmigan
// its output must be the same. With names of instructions, or `all`, it prints every edge result of them instead.
//   nvcc -arch=sm_90 arithmetic_corners.cu && ./a.out > arithmetic_corners_h200.txt
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

typedef unsigned long long u64;

// One kernel per instruction: d = op(a, b, c) on registers of the given widths.
#define KERNEL(name, d_type, d_reg, a_type, a_reg, text)                                           \
    __global__ void name(const u64* a, const u64* b, const u64* c, u64* d, int n) {                \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                             \
        if (i >= n) return;                                                                        \
        a_type x = (a_type)a[i], y = (a_type)b[i], z = (a_type)c[i];                               \
        d_type r;                                                                                  \
        asm volatile(text : "=" d_reg(r) : a_reg(x), a_reg(y), a_reg(z));                          \
        d[i] = (u64)r;                                                                             \
    }

#define LIST(X)                                                                                    \
    X(add_f32, uint32_t, "r", uint32_t, "r", "add.f32 %0, %1, %2;")                                \
    X(add_ftz_f32, uint32_t, "r", uint32_t, "r", "add.ftz.f32 %0, %1, %2;")                        \
    X(add_sat_f32, uint32_t, "r", uint32_t, "r", "add.sat.f32 %0, %1, %2;")                        \
    X(add_rm_f32, uint32_t, "r", uint32_t, "r", "add.rm.f32 %0, %1, %2;")                          \
    X(mul_f32, uint32_t, "r", uint32_t, "r", "mul.f32 %0, %1, %2;")                                \
    X(mul_ftz_f32, uint32_t, "r", uint32_t, "r", "mul.ftz.f32 %0, %1, %2;")                        \
    X(mul_rz_f32, uint32_t, "r", uint32_t, "r", "mul.rz.f32 %0, %1, %2;")                          \
    X(mul_ftz_rz_f32, uint32_t, "r", uint32_t, "r", "mul.rz.ftz.f32 %0, %1, %2;")                  \
    X(fma_f32, uint32_t, "r", uint32_t, "r", "fma.rn.f32 %0, %1, %2, %3;")                         \
    X(fma_ftz_f32, uint32_t, "r", uint32_t, "r", "fma.rn.ftz.f32 %0, %1, %2, %3;")                 \
    X(fma_rp_f32, uint32_t, "r", uint32_t, "r", "fma.rp.f32 %0, %1, %2, %3;")                      \
    X(div_f32, uint32_t, "r", uint32_t, "r", "div.rn.f32 %0, %1, %2;")                             \
    X(div_ftz_f32, uint32_t, "r", uint32_t, "r", "div.rn.ftz.f32 %0, %1, %2;")                     \
    X(div_full_f32, uint32_t, "r", uint32_t, "r", "div.full.f32 %0, %1, %2;")                      \
    X(sqrt_f32, uint32_t, "r", uint32_t, "r", "sqrt.rn.f32 %0, %1;")                               \
    X(sqrt_ftz_f32, uint32_t, "r", uint32_t, "r", "sqrt.rn.ftz.f32 %0, %1;")                       \
    X(rcp_ftz_f32, uint32_t, "r", uint32_t, "r", "rcp.rn.ftz.f32 %0, %1;")                         \
    X(abs_f32, uint32_t, "r", uint32_t, "r", "abs.f32 %0, %1;")                                    \
    X(neg_f32, uint32_t, "r", uint32_t, "r", "neg.f32 %0, %1;")                                    \
    X(min_f32, uint32_t, "r", uint32_t, "r", "min.f32 %0, %1, %2;")                                \
    X(max_ftz_f32, uint32_t, "r", uint32_t, "r", "max.ftz.f32 %0, %1, %2;")                        \
    X(min_xorsign_f32, uint32_t, "r", uint32_t, "r", "min.xorsign.abs.f32 %0, %1, %2;")            \
    X(copysign_f32, uint32_t, "r", uint32_t, "r", "copysign.f32 %0, %1, %2;")                      \
    X(cvt_rni_f32, uint32_t, "r", uint32_t, "r", "cvt.rni.f32.f32 %0, %1;")                        \
    X(cvt_sat_f32, uint32_t, "r", uint32_t, "r", "cvt.sat.f32.f32 %0, %1;")                        \
    X(cvt_ftz_f32, uint32_t, "r", uint32_t, "r", "cvt.ftz.f32.f32 %0, %1;")                        \
    X(cvt_rna_tf32, uint32_t, "r", uint32_t, "r", "cvt.rna.tf32.f32 %0, %1;")                      \
    X(cvt_rn_tf32, uint32_t, "r", uint32_t, "r", "cvt.rn.relu.tf32.f32 %0, %1;")                   \
    X(cvt_f16x2_f32, uint32_t, "r", uint32_t, "r", "cvt.rn.f16x2.f32 %0, %1, %2;")                 \
    X(cvt_bf16x2_relu, uint32_t, "r", uint32_t, "r", "cvt.rz.relu.bf16x2.f32 %0, %1, %2;")         \
    X(cvt_f16_satfinite, uint16_t, "h", uint32_t, "r", "cvt.rn.satfinite.f16.f32 %0, %1;")         \
    X(cvt_rp_f16, uint16_t, "h", uint32_t, "r", "cvt.rp.f16.f32 %0, %1;")                          \
    X(cvt_ftz_rp_f16, uint16_t, "h", uint32_t, "r", "cvt.rp.ftz.f16.f32 %0, %1;")                  \
    X(cvt_e4m3, uint16_t, "h", uint32_t, "r", "cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;")           \
    X(cvt_e5m2_relu, uint16_t, "h", uint32_t, "r", "cvt.rn.satfinite.relu.e5m2x2.f32 %0, %1, %2;") \
    X(cvt_f16_e4m3, uint32_t, "r", uint16_t, "h", "cvt.rn.f16x2.e4m3x2 %0, %1;")                   \
    X(cvt_f16_e5m2, uint32_t, "r", uint16_t, "h", "cvt.rn.relu.f16x2.e5m2x2 %0, %1;")              \
    X(cvt_f64_f32, u64, "l", uint32_t, "r", "cvt.f64.f32 %0, %1;")                                 \
    X(cvt_f32_f64, uint32_t, "r", u64, "l", "cvt.rn.f32.f64 %0, %1;")                              \
    X(cvt_ftz_f32_f64, uint32_t, "r", u64, "l", "cvt.rn.ftz.f32.f64 %0, %1;")                      \
    X(cvt_f16_f64, uint16_t, "h", u64, "l", "cvt.rn.f16.f64 %0, %1;")                              \
    X(cvt_f32_f16, uint32_t, "r", uint16_t, "h", "cvt.f32.f16 %0, %1;")                            \
    X(cvt_f32_bf16, uint32_t, "r", uint16_t, "h", "cvt.f32.bf16 %0, %1;")                          \
    X(cvt_bf16_f32, uint16_t, "h", uint32_t, "r", "cvt.rn.bf16.f32 %0, %1;")                       \
    X(cvt_bf16_f64, uint16_t, "h", u64, "l", "cvt.rm.bf16.f64 %0, %1;")                            \
    X(cvt_s32_f32, uint32_t, "r", uint32_t, "r", "cvt.rni.s32.f32 %0, %1;")                        \
    X(cvt_u32_f32, uint32_t, "r", uint32_t, "r", "cvt.rpi.u32.f32 %0, %1;")                        \
    X(cvt_ftz_u32_f32, uint32_t, "r", uint32_t, "r", "cvt.rpi.ftz.u32.f32 %0, %1;")                \
    X(cvt_s16_f32, uint16_t, "h", uint32_t, "r", "cvt.rzi.s16.f32 %0, %1;")                        \
    X(cvt_u8_f32, uint32_t, "r", uint32_t, "r", "cvt.rzi.u8.f32 %0, %1;")                          \
    X(cvt_s8_f64, uint32_t, "r", u64, "l", "cvt.rzi.s8.f64 %0, %1;")                               \
    X(cvt_u16_f64, uint16_t, "h", u64, "l", "cvt.rzi.u16.f64 %0, %1;")                             \
    X(cvt_s16_f64, uint16_t, "h", u64, "l", "cvt.rmi.s16.f64 %0, %1;")                             \
    X(cvt_s64_f32, u64, "l", uint32_t, "r", "cvt.rzi.s64.f32 %0, %1;")                             \
    X(cvt_u64_f64, u64, "l", u64, "l", "cvt.rzi.u64.f64 %0, %1;")                                  \
    X(cvt_s16_f16, uint16_t, "h", uint16_t, "h", "cvt.rni.s16.f16 %0, %1;")                        \
    X(cvt_u64_bf16, u64, "l", uint16_t, "h", "cvt.rzi.u64.bf16 %0, %1;")                           \
    X(cvt_f16_s64, uint16_t, "h", u64, "l", "cvt.rn.f16.s64 %0, %1;")                              \
    X(cvt_bf16_u64, uint16_t, "h", u64, "l", "cvt.rp.bf16.u64 %0, %1;")                            \
    X(cvt_rm_f32_u64, uint32_t, "r", u64, "l", "cvt.rm.f32.u64 %0, %1;")                           \
    X(cvt_rp_f64_s64, u64, "l", u64, "l", "cvt.rp.f64.s64 %0, %1;")                                \
    X(add_f64, u64, "l", u64, "l", "add.f64 %0, %1, %2;")                                          \
    X(mul_f64, u64, "l", u64, "l", "mul.f64 %0, %1, %2;")                                          \
    X(fma_f64, u64, "l", u64, "l", "fma.rn.f64 %0, %1, %2, %3;")                                   \
    X(fma_rz_f64, u64, "l", u64, "l", "fma.rz.f64 %0, %1, %2, %3;")                                \
    X(div_f64, u64, "l", u64, "l", "div.rn.f64 %0, %1, %2;")                                       \
    X(sqrt_f64, u64, "l", u64, "l", "sqrt.rn.f64 %0, %1;")                                         \
    X(rcp_f64, u64, "l", u64, "l", "rcp.rn.f64 %0, %1;")                                           \
    X(min_f64, u64, "l", u64, "l", "min.f64 %0, %1, %2;")                                          \
    X(max_f64, u64, "l", u64, "l", "max.f64 %0, %1, %2;")                                          \
    X(abs_f64, u64, "l", u64, "l", "abs.f64 %0, %1;")                                              \
    X(neg_f64, u64, "l", u64, "l", "neg.f64 %0, %1;")                                              \
    X(cvt_rni_f64, u64, "l", u64, "l", "cvt.rni.f64.f64 %0, %1;")                                  \
    X(add_f16, uint16_t, "h", uint16_t, "h", "add.f16 %0, %1, %2;")                                \
    X(add_ftz_f16, uint16_t, "h", uint16_t, "h", "add.ftz.f16 %0, %1, %2;")                        \
    X(mul_f16, uint16_t, "h", uint16_t, "h", "mul.f16 %0, %1, %2;")                                \
    X(mul_ftz_f16, uint16_t, "h", uint16_t, "h", "mul.ftz.f16 %0, %1, %2;")                        \
    X(fma_f16, uint16_t, "h", uint16_t, "h", "fma.rn.f16 %0, %1, %2, %3;")                         \
    X(fma_sat_f16, uint16_t, "h", uint16_t, "h", "fma.rn.sat.f16 %0, %1, %2, %3;")                 \
    X(fma_ftz_f16, uint16_t, "h", uint16_t, "h", "fma.rn.ftz.f16 %0, %1, %2, %3;")                 \
    X(fma_relu_f16, uint16_t, "h", uint16_t, "h", "fma.rn.relu.f16 %0, %1, %2, %3;")               \
    X(min_f16, uint16_t, "h", uint16_t, "h", "min.f16 %0, %1, %2;")                                \
    X(max_nan_f16, uint16_t, "h", uint16_t, "h", "max.NaN.f16 %0, %1, %2;")                        \
    X(abs_f16, uint16_t, "h", uint16_t, "h", "abs.f16 %0, %1;")                                    \
    X(neg_f16, uint16_t, "h", uint16_t, "h", "neg.f16 %0, %1;")                                    \
    X(neg_ftz_f16, uint16_t, "h", uint16_t, "h", "neg.ftz.f16 %0, %1;")                            \
    X(cvt_rmi_f16, uint16_t, "h", uint16_t, "h", "cvt.rmi.f16.f16 %0, %1;")                        \
    X(cvt_rni_bf16, uint16_t, "h", uint16_t, "h", "cvt.rni.bf16.bf16 %0, %1;")                     \
    X(add_bf16, uint16_t, "h", uint16_t, "h", "add.bf16 %0, %1, %2;")                              \
    X(mul_bf16, uint16_t, "h", uint16_t, "h", "mul.bf16 %0, %1, %2;")                              \
    X(fma_bf16, uint16_t, "h", uint16_t, "h", "fma.rn.bf16 %0, %1, %2, %3;")                       \
    X(fma_relu_bf16, uint16_t, "h", uint16_t, "h", "fma.rn.relu.bf16 %0, %1, %2, %3;")             \
    X(min_bf16, uint16_t, "h", uint16_t, "h", "min.bf16 %0, %1, %2;")                              \
    X(abs_bf16, uint16_t, "h", uint16_t, "h", "abs.bf16 %0, %1;")                                  \
    X(neg_bf16, uint16_t, "h", uint16_t, "h", "neg.bf16 %0, %1;")                                  \
    X(div_u16, uint16_t, "h", uint16_t, "h", "div.u16 %0, %1, %2;")                                \
    X(div_s16, uint16_t, "h", uint16_t, "h", "div.s16 %0, %1, %2;")                                \
    X(rem_u16, uint16_t, "h", uint16_t, "h", "rem.u16 %0, %1, %2;")                                \
    X(rem_s16, uint16_t, "h", uint16_t, "h", "rem.s16 %0, %1, %2;")                                \
    X(div_u32, uint32_t, "r", uint32_t, "r", "div.u32 %0, %1, %2;")                                \
    X(div_s32, uint32_t, "r", uint32_t, "r", "div.s32 %0, %1, %2;")                                \
    X(rem_u32, uint32_t, "r", uint32_t, "r", "rem.u32 %0, %1, %2;")                                \
    X(rem_s32, uint32_t, "r", uint32_t, "r", "rem.s32 %0, %1, %2;")                                \
    X(div_u64, u64, "l", u64, "l", "div.u64 %0, %1, %2;")                                          \
    X(div_s64, u64, "l", u64, "l", "div.s64 %0, %1, %2;")                                          \
    X(rem_u64, u64, "l", u64, "l", "rem.u64 %0, %1, %2;")                                          \
    X(rem_s64, u64, "l", u64, "l", "rem.s64 %0, %1, %2;")                                          \
    X(mul24_lo, uint32_t, "r", uint32_t, "r", "mul24.lo.u32 %0, %1, %2;")                          \
    X(mul24_hi, uint32_t, "r", uint32_t, "r", "mul24.hi.s32 %0, %1, %2;")                          \
    X(mad24_hi, uint32_t, "r", uint32_t, "r", "mad24.hi.s32 %0, %1, %2, %3;")                      \
    X(sad_s16, uint16_t, "h", uint16_t, "h", "sad.s16 %0, %1, %2, %3;")                            \
    X(fns, uint32_t, "r", uint32_t, "r", "fns.b32 %0, %1, %2, %3;")                                \
    X(bfe_s32, uint32_t, "r", uint32_t, "r", "bfe.s32 %0, %1, %2, %3;")                            \
    X(szext, uint32_t, "r", uint32_t, "r", "szext.wrap.s32 %0, %1, %2;")                           \
    X(bmsk, uint32_t, "r", uint32_t, "r", "bmsk.clamp.b32 %0, %1, %2;")                            \
    X(dp2a, uint32_t, "r", uint32_t, "r", "dp2a.lo.s32.u32 %0, %1, %2, %3;")

LIST(KERNEL)

struct Entry {
    const char* name;
    void (*kernel)(const u64*, const u64*, const u64*, u64*, int);
    unsigned a_bits;
    const char* text;
};
#define ENTRY(name, d_type, d_reg, a_type, a_reg, text) {#name, name, 8 * sizeof(a_type), text},
static const Entry entries[] = {LIST(ENTRY)};

static const u64 edges16[] = {0, 0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x8400, 0x007f, 0x0080, 0x3c00, 0xbc00, 0x3f80, 0xbf80, 0x7bff, 0x7c00, 0xfc00,
                              0x7c01, 0x7e00, 0xfe55, 0x7f80, 0xff80, 0x7f81, 0x7fc0, 0xffc0, 0x7fff, 0xffff};
static const u64 edges32[] = {0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x800000, 0x80800000, 0x3f800000, 0xbf800000, 0x3f7fffff, 0x34000000,
                              0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7f800001, 0x7fc12345, 0xffc54321, 0xffffffff, 0x4f000000, 0xcf000001,
                              0x4f800000, 0x477ff000, 0x33000000, 0x3f000000, 0xbf000000, 0x7fffffff, 0x00000020, 0x43800000, 0x5f000000};
static const u64 edges64[] = {0, 1ull << 63, 1, 0xfffffffffffff, 0x10000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x7fefffffffffffff,
                              0x7ff0000000000000, 0xfff0000000000000, 0x7ff0000000000001, 0xfff4000000000000, 0x7ff8000000012345, 0xfff8000000054321,
                              0x7fffffffffffffff, 0xffffffffffffffff, 0x41e0000000000000, 0x43e0000000000000, 0x380fffffe0000000, 0x380ffffff0000000,
                              0x3810000000000000, 0x40effe0000000000, 0x80000000, 0x8000000000000001};

static u64 state = 88172645463325252ull;
static u64 next_random() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
// Half of the operands near each other in magnitude, so that sums cancel.
static u64 operand(unsigned bits) {
    u64 word = next_random();
    if (bits == 16) return word & 0xffff;
    if (bits == 32) return word % 2 ? word >> 32 : ((word >> 32) & 0x807fffff) | (118 + next_random() % 20) << 23;
    return word % 2 ? next_random() : (next_random() & 0x800fffffffffffffull) | (1013 + next_random() % 20) << 52;
}

static bool asked_for(const char* name, int argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        if (!strcmp(argv[i], name) || !strcmp(argv[i], "all")) return true;
    return false;
}

static bool finished(const char* name) {
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    if (error != cudaSuccess) fprintf(stderr, "%s: %s\n", name, cudaGetErrorString(error));
    return error == cudaSuccess;
}

static u64 checksum(const u64* values, int count) {
    u64 sum = 0;
    for (int i = 0; i < count; ++i) sum = sum * 6364136223846793005ull + values[i];
    return sum;
}

int main(int argc, char** argv) {
    const int random_count = 1 << 16;
    u64* memory;
    if (cudaMallocManaged(&memory, 4 * random_count * sizeof(u64)) != cudaSuccess) return 1;
    u64 *a = memory, *b = a + random_count, *c = b + random_count, *d = c + random_count;
    for (const Entry& entry : entries) {
        const u64* edges = entry.a_bits == 16 ? edges16 : entry.a_bits == 32 ? edges32 : edges64;
        int count = entry.a_bits == 16 ? sizeof edges16 / 8 : entry.a_bits == 32 ? sizeof edges32 / 8 : sizeof edges64 / 8;
        int n = 0;
        for (int i = 0; i < count; ++i)
            for (int j = 0; j < (strstr(entry.text, "%2") ? count : 1); ++j, ++n) {
                a[n] = edges[i];
                b[n] = edges[j];
                c[n] = edges[(i * 7 + j * 3) % count];
            }
        entry.kernel<<<(n + 127) / 128, 128>>>(a, b, c, d, n);
        if (!finished(entry.name)) return 1;
        if (asked_for(entry.name, argc, argv))
            for (int i = 0; i < n; ++i) printf("%s %llx %llx %llx = %llx\n", entry.name, a[i], b[i], c[i], d[i]);
        u64 edge_sum = checksum(d, n);
        for (int i = 0; i < random_count; ++i) {
            a[i] = operand(entry.a_bits);
            b[i] = operand(entry.a_bits);
            c[i] = operand(entry.a_bits);
        }
        entry.kernel<<<random_count / 128, 128>>>(a, b, c, d, random_count);
        if (!finished(entry.name)) return 1;
        if (argc < 2) printf("%s edges %016llx random %016llx\n", entry.name, edge_sum, checksum(d, random_count));
    }
    return 0;
}
