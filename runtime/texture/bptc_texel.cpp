// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/bptc_texel.h"

#include "runtime/texture/bptc_partition.h"

#include <array>
#include <bit>
#include <iterator>
#include <string_view>
#include <utility>

namespace ptarmigan::runtime {
namespace {

using namespace bptc;

/// What a block of BC7 has; numbers of bits but the first.
struct Bc7Mode {
    std::uint8_t subsets, partition, rotation, selection, color, alpha;
    enum LastBit : std::uint8_t { none, per_end, per_subset } last; ///< of all channels of an end in common
    std::uint8_t index, second_index;
};
constexpr Bc7Mode bc7_modes[8] = {
    {3, 4, 0, 0, 4, 0, Bc7Mode::per_end, 3, 0}, {2, 6, 0, 0, 6, 0, Bc7Mode::per_subset, 3, 0},
    {3, 6, 0, 0, 5, 0, Bc7Mode::none, 2, 0},    {2, 6, 0, 0, 7, 0, Bc7Mode::per_end, 2, 0},
    {1, 0, 2, 1, 5, 6, Bc7Mode::none, 2, 3},    {1, 0, 2, 0, 7, 8, Bc7Mode::none, 2, 2},
    {1, 0, 0, 0, 7, 7, Bc7Mode::per_end, 4, 0}, {2, 6, 0, 0, 5, 5, Bc7Mode::per_end, 2, 0}};

/// `bits` bits as eight: the highest ones are repeated below.
int widened(unsigned value, unsigned bits) {
    return static_cast<int>((value << (8 - bits) | value >> (2 * bits - 8)) & 255);
}

/// Bits of a BC6H block's first 82, the lowest first: "g2[4]" is bit 4 of the third end's green, "r0[9:0]" are ten bits
/// of the first end's red from bit 0 up, "r0[10:11]" two from bit 11 down.
struct Bc6Mode {
    std::uint8_t mode_bits, mode;
    bool relative; ///< ends but the first are differences to it
    std::uint8_t bits, difference[3];
    std::string_view layout;
};
constexpr Bc6Mode bc6_modes[] = {
    {2,
     0x00,
     true,
     10,
     {5, 5, 5},
     "g2[4] b2[4] b3[4] r0[9:0] g0[9:0] b0[9:0] r1[4:0] g3[4] g2[3:0] g1[4:0] b3[0] g3[3:0] b1[4:0] b3[1] b2[3:0] r2[4:0] b3[2] r3[4:0] b3[3]"},
    {2,
     0x01,
     true,
     7,
     {6, 6, 6},
     "g2[5] g3[4] g3[5] r0[6:0] b3[0] b3[1] b2[4] g0[6:0] b2[5] b3[2] g2[4] b0[6:0] b3[3] b3[5] b3[4] r1[5:0] g2[3:0] g1[5:0] g3[3:0] b1[5:0] b2[3:0] r2[5:0] r3[5:0]"},
    {5,
     0x02,
     true,
     11,
     {5, 4, 4},
     "r0[9:0] g0[9:0] b0[9:0] r1[4:0] r0[10] g2[3:0] g1[3:0] g0[10] b3[0] g3[3:0] b1[3:0] b0[10] b3[1] b2[3:0] r2[4:0] b3[2] r3[4:0] b3[3]"},
    {5,
     0x06,
     true,
     11,
     {4, 5, 4},
     "r0[9:0] g0[9:0] b0[9:0] r1[3:0] r0[10] g3[4] g2[3:0] g1[4:0] g0[10] g3[3:0] b1[3:0] b0[10] b3[1] b2[3:0] r2[3:0] b3[0] b3[2] r3[3:0] g2[4] b3[3]"},
    {5,
     0x0a,
     true,
     11,
     {4, 4, 5},
     "r0[9:0] g0[9:0] b0[9:0] r1[3:0] r0[10] b2[4] g2[3:0] g1[3:0] g0[10] b3[0] g3[3:0] b1[4:0] b0[10] b2[3:0] r2[3:0] b3[1] b3[2] r3[3:0] b3[4] b3[3]"},
    {5,
     0x0e,
     true,
     9,
     {5, 5, 5},
     "r0[8:0] b2[4] g0[8:0] g2[4] b0[8:0] b3[4] r1[4:0] g3[4] g2[3:0] g1[4:0] b3[0] g3[3:0] b1[4:0] b3[1] b2[3:0] r2[4:0] b3[2] r3[4:0] b3[3]"},
    {5,
     0x12,
     true,
     8,
     {6, 5, 5},
     "r0[7:0] g3[4] b2[4] g0[7:0] b3[2] g2[4] b0[7:0] b3[3] b3[4] r1[5:0] g2[3:0] g1[4:0] b3[0] g3[3:0] b1[4:0] b3[1] b2[3:0] r2[5:0] r3[5:0]"},
    {5,
     0x16,
     true,
     8,
     {5, 6, 5},
     "r0[7:0] b3[0] b2[4] g0[7:0] g2[5] g2[4] b0[7:0] g3[5] b3[4] r1[4:0] g3[4] g2[3:0] g1[5:0] g3[3:0] b1[4:0] b3[1] b2[3:0] r2[4:0] b3[2] r3[4:0] b3[3]"},
    {5,
     0x1a,
     true,
     8,
     {5, 5, 6},
     "r0[7:0] b3[1] b2[4] g0[7:0] b2[5] g2[4] b0[7:0] b3[5] b3[4] r1[4:0] g3[4] g2[3:0] g1[4:0] b3[0] g3[3:0] b1[5:0] b2[3:0] r2[4:0] b3[2] r3[4:0] b3[3]"},
    {5,
     0x1e,
     false,
     6,
     {6, 6, 6},
     "r0[5:0] g3[4] b3[0] b3[1] b2[4] g0[5:0] g2[5] b2[5] b3[2] g2[4] b0[5:0] g3[5] b3[3] b3[5] b3[4] r1[5:0] g2[3:0] g1[5:0] g3[3:0] b1[5:0] b2[3:0] r2[5:0] r3[5:0]"},
    {5, 0x03, false, 10, {10, 10, 10}, "r0[9:0] g0[9:0] b0[9:0] r1[9:0] g1[9:0] b1[9:0]"},
    {5, 0x07, true, 11, {9, 9, 9}, "r0[9:0] g0[9:0] b0[9:0] r1[8:0] r0[10] g1[8:0] g0[10] b1[8:0] b0[10]"},
    {5, 0x0b, true, 12, {8, 8, 8}, "r0[9:0] g0[9:0] b0[9:0] r1[7:0] r0[10:11] g1[7:0] g0[10:11] b1[7:0] b0[10:11]"},
    {5, 0x0f, true, 16, {4, 4, 4}, "r0[9:0] g0[9:0] b0[9:0] r1[3:0] r0[10:15] g1[3:0] g0[10:15] b1[3:0] b0[10:15]"},
};
constexpr std::size_t bc6_mode_count = std::size(bc6_modes);

/// Where a bit of a BC6H block belongs.
struct EndBit {
    std::uint8_t end = 0, channel = 0, bit = 0;
};
struct EndBits {
    unsigned count = 0;
    EndBit bits[80];
};

constexpr EndBits parsed(std::string_view layout) {
    EndBits result;
    std::size_t at = 0;
    const auto number = [&] {
        int value = 0;
        for (; layout[at] >= '0' && layout[at] <= '9'; ++at) value = value * 10 + (layout[at] - '0');
        return value;
    };
    while (at < layout.size()) {
        const std::uint8_t channel = layout[at] == 'r' ? 0 : layout[at] == 'g' ? 1 : 2;
        const auto end = static_cast<std::uint8_t>(layout[at + 1] - '0');
        at += 3;
        const int last = number();
        int first = last;
        if (layout[at] == ':') {
            ++at;
            first = number();
        }
        at += 2; // "] "
        for (int bit = first;; bit += first < last ? 1 : -1) {
            result.bits[result.count++] = {end, channel, static_cast<std::uint8_t>(bit)};
            if (bit == last) break;
        }
    }
    return result;
}

constexpr auto bc6_layouts = [] {
    std::array<EndBits, bc6_mode_count> all{};
    for (std::size_t i = 0; i < bc6_mode_count; ++i) all[i] = parsed(bc6_modes[i].layout);
    return all;
}();

int sign_extended(int value, unsigned bits) {
    return static_cast<int>(static_cast<unsigned>(value) << (32 - bits)) >> (32 - bits);
}

/// An end of `bits` bits as 16, or as 15 and a sign.
int unquantized(int value, unsigned bits, bool is_signed) {
    if (is_signed) {
        if (bits >= 16) return value;
        const int magnitude = value < 0 ? -value : value;
        int result = 0;
        if (magnitude >= (1 << (bits - 1)) - 1)
            result = 0x7fff;
        else if (magnitude != 0)
            result = ((magnitude << 15) + 0x4000) >> (bits - 1);
        return value < 0 ? -result : result;
    }
    if (bits >= 15 || value == 0) return value;
    return value == (1 << bits) - 1 ? 0xffff : ((value << 16) + 0x8000) >> bits;
}

/// Scaled by 31/64 or 31/32, which makes the largest a half's largest. What becomes zero is positive.
std::uint32_t finished(int value, bool is_signed) {
    if (!is_signed) return static_cast<std::uint32_t>(value * 31 >> 6);
    const auto magnitude = static_cast<std::uint32_t>((value < 0 ? -value : value) * 31 >> 5);
    return value < 0 && magnitude != 0 ? 0x8000u | magnitude : magnitude;
}

} // namespace

StoredTexel load_bc7_texel(const std::uint8_t* block, unsigned texel) {
    StoredTexel result{};
    if (block[0] == 0) return result;
    const auto number = static_cast<unsigned>(std::countr_zero(block[0]));
    const Bc7Mode& mode = bc7_modes[number];
    BlockBits bits(block);
    bits.take(number + 1);
    const Partition partition{mode.subsets, bits.take(mode.partition)};
    const unsigned rotation = bits.take(mode.rotation), selection = bits.take(mode.selection);
    constexpr unsigned most_ends = 6;
    unsigned ends[4][most_ends] = {}, last[most_ends] = {};
    for (unsigned channel = 0; channel < 4; ++channel)
        for (unsigned i = 0; i < 2u * mode.subsets; ++i)
            ends[channel][i] = bits.take(channel < 3 ? mode.color : mode.alpha);
    if (mode.last == Bc7Mode::per_end)
        for (unsigned i = 0; i < 2u * mode.subsets; ++i) last[i] = bits.take(1);
    if (mode.last == Bc7Mode::per_subset)
        for (unsigned i = 0; i < mode.subsets; ++i) last[2 * i] = last[2 * i + 1] = bits.take(1);

    const unsigned first_indices = bits.position(), second_indices = first_indices + 16u * mode.index - mode.subsets;
    Index color{partition.index(bits, first_indices, mode.index, texel), mode.index}, alpha = color;
    if (mode.second_index != 0)
        alpha = {partition.index(bits, second_indices, mode.second_index, texel), mode.second_index};
    if (selection != 0) std::swap(color, alpha);

    const unsigned first = 2 * partition.subset_of(texel);
    for (unsigned channel = 0; channel < 4; ++channel) {
        const unsigned count = channel < 3 ? mode.color : mode.alpha;
        int end[2] = {255, 255};
        for (unsigned i = 0; count != 0 && i < 2; ++i) {
            const unsigned value = ends[channel][first + i];
            end[i] =
                mode.last == Bc7Mode::none ? widened(value, count) : widened(value << 1 | last[first + i], count + 1);
        }
        result.channel[channel] = static_cast<std::uint32_t>(mixed(end[0], end[1], channel < 3 ? color : alpha));
    }
    if (rotation != 0) std::swap(result.channel[3], result.channel[rotation - 1]);
    return result;
}

StoredTexel load_bc6h_texel(const std::uint8_t* block, unsigned texel, bool is_signed) {
    constexpr unsigned partition_at = 77, partition_bits = 5;
    StoredTexel result{};
    BlockBits bits(block);
    const unsigned short_mode = bits.get(0, 2), long_mode = bits.get(0, 5);
    std::size_t number = 0;
    while (number < bc6_mode_count &&
           bc6_modes[number].mode != (bc6_modes[number].mode_bits == 2 ? short_mode : long_mode))
        ++number;
    if (number == bc6_mode_count) return result;
    const Bc6Mode& mode = bc6_modes[number];
    bits.take(mode.mode_bits);
    int ends[4][3] = {};
    for (unsigned i = 0; i < bc6_layouts[number].count; ++i) {
        const EndBit& bit = bc6_layouts[number].bits[i];
        ends[bit.end][bit.channel] |= static_cast<int>(bits.take(1)) << bit.bit;
    }
    const bool two = bits.position() == partition_at;
    const Partition partition{two ? 2u : 1u, two ? bits.take(partition_bits) : 0};
    const unsigned index_bits = two ? 3 : 4;
    const Index index{partition.index(bits, bits.position(), index_bits, texel), index_bits};
    const unsigned first = 2 * partition.subset_of(texel);
    for (unsigned channel = 0; channel < 3; ++channel) {
        int end[2];
        for (unsigned i = 0; i < 2; ++i) {
            int value = ends[first + i][channel];
            if (mode.relative && first + i != 0)
                value = (ends[0][channel] + sign_extended(value, mode.difference[channel])) & ((1 << mode.bits) - 1);
            end[i] = unquantized(is_signed ? sign_extended(value, mode.bits) : value, mode.bits, is_signed);
        }
        result.channel[channel] = finished(mixed(end[0], end[1], index), is_signed);
    }
    return result;
}

} // namespace ptarmigan::runtime
