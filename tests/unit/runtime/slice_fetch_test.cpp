// SPDX-License-Identifier: Apache-2.0
// Fetches from volumes, mipmaps and cubes for whole steps against the sampler, lane by lane and bit by bit. The sampler is compared with
// recordings of an H200.
#include "runtime/texture/fetch_of.h"
#include "runtime/texture/slice_fetch.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

using namespace ptarmigan;
using namespace ptarmigan::runtime;

namespace {

using Kind = TexelFormat::Kind;
using Geometry = abi::TextureGeometry;
using Call = abi::TextureCall;

struct Shape {
    const char *name;
    Geometry geometry;
    unsigned dimensions;
    std::uint32_t width, height, depth, layers, levels; ///< layers: faces count
};

/// Words of a format: floats of all sizes, zeros of both signs, infinities and NaNs among them; `tame` has neither of these nor many sizes.
std::uint32_t noise(const TexelFormat &format, std::mt19937 &random, bool tame) {
    auto word = static_cast<std::uint32_t>(random());
    if (!format.is_real())
        return word;
    if (tame)
        return format.kind == Kind::half ? (word & 0x83ff83ff) | 0x3c003800 : std::bit_cast<std::uint32_t>(static_cast<float>(word >> 8) * 0x1p-24f - 0.2f);
    if (word % 97 == 1)
        return word;
    if (format.kind == Kind::half)
        return word & (word % 50 == 0 ? 0x80008000 : word % 3 == 0 ? 0x83ff83ff : 0xbfffbfff);
    return word % 50 == 0 ? word % 100 << 31 : std::bit_cast<std::uint32_t>((static_cast<float>(word >> 8) - 0x1p23f) * 1e-4f);
}

struct NoisyImage {
    NoisyImage(const TexelFormat &format, const Shape &shape, std::mt19937 &random, bool tame) {
        object.kind = TextureObject::Kind::texture;
        Image &image = object.image;
        image.format = format;
        image.dimensions = static_cast<std::uint8_t>(shape.dimensions);
        image.cube = shape.geometry == Geometry::cube || shape.geometry == Geometry::acube;
        image.layered = shape.geometry == Geometry::a1d || shape.geometry == Geometry::a2d || shape.geometry == Geometry::acube;
        image.layers = shape.layers;
        image.levels = shape.levels;
        image.mipmapped = shape.levels > 1;
        std::vector<std::size_t> starts;
        std::size_t size = 0;
        for (unsigned i = 0; i < shape.levels; ++i) {
            ImageLevel &level = image.level[i];
            level.width = std::max(shape.width >> i, 1u);
            level.height = std::max(shape.height >> i, 1u);
            level.depth = std::max(shape.depth >> i, 1u);
            level.row = (level.width * format.bytes() + 31) / 32 * 32;
            level.slice = level.row * level.height;
            starts.push_back(size);
            size += level.slice * std::max(level.depth, shape.layers);
        }
        words.resize(size / 4);
        for (std::uint32_t &word : words)
            word = noise(format, random, tame);
        for (unsigned i = 0; i < shape.levels; ++i)
            image.level[i].data = reinterpret_cast<std::uint8_t *>(words.data()) + starts[i];
    }
    std::vector<std::uint32_t> words;
    TextureObject object;
};

float coordinate(std::mt19937 &random, unsigned round, std::uint32_t size, bool normalized, bool cube) {
    const auto word = static_cast<std::uint32_t>(random());
    if (round % 5 == 0)
        return std::bit_cast<float>(word);
    if (cube)
        return round % 5 == 1 ? static_cast<float>(word % 9) - 4 : (static_cast<float>(word >> 8) - 0x1p23f) * 0x1p-22f;
    const float period = normalized ? 1.0f / static_cast<float>(size) : 1.0f;
    if (round % 5 == 1) // on texels, their edges and their middles
        return (static_cast<float>(word % 1000) - 200) * 0.125f * period;
    return static_cast<float>(word >> 8) * 0x1p-24f * static_cast<float>(size) * period * (round % 5 == 2 ? 1.5f : 1.0f);
}

/// Compares `rounds` steps: lanes that differ, and how many were left to the sampler.
struct Comparison {
    unsigned wrong = 0, fetched = 0, left = 0;
};
Comparison compare(const TextureObject &texture, Geometry geometry, std::mt19937 &random, unsigned rounds, std::uint32_t flags) {
    Comparison result;
    const Image &image = texture.image;
    for (unsigned round = 0; round < rounds; ++round) {
        Call call{};
        call.geometry = static_cast<std::uint32_t>(geometry);
        call.flags = flags;
        call.active = (round % 3 ? 0xffffffffu : static_cast<std::uint32_t>(random()) | 1u) & (round % 4 ? 0xffffffffu : 0xffffu);
        const ImageLevel &level = image.level[0];
        const std::uint32_t sizes[] = {level.width, level.height, level.depth};
        const unsigned first = has_layer(geometry) ? 1 : 0;
        for (unsigned lane = 0; lane < 32; ++lane) {
            call.coordinates[0][lane] = round % 5 == 0 ? static_cast<std::uint32_t>(random()) : static_cast<std::uint32_t>(random()) % (image.layers + 3);
            for (unsigned i = 0; i < coordinates_of(geometry); ++i)
                call.coordinates[first + i][lane] = std::bit_cast<std::uint32_t>(
                    coordinate(random, round, sizes[i], texture.sampler.normalized || image.mipmapped, image.cube));
            const auto word = static_cast<std::uint32_t>(random());
            call.level[lane] = round % 7 == 0 ? word : std::bit_cast<std::uint32_t>(round % 2 ? 1.25f : static_cast<float>(word % 1000) * 0.01f - 2);
            for (auto &gradient : call.gradients)
                gradient[lane] = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::uint32_t>(random()) % 1000) * 1e-4f);
            for (auto &channel : call.data)
                channel[lane] = 0xabababab;
        }
        const VectorCode codes[] = {VectorCode::portable, VectorCode::avx2, VectorCode::avx512};
        const std::uint64_t left = fetch_slices(call, texture, codes[random() % 3]);
        for (unsigned lane = 0; lane < 32; ++lane) {
            Texel expected{{0xabababab, 0xabababab, 0xabababab, 0xabababab}};
            if (left >> lane & 1) {
                ++result.left;
                continue;
            }
            if (call.active >> lane & 1) {
                expected = fetch(texture, fetch_of(call, lane));
                ++result.fetched;
            }
            bool same = true;
            for (unsigned i = 0; i < 4; ++i)
                same = same && call.data[i][lane] == expected.channel[i];
            result.wrong += !same;
        }
    }
    return result;
}

