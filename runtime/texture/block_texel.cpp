// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/block_texel.h"

#include "runtime/texture/bptc_texel.h"

#include <array>
#include <cstdlib>
#include <cstring>

namespace ptarmigan::runtime {
namespace {

using Block = TexelFormat::Block;

/// Two colours of 5, 6 and 5 bits and two bits per texel. Five bits are mixed before they are widened, six behind.
struct Colors {
    bool four; ///< two mixtures; otherwise one, and black
    unsigned choice;

    int narrow(int first, int second) const {
        if (choice < 2) return choice == 0 ? widened(first) : widened(second);
        if (four) return (choice == 2 ? 2 * first + second : first + 2 * second) * 22 >> 3;
        return choice == 2 ? (first + second) * 33 >> 3 : 0;
    }
    int wide(int first, int second) const {
        const int a = first << 2 | first >> 4, b = second << 2 | second >> 4, way = b - a;
        if (choice < 2) return choice == 0 ? a : b;
        if (four)
            return choice == 2 ? (256 * a + way / 4 + 128 + way * 80) >> 8 : (256 * b - way / 4 + 128 - way * 80) >> 8;
        return choice == 2 ? (256 * a + way / 4 + 128 + way * 128) >> 8 : 0;
    }

private:
    static int widened(int channel) { return channel << 3 | channel >> 2; }
};

void load_color(const std::uint8_t* block, unsigned texel, bool always_four, StoredTexel& result) {
    std::uint16_t ends[2];
    std::uint32_t choices = 0;
    std::memcpy(ends, block, sizeof ends);
    std::memcpy(&choices, block + sizeof ends, sizeof choices);
    const Colors colors{always_four || ends[0] > ends[1], choices >> (2 * texel) & 3};
    result.channel[0] = static_cast<std::uint32_t>(colors.narrow(ends[0] >> 11, ends[1] >> 11));
    result.channel[1] = static_cast<std::uint32_t>(colors.wide(ends[0] >> 5 & 63, ends[1] >> 5 & 63));
    result.channel[2] = static_cast<std::uint32_t>(colors.narrow(ends[0] & 31, ends[1] & 31));
    result.channel[3] = colors.four || colors.choice != 3 ? 255 : 0;
}

/// How far a mixture lies from one of the two ends: in 257ths of the way between them where the result has 16 bits, in
/// 2048ths where it has 8.
struct Mixture {
    bool from_second;
    int weight, weight_of_8;
};
constexpr std::array<Mixture, 6> six_mixtures{
    {{false, 36, 289}, {false, 72, 578}, {true, 144, 1156}, {false, 144, 1156}, {true, 72, 578}, {true, 36, 289}}};
constexpr std::array<Mixture, 4> four_mixtures{{{false, 48, 385}, {false, 96, 770}, {true, 96, 770}, {true, 48, 385}}};

/// One channel in 16 bits: two ends of 8 bits and three bits per texel.
int load_channel(const std::uint8_t* block, unsigned texel, bool is_signed) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, block, sizeof bits);
    const unsigned choice = bits >> (16 + 3 * texel) & 7;
    int end[2], wide[2];
    for (unsigned i = 0; i < 2; ++i) {
        end[i] = is_signed ? static_cast<std::int8_t>(block[i]) : block[i];
        const int size = std::abs(end[i]) > 127 && is_signed ? 127 : std::abs(end[i]);
        const int magnitude = is_signed ? size * 258 + (size >> 6) : size * 257;
        wide[i] = end[i] < 0 ? -magnitude : magnitude;
    }
    const bool six = end[0] > end[1];
    if (choice < 2) return wide[choice];
    if (!six && choice >= 6) return choice == 6 ? (is_signed ? -32767 : 0) : (is_signed ? 32767 : 65535);
    const Mixture mixture = six ? six_mixtures[choice - 2] : four_mixtures[choice - 2];
    if (is_signed)
        for (int& value : end) value = value < -127 ? -127 : value;
    const int way = (end[1] - end[0]) * mixture.weight;
    return mixture.from_second ? wide[1] - way : wide[0] + way;
}

std::uint32_t load_alpha(const std::uint8_t* block, unsigned texel, bool mixed) {
    if (!mixed) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, block, sizeof bits);
        return static_cast<std::uint32_t>(bits >> (4 * texel) & 15) * 17;
    }
    std::uint64_t bits = 0;
    std::memcpy(&bits, block, sizeof bits);
    const unsigned choice = bits >> (16 + 3 * texel) & 7;
    const bool six = block[0] > block[1];
    if (choice < 2) return block[choice];
    if (!six && choice >= 6) return choice == 6 ? 0 : 255;
    const Mixture mixture = six ? six_mixtures[choice - 2] : four_mixtures[choice - 2];
    const int way = (block[1] - block[0]) * mixture.weight_of_8;
    return static_cast<std::uint32_t>(
        (2048 * block[mixture.from_second ? 1 : 0] + (mixture.from_second ? -way : way) + 1024) >> 11);
}

} // namespace

StoredTexel load_block_texel(const std::uint8_t* block, const TexelFormat& format, unsigned x, unsigned y) {
    constexpr unsigned half = 8; // bytes of a block of one part
    const unsigned texel = y * 4 + x;
    StoredTexel result{};
    const bool is_signed = format.kind == TexelFormat::Kind::signed_integer;
    switch (format.block) {
    case Block::none: break;
    case Block::bc1: load_color(block, texel, false, result); break;
    case Block::bc2:
    case Block::bc3:
        load_color(block + half, texel, true, result);
        result.channel[3] = load_alpha(block, texel, format.block == Block::bc3);
        break;
    case Block::bc5:
        result.channel[1] = static_cast<std::uint32_t>(load_channel(block + half, texel, is_signed));
        [[fallthrough]];
    case Block::bc4: result.channel[0] = static_cast<std::uint32_t>(load_channel(block, texel, is_signed)); break;
    case Block::bc6h_unsigned: return load_bc6h_texel(block, texel, false);
    case Block::bc6h_signed: return load_bc6h_texel(block, texel, true);
    case Block::bc7: return load_bc7_texel(block, texel);
    }
    return result;
}

} // namespace ptarmigan::runtime
