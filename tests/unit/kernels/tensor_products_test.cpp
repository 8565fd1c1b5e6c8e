// SPDX-License-Identifier: Apache-2.0
// tcgen05.mma against a scalar reference: what elements are, where they lie in shared memory (canonical layouts, 9.7.16.3.3), which lane
// and column of tensor memory has which element (layouts A to G, 9.7.16.10.5), scales and metadata. Sums are exact.
// The statements are put together below; in full they are, with descriptors or tensor memory for A:
//   tcgen05.mma.cta_group::1.kind::f16, tcgen05.mma.ws.cta_group::1.kind::f16, tcgen05.mma.cta_group::1.kind::f16.ashift,
//   tcgen05.mma.sp.cta_group::1.kind::f16, tcgen05.mma.ws.sp.cta_group::1.kind::f16, tcgen05.mma.sp.cta_group::1.kind::f16.ashift,
//   tcgen05.mma.cta_group::1.kind::tf32, tcgen05.mma.ws.cta_group::1.kind::tf32, tcgen05.mma.cta_group::1.kind::tf32.ashift,
//   tcgen05.mma.sp.cta_group::1.kind::tf32, tcgen05.mma.ws.sp.cta_group::1.kind::tf32, tcgen05.mma.sp.cta_group::1.kind::tf32.ashift,
//   tcgen05.mma.cta_group::1.kind::f8f6f4, tcgen05.mma.ws.cta_group::1.kind::f8f6f4, tcgen05.mma.cta_group::1.kind::f8f6f4.ashift,
//   tcgen05.mma.sp.cta_group::1.kind::f8f6f4, tcgen05.mma.ws.sp.cta_group::1.kind::f8f6f4,
//   tcgen05.mma.sp.cta_group::1.kind::f8f6f4.ashift, tcgen05.mma.cta_group::1.kind::i8, tcgen05.mma.ws.cta_group::1.kind::i8,
//   tcgen05.mma.cta_group::1.kind::i8.ashift, tcgen05.mma.sp.cta_group::1.kind::i8, tcgen05.mma.ws.sp.cta_group::1.kind::i8,
//   tcgen05.mma.sp.cta_group::1.kind::i8.ashift, tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X,
//   tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X, tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X,
//   tcgen05.mma.sp.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X,
//   tcgen05.mma.sp.cta_group::1.kind::mxf4.block_scale.scale_vec::2X,
//   tcgen05.mma.sp.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X
#include "tensor_memory_fixture.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <optional>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

/// Elements. Integers: no exponent.
struct Type {
    const char* name;
    int exponent_bits, fraction_bits;
    unsigned code;            ///< in the instruction descriptor
    unsigned bits;            ///< of an element in shared memory; of 6 and 4 (mixed kinds) 16 are in 16 bytes
    unsigned container = 0;   ///< bits in tensor memory, if others; the number then begins at bit `at`
    unsigned at = 0;
    unsigned least = 0, most = 0; ///< fields of exponents that are drawn; 0, 0: all
    bool is_signed = true;

    unsigned draw(recordings::Random& random) const {
        const unsigned size = exponent_bits ? 1 + exponent_bits + fraction_bits : 8;
        unsigned value = unsigned(random.bits()) & (size == 32 ? ~0u : (1u << size) - 1);
        if (fraction_bits > 4) value &= ~((1u << (fraction_bits - 4)) - 1); // sums stay exact
        if (most == 0) return value;
        const unsigned field = least + unsigned(random.below(most - least + 1));
        value &= ~(((1u << exponent_bits) - 1) << fraction_bits);
        return value | field << fraction_bits;
    }
    double value(unsigned bits_of_element) const {
        if (exponent_bits == 0) return is_signed ? double(std::int8_t(bits_of_element)) : double(bits_of_element & 0xff);
        const int field = int(bits_of_element >> fraction_bits & ((1u << exponent_bits) - 1)), bias = (1 << (exponent_bits - 1)) - 1;
        const int fraction = int(bits_of_element & ((1u << fraction_bits) - 1));
        const double magnitude = field == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                                            : std::ldexp((1 << fraction_bits) + fraction, field - bias - fraction_bits);
        return bits_of_element >> (exponent_bits + fraction_bits) & 1 ? -magnitude : magnitude;
    }
};
constexpr Type f16{"f16", 5, 10, 0, 16, 0, 0, 14, 16}, bf16{"bf16", 8, 7, 1, 16, 0, 0, 126, 128}, tf32{"tf32", 8, 23, 2, 32, 0, 0, 126, 128},
    s8{"s8", 0, 0, 1, 8}, u8{"u8", 0, 0, 0, 8, 0, 0, 0, 0, false}, e4m3{"e4m3", 4, 3, 0, 8, 0, 0, 5, 8}, e5m2{"e5m2", 5, 2, 1, 8, 0, 0, 13, 16},
    e2m3{"e2m3", 2, 3, 3, 6, 8, 0}, e3m2{"e3m2", 3, 2, 4, 6, 8, 0}, e2m1{"e2m1", 2, 1, 5, 4, 8, 2}, packed{"e2m1", 2, 1, 1, 4};