constexpr Shape shapes[] = {
    {"volume", Geometry::d3, 3, 37, 21, 18, 1, 1},   {"mipmap", Geometry::d2, 2, 64, 32, 1, 1, 7},   {"volumes", Geometry::d3, 3, 32, 16, 8, 1, 5},
    {"mipmapped line", Geometry::d1, 1, 77, 1, 1, 1, 5}, {"layers", Geometry::a2d, 2, 40, 24, 1, 5, 4}, {"cube", Geometry::cube, 2, 32, 32, 1, 6, 1},
    {"cubes", Geometry::acube, 2, 16, 16, 1, 18, 1}, {"mipmapped cube", Geometry::cube, 2, 32, 32, 1, 6, 6},
    {"lines", Geometry::a1d, 1, 33, 1, 1, 4, 4}};

struct Case {
    Kind kind;
    std::uint8_t bits;
    bool to_real, sums;
};
constexpr Case cases[] = {{Kind::single, 32, true, true},          {Kind::half, 16, true, true},
                          {Kind::unsigned_integer, 8, true, true}, {Kind::unsigned_integer, 16, true, true},
                          {Kind::signed_integer, 8, true, true},   {Kind::signed_integer, 16, true, true},
                          {Kind::signed_integer, 8, false, false}, {Kind::unsigned_integer, 32, false, false}};

} // namespace

TEST_CASE("steps that fetch from volumes, levels and cubes get what the sampler gives", "[texture]") {
    std::mt19937 random(8);
    for (const Shape &shape : shapes)
        for (const Case &c : cases)
            for (std::uint8_t channels : {1, 2, 4})
                for (unsigned variant = 0; variant < 16; ++variant) {
                    const bool linear = variant & 1, normalized = variant & 2;
                    if (!c.sums && linear)
                        continue;
                    NoisyImage image({c.kind, c.bits, channels, false}, shape, random, variant % 3 != 0);
                    Sampler &sampler = image.object.sampler;
                    sampler.linear = linear;
                    sampler.normalized = normalized;
                    sampler.to_real = c.to_real;
                    sampler.linear_levels = c.sums && variant % 4 != 3;
                    sampler.seamless = image.object.image.cube && variant % 5 != 0;
                    sampler.highest = variant % 4 == 1 ? 2.3f : 20.0f;
                    sampler.bias = variant % 7 == 3 ? -0.6f : 0.0f;
                    for (unsigned i = 0; i < 3; ++i)
                        sampler.address[i] = sampler.seamless && variant % 3 ? Sampler::clamp : static_cast<Sampler::Address>((variant / 4 + i) % 4);
                    sampler.border_color[0] = 0.25f;
                    sampler.border_color[1] = -3;
                    INFO(shape.name << " kind " << static_cast<int>(c.kind) << " bits " << int{c.bits} << " channels " << int{channels} << " variant " << variant);
                    for (const std::uint32_t flags : {0u, Call::with_level, Call::with_gradients}) {
                        const Comparison result = compare(image.object, shape.geometry, random, 15, flags);
                        INFO("flags " << flags << " fetched " << result.fetched << " left " << result.left);
                        CHECK(result.wrong == 0);
                        const bool over_edges = sampler.seamless && linear; // wrapping is left to the sampler
                        const bool tame = variant % 3 != 0 || !linear || !image.object.image.format.is_real();
                        const bool alone = !linear && sampler.linear_levels; // lanes within one level
                        if (tame && !over_edges && !alone)
                            CHECK(result.fetched > 9 * result.left);
                    }
                }
}

