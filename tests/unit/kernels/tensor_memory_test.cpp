// SPDX-License-Identifier: Apache-2.0
// tcgen05 (manual 9.7.16): allocation, loads and stores of every shape, copies, shifts and products against a scalar reference that
// places elements as the manual's tables and figures say. Numbers are chosen so that sums are exact.
// The statements are put together below; in full they are, for example:
//   tcgen05.ld.sync.aligned.32x32b.x1.b32, tcgen05.ld.sync.aligned.16x128b.x1.b32, tcgen05.ld.sync.aligned.16x256b.x1.b32,
//   tcgen05.st.sync.aligned.32x32b.x1.b32, tcgen05.st.sync.aligned.16x128b.x1.b32, tcgen05.st.sync.aligned.16x256b.x1.b32,
//   tcgen05.cp.cta_group::1.128x256b, tcgen05.cp.cta_group::1.128x128b.b8x16.b6x16_p32, tcgen05.cp.cta_group::1.64x128b.warpx2::02_13,
//   tcgen05.cp.cta_group::1.64x128b.warpx2::01_23.b8x16.b4x16_p64, tcgen05.cp.cta_group::1.32x128b.warpx4,
//   tcgen05.cp.cta_group::1.32x128b.warpx4.b8x16.b4x16_p64, tcgen05.ld.red.sync.aligned.16x32bx2.x8.min.f32, tcgen05.ld.red.sync.aligned.16x32bx2.x2.max.s32
#include "tensor_memory_fixture.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

Words random_words(recordings::Random& random, std::size_t count) {
    Words words(count);
    for (std::uint32_t& word : words) word = std::uint32_t(random.bits());
    return words;
}

/// Lane and column (from the address on) of register `index` of lane `lane`, by the figures of 9.7.16.2.3.1.
std::pair<unsigned, unsigned> place_of(const std::string& shape, unsigned lane, unsigned index) {
    if (shape == "32x32b") return {lane, index};
    if (shape == "16x64b") return {lane / 4 + 8 * (lane % 2), 2 * index + lane / 2 % 2};
    if (shape == "16x128b") return {lane / 4 + 8 * (index % 2), 4 * (index / 2) + lane % 4};
    return {lane / 4 + 8 * (index / 2 % 2), 8 * (index / 4) + 2 * (lane % 4) + index % 2}; // 16x256b
}

std::string list(unsigned count) {
    std::string text = "{";
    for (unsigned i = 0; i < count; ++i) text += (i ? ", %t" : "%t") + std::to_string(i);
    return text + "}";
}

} // namespace

