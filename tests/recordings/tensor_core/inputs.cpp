// SPDX-License-Identifier: Apache-2.0
#include "tests/recordings/tensor_core/inputs.h"

#include "runtime/tensor_core/number.h"

#include <algorithm>

namespace tensor_inputs {
namespace {

using u64 = std::uint64_t;
using u32 = std::uint32_t;

struct Layout {
    int exponent_bits, fraction_bits, bias;
    int top; ///< exponent field of the largest numbers
    u64 fractions() const { return (u64{1} << fraction_bits) - 1; }
};

Layout fields_of(Format format) {
    if (format == Format::f64) return {11, 52, 1023, 2046};
    const auto layout = ptarmigan::runtime::tensor_core::layout_of(format);
    const int top = format == Format::e4m3 ? 15 : (1 << layout.exponent_bits) - 2;
    return {layout.exponent_bits, layout.fraction_bits, layout.bias(), top};
}

bool is_float(Format format) {
    return format <= Format::f64;
}
bool is_signed(Format format) {
    return format == Format::s8 || format == Format::s4;
}

u64 junk(Format format, u64 hash) {
    return format == Format::tf32 ? hash >> 24 & 0x1fff : 0; // in the bits that tf32 ignores
}

/// `exponent`: the field, clipped to that of finite numbers.
u64 number(Format format, u64 hash, bool negative, int exponent, u64 fraction) {
    const Layout layout = fields_of(format);
    fraction &= layout.fractions();
    exponent = std::clamp(exponent, 0, layout.top);
    if (format == Format::e4m3 && exponent == 15 && fraction == 7) fraction = 6;
    const u64 bits = u64{negative} << (layout.exponent_bits + layout.fraction_bits) |
                     static_cast<u64>(exponent) << layout.fraction_bits | fraction;
    return format == Format::tf32 ? bits << 13 | junk(format, hash) : bits;
}

u64 bit_word(const Tile& tile, u64 hash) {
    switch (tile.distribution & 3) {
    case 0: return static_cast<u32>(hash);
    case 1: return static_cast<u32>(hash & hash >> 32 & (hash << 7 | hash >> 57));
    case 2: return static_cast<u32>(hash | hash >> 32);
    default: return (hash & 7) == 0 ? hash >> 32 : (hash & 7) < 4 ? 0xffffffff : 0;
    }
}

u64 accumulator(const Tile& tile, u64 hash) {
    const auto random = static_cast<u32>(hash >> 32), narrow = (random >> 8) & ((1u << hash % 22) - 1);
    switch (tile.distribution >> 2 & 3) {
    case 0: return random;
    case 1: return 0x7fffffff - narrow;
    case 2: return 0x80000000 + narrow;
    default: return static_cast<u32>(static_cast<int>(narrow & 0xffff) - 0x8000);
    }
}

u64 integer(const Tile& tile, Format format, u64 hash, u64 of_line) {
    const bool negative = is_signed(format);
    const u32 mask = (1u << (format == Format::s8 || format == Format::u8 ? 8 : 4)) - 1;
    const u32 value = static_cast<u32>(hash >> 8) & mask, most = negative ? mask >> 1 : mask;
    const u32 least = negative ? (mask >> 1) + 1 : mask;
    switch (tile.distribution & 3) {
    case 0: return value;
    case 1: {
        const auto kind = hash & 7;
        return kind < 2 ? kind : kind < 5 ? most : kind == 5 ? mask : least;
    }
    case 2: return hash & 3 ? 0 : value;
    default:
        if ((of_line & 3) == 0) return most - (value & 1);
        return (of_line & 3) == 1 ? least + (negative ? value & 1 : 0) : value & 3;
    }
}

/// What the distributions of floating-point elements are made of.
struct Draw {
    const Form& form;
    const Tile& tile;
    Matrix matrix;
    Format format;
    int index, k, line;
    u64 base, hash, fraction;
    Layout layout;
    int centre;    ///< exponent field about which the element lies
    int width;     ///< 16 random bits
    bool negative;