unsigned container_of(const Type& type) {
    return type.container ? type.container : type.bits;
}

/// Swizzle<B, 4, 3> of CuTe on bytes, and Swizzle<2, 5, 2>.
unsigned swizzled(Swizzle swizzle, unsigned address) {
    switch (swizzle) {
    case Swizzle::bytes_32: return address ^ ((address >> 7 & 1) << 4);
    case Swizzle::bytes_64: return address ^ ((address >> 7 & 3) << 4);
    case Swizzle::bytes_128: return address ^ ((address >> 7 & 7) << 4);
    case Swizzle::bytes_128_by_32: return address ^ ((address >> 7 & 3) << 5);
    default: return address;
    }
}
unsigned width_of(Swizzle swizzle) {
    return swizzle == Swizzle::none ? 16 : swizzle == Swizzle::bytes_32 ? 32 : swizzle == Swizzle::bytes_64 ? 64 : 128;
}

/// A matrix of `lines` rows of A or columns of B, placed in an image from `begin` on.
struct Placement {
    Swizzle swizzle = Swizzle::none;
    bool transposed = false;
    unsigned begin = 0, leading = 0, stride = 0, bytes = 0; ///< bytes: that it takes

    static Placement of(Swizzle swizzle, bool transposed, unsigned lines, unsigned k, const Type& type, unsigned begin) {
        Placement p{swizzle, transposed, begin};
        const unsigned width = width_of(swizzle), row_bytes = k * container_of(type) / 8; // 4- and 6-bit elements: 16 in 16 bytes
        if (!transposed) {
            p.stride = 8 * width;
            p.leading = swizzle == Swizzle::none ? (lines + 7) / 8 * 128 : 16;
            p.bytes = swizzle == Swizzle::none ? p.leading * (row_bytes / 16) : (lines + 7) / 8 * p.stride;
            return p;
        }
        const unsigned line_bytes = lines * type.bits / 8, pieces = (line_bytes + width - 1) / width;
        const unsigned rows = swizzle == Swizzle::bytes_128_by_32 ? 4 : 8;
        const unsigned pattern = rows * width;
        // None: the stride goes along the lines, the leading dimension along k; swizzles: the other way round.
        const unsigned along_k = pattern, along_lines = pattern * ((k + rows - 1) / rows);
        p.leading = swizzle == Swizzle::none ? along_k : along_lines;
        p.stride = swizzle == Swizzle::none ? along_lines : along_k;
        p.bytes = along_lines * pieces;
        return p;
    }

    void put(Words& image, const Type& type, unsigned line, unsigned k, unsigned element) const {
        unsigned bit = 0;
        const unsigned width = width_of(swizzle);
        if (!transposed) {
            const unsigned per_group = 128 / container_of(type), group = k / per_group;
            const unsigned rows = line / 8 * stride + line % 8 * width;
            const unsigned place = swizzle == Swizzle::none ? rows + group * leading : rows + 16 * group;
            bit = 8 * swizzled(swizzle, begin + place) + k % per_group * type.bits;
        } else {
            const unsigned byte = line * type.bits / 8, rows = swizzle == Swizzle::bytes_128_by_32 ? 4 : 8;
            const unsigned of_line = byte / width, of_k = k / rows;
            const unsigned place = byte % width + k % rows * width +
                                   (swizzle == Swizzle::none ? of_line * stride + of_k * leading : of_line * leading + of_k * stride);
            bit = 8 * swizzled(swizzle, begin + place);
        }
        for (unsigned i = 0; i < type.bits; ++i) {
            std::uint32_t& word = image.at((bit + i) / 32);
            word = (word & ~(1u << (bit + i) % 32)) | (element >> i & 1) << (bit + i) % 32;
        }
    }
};

struct Case {
    std::string kind;
    Type a, b;
    unsigned m, n;
    Swizzle swizzle_a = Swizzle::none, swizzle_b = Swizzle::none;
    bool transpose_a = false, transpose_b = false, negate_a = false, negate_b = false;
    bool half = false;   ///< D is f16
    bool pair = false;   ///< .cta_group::2
    bool ws = false, sparse = false, from_memory = false, shifts = false, accumulates = true, saturates = false;
    unsigned scale_d = 0, scales = 0, id_a = 0, id_b = 0, selector = 0, lane = 0;
    bool ue4m3 = false, stays = false;
    std::optional<std::uint64_t> zero_mask{};
    std::string extra_words{};

