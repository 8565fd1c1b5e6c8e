// SPDX-License-Identifier: Apache-2.0
// Texels and coordinates, from integer arithmetic and single IEEE operations, so that every machine makes the same.
#include "tests/recordings/textures/texture_case.h"

#include "tests/recordings/textures/recording.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace texture_recording {
namespace {

/// Of normal numbers that halves have, or zero.
std::uint16_t half_of(float value) {
    auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffff) == 0) return std::uint16_t(bits >> 16);
    return std::uint16_t((bits >> 16 & 0x8000) | (((bits & 0x7fffffff) - (112u << 23)) >> 13));
}

constexpr std::uint32_t wild_floats[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc12345, 0x00000001,
                                         0x80000001, 0x007fffff, 0x7f7fffff, 0xff7fffff, 0x00800000, 0x80000000,
                                         0x3f800000, 0x00000000, 0x7f000000, 0x3f800001};
constexpr std::uint16_t wild_halves[] = {0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xfe12, 0x0001, 0x8001, 0x03ff,
                                         0x7bff, 0xfbff, 0x0400, 0x8000, 0x3c00, 0x0000, 0x3c01, 0x6400};

std::uint64_t component(const Case& c, Random& random, float ramp) {
    switch (c.format) {
    case f32:
        if (c.texels == Texels::ramp) return std::bit_cast<std::uint32_t>(ramp * 256);
        if (c.texels == Texels::scales)
            return std::bit_cast<std::uint32_t>(random.between(-4, 4) * float(1u << random.below(17)) / 65536);
        if (c.texels == Texels::wild && random.below(2)) return wild_floats[random.below(16)];
        return std::bit_cast<std::uint32_t>(random.between(-4, 4));
    case f16:
        if (c.texels == Texels::ramp) return half_of(ramp * 16);
        if (c.texels == Texels::scales) return (random.below(2) << 15) | ((1 + random.below(30)) << 10) | random.below(1024);
        if (c.texels == Texels::wild && random.below(2)) return wild_halves[random.below(16)];
        return half_of(float(int(random.below(4096)) - 2048) * 0x1p-10f);
    default:
        if (c.texels == Texels::ramp) return std::uint64_t(ramp);
        return random.bits();
    }
}

unsigned component_bytes(unsigned format) {
    switch (format) {
    case u8: case s8: case 0xc0: case 0xc1: case 0xc2: case 0xc6: case 0xc7: case 0xc8: return 1;
    case u16: case s16: case f16: case 0xc3: case 0xc4: case 0xc5: case 0xc9: case 0xca: case 0xcb: return 2;
    default: return 4;
    }
}

/// One coordinate along a dimension of `size` texels, in texels.
float texel_coordinate(Random& random, float size) {
    const auto near = [&](float value) {
        const int steps = int(random.below(5)) - 2;
        return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) + std::uint32_t(steps));
    };
    const float texel = float(random.below(unsigned(size) + 1));
    switch (random.below(16)) {
    case 0: return random.between(-0.5f * size, 1.5f * size);
    case 1: return texel + float(random.below(512)) / 512;
    case 2: return near(texel + float(2 * random.below(256) + 1) / 512);
    case 3: return near(texel + 0.5f);
    case 4: return near(texel + 1);
    case 5: return random.between(-3 * size, 4 * size);
    case 6: return near(random.below(2) ? 0.5f : size - 0.5f);
    case 7: {
        constexpr float special[] = {0.0f, -0.0f, 0x1p-149f, -0x1p-149f, 1e-30f, -1e-30f, -0.25f, 0x1p-10f};
        return special[random.below(8)];
    }
    case 8: {
        constexpr float far[] = {1e9f, -1e9f, 1e20f, -1e20f, 0x1p31f, 8388608.5f, -4194304.5f, 70000.25f};
        if (random.below(4) == 0)
            return random.below(3) ? (random.below(2) ? INFINITY : -INFINITY) : std::bit_cast<float>(0x7fc00000u);
        return random.below(3) ? random.between(-0.02f, 0.02f) : far[random.below(8)];
    }
    default: return random.between(0, size);
    }
}

std::uint32_t coordinate(const Case& c, Random& random, unsigned size) {
    if (c.integer_coordinates()) {
        constexpr std::uint32_t far[] = {0x7fffffff, 0x80000000, 0xffffffff, 0x10000, 0x8000, 0xffff8000, 0x40000000, 100};
        return random.below(16) == 0 ? far[random.below(8)] : random.below(size + 6) - 3;
    }
    float value = texel_coordinate(random, float(size));
    if (c.normalized_coordinates()) value /= float(size);
    return std::bit_cast<std::uint32_t>(value);
}

std::uint32_t layer(Random& random, unsigned count) {
    constexpr std::uint32_t far[] = {0xffffffff, 0x80000000, 0x7fffffff, 0x10000, 0x8000, 2048, 0xfffffffe, 65};
    return random.below(8) == 0 ? far[random.below(8)] : random.below(count + 1);
}

/// A direction into a cube: major axis, ties, zeros, all magnitudes.
void direction(Random& random, std::uint32_t* to) {
    float v[3];
    for (float& value : v) value = random.between(-1, 1);
    const unsigned kind = random.below(8), axis = random.below(3), other = (axis + 1 + random.below(2)) % 3;
    if (kind == 0) v[other] = v[axis];
    if (kind == 1) v[other] = -v[axis];
    if (kind == 2) v[axis] = random.below(2) ? 0.0f : -0.0f;
    if (kind == 3) v[axis] = random.below(2) ? 1.0f : -1.0f;
    if (kind == 4)
        for (float& value : v) value *= 1000;
    if (kind == 5 && random.below(4) == 0) v[axis] = random.below(2) ? INFINITY : std::bit_cast<float>(0x7fc00000u);
    if (kind == 6)
        for (float& value : v) value = float(int(random.below(17)) - 8) / 8;
    for (unsigned i = 0; i < 3; ++i) to[i] = std::bit_cast<std::uint32_t>(v[i]);
}

