// SPDX-License-Identifier: Apache-2.0
// Blackwell's warp-level products and its moves of 8, 6 and 4 bits, against a scalar reference written from the manual (9.7.14.3,
// 9.7.14.5, 9.7.14.6). Numbers are chosen so that sums are exact: how sums are rounded, tests/unit/tensor_core compares.
// The statements are put together below; in full they are, for example:
//   mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e5m2.f32
//   mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e5m2.f32.ue8m0
//   mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0
//   mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0
//   mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3
//   mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0
//   mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e4m3.e5m2.f32
//   mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e5m2.f32.ue8m0
//   mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0
//   mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0
//   mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3
//   ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8, ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32,
//   ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b6x16_p32, stmatrix.sync.aligned.m16n8.x1.trans.shared.b8
#include "tensor_memory_fixture.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned lanes = 32;

const Frame sm_120{"sm_120a", "9.1"};

std::string to_string(unsigned value) {
    return std::to_string(value);
}

/// A floating-point format of at most 8 bits: sign, exponent, fraction.
struct Small {
    const char* name;
    int exponent_bits, fraction_bits;
    unsigned shift = 0;                    ///< of the number in its byte, where formats are mixed
    unsigned least = 0, most = ~0u;        ///< fields of exponents that are drawn
    unsigned bits() const { return unsigned(1 + exponent_bits + fraction_bits); }
    double value(unsigned code) const {
        const int field = int(code >> fraction_bits & ((1u << exponent_bits) - 1)), bias = (1 << (exponent_bits - 1)) - 1;
        const int fraction = int(code & ((1u << fraction_bits) - 1));
        const double magnitude = field == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                                            : std::ldexp((1 << fraction_bits) + fraction, field - bias - fraction_bits);
        return code >> (exponent_bits + fraction_bits) & 1 ? -magnitude : magnitude;
    }
    unsigned draw(recordings::Random& random) const {
        unsigned code = unsigned(random.bits()) & ((1u << bits()) - 1);
        if (most == ~0u) return code;
        const unsigned field = least + unsigned(random.below(most - least + 1));
        code &= ~(((1u << exponent_bits) - 1) << fraction_bits);
        return code | field << fraction_bits;
    }
};
constexpr Small mixed[] = {{"e4m3", 4, 3, 0, 5, 8}, {"e5m2", 5, 2, 0, 13, 16}, {"e3m2", 3, 2}, {"e2m3", 2, 3}, {"e2m1", 2, 1, 2}};
constexpr Small e2m1{"e2m1", 2, 1};

/// What a warp has: registers by lane.
struct Warp {
    Words a = Words(lanes * 4), b = Words(lanes * 4), c = Words(lanes * 4), e = Words(lanes), scale_a = Words(lanes), scale_b = Words(lanes);
};

/// One instruction and what it means.
struct Product {
    Small a, b;
    bool packed = false; ///< two elements in a byte
    bool sparse = false;
    unsigned scales = 0; ///< of a row
    bool ue4m3 = false;
    bool half = false; ///< C and D are f16
    unsigned byte_a = 0, thread_a = 0, byte_b = 0, thread_b = 0;
    std::string kind;

    unsigned k() const { return (packed ? 64u : 32u) * (sparse ? 2 : 1); }
    std::string text() const {
        std::string s = sparse ? "mma.sp::ordered_metadata" : "mma";
        s += ".sync.aligned.m16n8k" + to_string(k()) + ".row.col.kind::" + kind;
        if (scales) s += ".block_scale.scale_vec::" + to_string(scales) + "X";
        const std::string type = half ? ".f16" : ".f32";
        s += type + "." + a.name + "." + b.name + type;
        if (scales) s += ue4m3 ? ".ue4m3" : ".ue8m0";
        s += half ? " {%r40, %r41}" : " {%f0, %f1, %f2, %f3}";
        s += ", {%r0, %r1, %r2, %r3}, ";
        s += sparse ? "{%r4, %r5, %r6, %r7}" : "{%r4, %r5}";
        s += half ? ", {%r8, %r9}" : ", {%f8, %f9, %f10, %f11}";
        if (sparse) s += ", %r12, 0";
        if (scales)
            s += ", %r13, {" + to_string(byte_a) + ", " + to_string(thread_a) + "}, %r14, {%h2, %h3}";
        return s + ";\n";
    }