    unsigned k() const { return (a.bits == 32 ? 8 : a.bits == 16 ? 16 : kind == "mxf4" || kind == "mxf4nvf4" ? 64 : 32) * (sparse ? 2 : 1); }
    bool integers() const { return kind == "i8"; }
    unsigned rows() const { return pair ? m / 2 : m; } ///< of a CTA
    bool halves() const { return rows() == 64 && !ws && (!pair || sparse); }
    /// Where D has element (row of the CTA, column).
    std::pair<unsigned, unsigned> place(unsigned row, unsigned column) const {
        if (halves()) return {row / 16 * 32 + row % 16 + lane, column};
        const unsigned parts = 128 / rows(), part = column / (n / parts);
        return {row + rows() * part, column % (n / parts)};
    }
    /// Lanes that hold what belongs to a row (of A, metadata).
    std::vector<unsigned> lanes_of(unsigned row) const {
        if (halves()) return {row / 16 * 32 + row % 16 + lane};
        std::vector<unsigned> lanes;
        for (unsigned part = 0; part < 128 / rows(); ++part) lanes.push_back(row + rows() * part);
        return lanes;
    }
};

constexpr unsigned d_column = 0, a_column = 256, metadata_column = 288, scale_a_column = 320, scale_b_column = 352;

/// Positions of the two stored elements (or pairs) of a chunk.
constexpr unsigned pairs[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};