TEST_CASE("tcgen05.ld, st: shapes", "[.][sm_100]") {
    recordings::Random random(21);
    struct Form {
        const char* shape;
        unsigned repeat, registers, lane;
    };
    for (const Form& form : {Form{"32x32b", 1, 1, 0}, Form{"32x32b", 64, 64, 0}, Form{"32x32b", 128, 128, 0}, Form{"16x64b", 1, 1, 16}, Form{"16x64b", 8, 8, 0},
                             Form{"16x128b", 1, 2, 0}, Form{"16x128b", 16, 32, 16}, Form{"16x256b", 1, 4, 16}, Form{"16x256b", 32, 128, 0}}) {
        for (const bool packed : {false, true}) {
            if (packed && form.shape == std::string("16x256b") && form.repeat == 32) continue; // all 512 columns
            const std::string text = std::string(form.shape) + ".x" + std::to_string(form.repeat);
            INFO(text << packed);
            const Words image = random_words(random, tensor_words);
            const Array<std::uint32_t> out(std::size_t(128) * form.registers);
            std::string load = "add.u32 %r20, %r53, " + std::to_string((form.lane << 16) + 32) + ";\ntcgen05.ld.sync.aligned." + text +
                               (packed ? ".pack::16b" : "") + ".b32 " + list(form.registers) + ", [%r20];\ntcgen05.wait::ld.sync.aligned;\n" +
                               "mul.wide.u32 %l5, %r60, " + std::to_string(4 * form.registers) + "; add.u64 %l5, %l5, %l63;\n";
            for (unsigned i = 0; i < form.registers; ++i)
                load += "st.global.u32 [%l5+" + std::to_string(4 * i) + "], %t" + std::to_string(i) + ";\n";
            // And back, 256 columns on, where there is room.
            const bool stores = form.registers <= 32;
            if (stores)
                load += "add.u32 %r20, %r20, 256;\ntcgen05.st.sync.aligned." + text + (packed ? ".unpack::16b" : "") + ".b32 [%r20], " + list(form.registers) +
                        ";\ntcgen05.wait::st.sync.aligned;\n";
            TensorRun run;
            run.memory = {image};
            run.extra = out.address();
            const Words after = run.go(load)[0];
            const Words values = out.values();
            Words expected = image;
            for (unsigned thread = 0; thread < 128; ++thread)
                for (unsigned i = 0; i < form.registers; ++i) {
                    const auto [lane, column] = place_of(form.shape, thread % 32, i);
                    const unsigned at = thread / 32 * 32 + form.lane + lane;
                    const auto word = [&](Words& words, unsigned c) -> std::uint32_t& { return words[tensor_index(at, c)]; };
                    Words source = {};
                    const std::uint32_t value = packed ? (image[tensor_index(at, 32 + 2 * column)] & 0xffff) | image[tensor_index(at, 33 + 2 * column)] << 16
                                                       : image[tensor_index(at, 32 + column)];
                    REQUIRE(values[thread * form.registers + i] == value);
                    if (!stores) continue;
                    if (packed) {
                        word(expected, 288 + 2 * column) = value & 0xffff;
                        word(expected, 289 + 2 * column) = value >> 16;
                    } else {
                        word(expected, 288 + column) = value;
                    }
                }
            REQUIRE(after == expected);
        }
    }
}

TEST_CASE("tcgen05.ld, st: two halves", "[.][sm_100]") {
    recordings::Random random(22);
    const Words image = random_words(random, tensor_words);
    const Array<std::uint32_t> out(128 * 4);
    TensorRun run;
    run.memory = {image};
    run.extra = out.address();
    const Words after = run.go("tcgen05.ld.sync.aligned.16x32bx2.x4.b32 {%t0, %t1, %t2, %t3}, [%r53], 40;\ntcgen05.wait::ld.sync.aligned;\n"
                               "mul.wide.u32 %l5, %r60, 16; add.u64 %l5, %l5, %l63; st.global.v4.u32 [%l5], {%t0, %t1, %t2, %t3};\n"
                               "add.u32 %r20, %r53, 200; tcgen05.st.sync.aligned.16x32bx2.x4.b32 [%r20], 8, {%t0, %t1, %t2, %t3};\ntcgen05.wait::st.sync.aligned;\n")[0];
    const Words values = out.values();
    Words expected = image;
    for (unsigned thread = 0; thread < 128; ++thread)
        for (unsigned i = 0; i < 4; ++i) {
            const unsigned lane = thread / 32 * 32 + thread % 16, second = thread % 32 / 16;
            REQUIRE(values[4 * thread + i] == image[tensor_index(lane, 40 * second + i)]);
            expected[tensor_index(lane, 200 + 8 * second + i)] = values[4 * thread + i];
        }
    REQUIRE(after == expected);
}

