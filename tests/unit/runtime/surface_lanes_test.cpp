// SPDX-License-Identifier: Apache-2.0
// Loads and stores of a surface for whole steps against the surface unit, lane by lane.
#include "runtime/texture/fetch_of.h"
#include "runtime/texture/surface.h"
#include "runtime/texture/surface_lanes.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <random>
#include <vector>

using namespace ptarmigan;
using namespace ptarmigan::runtime;

namespace {

using Call = abi::TextureCall;
using Geometry = abi::TextureGeometry;
using Bounds = abi::SurfaceBounds;

struct Shape {
    Geometry geometry;
    unsigned dimensions;
    std::uint32_t width, height, depth, layers;
};

struct TestSurface {
    TestSurface(const Shape &shape, std::uint8_t bits, std::uint8_t channels) {
        Image &image = object.image;
        object.kind = TextureObject::Kind::surface;
        image.format = {TexelFormat::Kind::unsigned_integer, bits, channels, false};
        image.dimensions = static_cast<std::uint8_t>(shape.dimensions);
        image.layered = has_layer(shape.geometry);
        image.layers = shape.layers;
        ImageLevel &level = image.level[0];
        level = {nullptr, shape.width, shape.height, shape.depth, (shape.width * image.format.bytes() + 31) / 32 * 32, 0};
        level.slice = level.row * shape.height;
        bytes.resize(level.slice * std::max(shape.depth, shape.layers));
    }
    std::vector<std::uint8_t> bytes;
    TextureObject object;
};

/// Lane by lane; false where one faults.
bool expected(Call &call, const TextureObject &surface) {
    const unsigned words = call.detail == 8 ? 2 : 1, bytes = call.detail == 8 ? 4 : call.detail;
    const auto geometry = static_cast<Geometry>(call.geometry);
    const unsigned first = has_layer(geometry) ? 1 : 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (!(call.active >> lane & 1))
            continue;
        SurfaceAccess access;
        access.geometry = geometry;
        access.bounds = static_cast<Bounds>(call.bounds);
        access.bytes = call.detail * call.count;
        if (first)
            access.layer = call.coordinates[0][lane];
        for (unsigned i = 0; i < coordinates_of(geometry); ++i)
            access.coordinate[i] = static_cast<std::int32_t>(call.coordinates[first + i][lane]);
        SurfaceFault fault = SurfaceFault::none;
        std::uint8_t *place = surface_place(surface, access, false, fault);
        if (fault != SurfaceFault::none)
            return false;
        for (unsigned i = 0; i < call.count * words; ++i) {
            if (static_cast<abi::TextureOperation>(call.operation) == abi::TextureOperation::store) {
                if (place)
                    std::memcpy(place + std::size_t{i} * bytes, &call.data[i][lane], bytes);
                continue;
            }
            call.data[i][lane] = 0;
            if (place)
                std::memcpy(&call.data[i][lane], place + std::size_t{i} * bytes, bytes);
        }
    }
    return true;
}

} // namespace

TEST_CASE("steps that load and store one surface get what the surface unit gives", "[texture]") {
    std::mt19937 random(10);
    constexpr Shape shapes[] = {{Geometry::d1, 1, 77, 1, 1, 1}, {Geometry::d2, 2, 40, 23, 1, 1}, {Geometry::d3, 3, 20, 9, 7, 1},
                                {Geometry::a1d, 1, 50, 1, 1, 6}, {Geometry::a2d, 2, 33, 8, 1, 5}};
    constexpr unsigned accesses[][2] = {{1, 1}, {1, 2}, {1, 4}, {2, 1}, {2, 2}, {2, 4}, {4, 1}, {4, 2}, {4, 4}, {8, 1}, {8, 2}};
    unsigned done = 0, refused = 0;
    for (const Shape &shape : shapes)
        for (const auto &[element, count] : accesses)
            for (const Bounds bounds : {Bounds::trap, Bounds::clamp, Bounds::zero})
                for (const bool store : {false, true})
                    for (unsigned round = 0; round < 12; ++round) {
                        TestSurface mine(shape, 32, 4), theirs(shape, 32, 4);
                        for (std::size_t i = 0; i < mine.bytes.size(); ++i)
                            mine.bytes[i] = theirs.bytes[i] = static_cast<std::uint8_t>(random());
                        mine.object.image.level[0].data = mine.bytes.data();
                        theirs.object.image.level[0].data = theirs.bytes.data();
                        Call call{};
                        call.operation = static_cast<std::uint32_t>(store ? abi::TextureOperation::store : abi::TextureOperation::load);
                        call.geometry = static_cast<std::uint32_t>(shape.geometry);
                        call.detail = element;
                        call.count = count;
                        call.bounds = static_cast<std::uint32_t>(bounds);
                        call.active = (round % 3 ? 0xffffffffu : static_cast<std::uint32_t>(random()) | 1u) & (round % 4 ? 0xffffffffu : 0xffffu);
                        const unsigned first = has_layer(shape.geometry) ? 1 : 0;
                        const std::uint32_t sizes[] = {shape.width * 16, shape.height, shape.depth};
                        const unsigned beyond = round % 2 ? 0 : 3;
                        for (unsigned lane = 0; lane < 32; ++lane) {
                            call.coordinates[0][lane] = static_cast<std::uint32_t>(random()) % (shape.layers + beyond);
                            for (unsigned i = 0; i < coordinates_of(shape.geometry); ++i) {
                                auto at = static_cast<std::uint32_t>(random()) % (sizes[i] + 2 * beyond) - beyond;
                                if (i == 0)
                                    at = round == 5 ? at : at / (element * count) * (element * count);
                                if (round % 6 == 4 && lane % 5 == 0)
                                    at = static_cast<std::uint32_t>(random()) & ~15u;
                                call.coordinates[first + i][lane] = at;
                            }
                            for (auto &words : call.data)
                                words[lane] = static_cast<std::uint32_t>(random());
                        }
                        Call other = call;
                        const std::vector<std::uint8_t> before = mine.bytes;
                        const VectorCode codes[] = {VectorCode::portable, VectorCode::avx2, VectorCode::avx512};
                        const bool was_done = access_surface(call, mine.object, codes[random() % 3]);
                        INFO("geometry " << call.geometry << " element " << element << " count " << count << " bounds " << call.bounds
                                         << " store " << store << " round " << round);
                        const bool is_right = expected(other, theirs.object);
                        REQUIRE(was_done == is_right);
                        if (!was_done) {
                            CHECK(mine.bytes == before);
                            ++refused;
                            continue;
                        }
                        ++done;
                        CHECK(mine.bytes == theirs.bytes);
                        for (unsigned lane = 0; lane < 32; ++lane)
                            for (unsigned i = 0; i < 8; ++i)
                                if (call.active >> lane & 1)
                                    REQUIRE(call.data[i][lane] == other.data[i][lane]);
                    }
    CHECK(done > 2500);
    CHECK(refused > 100);
}