void check(const Case& c) {
    recordings::Random random(c.m * 1000 + c.n + c.scales);
    const unsigned k = c.k(), stored = c.sparse ? k / 2 : k, ctas = c.pair ? 2 : 1;
    std::string instruction = "tcgen05.mma";
    if (c.ws) instruction += ".ws";
    if (c.sparse) instruction += ".sp";
    instruction += std::string(".cta_group::") + (c.pair ? "2" : "1") + ".kind::" + c.kind;
    if (c.scales) instruction += ".block_scale.scale_vec::" + std::to_string(c.scales) + "X";
    instruction += c.extra_words;
    INFO(instruction << " " << c.a.name << " " << c.b.name << " M " << c.m << " N " << c.n << " swizzles " << unsigned(c.swizzle_a) << " " << unsigned(c.swizzle_b));

    // Elements of A as stored, of B; for sparse A also which k they belong to.
    std::vector<unsigned> A(c.m * stored), B(c.n * k), position(c.m * stored);
    for (unsigned& element : A) element = c.a.draw(random);
    for (unsigned& element : B) element = c.b.draw(random);
    const bool is_pairs = c.kind == "mxf4" || c.kind == "mxf4nvf4";
    const unsigned chunk = c.a.bits == 32 ? 2 : is_pairs ? 8 : 4, chunks = k / chunk;
    std::vector<unsigned> nibbles(c.m * chunks);
    for (unsigned row = 0; row < c.m; ++row)
        for (unsigned i = 0; i < chunks; ++i) {
            const unsigned nibble = c.a.bits == 32 ? (random.below(2) ? 0xe : 0x4) : pairs[random.below(6)];
            nibbles[row * chunks + i] = nibble;
            for (unsigned j = 0; j < stored / chunks; ++j) {
                unsigned at = 0;
                if (c.a.bits == 32)
                    at = nibble == 0xe;
                else if (is_pairs)
                    at = (nibble >> 2 * (j / 2) & 3) * 2 + j % 2;
                else
                    at = nibble >> 2 * j & 3;
                position[row * stored + i * (stored / chunks) + j] = c.sparse ? i * chunk + at : 0;
            }
        }
    if (!c.sparse)
        for (unsigned i = 0; i < c.m * stored; ++i) position[i] = i % stored;

    // Images.
    const unsigned n_of_cta = c.n / ctas;
    const unsigned shift = c.zero_mask ? unsigned(*c.zero_mask >> 56 & 63) : 0;
    const Placement place_a = Placement::of(c.swizzle_a, c.transpose_a, c.rows(), stored, c.a, 0);
    const unsigned begin_b = (place_a.bytes + 1023) / 1024 * 1024;
    const Placement place_b = Placement::of(c.swizzle_b, c.transpose_b, n_of_cta + shift, k, c.b, begin_b);
    TensorRun run;
    const unsigned words = (begin_b + place_b.bytes + 1023) / 1024 * 256;
    std::vector<unsigned> scale_a(c.m * c.scales), scale_b(c.n * c.scales);
    for (auto* scales : {&scale_a, &scale_b})
        for (unsigned& scale : *scales) scale = c.ue4m3 ? 0x30 + 4 * unsigned(random.below(6)) : 126 + unsigned(random.below(3));
    const auto scale_value = [&](unsigned code) { return c.ue4m3 ? e4m3.value(code) : std::ldexp(1.0, int(code) - 127); };
    std::vector<double> before(std::size_t(c.m) * c.n);
    for (double& value : before) value = c.half ? double(int(random.below(64)) - 32) : double(int(random.below(4000)) - 2000);
    if (c.saturates) before[0] = 2147483647.0, before[1] = -2147483648.0;
    const auto d_bits = [&](double value) -> std::uint32_t {
        if (c.integers()) return std::uint32_t(std::int64_t(value));
        return c.half ? to_half(value) : bits_of(float(value));
    };
    for (unsigned cta = 0; cta < ctas; ++cta) {
        Words image(words);
        for (std::uint32_t& word : image) word = std::uint32_t(random.bits()); // what must not be read
        for (unsigned row = 0; row < c.rows(); ++row)
            for (unsigned i = 0; i < stored; ++i) place_a.put(image, c.a, row, i, A[(cta * c.rows() + row) * stored + i]);
        for (unsigned n = 0; n < n_of_cta; ++n)
            for (unsigned i = 0; i < k; ++i) place_b.put(image, c.b, n + shift, i, B[(cta * n_of_cta + n) * k + i]);
        run.shared.push_back(image);
        Words memory(tensor_words);
        for (std::uint32_t& word : memory) word = std::uint32_t(random.bits());
        for (unsigned row = 0; row < c.rows(); ++row) {
            const unsigned whole_row = cta * c.rows() + row;
            for (unsigned n = 0; n < c.n; ++n) {
                const auto [lane, column] = c.place(row, n);
                memory[tensor_index(lane, d_column + column)] = d_bits(before[whole_row * c.n + n]);
            }
            for (const unsigned own : c.lanes_of(row)) {
                // .ashift: the row is found one lane on, but that of the last lane.
                if (c.from_memory)
                    for (unsigned i = 0; i < stored; ++i) {
                        if (c.shifts && own == 0) continue; // nobody reads lane 0 then
                        const unsigned source = c.shifts ? whole_row - 1 : whole_row;
                        const unsigned bit = i * container_of(c.a);
                        std::uint32_t& word = memory[tensor_index(own, a_column + bit / 32)];
                        const unsigned mask = container_of(c.a) == 32 ? ~0u : (1u << container_of(c.a)) - 1;
                        word = (word & ~(mask << bit % 32)) | (A[source * stored + i] << c.a.at) << bit % 32;
                    }
                for (unsigned i = 0; i < chunks && c.sparse; ++i) {
                    const unsigned nibble = nibbles[whole_row * chunks + i];
                    unsigned lane = own, column = metadata_column + i / 8, at = i % 8;
                    if (c.a.bits >= 16) { // rows of 8 and 8 share lanes, and columns of k are 8 lanes apart
                        lane = own / 16 * 16 + own % 8 + i / 4 * 8;
                        column = metadata_column + c.selector;
                        at = i % 4 + own / 8 % 2 * 4;
                    }
                    std::uint32_t& word = memory[tensor_index(lane, column)];
                    word = (word & ~(0xfu << 4 * at)) | nibble << 4 * at;
                }
            }
            for (unsigned j = 0; j < c.scales; ++j)
                for (unsigned part = 0; part < 4; ++part) {
                    std::uint32_t& word = memory[tensor_index(32 * part + row % 32, scale_a_column + row / 32)];
                    const unsigned bit = 8 * (c.id_a + j);
                    word = (word & ~(0xffu << bit)) | scale_a[whole_row * c.scales + j] << bit;
                }
        }
        for (unsigned n = 0; n < c.n && c.scales; ++n)
            for (unsigned part = 0; part < 4; ++part) {
                // Where lanes have halves of the columns, their scales are those of their half.
                const unsigned columns = c.rows() == 64 ? c.n / 2 : c.n;
                if (part / 2 != n / columns && columns != c.n) continue;
                const unsigned own = n % columns;
                for (unsigned j = 0; j < c.scales; ++j) {
                    std::uint32_t& word = memory[tensor_index(32 * part + own % 32, scale_b_column + own / 32)];
                    const unsigned bit = 8 * (c.id_b + j);
                    word = (word & ~(0xffu << bit)) | scale_b[n * c.scales + j] << bit;
                }
            }
        run.memory.push_back(memory);
    }

    // The instruction.
    unsigned idesc = 0;
    if (c.scales) {
        idesc = c.id_b << 4 | c.a.code << 7 | c.b.code << 10 | (c.ue4m3 ? 0u : 1u) << 23 | (c.m >> 7) << 27 | c.id_a << 29;
    } else {
        idesc = c.selector | unsigned(c.saturates) << 3 | (c.integers() ? 2u : c.half ? 0u : 1u) << 4 | c.a.code << 7 | c.b.code << 10 | (c.m >> 4) << 24;
    }
    idesc |= unsigned(c.sparse) << 2 | unsigned(c.negate_a) << 13 | unsigned(c.negate_b) << 14 | unsigned(c.transpose_a) << 15 | unsigned(c.transpose_b) << 16 |
             (c.n >> 3) << 17;
    std::string text = "mov.u32 %r30, " + std::to_string(idesc) + "; add.u32 %r31, %r51, " + std::to_string((c.lane << 16) + d_column) + "; add.u32 %r32, %r51, " +
                       std::to_string((c.lane << 16) + a_column) + "; add.u32 %r33, %r51, " + std::to_string((c.lane << 16) + metadata_column) +
                       "; add.u32 %r34, %r51, " + std::to_string(scale_a_column) + "; add.u32 %r35, %r51, " + std::to_string(scale_b_column) +
                       ";\nsetp.eq.u32 %p2, %r60, " + (c.accumulates ? "0" : "1") + ";\n";
    instruction += std::string(" [%r31], ") + (c.from_memory ? "[%r32]" : "%l10") + ", %l11, " + (c.sparse ? "[%r33], " : "") + "%r30, ";
    if (c.scales) instruction += "[%r34], [%r35], ";
    const std::uint32_t mask[8] = {0x80000001, 0, 0xff, 0x10000000, 2, 0, 0, 0xf0000000};
    if (c.stays) {
        instruction += "{";
        for (unsigned i = 0; i < (c.pair ? 8u : 4u); ++i) {
            text += "mov.u32 %t" + std::to_string(i) + ", " + std::to_string(mask[i]) + ";\n";
            instruction += (i ? ", %t" : "%t") + std::to_string(i);
        }
        instruction += "}, ";
    }
    instruction += "%p2";
    if (c.scale_d) instruction += ", " + std::to_string(c.scale_d);
    if (c.zero_mask) {
        text += "mov.u64 %l13, " + std::to_string(*c.zero_mask) + ";\n";
        instruction += ", %l13";
    }
    const std::vector<Words> after =
        run.go(commit_of(text + instruction + ";\n", descriptor(place_a.begin, place_a.leading, place_a.stride, c.swizzle_a),
                         descriptor(place_b.begin, place_b.leading, place_b.stride, c.swizzle_b), c.pair));

    // What it means.
    std::vector<Words> expected = run.memory;
    for (unsigned row = 0; row < c.m; ++row)
        for (unsigned n = 0; n < c.n; ++n) {
            const unsigned cta = row / c.rows();
            const auto [lane, column] = c.place(row % c.rows(), n);
            if (c.stays && (mask[4 * cta + lane / 32] >> lane % 32 & 1)) continue;
            bool zero = false;
            if (c.zero_mask && (*c.zero_mask >> 39 & 1)) {
                const unsigned part = c.n * c.m / 128, number = n / part;
                unsigned at = n % part + unsigned(*c.zero_mask >> 8 * number & 0xff);
                bool skips = *c.zero_mask >> (32 + number) & 1;
                const unsigned skip = unsigned(*c.zero_mask >> 40 & 0xff) + 1, use = unsigned(*c.zero_mask >> 48 & 0xff) + 1;
                while (at >= (skips ? skip : use)) {
                    at -= skips ? skip : use;
                    skips = !skips;
                }
                zero = skips;
            }
            double sum = c.accumulates ? std::ldexp(before[row * c.n + n], -int(c.scale_d)) : 0.0;
            // .ashift: each lane has the row of the next one; the last one its own.
            const unsigned from = c.shifts && row == c.m - 1 ? row - 1 : row;
            for (unsigned i = 0; i < stored && !zero; ++i) {
                const unsigned at = position[row * stored + i]; // metadata are not shifted
                double product = c.a.value(A[from * stored + i]) * c.b.value(B[n * k + at]);
                if (c.negate_a != c.negate_b) product = -product;
                if (c.scales) {
                    const unsigned number = at / (k / c.scales);
                    product *= scale_value(scale_a[row * c.scales + number]) * scale_value(scale_b[n * c.scales + number]);
                }
                sum += product;
            }
            if (c.saturates) sum = std::clamp(sum, -2147483648.0, 2147483647.0);
            expected[cta][tensor_index(lane, d_column + column)] = sum == 0 ? 0 : d_bits(sum);
        }
    for (unsigned cta = 0; cta < ctas; ++cta)
        for (unsigned column = 0; column < tensor_columns; ++column)
            for (unsigned lane = 0; lane < 128; ++lane) {
                const std::uint32_t was = after[cta][tensor_index(lane, column)], wanted = expected[cta][tensor_index(lane, column)];
                if (was == wanted) continue;
                INFO("CTA " << cta << " lane " << lane << " column " << column << " " << float_of(was) << " " << float_of(wanted));
                REQUIRE(was == wanted);
            }
}

} // namespace

