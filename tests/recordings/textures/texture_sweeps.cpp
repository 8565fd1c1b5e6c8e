// SPDX-License-Identifier: Apache-2.0
// Cases with texels and places of their own, from which rules were found: sums of numbers of all sizes, anisotropic
// filters, directions that are none. Recorded on an H100.
#include "tests/recordings/textures/recording.h"
#include "tests/recordings/textures/texture_case.h"

#include <algorithm>
#include <bit>

namespace texture_recording {
namespace {

using List = std::vector<Case>;

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

template <typename T> void put(std::vector<std::uint8_t>& bytes, T value) {
    const auto raw = std::bit_cast<std::array<std::uint8_t, sizeof(T)>>(value);
    bytes.insert(bytes.end(), raw.begin(), raw.end());
}

/// From 2^low to 2^high, exponents uniform.
float any_size(Random& random, int low, int high) {
    const int exponent = low + int(random.below(unsigned(high - low)));
    return std::bit_cast<float>(std::uint32_t(127 + exponent) << 23 | std::uint32_t(random.bits() & 0x7fffff));
}
float any_sign(Random& random) { return random.below(2) ? 1.0f : -1.0f; }

Case make(const std::string& name, const std::string& fetch, std::array<unsigned, 3> size, unsigned address,
          unsigned flags, unsigned format, unsigned levels) {
    Case c;
    c.name = name;
    c.fetch = fetch;
    c.size = size;
    c.format = format;
    c.levels = levels;
    c.samples = 16384;
    c.source = levels > 1 ? Source::mipmap : Source::array;
    for (unsigned& mode : c.sampler.addressMode) mode = address;
    c.sampler.filterMode = 1;
    c.sampler.flags = flags;
    c.sampler.mipmapFilterMode = 1;
    c.sampler.maxMipmapLevelClamp = 99;
    if (c.has("cube")) c.array_flags |= cube;
    return c;
}

/// Exponents are spread more from left to right, zeros are more frequent downwards.
std::vector<std::uint8_t> spread_texels(const Case& c, unsigned level) {
    const auto extent = c.extent(level);
    Random random(0xabc0 + level + c.format * 100);
    std::vector<std::uint8_t> bytes;
    for (unsigned z = 0; z < extent[2]; ++z)
        for (unsigned y = 0; y < extent[1]; ++y)
            for (unsigned x = 0; x < extent[0]; ++x)
                for (unsigned k = 0; k < c.channels; ++k) {
                    constexpr unsigned of_singles[] = {2, 8, 20, 44}, of_halves[] = {2, 6, 14, 30}, zeros[] = {0, 30, 60, 80};
                    const unsigned column = x * 4 / extent[0], row = y * 4 / extent[1];
                    const unsigned spread = (c.format == f16 ? of_halves : of_singles)[column];
                    const std::uint64_t bits = random.bits();
                    const bool zero = random.below(100) < zeros[row];
                    const unsigned exponent = random.below(spread);
                    const bool power = random.below(4) == 0;
                    if (c.format == u8) put<std::uint8_t>(bytes, zero ? 0 : std::uint8_t(bits >> (bits & 7 ? 0 : 5)));
                    else if (c.format == f16)
                        put<std::uint16_t>(bytes, zero ? 0 : std::uint16_t((bits & 0x8000) | (1 + exponent) << 10 | (power ? 0 : bits & 1023)));
                    else
                        put<std::uint32_t>(bytes, zero ? 0 : std::uint32_t((bits & 0x80000000) | (127 - spread / 2 + exponent) << 23 | (power ? 0 : bits & 0x7fffff)));
                }
    return bytes;
}

void add(List& list, Case c, const std::function<void(Random&, std::uint32_t*, unsigned)>& place) {
    c.own_inputs = [c, place] {
        std::vector<std::uint32_t> inputs(std::size_t{c.samples} * input_words);
        Random random(seed_of(c.name));
        for (unsigned i = 0; i < c.samples; ++i) place(random, &inputs[std::size_t{i} * input_words], i);
        return inputs;
    };
    list.push_back(std::move(c));
}

void add_sums(List& list) {
    struct {
        const char *name, *fetch;
        std::array<unsigned, 3> size;
        unsigned flags, format, levels;
    } const sums[] = {
        {"sum3d_f32", "tex.3d.v4.f32.f32", {64, 64, 64}, 0, f32, 1},
        {"sum3d_f16", "tex.3d.v4.f32.f32", {64, 64, 64}, 0, f16, 1},
        {"mip2d_f32", "tex.level.2d.v4.f32.f32", {128, 128, 0}, normalized, f32, 2},
        {"mip2d_f16", "tex.level.2d.v4.f32.f32", {128, 128, 0}, normalized, f16, 2},
        {"mip3d_f32", "tex.level.3d.v4.f32.f32", {64, 64, 64}, normalized, f32, 2},
        {"mip3d_f16", "tex.level.3d.v4.f32.f32", {64, 64, 64}, normalized, f16, 2},
        {"gamma3d", "tex.3d.v4.f32.f32", {64, 64, 64}, srgb, u8, 1},
        {"gamma3dmip", "tex.level.3d.v4.f32.f32", {64, 64, 64}, normalized | srgb, u8, 2},
    };
    for (const auto& sum : sums) {
        Case c = make(sum.name, sum.fetch, sum.size, clamp, sum.flags, sum.format, sum.levels);
        c.own_texels = [c](unsigned level) { return spread_texels(c, level); };
        const auto extent = c.extent();
        add(list, c, [extent, scaled = c.normalized_coordinates()](Random& random, std::uint32_t* sample, unsigned) {
            for (unsigned i = 0; i < 3; ++i) {
                const unsigned at = random.below(std::max(1u, (extent[i] - 1) * 256)) + 128;
                sample[i] = bits_of(float(at) / 256 / (scaled ? float(extent[i]) : 1));
            }
            sample[lod_at] = bits_of(float(random.below(256)) / 256);
        });
    }
}

void add_anisotropic(List& list) {
    const char* plane = "tex.grad.2d.v4.f32.f32";
    const auto noise = [&](const std::string& name, const char* fetch, std::array<unsigned, 3> size, unsigned levels,
                           unsigned anisotropy, unsigned format, unsigned flags, float bias) {
        Case c = make(name, fetch, size, wrap, flags, format, levels);
        c.sampler.maxAnisotropy = anisotropy;
        if (bias != 0) c.sampler.mipmapLevelBias = bias, c.sampler.minMipmapLevelClamp = 0.5f;
        const unsigned dimensions = c.has("1d") ? 1 : c.has("3d") || c.has("cube") ? 3 : 2;
        add(list, c, [dimensions](Random& random, std::uint32_t* sample, unsigned) {
            for (unsigned i = 0; i < 3; ++i) sample[i] = bits_of(random.unit());
            for (unsigned i = 0; i < dimensions; ++i)
                for (unsigned at : {dpdx_at, dpdy_at}) {
                    // One factor after the other: compilers order the operands of a product as they like.
                    const float sign = any_sign(random), size_of = any_size(random, -1, 5);
                    sample[at + i] = bits_of(sign * size_of / 64 * (random.below(8) ? 1.0f : 0.0f));
                }
        });
    };
    noise("noise_f32_16", plane, {64, 64, 0}, 7, 16, f32, normalized, 0);
    noise("noise_f32_16_one", plane, {64, 64, 0}, 1, 16, f32, normalized, 0);
    noise("noise_f32_4", plane, {64, 64, 0}, 7, 4, f32, normalized, 0);
    noise("noise_f32_2", plane, {64, 64, 0}, 7, 2, f32, normalized, 0);
    noise("noise_f16_16", plane, {64, 64, 0}, 7, 16, f16, normalized, 0);
    noise("noise_u8_16", plane, {64, 64, 0}, 7, 16, u8, normalized, 0);
    noise("noise_s8_16", plane, {64, 64, 0}, 7, 16, s8, normalized, 0);
    noise("noise_u16_16", plane, {64, 64, 0}, 7, 16, u16, normalized, 0);
    noise("noise_srgb_16", plane, {64, 64, 0}, 7, 16, u8, normalized | srgb, 0);
    noise("noise_1d_16", "tex.grad.1d.v4.f32.f32", {64, 0, 0}, 7, 16, f32, normalized, 0);
    noise("noise_3d_16", "tex.grad.3d.v4.f32.f32", {64, 64, 64}, 7, 16, f32, normalized, 0);
    noise("noise_cube_16", "tex.grad.cube.v4.f32.f32", {64, 64, 6}, 7, 16, f32, normalized, 0);
    noise("noise_bias_16", plane, {64, 64, 0}, 7, 16, f32, normalized, -1.3f);
    noise("noise_npot_16", plane, {53, 29, 0}, 5, 16, f32, normalized, 0);
    for (unsigned format : {f32, f16, u8}) {
        Case c = make("asum_" + std::to_string(format), plane, {128, 128, 0}, clamp, normalized | (format == u8 ? srgb : 0), format, 2);
        c.sampler.maxAnisotropy = 16;
        c.own_texels = [c](unsigned level) { return spread_texels(c, level); };
        add(list, c, [](Random& random, std::uint32_t* sample, unsigned) {
            for (unsigned i = 0; i < 2; ++i) {
                sample[i] = bits_of(random.unit());
                const auto gradient = [&](int high) {
                    const float sign = any_sign(random), size_of = any_size(random, -1, high);
                    return bits_of(sign * size_of / 128 * (random.below(8) ? 1.0f : 0.0f));
                };
                sample[dpdx_at + i] = gradient(3);
                sample[dpdy_at + i] = gradient(2);
            }
        });
    }
}

void add_special_directions(List& list) {
    Case c = make("cube_special", "tex.cube.v4.f32.f32", {8, 8, 6}, clamp, normalized, f32, 1);
    c.samples = 14 * 14 * 14;
    c.own_texels = [](unsigned) {
        std::vector<std::uint8_t> bytes;
        for (unsigned z = 0; z < 6; ++z)
            for (unsigned y = 0; y < 8; ++y)
                for (unsigned x = 0; x < 8; ++x)
                    for (unsigned value : {x, y, z, 0u}) put<float>(bytes, float(value));
        return bytes;
    };
    add(list, c, [](Random&, std::uint32_t* sample, unsigned i) {
        static const std::uint32_t numbers[] = {0, 0x80000000, 0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                                0xff800000, 0x7fffffff, 0x00012345, 0x80012345, 0x7f000000, 0xff000000, 0x7ec00000};
        sample[0] = numbers[i % 14];
        sample[1] = numbers[i / 14 % 14];
        sample[2] = numbers[i / 196];
    });
}

} // namespace

std::vector<Case> sweep_cases() {
    List list;
    add_sums(list);
    add_anisotropic(list);
    add_special_directions(list);
    return list;
}

} // namespace texture_recording
