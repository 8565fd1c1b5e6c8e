// SPDX-License-Identifier: Apache-2.0
// Tiled products of matrices whose pitches decide which form of their rounds runs (llvm/register_phases.h): the one with
// sums and addresses in registers, or the general one, where rows lie at uneven distances or a step's lanes are no
// neighbours because 32-bit indices wrap.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace ptarmigan::test;

namespace {

constexpr unsigned tile = 16, most_depth = 80;

/// 16 x 16 threads, a result each. p3: A's pitch in its lower half, the depth in the upper one. B has 16 columns.
const std::string product = [] {
    std::string text = R"(
        and.b32 %r1, %r60, 15; shr.u32 %r2, %r60, 4;
        cvt.u32.u64 %r3, %l63; shr.u64 %l5, %l63, 32; cvt.u32.u64 %r4, %l5;
        mad.lo.s32 %r5, %r2, %r3, %r1; mul.wide.s32 %l1, %r5, 4; add.s64 %l1, %l60, %l1;
        mul.wide.s32 %l2, %r60, 4; add.s64 %l3, %l62, %l2; add.s64 %l2, %l61, %l2;
        mov.u32 %r6, tile_a; mov.u32 %r7, tile_b; shl.b32 %r8, %r60, 2; add.u32 %r9, %r6, %r8; add.u32 %r10, %r7, %r8;
        shl.b32 %r11, %r2, 6; add.u32 %r11, %r6, %r11; shl.b32 %r12, %r1, 2; add.u32 %r12, %r7, %r12;
        mov.f32 %f1, 0f00000000; mov.u32 %r13, 0;
    loop:
        ld.global.f32 %f2, [%l1]; st.shared.f32 [%r9], %f2;
        ld.global.f32 %f3, [%l2]; st.shared.f32 [%r10], %f3;
        bar.sync 0;
)";
    for (unsigned k = 0; k < tile; ++k)
        text += "ld.shared.f32 %f4, [%r11+" + std::to_string(4 * k) + "]; ld.shared.f32 %f5, [%r12+" +
                std::to_string(64 * k) + "]; fma.rn.f32 %f1, %f4, %f5, %f1;\n";
    return text + R"(
        bar.sync 0;
        add.s64 %l1, %l1, 64; add.s64 %l2, %l2, 1024; add.u32 %r13, %r13, 16; setp.lt.s32 %p1, %r13, %r4;
        @%p1 bra loop;
        st.global.f32 [%l3], %f1;
)";
}();

/// All that a signed 32-bit index of floats reaches, of which hardly a page is touched.
class Plain {
public:
    Plain() : begin_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
    ~Plain() {
        if (*this) munmap(begin_, bytes);
    }
    Plain(const Plain&) = delete;
    Plain& operator=(const Plain&) = delete;
    explicit operator bool() const { return begin_ != MAP_FAILED; }
    float* middle() const { return static_cast<float*>(begin_) + (1ll << 31); }

private:
    static constexpr std::size_t bytes = (std::size_t(4) << 32) + 4096;
    void* begin_;
};

std::uint32_t bits(float value) {
    if (std::isnan(value)) return 0x7fffffff;
    std::uint32_t word;
    std::memcpy(&word, &value, 4);
    return word;
}

} // namespace

TEST_CASE("rounds of tiled products in registers, and in the general form", "[kernels][barriers][memory][products]") {
    const Plain plain;
    if (!plain) {
        WARN("no 16 GiB of addresses: not tested");
        return;
    }
    // Even rows; one for all; falling ones; steps that lie apart unevenly, and whose lanes wrap; even steps of which only
    // the last one's lanes wrap.
    const std::uint32_t pitch = GENERATE(96u, 0u, 0xfffff000u, 0x20000000u, 0x28000000u, 0x09000000u);
    const unsigned depth = GENERATE(16u, 32u, most_depth);
    CAPTURE(pitch, depth);
    std::mt19937 random(pitch + depth);
    std::uniform_real_distribution<float> numbers(-2, 2);
    const auto place = [&](unsigned row, unsigned k) -> float& {
        return plain.middle()[std::int32_t(row * pitch) + std::int64_t(k)];
    };
    for (unsigned row = 0; row < tile; ++row)
        for (unsigned k = 0; k < depth; ++k) place(row, k) = numbers(random);
    std::vector<float> b(depth * tile);
    for (float& each : b) each = numbers(random);
    place(3, 1) = std::numeric_limits<float>::infinity();
    b[5] = std::numeric_limits<float>::quiet_NaN();
    Array<float> device_b(b), c(tile * tile);
    run(product, {1}, {tile * tile},
        {reinterpret_cast<std::uint64_t>(plain.middle()), device_b.address(), c.address(),
         std::uint64_t(depth) << 32 | pitch},
        ".shared .align 4 .f32 tile_a[256];\n.shared .align 4 .f32 tile_b[256];\n");
    const std::vector<float> got = c.values();
    unsigned wrong = 0;
    for (unsigned i = 0; i < tile; ++i)
        for (unsigned j = 0; j < tile; ++j) {
            float sum = 0;
            for (unsigned k = 0; k < depth; ++k) sum = std::fma(place(i, k), b[k * tile + j], sum);
            wrong += bits(sum) != bits(got[i * tile + j]);
        }
    CHECK(wrong == 0);
}
