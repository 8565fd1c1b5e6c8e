// SPDX-License-Identifier: Apache-2.0
// Products of matrices as kernels make them, in PTX: a warp multiplies tiles of shared memory by ldmatrix and mma, or
// repeats one product whose operands stay in registers: bench_tensor_core_kernels [TEXT] (forms whose name contains
// it). One worker, one warp; CPU seconds.
#include "ptarmigan/ptarmigan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

namespace {

struct Form {
    const char* name;
    const char* instruction; ///< `mma.sync.aligned.` and this
    int k, bytes;            ///< of an element
    bool integers;
};

constexpr Form forms[] = {
    {"m16n8k16 f16 -> f32", "m16n8k16.row.col.f32.f16.f16.f32", 16, 2, false},
    {"m16n8k16 bf16 -> f32", "m16n8k16.row.col.f32.bf16.bf16.f32", 16, 2, false},
    {"m16n8k8 tf32 -> f32", "m16n8k8.row.col.f32.tf32.tf32.f32", 8, 4, false},
    {"m16n8k32 e4m3 -> f32", "m16n8k32.row.col.f32.e4m3.e4m3.f32", 32, 1, false},
    {"m16n8k32 s8", "m16n8k32.row.col.s32.s8.s8.s32", 32, 1, true},
};

/// A warp's tile: 4 times 16 rows of A and 8 times 8 columns of B, `depth` products deep.
constexpr int tiles_a = 4, tiles_b = 8;

std::string registers(const char* name, int first, int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += (i ? ", %" : "%") + std::string(name) + std::to_string(first + i);
    return text + "}";
}

std::string product(const Form& form, int a, int b, int d) {
    const char* accumulator = form.integers ? "s" : "f";
    const std::string registers_of_d = registers(accumulator, 4 * d, 4);
    return std::string("mma.sync.aligned.") + form.instruction + " " + registers_of_d + ", " +
           registers("a", 4 * a, 4) + ", " + registers("b", 2 * b, 2) + ", " + registers_of_d + ";\n";
}

/// `tiles`: a loop over tiles of shared memory; else one product after the other.
std::string kernel(const Form& form, bool tiles) {
    const int a_bytes = 16 * 32, b_bytes = 8 * 32, depth = tiles ? 2 : 1;
    const int bytes = depth * (tiles_a * a_bytes + tiles_b * b_bytes);
    std::string text =
        ".version 8.4\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n)\n{\n"
        ".reg .b32 %a<64>; .reg .b32 %b<64>; .reg .f32 %f<256>; .reg .b32 %s<256>; .reg .b32 %r<32>; .reg .b64 %l<8>; .reg .pred %p<2>;\n"
        ".shared .align 16 .b8 tile[" +
        std::to_string(bytes) +
        "];\n"
        "ld.param.u64 %l1, [p]; ld.param.u64 %l2, [q]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 4; mov.u32 %r4, tile;\n"
        "add.u32 %r4, %r4, %r3; cvt.u64.u32 %l3, %r3; add.u64 %l4, %l1, %l3;\n";
    for (int at = 0; at < bytes; at += 512)
        text += "ld.global.v4.u32 {%r8, %r9, %r10, %r11}, [%l4+" + std::to_string(at) + "]; st.shared.v4.u32 [%r4+" +
                std::to_string(at) + "], {%r8, %r9, %r10, %r11};\n";
    text += "bar.sync 0;\n";
    const int accumulators = tiles ? tiles_a * tiles_b : 1;
    for (int i = 0; i < 4 * accumulators; ++i)
        text += form.integers ? "mov.u32 %s" + std::to_string(i) + ", 0;\n"
                              : "mov.f32 %f" + std::to_string(i) + ", 0f00000000;\n";
    const auto load = [&](int depth_at) {
        for (int i = 0; i < tiles_a; ++i)
            text += "ldmatrix.sync.aligned.m8n8.x4.shared.b16 " + registers("a", 4 * i, 4) + ", [%r4+" +
                    std::to_string(depth_at * (tiles_a * a_bytes + tiles_b * b_bytes) + i * a_bytes) + "];\n";
        for (int i = 0; i < tiles_b; i += 2)
            text +=
                "ldmatrix.sync.aligned.m8n8.x4.shared.b16 " + registers("b", 2 * i, 4) + ", [%r4+" +
                std::to_string(depth_at * (tiles_a * a_bytes + tiles_b * b_bytes) + tiles_a * a_bytes + i * b_bytes) +
                "];\n";
    };
    if (!tiles) load(0);
    text += "ROUND:\n";
    for (int d = 0; d < depth; ++d) {
        if (tiles) load(d);
        for (int i = 0; i < (tiles ? tiles_a : 1); ++i)
            for (int j = 0; j < (tiles ? tiles_b : 1); ++j) text += product(form, i, j, tiles ? i * tiles_b + j : 0);
    }
    text +=
        "add.u32 %r1, %r1, -1; setp.ne.u32 %p1, %r1, 0; @%p1 bra ROUND;\nmul.wide.u32 %l5, %r2, 4; add.u64 %l5, %l5, %l2;\n";
    for (int i = 0; i < 4 * accumulators; ++i)
        text += "st.global.b32 [%l5+" + std::to_string(i * 128) + "], %" + (form.integers ? "s" : "f") +
                std::to_string(i) + ";\n";
    return text + "ret;\n}\n";
}

/// Numbers around one, as bytes of the form's type.
std::vector<std::uint8_t> numbers(const Form& form, std::size_t bytes) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<std::uint8_t> result(bytes);
    for (std::size_t i = 0; i < bytes; i += std::size_t(form.bytes)) {
        const float value = normal(random);
        std::uint32_t bits;
        std::memcpy(&bits, &value, 4);
        const int exponent = int(bits >> 23 & 255) - 127;
        if (form.integers)
            bits = std::uint32_t(random());
        else if (form.bytes == 1)
            bits = exponent < -6 ? 0 : bits >> 31 << 7 | std::uint32_t(exponent + 7) << 3 | (bits >> 20 & 7);
        else if (std::strstr(form.name, "bf16"))
            bits >>= 16;
        else if (form.bytes == 2)
            bits = exponent < -14 ? 0 : bits >> 31 << 15 | std::uint32_t(exponent + 15) << 10 | (bits >> 13 & 1023);
        std::memcpy(&result[i], &bits, std::size_t(form.bytes));
    }
    return result;
}

