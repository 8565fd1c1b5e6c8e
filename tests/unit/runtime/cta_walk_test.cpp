// SPDX-License-Identifier: Apache-2.0
// Walks through grids are permutations of them, and are chosen by where CTAs' addresses lead.
#include "runtime/launch/cta_walk.h"

#include <catch2/catch.hpp>

#include <array>
#include <vector>

using namespace ptarmigan;
using runtime::choose_cta_walk;
using runtime::cta_in_walk;
using runtime::CtaWalk;
using translator::AddressProgram;
using translator::LaunchNumber;
using Kind = LaunchNumber::Kind;
using Step = AddressProgram::Step;

namespace {

/// Of a copy of `columns` x `rows` elements of 4 bytes to the other order, 256 elements a CTA of as many threads:
/// element e is read at (e % rows) * row_bytes + e / rows * 4.
AddressProgram transposed(std::int64_t rows, std::int64_t row_bytes) {
    AddressProgram program;
    const auto add = [&](LaunchNumber number) {
        program.steps.push_back({Step::Kind::number, program.places, number});
        return program.places++;
    };
    const auto constant = [&](std::int64_t value) { return add({.kind = Kind::constant, .value = value}); };
    const auto combine = [&](Kind kind, std::uint32_t a, std::uint32_t b) { return add({kind, 64, true, a, b, 0}); };
    const auto cta = combine(Kind::multiply, add({.kind = Kind::cta_index}), constant(256));
    const auto element = combine(Kind::add, cta, add({.kind = Kind::thread_index}));
    const auto row = combine(Kind::multiply, combine(Kind::remainder, element, constant(rows)), constant(row_bytes));
    const auto column = combine(Kind::multiply, combine(Kind::divide, element, constant(rows)), constant(4));
    const auto address = combine(Kind::add, combine(Kind::add, row, column), constant(1 << 20));
    program.steps.push_back({Step::Kind::access, 0, {.a = address, .value = 4}});
    program.steps.push_back({Step::Kind::end, 0, {}});
    REQUIRE(translator::is_consistent(program));
    return program;
}

CtaWalk walk_of(const AddressProgram& program, std::uint32_t ctas) {
    return choose_cta_walk(program, {}, {ctas, 1, 1}, {256, 1, 1});
}

} // namespace

TEST_CASE("CTA walk: each CTA once", "[cta_order]") {
    for (const auto& [length, columns, total] : std::vector<std::array<std::uint64_t, 3>>{
             {65536, 4096, 65536}, {12, 4, 12}, {12, 4, 13}, {12, 4, 23}, {12, 4, 2}, {7, 7, 50}, {4096, 32, 5000}, {100, 2, 49},
             {13, 4, 13}, {13, 4, 50}, {15, 4, 47}, {257, 16, 4112}, {257, 16, 4000}, {8, 5, 23}, {9, 8, 20}}) {
        CAPTURE(length, columns, total);
        std::vector<bool> seen(total, false);
        for (std::uint64_t i = 0; i < total; ++i) {
            const std::uint64_t cta = cta_in_walk(i, {length, columns}, total);
            REQUIRE(cta < total);
            CHECK_FALSE(seen[cta]);
            seen[cta] = true;
        }
    }
    CHECK(cta_in_walk(1, {12, 4}, 24) == 3);
    CHECK(cta_in_walk(4, {12, 4}, 24) == 1);
    CHECK(cta_in_walk(13, {12, 4}, 24) == 15);
    CHECK(cta_in_walk(13, {12, 4}, 20) == 15); // what is left has two columns
    CHECK(cta_in_walk(18, {12, 4}, 20) == 18);
    std::vector<std::uint64_t> uneven; // columns begin at 0, 3, 5, 8
    for (std::uint64_t i = 0; i < 10; ++i) uneven.push_back(cta_in_walk(i, {10, 4}, 10));
    CHECK(uneven == std::vector<std::uint64_t>{0, 3, 5, 8, 1, 4, 6, 9, 2, 7});
}

TEST_CASE("CTA walk: along columns that share lines", "[cta_order]") {
    const CtaWalk walk = walk_of(transposed(4096, 16384), 16 * 4096);
    CHECK(walk.ctas == 16 * 4096);
    CHECK(walk.columns == 4096);
    // 5 CTAs are 4 columns of 320 elements
    const CtaWalk fifth = walk_of(transposed(320, 16384), 5000);
    CHECK(fifth.ctas == 5 * fifth.columns);
    // columns of 16 CTAs and a sixteenth, of 4 and a bit
    const CtaWalk uneven = walk_of(transposed(4112, 16384), 16 * 4112);
    CHECK(uneven.columns == 4096);
    CHECK(uneven.ctas == 4096 / 16 * 257);
    const CtaWalk odd = walk_of(transposed(1031, 16384), 4000);
    CHECK(odd.columns == 512);
    CHECK(odd.ctas == (512 * 1031 + 255) / 256);
    // several columns in a CTA, which the next CTA goes on with
    CHECK_FALSE(walk_of(transposed(64, 16384), 4096));
}

TEST_CASE("CTA walk: rows that are read as they lie keep their order", "[cta_order]") {
    AddressProgram program = transposed(4096, 4);
    CHECK_FALSE(walk_of(program, 65536));
    CHECK_FALSE(walk_of({}, 65536));
    // columns whose lines stay in the caches until the next one
    CHECK_FALSE(walk_of(transposed(768, 201028), 50000));
    CHECK(walk_of(transposed(768, 1 << 14), 50000));
    CHECK_FALSE(walk_of(transposed(4096, 16384), 16)); // a single column
}

TEST_CASE("CTA walk: programs that name what is not there are not consistent", "[cta_order]") {
    const AddressProgram good = transposed(4096, 16384);
    AddressProgram program = good;
    program.places = 3;
    CHECK_FALSE(translator::is_consistent(program));
    program = good;
    for (Step& step : program.steps)
        if (step.number.kind == Kind::cta_index) step.number.value = 3; // it has three components
    CHECK_FALSE(translator::is_consistent(program));
    program = good;
    program.steps.push_back({Step::Kind::jump, 100, {}});
    CHECK_FALSE(translator::is_consistent(program));
}
