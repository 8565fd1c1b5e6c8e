// SPDX-License-Identifier: Apache-2.0
// Where directions with very small and very large coordinates meet a cube. An H100 (driver 580.159) read the places from a
// cube of 8x8 texels whose values are their coordinates: 128 directions along z.
#include "runtime/texture/cube.h"

#include <catch2/catch.hpp>

#include <bit>

using namespace ptarmigan::runtime;

TEST_CASE("cube: largest coordinates that are subnormal, or whose reciprocal is, meet the middle of the face") {
    for (unsigned exponent : {0u, 1u, 2u, 126u, 251u, 252u, 253u, 254u})
        for (unsigned mantissa : {1u, 0x1000u, 0x400000u, 0x7fffffu})
            for (float x : {0.f, 0.5f, -0.75f, 1.f}) {
                const float z = std::bit_cast<float>(exponent << 23 | mantissa);
                const CubePlace place = project(x * z, -0.25f * z, z);
                const bool is_limit = exponent == 0 || exponent >= 253;
                CAPTURE(exponent, mantissa, x);
                CHECK(place.face == 4);
                CHECK(place.s == Approx(is_limit ? 0.5f : (x + 1) / 2));
                CHECK(place.t == Approx(is_limit ? 0.5f : 0.625f));
            }
}