TEST_CASE("tcgen05.alloc: what is freed is there again, and waits end", "[.][sm_100]") {
    const Array<std::uint32_t> out(8);
    // Two warps allocate by turns: the second one's 256 columns come when the first one's are free.
    run(R"(
        shr.u32 %r1, %r60, 5; setp.eq.u32 %p1, %r1, 0; setp.ne.u32 %p2, %r60, 0;
        @!%p1 bra OTHER;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 256;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base+4], 128;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base+8], 128;
        bar.sync 0;
        ld.shared.u32 %r2, [base]; ld.shared.u32 %r3, [base+4]; ld.shared.u32 %r4, [base+8];
        @!%p2 st.global.v4.u32 [%l60], {%r2, %r3, %r4, %r1};
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 128;
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 128;
        bra DONE;
    OTHER:
        bar.sync 0;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base+12], 128;
        ld.shared.u32 %r5, [base+12];
        setp.eq.u32 %p3, %r60, 32;
        @%p3 st.global.u32 [%l60+16], %r5;
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 128;
    DONE:
        bar.sync 0;
        @!%p1 bra END;
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 256;
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    END:
    )",
        {1}, {64}, {out.address()}, ".shared .align 16 .b32 base[4];\n", 0, sm_100);
    Words words = out.values();
    REQUIRE(words[0] % 256 == 0);
    std::vector<unsigned> first{words[0], words[1], words[2]};
    std::sort(first.begin(), first.end());
    REQUIRE((words[4] == words[1] || words[4] == words[2]));
    REQUIRE(words[1] % 128 == 0);
    REQUIRE(words[1] != words[2]);
    REQUIRE((words[1] < words[0] || words[1] >= words[0] + 256));
}

namespace {

/// The rows of a copy: each 16 or 32 bytes of a matrix without swizzle.
void check_copy(const std::string& words, unsigned rows, unsigned bytes, const std::vector<unsigned>& shifts, unsigned unpacked_bits = 0,
                unsigned lane_of_address = 0) {
    INFO(words);
    recordings::Random random(23);
    TensorRun run;
    run.memory = {random_words(random, tensor_words)};
    run.shared = {random_words(random, 128 * 32 / 4)};
    const unsigned leading = rows * 16 < 128 ? 128 : rows * 16;
    const Words before = run.memory[0];
    const Words after = run.go(commit_of("add.u32 %r20, %r51, " + std::to_string((lane_of_address << 16) + 64) + ";\ntcgen05.cp.cta_group::1." + words + " [%r20], %l10;\n",
                                         descriptor(0, leading, 128, Swizzle::none), 0))[0];
    Words expected = before;
    for (unsigned row = 0; row < rows; ++row)
        for (unsigned i = 0; i < bytes; ++i) {
            const unsigned from = row / 8 * 128 + row % 8 * 16 + i / 16 * leading;
            unsigned value = 0;
            const unsigned bits = unpacked_bits ? unpacked_bits : 8;
            for (unsigned bit = 0; bit < bits; ++bit) {
                const unsigned at = 8 * from + i % 16 * bits + bit;
                value |= (run.shared[0][at / 32] >> at % 32 & 1) << (bit + (unpacked_bits == 4 ? 2 : 0));
            }
            for (const unsigned shift : shifts) {
                unsigned lane = row + shift;
                if (rows == 4) lane = 32 * row + lane_of_address;
                if (words.find("01_23") != std::string::npos) lane = row / 32 * 64 + row % 32 + shift;
                std::uint32_t& word = expected[tensor_index(lane, 64 + i / 4)];
                word = (word & ~(0xffu << 8 * (i % 4))) | value << 8 * (i % 4);
            }
        }
    REQUIRE(after == expected);
}

} // namespace

TEST_CASE("tcgen05.cp: shapes", "[.][sm_100]") {
    check_copy("128x256b", 128, 32, {0});
    check_copy("128x128b", 128, 16, {0});
    check_copy("4x256b", 4, 32, {0}, 0, 31);
    check_copy("64x128b.warpx2::02_13", 64, 16, {0, 64});
    check_copy("64x128b.warpx2::01_23", 64, 16, {0, 32});
    check_copy("32x128b.warpx4", 32, 16, {0, 32, 64, 96});
    check_copy("128x128b.b8x16.b6x16_p32", 128, 16, {0}, 6);
    check_copy("64x128b.warpx2::01_23.b8x16.b4x16_p64", 64, 16, {0, 32}, 4);
    check_copy("32x128b.warpx4.b8x16.b4x16_p64", 32, 16, {0, 32, 64, 96}, 4);
}