TEST_CASE("tcgen05.mma: f16, bf16", "[.][sm_100]") {
    for (const Swizzle swizzle : {Swizzle::none, Swizzle::bytes_32, Swizzle::bytes_64, Swizzle::bytes_128})
        check({.kind = "f16", .a = f16, .b = f16, .m = 128, .n = 32, .swizzle_a = swizzle, .swizzle_b = swizzle});
    check({.kind = "f16", .a = bf16, .b = bf16, .m = 64, .n = 24, .swizzle_a = Swizzle::bytes_128, .swizzle_b = Swizzle::bytes_64, .negate_a = true});
    check({.kind = "f16", .a = f16, .b = bf16, .m = 64, .n = 8, .accumulates = false, .lane = 16});
    check({.kind = "f16", .a = f16, .b = f16, .m = 128, .n = 16, .half = true});
    check({.kind = "f16", .a = f16, .b = f16, .m = 128, .n = 256, .swizzle_a = Swizzle::bytes_128, .swizzle_b = Swizzle::bytes_128, .scale_d = 3});
    check({.kind = "f16", .a = f16, .b = f16, .m = 128, .n = 64, .negate_a = true, .negate_b = true, .stays = true});
    for (const Swizzle swizzle : {Swizzle::none, Swizzle::bytes_32, Swizzle::bytes_64, Swizzle::bytes_128})
        check({.kind = "f16", .a = f16, .b = f16, .m = 128, .n = 64, .swizzle_a = swizzle, .swizzle_b = swizzle, .transpose_a = true, .transpose_b = true});
}

