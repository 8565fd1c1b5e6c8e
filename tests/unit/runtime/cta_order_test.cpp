// SPDX-License-Identifier: Apache-2.0
// Orders of CTAs are permutations of the grid.
#include "runtime/launch/cta_order.h"

#include <catch2/catch.hpp>

#include <array>
#include <vector>

using ptarmigan::runtime::cta_in_pairs;

TEST_CASE("CTAs in pairs of rows", "[cta_order]") {
    const std::uint32_t grid[3] = {3, 3, 1};
    std::vector<std::uint64_t> order;
    for (std::uint64_t i = 0; i < 9; ++i) order.push_back(cta_in_pairs(i, grid));
    CHECK(order == std::vector<std::uint64_t>{0, 3, 1, 4, 2, 5, 6, 7, 8});
}

TEST_CASE("each CTA once, plane by plane", "[cta_order]") {
    for (const auto& [x, y, z] : std::vector<std::array<std::uint32_t, 3>>{{1, 1, 1}, {1, 7, 2}, {5, 2, 3}, {4, 5, 2}, {130, 1, 1}, {1, 1, 9}}) {
        const std::uint32_t grid[3] = {x, y, z};
        const std::uint64_t plane = std::uint64_t(x) * y, count = plane * z;
        std::vector<bool> seen(count, false);
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t cta = cta_in_pairs(i, grid);
            REQUIRE(cta < count);
            CHECK(cta / plane == i / plane);
            CHECK_FALSE(seen[cta]);
            seen[cta] = true;
        }
    }
}
