// SPDX-License-Identifier: Apache-2.0
// What blocks of BC6H and BC7 have in common: how they are divided into subsets, indices, and mixtures of two ends.
#pragma once

#include <cstdint>
#include <cstring>

namespace ptarmigan::runtime::bptc {

/// Which of two subsets each texel belongs to, the first texel lowest; BC6H has the first 32 of them.
inline constexpr std::uint16_t two_subsets[64] = {
    0xcccc, 0x8888, 0xeeee, 0xecc8, 0xc880, 0xfeec, 0xfec8, 0xec80, 0xc800, 0xffec, 0xfe80, 0xe800, 0xffe8,
    0xff00, 0xfff0, 0xf000, 0xf710, 0x008e, 0x7100, 0x08ce, 0x008c, 0x7310, 0x3100, 0x8cce, 0x088c, 0x3110,
    0x6666, 0x366c, 0x17e8, 0x0ff0, 0x718e, 0x399c, 0xaaaa, 0xf0f0, 0x5a5a, 0x33cc, 0x3c3c, 0x55aa, 0x9696,
    0xa55a, 0x73ce, 0x13c8, 0x324c, 0x3bdc, 0x6996, 0xc33c, 0x9966, 0x0660, 0x0272, 0x04e4, 0x4e40, 0x2720,
    0xc936, 0x936c, 0x39c6, 0x639c, 0x9336, 0x9cc6, 0x817e, 0xe718, 0xccf0, 0x0fcc, 0x7744, 0xee22};
/// Likewise of three, two bits per texel.
inline constexpr std::uint32_t three_subsets[64] = {
    0xaa685050, 0x6a5a5040, 0x5a5a4200, 0x5450a0a8, 0xa5a50000, 0xa0a05050, 0x5555a0a0, 0x5a5a5050,
    0xaa550000, 0xaa555500, 0xaaaa5500, 0x90909090, 0x94949494, 0xa4a4a4a4, 0xa9a59450, 0x2a0a4250,
    0xa5945040, 0x0a425054, 0xa5a5a500, 0x55a0a0a0, 0xa8a85454, 0x6a6a4040, 0xa4a45000, 0x1a1a0500,
    0x0050a4a4, 0xaaa59090, 0x14696914, 0x69691400, 0xa08585a0, 0xaa821414, 0x50a4a450, 0x6a5a0200,
    0xa9a58000, 0x5090a0a8, 0xa8a09050, 0x24242424, 0x00aa5500, 0x24924924, 0x24499224, 0x50a50a50,
    0x500aa550, 0xaaaa4444, 0x66660000, 0xa5a0a5a0, 0x50a050a0, 0x69286928, 0x44aaaa44, 0x66666600,
    0xaa444444, 0x54a854a8, 0x95809580, 0x96969600, 0xa85454a8, 0x80959580, 0xaa141414, 0x96960000,
    0xaaaa1414, 0xa05050a0, 0xa0a5a5a0, 0x96000000, 0x40804080, 0xa9a8a9a8, 0xaaaaaa44, 0x2a4a5254};
// The texel of the second and third subset whose index lacks its highest bit, which is 0; of the first one it is texel
// 0.
inline constexpr std::uint8_t second_of_two[64] = {15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15,
                                                   15, 2,  8,  2,  2,  8,  8,  15, 2,  8,  2,  2,  8,  8,  2,  2,
                                                   15, 15, 6,  8,  2,  8,  15, 15, 2,  8,  2,  2,  2,  15, 15, 6,
                                                   6,  2,  6,  8,  15, 15, 2,  2,  15, 15, 15, 15, 15, 2,  2,  15};
inline constexpr std::uint8_t second_of_three[64] = {
    3, 3,  15, 15, 8, 3,  15, 15, 8,  8, 6,  6, 6,  5,  3,  3,  3, 3,  8, 15, 3, 3, 6, 10, 5, 8,  8, 6,  8,  5,  15, 15,
    8, 15, 3,  5,  6, 10, 8,  15, 15, 3, 15, 5, 15, 15, 15, 15, 3, 15, 5, 5,  5, 8, 5, 10, 5, 10, 8, 13, 15, 12, 3,  3};
inline constexpr std::uint8_t third_of_three[64] = {15, 8, 8,  3,  15, 15, 3,  8,  15, 15, 15, 15, 15, 15, 15, 8,
                                                    15, 8, 15, 3,  15, 8,  15, 8,  3,  15, 6,  10, 15, 15, 10, 8,
                                                    15, 3, 15, 10, 10, 8,  9,  10, 6,  15, 8,  15, 3,  6,  6,  8,
                                                    15, 3, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 3,  15, 15, 8};

/// How many 64ths of the second end a texel has, by its index of 2, 3 or 4 bits.
inline constexpr std::uint8_t weights[3][16] = {
    {0, 21, 43, 64}, {0, 9, 18, 27, 37, 46, 55, 64}, {0, 4, 9, 13, 17, 21, 26, 30, 34, 38, 43, 47, 51, 55, 60, 64}};

/// A block's bits, the lowest of the first byte first.
class BlockBits {
public:
    explicit BlockBits(const std::uint8_t* block) {
        std::memcpy(&low_, block, sizeof low_);
        std::memcpy(&high_, block + sizeof low_, sizeof high_);
    }
    /// `count` (up to 16) of them from `position` on; zeros behind the end.
    unsigned get(unsigned position, unsigned count) const {
        const std::uint64_t bits = position >= 64  ? high_ >> (position - 64)
                                   : position == 0 ? low_
                                                   : low_ >> position | high_ << (64 - position);
        return static_cast<unsigned>(bits & ((1u << count) - 1));
    }
    unsigned take(unsigned count) {
        const unsigned bits = get(position_, count);
        position_ += count;
        return bits;
    }
    unsigned position() const { return position_; }

private:
    std::uint64_t low_ = 0, high_ = 0;
    unsigned position_ = 0;
};

/// How a block's texels are divided.
struct Partition {
    unsigned subsets = 1, number = 0;

    unsigned subset_of(unsigned texel) const {
        if (subsets == 1) return 0;
        return subsets == 2 ? two_subsets[number] >> texel & 1 : three_subsets[number] >> (2 * texel) & 3;
    }
    bool is_anchor(unsigned texel) const {
        if (texel == 0) return true;
        if (subsets == 1) return false;
        if (subsets == 2) return texel == second_of_two[number];
        return texel == second_of_three[number] || texel == third_of_three[number];
    }
    /// The index of `texel` among indices of `count` bits that begin at `position`.
    unsigned index(const BlockBits& bits, unsigned position, unsigned count, unsigned texel) const {
        for (unsigned i = 0; i < texel; ++i) position += count - is_anchor(i);
        return bits.get(position, count - is_anchor(texel));
    }
};

/// An index and how many bits indices of its kind have.
struct Index {
    unsigned value, bits;
};

/// What `index` makes of two ends.
inline int mixed(int first, int second, Index index) {
    const int weight = weights[index.bits - 2][index.value];
    return (first * (64 - weight) + second * weight + 32) >> 6;
}

} // namespace ptarmigan::runtime::bptc