TEST_CASE("tcgen05.mma: tf32, integers, mixed formats", "[.][sm_100]") {
    check({.kind = "tf32", .a = tf32, .b = tf32, .m = 128, .n = 16, .swizzle_a = Swizzle::bytes_128, .swizzle_b = Swizzle::bytes_32});
    check({.kind = "tf32", .a = tf32, .b = tf32, .m = 64, .n = 32, .swizzle_a = Swizzle::bytes_128_by_32, .swizzle_b = Swizzle::bytes_128_by_32, .transpose_a = true,
           .transpose_b = true});
    check({.kind = "i8", .a = s8, .b = u8, .m = 128, .n = 32, .swizzle_a = Swizzle::bytes_128, .swizzle_b = Swizzle::bytes_128});
    check({.kind = "i8", .a = u8, .b = s8, .m = 64, .n = 48, .swizzle_a = Swizzle::bytes_64, .transpose_a = true, .saturates = true});
    const Type types[] = {e4m3, e5m2, e2m3, e3m2, e2m1};
    for (unsigned i = 0; i < 5; ++i)
        check({.kind = "f8f6f4", .a = types[i], .b = types[(i + 2) % 5], .m = i % 2 ? 128u : 64u, .n = 16 + 8 * i, .swizzle_a = i % 2 ? Swizzle::bytes_128 : Swizzle::none,
               .swizzle_b = i % 3 ? Swizzle::bytes_32 : Swizzle::bytes_64});
    check({.kind = "f8f6f4", .a = e3m2, .b = e2m1, .m = 128, .n = 32, .half = true});
    check({.kind = "f8f6f4", .a = e4m3, .b = e5m2, .m = 128, .n = 32, .transpose_b = true});
}