    /// Element `index` of a register row of lane `lane`: of 8 bits four in a register, of 4 bits eight.
    unsigned element(const Words& registers, unsigned lane, unsigned index, const Small& type) const {
        if (packed) return registers[lane * 4 + index / 8] >> 4 * (index % 8) & 15;
        return registers[lane * 4 + index / 4] >> (8 * (index % 4) + type.shift) & ((1u << type.bits()) - 1);
    }

    /// D by the manual: figures of m16n8k32 and m16n8k64.
    std::vector<double> result(const Warp& warp) const {
        const unsigned run = packed ? 8 : 4, stored = k() / (sparse ? 2 : 1);
        std::vector<double> A(16 * k()), B(k() * 8), D(16 * 8);
        for (unsigned lane = 0; lane < lanes; ++lane) {
            const unsigned g = lane / 4, t = lane % 4;
            for (unsigned i = 0; i < 4 * run; ++i) {
                const unsigned row = (i / run) % 2 ? g + 8 : g, column = t * run + i % run + (i >= 2 * run ? 4 * run : 0);
                unsigned at = column;
                if (sparse) { // of every four elements (of pairs, where packed) two are stored
                    const unsigned piece = packed ? 2 : 1, pair = column / piece, chunk = pair / 2;
                    const unsigned nibble = warp.e[4 * (row % 8) + 2 * (chunk / 8) + row / 8] >> 4 * (chunk % 8);
                    at = (4 * chunk + (nibble >> 2 * (pair % 2) & 3)) * piece + column % piece;
                }
                A[row * k() + at] = a.value(element(warp.a, lane, i, a));
            }
            for (unsigned i = 0; i < k() / 4; ++i)
                B[(t * run + i % run + i / run * 4 * run) * 8 + g] = b.value(element(warp.b, lane, i, b));
        }
        for (unsigned lane = 0; lane < lanes; ++lane)
            for (unsigned i = 0; i < 4; ++i) {
                const unsigned row = lane / 4 + (i < 2 ? 0 : 8), column = lane % 4 * 2 + i % 2;
                double sum = half ? half_value(warp.c[lane * 4 + i / 2] >> 16 * (i % 2)) : float_of(warp.c[lane * 4 + i]);
                for (unsigned j = 0; j < k(); ++j) {
                    double product = A[row * k() + j] * B[j * 8 + column];
                    if (scales) {
                        const unsigned n = j / (k() / scales);
                        const unsigned of_a = warp.scale_a[4 * (row % 8) + 2 * thread_a + row / 8] >> 8 * (byte_a + n) & 0xff;
                        const unsigned of_b = warp.scale_b[4 * column + thread_b] >> 8 * (byte_b + n) & 0xff;
                        product *= scale(of_a) * scale(of_b);
                    }
                    sum += product;
                }
                D[lane * 4 + i] = sum;
            }
        static_cast<void>(stored);
        return D;
    }
    double scale(unsigned code) const { return ue4m3 ? mixed[0].value(code & 0x7f) : std::ldexp(1.0, int(code) - 127); }
    static double half_value(std::uint32_t bits) { return Small{"f16", 5, 10}.value(bits & 0xffff); }

    Warp draw(recordings::Random& random) const {
        Warp warp;
        const auto fill = [&](Words& registers, const Small& type) {
            for (std::uint32_t& word : registers) {
                word = 0;
                for (unsigned i = 0; i < (packed ? 8u : 4u); ++i)
                    word |= type.draw(random) << (packed ? 4 * i : 8 * i + type.shift);
            }
        };
        fill(warp.a, a);
        fill(warp.b, b);
        for (std::uint32_t& word : warp.c)
            word = half ? 0x4c004a00 ^ (unsigned(random.bits()) & 0x83008300) : bits_of(float(int(random.below(2000)) - 1000));
        for (std::uint32_t& word : warp.e) {
            word = 0;
            constexpr unsigned pairs[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};
            for (unsigned i = 0; i < 8; ++i) word |= pairs[random.below(6)] << 4 * i;
        }
        for (Words* scales : {&warp.scale_a, &warp.scale_b})
            for (std::uint32_t& word : *scales) {
                word = 0;
                // ue4m3: 1, 1.5, 2, 3 and so on; its sign bit does not count
                for (unsigned i = 0; i < 4; ++i)
                    word |= (ue4m3 ? 0x30 + 4 * unsigned(random.below(6)) + 0x80 * unsigned(random.below(2)) : 126 + unsigned(random.below(3))) << 8 * i;
            }
        return warp;
    }
};