float level_of_detail(Random& random, unsigned levels) {
    switch (random.below(8)) {
    case 0: return float(random.below(levels * 512)) / 512;
    case 1: return float(2 * random.below(levels * 256) + 1) / 512;
    case 2: return float(random.below(levels + 2)) - 0.5f;
    case 3: {
        constexpr std::uint32_t special[] = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x42c80000, 0xc2c80000, 1};
        return std::bit_cast<float>(special[random.below(8)]);
    }
    default: return random.between(-1, float(levels) + 1);
    }
}

float gradient(Random& random, const Case& c, unsigned size) {
    const unsigned kind = random.below(16);
    if (kind < 3) return 0;
    if (kind == 3 && random.below(8) == 0) return random.below(2) ? INFINITY : std::bit_cast<float>(0x7fc00000u);
    float value = random.between(-1, 1) * float(1u << random.below(c.levels + 2)) * 0.5f;
    if (kind == 4) value = float(1u << random.below(c.levels + 1));
    return c.normalized_coordinates() ? value / float(size) : value;
}

/// Gradients to find the formula by: lengths between 1 and 16 texels, without special values.
void set_gradients(const Case& c, Random& random, const std::array<unsigned, 3>& extent, unsigned dimensions, std::uint32_t* sample) {
    const bool two = c.gradients == Gradients::lengths || c.gradients == Gradients::directions;
    const bool any_direction = c.gradients == Gradients::direction || c.gradients == Gradients::directions;
    for (unsigned at : {dpdx_at, dpdy_at})
        for (unsigned d = 0; d < dimensions; ++d) {
            const bool used = (at == dpdx_at || two) && (d == 0 || any_direction);
            const float length = random.between(1, 2) * float(1u << random.below(4)) * (random.below(2) ? 1.0f : -1.0f);
            sample[at + d] = std::bit_cast<std::uint32_t>(used ? length / float(extent[d]) : 0.0f);
        }
}

} // namespace

std::array<unsigned, 3> Case::extent(unsigned level) const {
    std::array<unsigned, 3> result{};
    for (unsigned i = 0; i < 3; ++i) {
        const bool layers = i == 2 && (array_flags & (layered | cube)) != 0;
        result[i] = layers ? size[i] : std::max(1u, size[i] >> level);
    }
    return result;
}

unsigned element_bytes(unsigned format, unsigned channels) { return component_bytes(format) * channels; }

std::vector<std::uint8_t> texels_of(const Case& c, unsigned level) {
    if (c.own_texels) return c.own_texels(level);
    const auto extent = c.extent(level);
    const unsigned bytes = component_bytes(c.format);
    std::vector<std::uint8_t> result;
    Random random(0x7e71 + level);
    for (unsigned z = 0; z < extent[2]; ++z)
        for (unsigned y = 0; y < extent[1]; ++y)
            for (unsigned x = 0; x < extent[0]; ++x)
                for (unsigned k = 0; k < c.channels; ++k) {
                    const float ramp[] = {float(x), float(y), float(z), float(level)};
                    const std::uint64_t bits = component(c, random, ramp[k]);
                    for (unsigned b = 0; b < bytes; ++b) result.push_back(std::uint8_t(bits >> (8 * b)));
                }
    return result;
}

std::vector<std::uint32_t> inputs_of(const Case& c) {
    if (c.own_inputs) return c.own_inputs();
    std::vector<std::uint32_t> inputs(std::size_t{c.samples} * input_words);
    Random random(seed_of(c.name));
    const auto extent = c.extent();
    const bool arrays = c.has("a1d") || c.has("a2d") || c.has("acube");
    const bool cubes = c.has("cube") || c.has("acube");
    const unsigned dimensions = c.has("1d") || c.has("a1d") ? 1 : c.has("3d") ? 3 : 2;
    for (unsigned i = 0; i < c.samples; ++i) {
        std::uint32_t* sample = &inputs[std::size_t{i} * input_words];
        std::uint32_t* next = sample + coordinates_at;
        if (arrays) *next++ = layer(random, cubes ? extent[2] / 6 : extent[2]);
        if (cubes) direction(random, next);
        else
            for (unsigned d = 0; d < dimensions; ++d) *next++ = coordinate(c, random, extent[d]);
        if (c.integer_coordinates()) sample[lod_at] = random.below(c.levels + 4) - 2;
        else sample[lod_at] = std::bit_cast<std::uint32_t>(level_of_detail(random, c.levels));
        const unsigned directions = cubes ? 3 : dimensions;
        for (unsigned d = 0; d < directions; ++d)
            for (unsigned at : {dpdx_at, dpdy_at})
                sample[at + d] = std::bit_cast<std::uint32_t>(gradient(random, c, cubes ? 1 : extent[d]));
        if (c.gradients != Gradients::mixed) set_gradients(c, random, extent, dimensions, sample);
        for (unsigned d = 0; d < 3; ++d) sample[offset_at + d] = random.below(16) - 8;
        sample[compare_at] = std::bit_cast<std::uint32_t>(random.between(-4, 4));
    }
    return inputs;
}

} // namespace texture_recording