TEST_CASE("tcgen05.mma: A in tensor memory", "[.][sm_100]") {
    check({.kind = "f16", .a = f16, .b = f16, .m = 128, .n = 32, .from_memory = true});
    check({.kind = "f16", .a = bf16, .b = f16, .m = 64, .n = 16, .from_memory = true, .lane = 16});
    check({.kind = "tf32", .a = tf32, .b = tf32, .m = 128, .n = 16, .from_memory = true});
    check({.kind = "i8", .a = s8, .b = s8, .m = 128, .n = 16, .from_memory = true});
    check({.kind = "f8f6f4", .a = e2m1, .b = e3m2, .m = 128, .n = 16, .from_memory = true});
    check({.kind = "f8f6f4", .a = e3m2, .b = e4m3, .m = 64, .n = 16, .from_memory = true});
    check({.kind = "f16", .a = f16, .b = f16, .m = 128, .n = 32, .from_memory = true, .shifts = true, .extra_words = ".ashift"});
    check({.kind = "i8", .a = s8, .b = s8, .m = 128, .n = 32, .from_memory = true, .shifts = true, .extra_words = ".ashift"});
    check({.kind = "f8f6f4", .a = e4m3, .b = e4m3, .m = 128, .n = 32, .from_memory = true, .shifts = true, .extra_words = ".ashift.collector::a::lastuse"});
    check({.kind = "f16", .a = f16, .b = f16, .m = 128, .n = 32, .sparse = true, .from_memory = true, .shifts = true, .extra_words = ".ashift"});
    check({.kind = "f8f6f4", .a = e4m3, .b = e4m3, .m = 128, .n = 32, .sparse = true, .from_memory = true, .shifts = true, .extra_words = ".ashift"});
    check({.kind = "i8", .a = s8, .b = s8, .m = 128, .n = 32, .sparse = true, .from_memory = true, .shifts = true, .extra_words = ".ashift"});
    check({.kind = "f8f6f4", .a = e5m2, .b = e5m2, .m = 128, .n = 32, .from_memory = true, .extra_words = ".collector::a::fill"});
}

TEST_CASE("tcgen05.mma: block scales", "[.][sm_100]") {
    check({.kind = "mxf8f6f4", .a = e4m3, .b = e4m3, .m = 128, .n = 64, .swizzle_a = Swizzle::bytes_128, .swizzle_b = Swizzle::bytes_128, .scales = 1, .id_a = 2, .id_b = 3});
    check({.kind = "mxf8f6f4", .a = e2m1, .b = e3m2, .m = 128, .n = 40, .from_memory = true, .scales = 1});
    check({.kind = "mxf4", .a = packed, .b = packed, .m = 128, .n = 160, .swizzle_a = Swizzle::bytes_128, .swizzle_b = Swizzle::bytes_128, .scales = 2, .id_a = 2});
    check({.kind = "mxf4nvf4", .a = packed, .b = packed, .m = 128, .n = 64, .negate_b = true, .scales = 2, .id_b = 2});
    check({.kind = "mxf4nvf4", .a = packed, .b = packed, .m = 128, .n = 64, .swizzle_b = Swizzle::bytes_32, .scales = 4, .ue4m3 = true});
    check({.kind = "mxf4nvf4", .a = packed, .b = packed, .m = 128, .n = 8, .from_memory = true, .accumulates = false, .scales = 4, .ue4m3 = true});
    check({.kind = "mxf4nvf4", .a = packed, .b = packed, .m = 256, .n = 64, .pair = true, .scales = 4, .ue4m3 = true});
    check({.kind = "mxf8f6f4", .a = e5m2, .b = e2m3, .m = 256, .n = 48, .pair = true, .scales = 1, .id_b = 1});
    check({.kind = "mxf8f6f4", .a = e5m2, .b = e2m3, .m = 128, .n = 64, .pair = true, .scales = 1, .id_b = 1});
}

TEST_CASE("tcgen05.mma: sparse", "[.][sm_100]") {
    check({.kind = "f16", .a = f16, .b = f16, .m = 128, .n = 32, .swizzle_a = Swizzle::bytes_32, .swizzle_b = Swizzle::bytes_128, .sparse = true});
    check({.kind = "f16", .a = bf16, .b = bf16, .m = 64, .n = 16, .sparse = true, .selector = 1, .lane = 16});
    check({.kind = "tf32", .a = tf32, .b = tf32, .m = 128, .n = 16, .sparse = true, .selector = 3});
    check({.kind = "f8f6f4", .a = e4m3, .b = e3m2, .m = 128, .n = 16, .sparse = true});
    check({.kind = "i8", .a = s8, .b = s8, .m = 64, .n = 16, .sparse = true, .from_memory = true});
    check({.kind = "mxf8f6f4", .a = e5m2, .b = e4m3, .m = 128, .n = 16, .sparse = true, .scales = 1, .id_a = 1});
    check({.kind = "mxf4", .a = packed, .b = packed, .m = 128, .n = 16, .sparse = true, .scales = 2});
    check({.kind = "mxf8f6f4", .a = e5m2, .b = e4m3, .m = 128, .n = 16, .sparse = true, .from_memory = true, .scales = 1});
    check({.kind = "mxf4", .a = packed, .b = packed, .m = 128, .n = 16, .sparse = true, .from_memory = true, .scales = 2});
    check({.kind = "mxf4nvf4", .a = packed, .b = packed, .m = 128, .n = 16, .sparse = true, .scales = 4, .ue4m3 = true});
    check({.kind = "f16", .a = f16, .b = f16, .m = 128, .n = 32, .pair = true, .sparse = true});
    check({.kind = "f16", .a = f16, .b = f16, .m = 256, .n = 32, .pair = true, .sparse = true, .from_memory = true});
}