/// Runs the instructions one behind the other on operands of their own.
void check(const std::vector<Product>& products, unsigned seed) {
    recordings::Random random(seed);
    std::vector<Warp> warps;
    Words in;
    std::string body = "shl.b32 %r20, %r60, 6; cvt.u64.u32 %l1, %r20; add.u64 %l1, %l1, %l60;\n"
                       "shl.b32 %r20, %r60, 4; cvt.u64.u32 %l2, %r20; add.u64 %l2, %l2, %l61;\n";
    for (std::size_t i = 0; i < products.size(); ++i) {
        const Product& p = products[i];
        warps.push_back(p.draw(random));
        const Warp& w = warps.back();
        for (unsigned lane = 0; lane < lanes; ++lane) {
            for (const Words* four : {&w.a, &w.b, &w.c}) in.insert(in.end(), four->begin() + lane * 4, four->begin() + lane * 4 + 4);
            in.insert(in.end(), {w.e[lane], w.scale_a[lane], w.scale_b[lane], 0});
        }
        const auto at = [](const char* base, std::size_t bytes) { return std::string("[") + base + "+" + std::to_string(bytes) + "]"; };
        body += "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, " + at("%l1", 2048 * i) + ";\nld.global.v4.u32 {%r4, %r5, %r6, %r7}, " + at("%l1", 2048 * i + 16) +
                ";\nld.global.v4.u32 {%r8, %r9, %r10, %r11}, " + at("%l1", 2048 * i + 32) + ";\nld.global.v4.u32 {%r12, %r13, %r14, %r15}, " +
                at("%l1", 2048 * i + 48) + ";\nmov.b32 %f8, %r8; mov.b32 %f9, %r9; mov.b32 %f10, %r10; mov.b32 %f11, %r11;\nmov.u16 %h2, " +
                to_string(p.byte_b) + "; mov.u16 %h3, " + to_string(p.thread_b) + ";\nmov.u32 %r42, 0; mov.u32 %r43, 0;\n" + p.text();
        if (!p.half) body += "mov.b32 %r40, %f0; mov.b32 %r41, %f1; mov.b32 %r42, %f2; mov.b32 %r43, %f3;\n";
        body += "st.global.v4.u32 " + at("%l2", 512 * i) + ", {%r40, %r41, %r42, %r43};\n";
    }
    const Array<std::uint32_t> input(in), out(lanes * 4 * products.size());
    run(body, {1}, {lanes}, {input.address(), out.address()}, "", 0, sm_120);
    const Words values = out.values();
    for (std::size_t i = 0; i < products.size(); ++i) {
        const std::vector<double> expected = products[i].result(warps[i]);
        for (unsigned n = 0; n < lanes * 4; ++n) {
            INFO(products[i].text() << n);
            const std::size_t lane = i * lanes * 4 + n / 4 * 4;
            if (products[i].half)
                REQUIRE((values[lane + n % 4 / 2] >> 16 * (n % 2) & 0xffff) == to_half(expected[n]));
            else
                REQUIRE(float_of(values[lane + n % 4]) == expected[n]);
        }
    }
}

} // namespace

TEST_CASE("mma: mixed formats", "[.][sm_120]") {
    for (const bool sparse : {false, true}) {
        std::vector<Product> products;
        for (const Small& a : mixed)
            for (const Small& b : mixed) {
                Product p{a, b};
                p.sparse = sparse;
                p.kind = "f8f6f4";
                products.push_back(p);
                // All sums are multiples of what f16 has: only small numbers.
                if (a.bits() < 6 && b.bits() < 6) {
                    p.half = true;
                    products.push_back(p);
                }
            }
        check(products, sparse);
    }
}