double rate_of(const Form& form, bool tiles) {
    ptarmigan::Module module(kernel(form, tiles));
    ptarmigan::Buffer in(16384), out(16384);
    const std::vector<std::uint8_t> values = numbers(form, in.size());
    in.upload(values.data(), values.size());
    const double operations = 2e-9 * 16 * 8 * form.k * (tiles ? 2 * tiles_a * tiles_b : 1);
    double best = 0;
    std::uint32_t rounds = 16;
    for (int round = 0; round < 7;) {
        const std::clock_t start = std::clock();
        module.launch("k", {1}, {32}, {in.address(), out.address(), rounds});
        ptarmigan::synchronize();
        const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
        if (seconds < 20e-3) {
            rounds *= 2;
            continue;
        }
        best = std::max(best, operations * rounds / seconds);
        ++round;
    }
    return best;
}

} // namespace

int main(int argc, char** argv) {
    const std::string only = argc > 1 ? argv[1] : "";
    setenv("PTARMIGAN_WORKERS", "1", 0);
    setenv("PTARMIGAN_TIER", "best", 0);
    std::printf("| Gop/s of one core, mma in PTX | tiles of shared memory | one product |\n| --- | --- | --- |\n");
    for (const Form& form : forms)
        if (std::string(form.name).find(only) != std::string::npos)
            std::printf("| %s | %.2f | %.2f |\n", form.name, rate_of(form, true), rate_of(form, false)),
                std::fflush(stdout);
}