TEST_CASE("tcgen05.mma.ws", "[.][sm_100]") {
    check({.kind = "f16", .a = f16, .b = f16, .m = 32, .n = 64, .ws = true});
    check({.kind = "f16", .a = f16, .b = f16, .m = 64, .n = 128, .swizzle_a = Swizzle::bytes_64, .swizzle_b = Swizzle::bytes_128, .ws = true, .extra_words = ".collector::b1::fill"});
    check({.kind = "tf32", .a = tf32, .b = tf32, .m = 128, .n = 64, .ws = true, .from_memory = true});
    check({.kind = "i8", .a = s8, .b = u8, .m = 32, .n = 256, .ws = true, .from_memory = true});
    check({.kind = "f8f6f4", .a = e4m3, .b = e4m3, .m = 64, .n = 64, .ws = true, .sparse = true});
    check({.kind = "f16", .a = f16, .b = f16, .m = 32, .n = 64, .ws = true, .sparse = true, .from_memory = true});
    check({.kind = "i8", .a = s8, .b = s8, .m = 64, .n = 64, .ws = true, .sparse = true});
    // Start counts 0, 1, 2, 1, first spans 1, 1, 0, 0, skip span 2, use span 3, shift 2: the manual's example 4.
    const std::uint64_t mask = 0x01020100ull | 0x3ull << 32 | 1ull << 39 | 2ull << 40 | 3ull << 48;
    check({.kind = "f16", .a = f16, .b = f16, .m = 32, .n = 128, .ws = true, .zero_mask = mask | 2ull << 56});
    check({.kind = "f16", .a = f16, .b = f16, .m = 64, .n = 64, .ws = true, .zero_mask = mask});
    check({.kind = "f16", .a = f16, .b = f16, .m = 128, .n = 64, .ws = true, .zero_mask = mask & ~(1ull << 39)});
}

TEST_CASE("tcgen05.mma: pairs of CTAs", "[.][sm_100]") {
    check({.kind = "f16", .a = f16, .b = f16, .m = 256, .n = 64, .swizzle_a = Swizzle::bytes_128, .swizzle_b = Swizzle::bytes_128, .pair = true});
    check({.kind = "f16", .a = f16, .b = f16, .m = 128, .n = 32, .pair = true, .stays = true});
    check({.kind = "f16", .a = bf16, .b = bf16, .m = 128, .n = 32, .pair = true, .from_memory = true});
    check({.kind = "tf32", .a = tf32, .b = tf32, .m = 256, .n = 16, .pair = true, .from_memory = true});
    check({.kind = "i8", .a = s8, .b = s8, .m = 256, .n = 64, .transpose_b = true, .pair = true});
    check({.kind = "f8f6f4", .a = e5m2, .b = e4m3, .m = 128, .n = 48, .half = false, .pair = true});
}

// Late products are done when somebody waits for them, so that a missing wait shows.
TEST_CASE("tcgen05.mma: without a wait", "[.][sm_100]") {
    const char* mode = std::getenv("PTARMIGAN_ASYNC");
    const std::string when = mode ? mode : "eager";
    if (when != "eager" && when != "late") return;
    TensorRun run;
    run.memory = {Words(tensor_words, bits_of(3.0f))};
    run.shared = {Words(4096, 0x3c003c00)}; // ones
    const unsigned idesc = 1u << 4 | 16u >> 3 << 17 | 128u >> 4 << 24;
    const std::string issue = "mov.u32 %r30, " + std::to_string(idesc) + "; setp.eq.u32 %p2, %r60, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%r51], %l10, %l11, %r30, %p2;\n";
    std::string body = commit_of(issue, descriptor(0, 2048, 128, Swizzle::none), descriptor(4096, 256, 128, Swizzle::none));
    const std::vector<Words> right = run.go(body);
    body.resize(body.find("WAIT:"));
    const std::vector<Words> wrong = run.go(body);
    REQUIRE(float_of(right[0][tensor_index(5, 7)]) == 19.0f);
    REQUIRE(float_of(wrong[0][tensor_index(5, 7)]) == (when == "late" ? 3.0f : 19.0f));
}