TEST_CASE("mma: mixed formats with block scales", "[.][sm_120]") {
    for (const bool sparse : {false, true}) {
        std::vector<Product> products;
        unsigned n = 0;
        for (const Small& a : mixed)
            for (const Small& b : mixed) {
                Product p{a, b};
                p.sparse = sparse;
                p.scales = 1;
                p.kind = "mxf8f6f4";
                p.byte_a = n % 4, p.thread_a = n / 2 % 2, p.byte_b = n / 3 % 4, p.thread_b = n / 5 % 4;
                ++n;
                products.push_back(p);
            }
        check(products, 2 + sparse);
    }
}

TEST_CASE("mma: e2m1 with block scales", "[.][sm_120]") {
    for (const bool sparse : {false, true}) {
        std::vector<Product> products;
        for (const char* kind : {"mxf4", "mxf4nvf4"})
            for (const unsigned scales : {2u, 4u})
                for (const bool ue4m3 : {false, true})
                    for (unsigned select = 0; select < 8; ++select) {
                        const bool is_mxf4 = std::string(kind) == "mxf4";
                        if ((is_mxf4 && (scales == 4 || ue4m3)) || (ue4m3 && scales == 2)) continue;
                        if (sparse && scales == 4 && !ue4m3) continue; // not in the table
                        Product p{e2m1, e2m1};
                        p.packed = true;
                        p.sparse = sparse;
                        p.scales = scales;
                        p.ue4m3 = ue4m3;
                        p.kind = kind;
                        p.thread_a = select % 2, p.thread_b = select / 2;
                        if (scales == 2) p.byte_a = select / 4 * 2, p.byte_b = select % 2 * 2;
                        products.push_back(p);
                    }
        check(products, 4 + sparse);
    }
}

namespace {

constexpr unsigned memory_words = 512;
const std::string memory = ".shared .align 16 .b32 memory[" + to_string(memory_words) + "];\n";

/// Moves p0 (memory_words words) to shared memory, or shared memory there.
std::string copy(bool to_shared) {
    std::string text = "bar.sync 0; mov.u32 %r30, memory; shl.b32 %r31, %r60, 4; add.u32 %r30, %r30, %r31; cvt.u64.u32 %l3, %r31; add.u64 %l3, %l3, %l60;\n";
    for (unsigned i = 0; i < memory_words / (4 * lanes); ++i) {
        const std::string at = "+" + to_string(16 * lanes * i) + "]";
        const std::string four = "{%r32, %r33, %r34, %r35}";
        text += to_shared ? "ld.global.v4.u32 " + four + ", [%l3" + at + "; st.shared.v4.u32 [%r30" + at + ", " + four + ";\n"
                          : "ld.shared.v4.u32 " + four + ", [%r30" + at + "; st.global.v4.u32 [%l3" + at + ", " + four + ";\n";
    }
    return text + "bar.sync 0;\n";
}

const std::string row_address = "mul.wide.u32 %l1, %r60, 4; add.u64 %l1, %l1, %l61; ld.global.u32 %r10, [%l1]; mov.u32 %r11, memory; add.u32 %r10, %r10, %r11;\n";

/// Element `index` of a row of 16: of 8, 6 or 4 bits from the first bit on.
unsigned packed_element(const Words& words, unsigned row, unsigned index, unsigned bits) {
    unsigned value = 0;
    for (unsigned bit = 0; bit < bits; ++bit) {
        const unsigned at = row * 8 + index * bits + bit;
        value |= (words[at / 32] >> at % 32 & 1) << bit;
    }
    return value;
}

} // namespace