TEST_CASE("tcgen05.shift", "[.][sm_100]") {
    recordings::Random random(24);
    TensorRun run;
    run.memory = {random_words(random, tensor_words)};
    Words expected = run.memory[0];
    for (unsigned column = 16; column < 24; ++column)
        for (unsigned lane = 64; lane < 95; ++lane) expected[tensor_index(lane, column)] = run.memory[0][tensor_index(lane + 1, column)];
    REQUIRE(run.go(commit_of("add.u32 %r20, %r51, " + std::to_string((64 << 16) + 16) + ";\n"
        "tcgen05.shift.cta_group::1.down [%r20];\n", 0, 0))[0] == expected);
}

TEST_CASE("tcgen05.ld.red", "[.][sm_103]") {
    recordings::Random random(25);
    TensorRun run;
    run.frame = Frame{"sm_103a", "9.0"};
    Words image(tensor_words);
    for (std::uint32_t& word : image) word = bits_of(float(int(random.below(2000)) - 1000));
    image[tensor_index(3, 4)] = 0x7fc00001;
    run.memory = {image};
    const Array<std::uint32_t> out(128 * 6);
    run.extra = out.address();
    run.go("tcgen05.ld.red.sync.aligned.32x32b.x8.min.f32 {%t0, %t1, %t2, %t3, %t4, %t5, %t6, %t7}, %t8, [%r53];\n"
           "tcgen05.ld.red.sync.aligned.32x32b.x8.max.abs.NaN.f32 {%t0, %t1, %t2, %t3, %t4, %t5, %t6, %t7}, %t9, [%r53];\n"
           "tcgen05.ld.red.sync.aligned.32x32b.x2.max.s32 {%t0, %t1}, %t10, [%r53];\n"
           "tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%t0, %t1}, %t11, [%r53];\n"
           "tcgen05.ld.red.sync.aligned.16x32bx2.x8.min.f32 {%t0, %t1, %t2, %t3, %t4, %t5, %t6, %t7}, %t12, [%r53], 0;\n"
           "tcgen05.ld.red.sync.aligned.16x32bx2.x2.max.s32 {%t0, %t1}, %t13, [%r53], 0;\ntcgen05.wait::ld.sync.aligned;\n"
           "mul.wide.u32 %l5, %r60, 24; add.u64 %l5, %l5, %l63; st.global.v2.u32 [%l5], {%t8, %t9}; st.global.v2.u32 [%l5+8], {%t10, %t11};\n"
           "st.global.v2.u32 [%l5+16], {%t12, %t13};\n");
    const Words values = out.values();
    for (unsigned lane = 0; lane < 128; ++lane) {
        float least = 1e9f, most = 0;
        for (unsigned i = 0; i < 8; ++i) {
            const float value = float_of(image[tensor_index(lane, i)]);
            if (value != value) continue;
            least = std::min(least, value);
            most = std::max(most, std::fabs(value));
        }
        INFO(lane);
        REQUIRE(float_of(values[6 * lane]) == least);
        if (lane == 3)
            REQUIRE(values[6 * lane + 1] == 0x7fffffff);
        else
            REQUIRE(float_of(values[6 * lane + 1]) == most);
        const std::uint32_t a = image[tensor_index(lane, 0)], b = image[tensor_index(lane, 1)];
        REQUIRE(values[6 * lane + 2] == std::uint32_t(std::max(std::int32_t(a), std::int32_t(b))));
        REQUIRE(values[6 * lane + 3] == std::min(a, b));
        // Both halves of the warp read its first 16 lanes.
        const unsigned other = lane / 32 * 32 + lane % 16;
        REQUIRE(values[6 * lane + 4] == values[6 * other]);
        REQUIRE(values[6 * lane + 5] == values[6 * other + 2]);
    }
}
