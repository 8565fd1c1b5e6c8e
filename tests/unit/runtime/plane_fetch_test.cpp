// SPDX-License-Identifier: Apache-2.0
// The common fetch against the sampler, lane by lane and bit by bit. The sampler is compared with recordings of an H200.
#include "runtime/texture/plane_fetch.h"
#include "runtime/texture/sampler.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

using namespace ptarmigan;
using namespace ptarmigan::runtime;

namespace {

using Kind = TexelFormat::Kind;

/// A plane with noise in it: floats of all sizes, zeros of both signs, infinities and NaNs among them.
struct NoisyPlane {
    NoisyPlane(TexelFormat format, std::uint32_t width, std::uint32_t height, std::mt19937 &random)
        : bytes(std::size_t{width} * height * format.bytes()) {
        for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
            auto word = static_cast<std::uint32_t>(random());
            const bool wild = !format.is_real() || word % 97 == 1;
            if (!wild && format.kind == Kind::half) // from subnormal ones on; two at once
                word &= word % 50 == 0 ? 0x80008000 : word % 3 == 0 ? 0x83ff83ff : 0xbfffbfff;
            else if (!wild)
                word = word % 50 == 0 ? word % 100 << 31 : std::bit_cast<std::uint32_t>((static_cast<float>(word >> 8) - 0x1p23f) * 1e-4f);
            std::memcpy(&bytes[i], &word, 4);
        }
        object.kind = TextureObject::Kind::texture;
        object.image.format = format;
        object.image.dimensions = 2;
        object.image.level[0] = {bytes.data(), width, height, 1, std::size_t{width} * format.bytes(), bytes.size()};
    }
    std::vector<std::uint8_t> bytes;
    TextureObject object;
};

float random_coordinate(std::mt19937 &random, unsigned round, std::uint32_t size, bool normalized) {
    const auto word = static_cast<std::uint32_t>(random());
    const float period = normalized ? 1.0f / static_cast<float>(size) : 1.0f;
    if (round % 5 == 0)
        return std::bit_cast<float>(word);
    if (round % 5 == 1) // on texels, their edges and their middles
        return (static_cast<float>(word % 1000) - 200) * 0.125f * period;
    return (static_cast<float>(word >> 8) - 0x1p22f) * 1.3e-5f * period;
}

std::uint32_t random_texel(std::mt19937 &random, unsigned round, std::uint32_t size) {
    const auto word = static_cast<std::uint32_t>(random());
    return round % 5 == 0 ? word : word % (size + 8) - 4;
}

/// Compares `rounds` steps; the number of lanes that differ.
unsigned wrong_lanes(const TextureObject &texture, std::mt19937 &random, unsigned rounds, bool by_integers = false) {
    unsigned wrong = 0;
    for (unsigned round = 0; round < rounds; ++round) {
        abi::TextureCall call{};
        using Geometry = abi::TextureGeometry;
        const bool has_layers = texture.image.layered, is_line = texture.image.dimensions == 1;
        const Geometry geometry = has_layers ? (is_line ? Geometry::a1d : Geometry::a2d) : is_line ? Geometry::d1 : Geometry::d2;
        const unsigned first = has_layers ? 1 : 0;
        call.geometry = static_cast<std::uint32_t>(geometry);
        call.flags = by_integers ? abi::TextureCall::integer_coordinates : 0;
        call.active = (round % 3 ? 0xffffffffu : random() | 1u) & (round % 4 ? 0xffffffffu : 0xffffu);
        const ImageLevel &level = texture.image.level[0];
        for (unsigned lane = 0; lane < 32; ++lane) {
            const bool normalized = texture.sampler.normalized;
            call.coordinates[0][lane] = random_texel(random, round, texture.image.layers);
            call.coordinates[first][lane] = std::bit_cast<std::uint32_t>(random_coordinate(random, round, level.width, normalized));
            call.coordinates[first + 1][lane] =
                std::bit_cast<std::uint32_t>(random_coordinate(random, round, level.height, normalized));
            if (by_integers) {
                call.coordinates[0][lane] = random_texel(random, round, level.width);
                call.coordinates[1][lane] = random_texel(random, round, level.height);
            }
            for (auto &channel : call.data)
                channel[lane] = 0xabababab;
        }
        const VectorCode codes[] = {VectorCode::portable, VectorCode::avx2, VectorCode::avx512};
        if (!fetch_plane(call, texture, codes[random() % 3]))
            return 1;
        for (unsigned lane = 0; lane < 32; ++lane) {
            Fetch one;
            one.geometry = geometry;
            one.integer_coordinates = by_integers;
            one.layer = has_layers ? call.coordinates[0][lane] : 0;
            one.coordinate[0] = call.coordinates[first][lane];
            one.coordinate[1] = call.coordinates[first + 1][lane];
            Texel expected{{0xabababab, 0xabababab, 0xabababab, 0xabababab}};
            if (call.active >> lane & 1)
                expected = fetch(texture, one);
            bool same = true;
            for (unsigned i = 0; i < 4; ++i)
                same = same && call.data[i][lane] == expected.channel[i];
            wrong += !same;
        }
    }
    return wrong;
}

} // namespace

TEST_CASE("steps that fetch from one plane get what the sampler gives", "[texture]") {
    std::mt19937 random(7);
    struct Case {
        Kind kind;
        std::uint8_t bits;
        bool to_real, sums;
    };
    const Case cases[] = {{Kind::single, 32, true, true},           {Kind::unsigned_integer, 8, true, true},
                          {Kind::unsigned_integer, 16, true, true}, {Kind::unsigned_integer, 8, false, false},
                          {Kind::signed_integer, 16, true, false},  {Kind::half, 16, true, true},
                          {Kind::unsigned_integer, 32, false, false}};
    for (const Case &c : cases)
        for (std::uint8_t channels : {1, 2, 4})
            for (unsigned variant = 0; variant < 16; ++variant) {
                const bool linear = variant & 1, normalized = variant & 2;
                if (linear && !c.sums)
                    continue;
                const unsigned address = variant >> 2;
                NoisyPlane plane({c.kind, c.bits, channels, false}, address == 1 ? 37 : 64, address == 2 ? 5 : 33, random);
                Sampler &sampler = plane.object.sampler;
                sampler.linear = linear;
                sampler.normalized = normalized;
                sampler.to_real = c.to_real;
                for (unsigned i = 0; i < 3; ++i)
                    sampler.address[i] = static_cast<Sampler::Address>((address + i) % 4);
                sampler.border_color[0] = 0.25f;
                sampler.border_color[1] = -3;
                INFO("kind " << static_cast<int>(c.kind) << " bits " << int{c.bits} << " channels " << int{channels} << " linear " << linear
                             << " normalized " << normalized << " addressing " << address);
                CHECK(wrong_lanes(plane.object, random, 30) == 0);
                CHECK(wrong_lanes(plane.object, random, 10, true) == 0);
                Image &image = plane.object.image;
                image.layered = true; // each row is a plane
                image.layers = image.level[0].height;
                image.level[0].height = 1;
                image.level[0].slice = image.level[0].row;
                CHECK(wrong_lanes(plane.object, random, 10) == 0);
                image.dimensions = 1;
                CHECK(wrong_lanes(plane.object, random, 10) == 0);
                image.layered = false;
                CHECK(wrong_lanes(plane.object, random, 10) == 0);
                image.linear = address % 2 != 0; // lines of arrays have no texels with numbers
                CHECK(wrong_lanes(plane.object, random, 10, true) == 0);
            }
}