TEST_CASE("ldmatrix: elements of 8, 6 and 4 bits", "[.][sm_120]") {
    recordings::Random random(7);
    Words data(memory_words), rows(lanes);
    for (std::uint32_t& word : data) word = std::uint32_t(random.bits());
    for (unsigned lane = 0; lane < lanes; ++lane) rows[lane] = 16 * ((lane * 37 + 11) % (memory_words / 4));
    struct Load {
        const char* words;
        unsigned matrices, bits;
        bool square; ///< m16n16, else m8n16
    };
    for (const Load& load : {Load{"m16n16.x1.trans.shared.b8", 1, 8, true}, Load{"m16n16.x2.trans.shared.b8", 2, 8, true},
                             Load{"m16n16.x1.trans.shared.b8x16.b6x16_p32", 1, 6, true}, Load{"m16n16.x2.trans.shared.b8x16.b6x16_p32", 2, 6, true},
                             Load{"m16n16.x2.trans.shared.b8x16.b4x16_p64", 2, 4, true}, Load{"m8n16.x1.shared.b8x16.b6x16_p32", 1, 6, false},
                             Load{"m8n16.x2.shared.b8x16.b4x16_p64", 2, 4, false}, Load{"m8n16.x4.shared.b8x16.b6x16_p32", 4, 6, false},
                             Load{"m8n16.x4.shared.b8x16.b4x16_p64", 4, 4, false}}) {
        const unsigned count = load.matrices * (load.square ? 2 : 1);
        std::string registers;
        for (unsigned i = 0; i < count; ++i) registers += (i ? ", %r" : "%r") + to_string(20 + i);
        const Array<std::uint32_t> in(data), at(rows), out(lanes * 4);
        run(copy(true) + row_address + "ldmatrix.sync.aligned." + load.words + " {" + registers +
                "}, [%r10];\nmul.wide.u32 %l2, %r60, 16; add.u64 %l2, %l2, %l62; st.global.v4.u32 [%l2], {%r20, %r21, %r22, %r23};\n",
            {1}, {lanes}, {in.address(), at.address(), out.address()}, memory, 0, sm_120);
        const Words values = out.values();
        for (unsigned lane = 0; lane < lanes; ++lane)
            for (unsigned i = 0; i < count; ++i)
                for (unsigned j = 0; j < 4; ++j) {
                    const unsigned g = lane / 4, t = lane % 4;
                    const unsigned m = load.square ? i / 2 : i;
                    const unsigned row = load.square ? 16 * m + 4 * t + j : 8 * m + g;
                    const unsigned column = load.square ? g + 8 * (i % 2) : 4 * t + j;
                    INFO(load.words << " " << lane << " " << i << " " << j);
                    REQUIRE((values[4 * lane + i] >> 8 * j & 0xff) == packed_element(data, rows[row], column, load.bits));
                }
    }
}

TEST_CASE("stmatrix: elements of 8 bits", "[.][sm_120]") {
    recordings::Random random(8);
    for (const unsigned count : {1u, 2u, 4u}) {
        Words data(memory_words), rows(lanes), values(lanes * 4);
        for (std::uint32_t& word : values) word = std::uint32_t(random.bits());
        for (unsigned lane = 0; lane < lanes; ++lane) rows[lane] = 16 * ((lane * 37 + 11) % (memory_words / 4));
        std::string registers;
        for (unsigned i = 0; i < count; ++i) registers += (i ? ", %r" : "%r") + to_string(20 + i);
        const Array<std::uint32_t> memory_image(data), at(rows), in(values);
        run(copy(true) + row_address + "mul.wide.u32 %l2, %r60, 16; add.u64 %l2, %l2, %l62; ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%l2];\n" +
                "stmatrix.sync.aligned.m16n8.x" + to_string(count) + ".trans.shared.b8 [%r10], {" + registers + "};\n" + copy(false),
            {1}, {lanes}, {memory_image.address(), at.address(), in.address()}, memory, 0, sm_120);
        Words expected(memory_words);
        for (unsigned lane = 0; lane < lanes; ++lane)
            for (unsigned i = 0; i < count; ++i)
                for (unsigned j = 0; j < 4; ++j) {
                    const unsigned byte = rows[8 * i + lane % 4 * 2 + j % 2] + lane / 4 + j / 2 * 8;
                    expected[byte / 4] |= (values[4 * lane + i] >> 8 * j & 0xff) << 8 * (byte % 4);
                }
        REQUIRE(memory_image.values() == expected);
    }
}
