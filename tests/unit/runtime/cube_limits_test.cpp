// SPDX-License-Identifier: Apache-2.0
// Where directions with very small and very large coordinates meet a cube, and directions that are none. An H100 (driver
// 580.159) read the places from cubes of 8x8 texels whose values are their coordinates: 128 directions along z with
// wrapped coordinates, all 2,744 directions of fourteen numbers with clamped ones.
#include "runtime/texture/cube.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>

using namespace ptarmigan::runtime;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

} // namespace

TEST_CASE("cube: largest coordinates whose reciprocal is subnormal meet the middle, subnormal ones are infinite") {
    for (unsigned exponent : {0u, 1u, 2u, 126u, 251u, 252u, 253u, 254u})
        for (unsigned mantissa : {1u, 0x1000u, 0x400000u, 0x7fffffu})
            for (float x : {0.f, 0.5f, -0.75f, 1.f}) {
                const float z = std::bit_cast<float>(exponent << 23 | mantissa);
                const auto expected = [&](float part, float place) {
                    if (exponent >= 253 || part == 0) return 0.5f;
                    return exponent == 0 ? std::copysign(infinity, part) : place;
                };
                const CubePlace place = project(x * z, -0.25f * z, z);
                CAPTURE(exponent, mantissa, x);
                CHECK(place.face == 4);
                CHECK(place.s == Approx(expected(x * z, (x + 1) / 2)));
                CHECK(place.t == Approx(expected(0.25f * z, 0.625f)));
            }
}

TEST_CASE("cube: of coordinates as large the last one counts, numbers before NaNs, zeros are positive") {
    struct {
        float direction[3];
        unsigned face;
    } const read[] = {
        {{0, 0, 0}, 4},          {{0, 0, -0.0f}, 4},      {{1, 1, 1}, 4},          {{1, -1, 0.5f}, 3},
        {{-1, -1, -1}, 5},       {{no_number, no_number, no_number}, 4},    {{1, no_number, no_number}, 0},      {{-1, no_number, no_number}, 1},
        {{no_number, -1, no_number}, 3},     {{no_number, 1, -1}, 5},       {{-1, 0.5f, no_number}, 1},    {{0, 0, infinity}, 2},
        {{0, -1, -infinity}, 2}, {{0, infinity, 0}, 4},   {{-infinity, 0, 0}, 4},  {{1, infinity, infinity}, 0},
        {{infinity, 0, no_number}, 2}, {{no_number, infinity, 1}, 4}, {{0x1p127f, 0, 0}, 4},   {{0, -0x1p127f, 0}, 4},
        {{0, 0, -0x1p127f}, 4},  {{-1e-40f, 0, 0}, 1},    {{0, -1e-40f, 0}, 3},    {{1e-40f, no_number, infinity}, 0},
    };
    for (const auto& [direction, face] : read) {
        CAPTURE(direction[0], direction[1], direction[2]);
        CHECK(project(direction[0], direction[1], direction[2]).face == face);
    }
}