    bool odd_round() const { return tile.round & 1; }
    bool is_c() const { return matrix == Matrix::c; }
    u64 make(int exponent, u64 with_fraction) const { return number(format, hash, negative, exponent, with_fraction); }
    u64 make(int exponent) const { return make(exponent, fraction); }
    /// All bits random.
    u64 all() const {
        const int bits = format == Format::tf32 ? 32 : 1 + layout.exponent_bits + layout.fraction_bits;
        return bits == 64 ? hash : hash & ((u64{1} << bits) - 1);
    }
};

u64 finite(const Draw& draw) {
    const int shift = draw.format == Format::tf32 ? 13 : 0, top = (1 << draw.layout.exponent_bits) - 1;
    const int exponent = static_cast<int>(draw.all() >> (draw.layout.fraction_bits + shift)) & top;
    return exponent == top ? draw.make(exponent - 1 - (draw.width & 3), draw.all() >> shift) : draw.all();
}

u64 around_one(const Draw& draw) {
    if (draw.odd_round()) { // results among D's subnormal numbers
        if (draw.is_c() && (draw.width & 1)) return draw.make(0, 0);
        return draw.make(draw.centre + (draw.width >> 1 & 3) - (draw.is_c() ? draw.width >> 3 & 15 : 0));
    }
    int below = 0;
    while (below < 15 && (draw.width >> below & 1)) ++below;
    return draw.make(draw.layout.bias - below + (draw.is_c() ? 2 : 0));
}

/// Products k and k + 1 are nearly opposite.
u64 cancelling(Draw draw) {
    if (draw.is_c())
        return draw.make(draw.centre + (draw.width & 1 ? draw.width % 4 : -(draw.width >> 1) % 30));
    const u64 of_pair = mix(draw.base + static_cast<u64>(draw.index & ~1)), own = draw.hash;
    draw.fraction = mix(of_pair) & draw.layout.fractions();
    draw.negative = (of_pair >> 63 != 0) != (draw.matrix == Matrix::b && (draw.index & 1));
    if ((own & 15) == 0) draw.fraction ^= own >> 8 & 1;
    return draw.make(draw.centre + static_cast<int>(of_pair >> 40 & 7) - 3);
}

u64 tiny(const Draw& draw) {
    const bool lifted = draw.matrix == Matrix::b && (draw.tile.random >> 32 & 1);
    const int small = (draw.width & 3) == 0 ? (draw.width >> 2) % 5 : 0;
    return draw.make(lifted ? draw.centre + (draw.width & 15) : small,
                     (draw.width >> 8 & 7) == 0 ? draw.fraction & 3 : draw.fraction);
}

u64 zeros(const Draw& draw) {
    if (draw.matrix == Matrix::a && (mix(draw.base + 0x9000000 + static_cast<u64>(draw.line)) & 3) == 0)
        return draw.make(0, 0);
    if (draw.is_c() && (draw.width & 3) == 0)
        return draw.make(static_cast<int>(draw.fraction % static_cast<u64>(draw.layout.top + 1)), mix(draw.fraction));
    if (draw.width % 10 < 6) return draw.make(0, 0);
    return draw.make(draw.centre + (draw.width >> 4) % 25 - 12);
}

u64 specials(const Draw& draw) {
    const int kind = static_cast<int>(draw.tile.random >> 40 & 7), random = draw.width % 64;
    const Layout& layout = draw.layout;
    const u64 infinity = ((u64{1} << layout.exponent_bits) - 1) << layout.fraction_bits;
    const u64 sign = u64{draw.negative} << (layout.exponent_bits + layout.fraction_bits);
    const int shift = draw.format == Format::tf32 ? 13 : 0;
    const bool here = kind < 4 || kind == 7 || (kind == 4 && draw.is_c()) || (kind == 5 && draw.matrix == Matrix::a) ||
                      (kind == 6 && draw.matrix == Matrix::b);
    if (here && random == 0 && kind != 1 && draw.format != Format::e4m3)
        return (sign | infinity) << shift | junk(draw.format, draw.hash);
    if (here && random == 1 && (kind & 1)) {
        const u64 payload = draw.format == Format::e4m3 ? 7 : draw.fraction ? draw.fraction : 1;
        return (sign | infinity | payload) << shift | junk(draw.format, draw.hash);
    }
    if (random < (kind == 2 ? 30 : 6)) return draw.make(0, 0);
    return draw.make(draw.centre + (draw.width >> 6) % 9 - 4);
}

u64 large(const Draw& draw) {
    if (!draw.is_c() && (draw.tile.random >> 33 & 1)) { // products near the result's overflow
        const Layout result = fields_of(draw.form.d);
        const int most = result.top - result.bias;
        return draw.make(draw.layout.bias + (draw.matrix == Matrix::a ? most - most / 2 : most / 2) - (draw.width & 3));
    }
    return draw.make(draw.layout.top - (draw.width & 3));
}

u64 rounding_edges(const Draw& draw) {
    const u64 most = draw.layout.fractions();
    const u64 edges[] = {0, 1, most, most - 1, most >> 1, (most >> 1) + 1, (most >> 1) + 2, draw.fraction};
    const bool full = draw.odd_round() && (draw.width & 64);
    return draw.make(draw.centre + (draw.width & 3), full ? most : edges[draw.width >> 3 & 7]);
}

/// f16 throughout: one product puts the sum on a tie of D's subnormal numbers, the others are around 2^-46.
u64 subnormal_ties(const Draw& draw) {
    const Tile& tile = draw.tile;
    const int exponent = 7 + static_cast<int>(tile.random >> 34 & 3);
    const int place = static_cast<int>((tile.random >> 36 & 0xffff) % static_cast<u64>(draw.form.stored));
    const bool at = draw.matrix == Matrix::a || !draw.form.sparse ? draw.k == place : draw.k / 4 == place / 2;
    if (draw.is_c()) return draw.make(0, draw.width & 7 ? 0 : draw.fraction & 15);
    if (draw.matrix == Matrix::a) return at ? draw.make(15 - exponent, 0) : draw.make(0, draw.fraction & 7);
    const u64 tie = (draw.fraction & ~((u64{1} << exponent) - 1)) | u64{1} << (exponent - 1);
    return at ? draw.make(draw.width & 1, tie) : draw.make(0, draw.fraction & 31);
}

u64 one_large(const Draw& draw) {
    const Form& form = draw.form;
    if (draw.odd_round() && form.a == Format::f16 && form.c == Format::f16 && form.d == Format::f16)
        return subnormal_ties(draw);
    if (draw.is_c()) return draw.make(draw.centre + draw.width % 40 - 20);
    const u64 of_line = mix(draw.base + 0x5000000 + static_cast<u64>(draw.line));
    const int place = static_cast<int>(of_line % static_cast<u64>(draw.matrix == Matrix::a ? form.stored : form.k));
    return draw.make(draw.centre + (draw.width & 1) + (draw.k == place ? static_cast<int>(of_line >> 32) % 32 : 0));
}

u64 floating(const Draw& draw) {
    const int width = draw.width, centre = draw.centre;
    switch (draw.tile.distribution) {
    case 0: return draw.all();
    case 1: return finite(draw);
    case 2: return around_one(draw);
    case 3: return draw.make(centre + (width & 3) - (draw.is_c() ? 1 : 0)); // narrow
    case 4: return draw.make(centre + width % 25 - 12);                     // wide
    case 5: return cancelling(draw);
    case 6: return tiny(draw);
    case 7: return zeros(draw);
    case 8: return specials(draw);
    case 9: return large(draw);
    case 10: return draw.make(centre + width % 33 - 16, 0); // powers of two
    case 11: return rounding_edges(draw);
    case 12: return one_large(draw);
    case 13: return draw.make(centre + (draw.is_c() ? width % 70 - 35 : width & 3)); // C far from the products
    case 14: return draw.make(centre + width % 7 - 3);
    default: return draw.make(centre + (width & 7) - 4);
    }
}

} // namespace

std::uint64_t mix(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

int Form::chunks() const {
    return a == Format::tf32 ? k / 2 : a == Format::s4 || a == Format::u4 ? k / 8 : k / 4;
}

Tile tile_of(const Form& form, int block, int number) {
    Tile tile{};
    tile.base = mix(mix(mix(static_cast<u64>(form.id) + 1) ^ static_cast<u64>(block)) ^ static_cast<u64>(number));
    tile.random = mix(tile.base);
    tile.distribution = block % distributions;
    tile.round = block / distributions;
    if (!is_float(form.a)) return tile;
    const Layout a = fields_of(form.a), b = fields_of(form.b), d = fields_of(form.d);
    const int low = std::max(2 - a.bias - b.bias, 1 - d.bias - 30);
    const int high = std::min(a.top - a.bias + b.top - b.bias, d.top - d.bias + 1);
    const auto random = static_cast<int>(tile.random & 0xffff);
    int product = low + random % (high - low + 1);
    if (tile.distribution == 2 && (tile.round & 1)) { // around D's subnormal numbers
        product = 1 - d.bias - 16 + random % 19;
        if (product < 2 - a.bias - b.bias) product = 2 - a.bias - b.bias + static_cast<int>(tile.random >> 12 & 7);
        product = std::min(product, high);
    }
    const int least = std::max(product - (b.top - b.bias), 1 - a.bias);
    const int most = std::min(product - (1 - b.bias), a.top - a.bias);
    tile.exponent[0] = least + static_cast<int>(tile.random >> 16 & 0xffff) % (most - least + 1);
    tile.exponent[1] = product - tile.exponent[0];
    tile.exponent[2] = product;
    return tile;
}

std::uint64_t element(const Form& form, const Tile& tile, Matrix matrix, int index, int k, int line) {
    const Format format = matrix == Matrix::a ? form.a : matrix == Matrix::b ? form.b : form.c;
    const u64 base = tile.base + ((static_cast<u64>(matrix) + 1) << 40);
    const u64 hash = mix(base + static_cast<u64>(index));
    if (format == Format::b1) return bit_word(tile, hash);
    if (format == Format::s32) return accumulator(tile, hash);
    if (!is_float(format)) return integer(tile, format, hash, mix(base + 0x3000000 + static_cast<u64>(line)));
    const Layout layout = fields_of(format);
    Draw draw{form,
              tile,
              matrix,
              format,
              index,
              k,
              line,
              base,
              hash,
              mix(hash) & layout.fractions(),
              layout,
              layout.bias + tile.exponent[static_cast<int>(matrix)],
              static_cast<int>(hash >> 40 & 0xffff),
              hash >> 63 != 0};
    const bool one_sign = tile.distribution == 3 || tile.distribution == 9 || tile.distribution == 11;
    if ((tile.round & 1) && matrix != Matrix::c && one_sign)
        draw.negative = mix(base + 0x7000000 + static_cast<u64>(line)) & 1;
    return floating(draw);
}

std::uint32_t metadata(const Form& form, const Tile& tile, int index) {
    const u64 hash = mix(tile.base + (u64{4} << 40) + static_cast<u64>(index));
    if ((tile.round & 3) == 3) return static_cast<u32>(hash >> 8) & 15;
    if (form.a == Format::tf32) return hash & 1 ? 0xe : 0x4;
    constexpr u32 legal[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};
    const u32 nibble = legal[hash % 6];
    const bool descending = !form.ordered && (tile.round & 3) == 1 && (hash >> 40 & 1);
    return descending ? nibble >> 2 | (nibble << 2 & 0xc) : nibble;
}

int passes(const Form& form, int distribution) {
    if (form.c != form.d) return 1;
    return distribution == 14 ? 2 : distribution == 15 ? 3 : 1;
}

std::uint64_t next_c(const Form& form, int distribution, std::uint64_t d) {
    if (distribution != 14) return d; // else -D
    if (form.d == Format::s32) return 0 - static_cast<u32>(d);
    return d ^ u64{1} << (form.d == Format::f64 ? 63 : form.d == Format::f16 ? 15 : 31);
}

} // namespace tensor_inputs