TEST_CASE("steps whose lanes fetch from several textures of one kind get what the sampler gives", "[texture]") {
    std::mt19937 random(11);
    for (const Shape &shape : shapes)
        for (const Case &c : {cases[0], cases[1], cases[2]})
            for (unsigned variant = 0; variant < 8; ++variant) {
                std::vector<NoisyImage> images;
                for (unsigned i = 0; i < 5; ++i) {
                    Shape own = shape;
                    own.width += i * (own.height == own.width ? 8 : 3);
                    own.height = own.height == shape.width ? own.width : own.height == 1 ? 1 : own.height + 2 * i;
                    images.emplace_back(TexelFormat{c.kind, c.bits, 1, false}, own, random, true);
                    Sampler &sampler = images.back().object.sampler;
                    sampler.linear = variant & 1;
                    sampler.normalized = variant & 2;
                    sampler.to_real = true;
                    sampler.linear_levels = sampler.linear;
                    sampler.highest = 20;
                    for (auto &mode : sampler.address)
                        mode = static_cast<Sampler::Address>(variant / 2);
                }
                for (unsigned round = 0; round < 10; ++round) {
                    Call call{};
                    Textures textures;
                    call.geometry = static_cast<std::uint32_t>(shape.geometry);
                    call.flags = round % 2 ? Call::with_level : round % 3 ? Call::with_gradients : 0;
                    call.active = round % 4 ? 0xffffffffu : static_cast<std::uint32_t>(random()) | 1u;
                    const unsigned first = has_layer(shape.geometry) ? 1 : 0;
                    for (unsigned lane = 0; lane < 32; ++lane) {
                        textures[lane] = &images[static_cast<std::uint32_t>(random()) % images.size()].object;
                        const ImageLevel &level = textures[lane]->image.level[0];
                        const std::uint32_t sizes[] = {level.width, level.height, level.depth};
                        call.coordinates[0][lane] = static_cast<std::uint32_t>(random()) % (shape.layers + 1);
                        for (unsigned i = 0; i < coordinates_of(shape.geometry); ++i)
                            call.coordinates[first + i][lane] = std::bit_cast<std::uint32_t>(coordinate(
                                random, round + 1, sizes[i], images[0].object.sampler.normalized || shape.levels > 1, images[0].object.image.cube));
                        call.level[lane] = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::uint32_t>(random()) % 1000) * 0.004f);
                        for (auto &gradient : call.gradients)
                            gradient[lane] = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::uint32_t>(random()) % 1000) * 1e-4f);
                    }
                    const VectorCode codes[] = {VectorCode::portable, VectorCode::avx2, VectorCode::avx512};
                    const std::uint64_t left = fetch_slices(call, textures, codes[random() % 3]);
                    INFO(shape.name << " kind " << static_cast<int>(c.kind) << " variant " << variant << " round " << round);
                    unsigned fetched = 0;
                    for (unsigned lane = 0; lane < 32; ++lane) {
                        if (!(call.active >> lane & 1) || (left >> lane & 1))
                            continue;
                        ++fetched;
                        REQUIRE(call.data[0][lane] == fetch(*textures[lane], fetch_of(call, lane)).channel[0]);
                    }
                    // Each image has memory of its own, which may lie far from the others'.
                    CHECK((fetched != 0 || left == call.active));
                }
            }
}

TEST_CASE("what fetches of slices are not made for is left to the sampler", "[texture]") {
    std::mt19937 random(9);
    NoisyImage image({Kind::single, 32, 1, false}, shapes[0], random, true);
    Call call{};
    call.active = 0xffff;
    call.geometry = static_cast<std::uint32_t>(Geometry::d2); // of a volume
    CHECK(fetch_slices(call, image.object) == call.active);
    call.geometry = static_cast<std::uint32_t>(Geometry::d3);
    CHECK(fetch_slices(call, image.object) == 0);
    call.flags = Call::with_offset;
    CHECK(fetch_slices(call, image.object) == call.active);
    call.flags = 0;
    Textures textures;
    textures.fill(&image.object);
    TextureObject other = image.object;
    textures[7] = &other;
    CHECK(fetch_slices(call, textures) == 0);
    other.sampler.linear = true; // another sampler
    CHECK(fetch_slices(call, textures) == call.active);
}
