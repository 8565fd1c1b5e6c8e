// SPDX-License-Identifier: Apache-2.0
// Kernels that fill shared and tensor memory from images, execute some tcgen05, and give tensor memory back.
#pragma once

#include "kernel.h"
#include "tests/recordings/random.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace ptarmigan::test {

using Words = std::vector<std::uint32_t>;

constexpr unsigned tensor_columns = 512, tensor_words = 128 * tensor_columns;
/// Where an image has a word.
constexpr std::size_t tensor_index(unsigned lane, unsigned column) {
    return std::size_t{column} * 128 + lane;
}

inline const Frame sm_100{"sm_100a", "9.0"};

inline float float_of(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
inline std::uint32_t bits_of(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

/// To nearest even; normal numbers only, which is what sums of multiples of 2^-24 are.
inline std::uint32_t to_half(double value) {
    if (value == 0) return 0;
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(value), &exponent); // 0.5 to 1
    const int least = std::max(exponent, -13);
    const double steps = std::nearbyint(std::ldexp(fraction, exponent - least + 11)); // of 2^(least - 11)
    std::uint32_t code = 0;
    if (steps >= 2048)
        code = std::uint32_t(least + 15) << 10;
    else if (steps < 1024)
        code = std::uint32_t(steps);
    else
        code = std::uint32_t(least + 14) << 10 | (std::uint32_t(steps) & 0x3ff);
    return code | (value < 0 ? 0x8000u : 0);
}

enum class Swizzle : unsigned { none = 0, bytes_128_by_32 = 1, bytes_128 = 2, bytes_64 = 4, bytes_32 = 6 };

/// A matrix descriptor (table 40) but for the address of the image, which is added when it runs.
inline std::uint64_t descriptor(unsigned offset, unsigned leading, unsigned stride, Swizzle swizzle) {
    return (offset >> 4) | std::uint64_t(leading >> 4) << 16 | std::uint64_t(stride >> 4) << 32 | std::uint64_t{1} << 46 |
           std::uint64_t(unsigned(swizzle)) << 61;
}

/// One thread (of each CTA: the even one's where `even_only`) executes `instruction`, with the descriptors in %l10 and %l11, and all wait for
/// it.
inline std::string commit_of(const std::string& instruction, std::uint64_t first, std::uint64_t second, bool pair = false) {
    const std::string group = pair ? "cta_group::2" : "cta_group::1";
    std::string text = "setp.ne.u32 %p1, %r60, 0; @%p1 bra ISSUED;\n";
    if (pair) text += "mov.u32 %r21, %cluster_ctarank; setp.ne.u32 %p1, %r21, 0; @%p1 bra ISSUED;\n";
    text += "mov.u32 %r21, image; shr.u32 %r21, %r21, 4; and.b32 %r21, %r21, 0x3fff; cvt.u64.u32 %l12, %r21;\n"
            "add.u64 %l10, %l12, " + std::to_string(first) + "; add.u64 %l11, %l12, " + std::to_string(second) + ";\n" + instruction +
            "mov.u32 %r21, bar; tcgen05.commit." + group + ".mbarrier::arrive::one.shared::cluster" + (pair ? ".multicast::cluster" : "") + ".b64 [%r21]" +
            (pair ? ", %h4" : "") + ";\n";
    return text + "ISSUED:\nmov.u32 %r21, bar;\nWAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r21], 0; @!%p1 bra WAIT;\ntcgen05.fence::after_thread_sync;\n";
}

/// Four warps, or a pair of CTAs with as many each. In the body %r51 is the address of the allocation (all of tensor memory), %r53
/// likewise with the warp's first lane, %l63 `extra`, %t<> registers of 32 bits.
struct TensorRun {
    std::vector<Words> memory; ///< one for each CTA
    std::vector<Words> shared;
    std::uint64_t extra = 0;
    Frame frame = sm_100;

    std::vector<Words> go(const std::string& body) const {
        const unsigned ctas = unsigned(memory.size());
        const bool pair = ctas == 2;
        Words images, shared_images;
        for (const Words& image : memory) images.insert(images.end(), image.begin(), image.end());
        const unsigned shared_words = shared.empty() ? 0 : unsigned(shared[0].size());
        for (const Words& image : shared) shared_images.insert(shared_images.end(), image.begin(), image.end());
        shared_images.resize(shared_images.size() + 1);
        const Array<std::uint32_t> in(images), given(shared_images), out(images.size());
        Frame used = frame;
        if (pair) used.directives = " .reqnctapercluster 2,1,1";
        const std::string group = pair ? "cta_group::2" : "cta_group::1";
        const auto move = [&](bool store) { // between global and tensor memory, 16 columns at a time
            std::string text = "mul.wide.u32 %l1, %r61, " + std::to_string(4 * tensor_words) + "; mul.wide.u32 %l2, %r60, 4; add.u64 %l1, %l1, %l2; add.u64 %l1, %l1, " +
                               (store ? "%l60" : "%l62") + ";\nmov.u32 %r22, %r53; mov.u32 %r23, 0;\n" + (store ? "FILL" : "GIVE") + ":\n";
            std::string registers;
            for (unsigned i = 0; i < 16; ++i) {
                registers += (i ? ", %t" : "%t") + std::to_string(i);
                if (store) text += "ld.global.u32 %t" + std::to_string(i) + ", [%l1+" + std::to_string(512 * i) + "];\n";
            }
            text += store ? "tcgen05.st.sync.aligned.32x32b.x16.b32 [%r22], {" + registers + "};\ntcgen05.wait::st.sync.aligned;\n"
                          : "tcgen05.ld.sync.aligned.32x32b.x16.b32 {" + registers + "}, [%r22];\ntcgen05.wait::ld.sync.aligned;\n";
            for (unsigned i = 0; i < 16 && !store; ++i) text += "st.global.u32 [%l1+" + std::to_string(512 * i) + "], %t" + std::to_string(i) + ";\n";
            return text + "add.u64 %l1, %l1, 8192; add.u32 %r22, %r22, 16; add.u32 %r23, %r23, 16; setp.lt.u32 %p1, %r23, 512; @%p1 bra " +
                   (store ? "FILL" : "GIVE") + ";\n";
        };
        const std::string all = pair ? "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n" : "bar.sync 0;\n";
        std::string text = ".reg .b32 %t<130>;\nshr.u32 %r50, %r60, 5; setp.eq.u32 %p7, %r50, 0; mov.u16 %h4, 3;\n"
                           "mov.u32 %r21, bar; setp.ne.u32 %p1, %r60, 0; @!%p1 mbarrier.init.shared.b64 [%r21], 1;\n" + all +
                           "@%p7 tcgen05.alloc." + group + ".sync.aligned.shared::cta.b32 [base], 512;\n" + all +
                           "ld.shared.u32 %r51, [base]; shl.b32 %r52, %r50, 21; add.u32 %r53, %r51, %r52;\n" + move(true);
        if (shared_words != 0) {
            text += "mul.lo.u32 %r22, %r61, " + std::to_string(shared_words) + "; mov.u32 %r23, %r60;\nCOPY: add.u32 %r24, %r22, %r23; mul.wide.u32 %l1, %r24, 4; "
                    "add.u64 %l1, %l1, %l61; ld.global.u32 %r25, [%l1]; shl.b32 %r26, %r23, 2; mov.u32 %r27, image; add.u32 %r27, %r27, %r26; "
                    "st.shared.u32 [%r27], %r25; add.u32 %r23, %r23, 128; setp.lt.u32 %p1, %r23, " + std::to_string(shared_words) +
                    "; @%p1 bra COPY;\nfence.proxy.async.shared::cta;\n";
        }
        text += "tcgen05.fence::before_thread_sync;\n" + all + "tcgen05.fence::after_thread_sync;\n" + body + "tcgen05.fence::before_thread_sync;\n" + all +
                "tcgen05.fence::after_thread_sync;\n" + move(false) + all + "@%p7 tcgen05.dealloc." + group + ".sync.aligned.b32 %r51, 512;\n";
        run(text, {ctas}, {128}, {in.address(), given.address(), out.address(), extra},
            ".shared .align 1024 .b8 image[" + std::to_string(std::max(16u, 4 * shared_words)) + "];\n.shared .align 8 .b64 bar;\n.shared .align 4 .b32 base;\n", 0, used);
        const Words values = out.values();
        std::vector<Words> result;
        for (unsigned i = 0; i < ctas; ++i) result.emplace_back(values.begin() + std::ptrdiff_t(i) * tensor_words, values.begin() + std::ptrdiff_t(i + 1) * tensor_words);
        return result;
    }
};

} // namespace ptarmigan::test
