// SPDX-License-Identifier: Apache-2.0
// Steps as fibers: barriers, collectives, cooperative grids, deadlock.
#include "fixture.h"

#include "runtime/exec/fiber_cta.h"
#include "runtime/services/printf.h"

#include <atomic>

namespace ptarmigan::runtime::test {

namespace {

/// Each step adds to a slot that the next one reads after the barrier, many times.
void pass_around(abi::CtaContext *cta, std::uint32_t step) {
    auto *values = pointer_parameter(cta) + cta->ctaid[0] * 4;
    for (unsigned round = 0; round < 50; ++round) {
        values[step] += step + 1;
        cta->services->barrier(cta, step, 0, 0, 0, 0xffffffff, 0);
        const std::uint32_t next = values[(step + 1) % 4];
        cta->services->barrier(cta, step, 0, 0, 0, 0xffffffff, 0);
        if (next != (round + 1) * ((step + 1) % 4 + 1))
            values[step] = 100000;
    }
}

void reduce_at_barrier(abi::CtaContext *cta, std::uint32_t step) {
    auto *values = pointer_parameter(cta);
    const std::uint64_t predicate = step == 2 ? 0xff : 0xffffffff;
    values[step] = cta->services->barrier(cta, step, 3, 0, 2, 0xffffffff, predicate);
    values[4 + step] = cta->services->barrier(cta, step, 3, 0, 3, 0xffffffff, predicate);
    values[8 + step] = cta->services->barrier(cta, step, 3, 0, 4, 0xffffffff, 0);
}

/// Warps 0 and 1 produce (arrive), 2 and 3 consume (sync), on a barrier of all 128 threads.
void produce_consume(abi::CtaContext *cta, std::uint32_t step) {
    auto *values = pointer_parameter(cta);
    if (step < 2) {
        for (int i = 0; i < 3; ++i)
            cta->services->yield(cta, step, 0, 0);
        values[step] = 7;
        cta->services->barrier(cta, step, 5, 128, 1, 0xffffffff, 0);
    } else {
        cta->services->barrier(cta, step, 5, 128, 0, 0xffffffff, 0);
        values[step] = values[0] + values[1];
    }
}

/// A shuffle and a vote over a warp of four steps of eight lanes.
void narrow_steps(abi::CtaContext *cta, std::uint32_t step) {
    auto *values = pointer_parameter(cta);
    abi::CollectiveCall call{};
    call.kind = static_cast<std::uint32_t>(abi::Collective::shfl);
    call.operation = 2;
    call.active = 0xff;
    for (unsigned lane = 0; lane < 8; ++lane) {
        call.members[lane] = 0xffffffff;
        call.source[lane] = step * 8 + lane;
        call.b[lane] = 31; // the mirrored lane
        call.c[lane] = 31;
    }
    cta->services->collective(cta, step, &call);
    for (unsigned lane = 0; lane < 8; ++lane)
        values[step * 8 + lane] = static_cast<std::uint32_t>(call.result[lane]);
}

/// Even lanes meet even ones, odd ones odd ones, so that each warp has two groups at once; lane 6 has exited.
void single_lanes(abi::CtaContext *cta, std::uint32_t step) {
    auto *values = pointer_parameter(cta);
    const std::uint32_t lane = step % 32, members = lane % 2 ? 0xaaaaaaaa : 0x55555555;
    if (lane == 6)
        return;
    const auto kind = [](abi::Collective collective, std::uint32_t operation) {
        return static_cast<std::uint32_t>(collective) | operation << 8;
    };
    for (std::uint32_t round = 0; round < 100; ++round) {
        const std::uint64_t neighbour = cta->services->lane_collective(
            cta, step, kind(abi::Collective::shfl, 2), members, step * 10 + round, 2 | std::uint64_t{31} << 32);
        const std::uint64_t votes = cta->services->lane_collective(cta, step, kind(abi::Collective::vote_ballot, 0),
                                                                   members, (lane + round) % 3 == 0, 0);
        values[step] = static_cast<std::uint32_t>(neighbour);
        values[64 + step] = static_cast<std::uint32_t>(neighbour >> 32);
        values[128 + step] = static_cast<std::uint32_t>(votes);
        // Of three votes together: those above, nobody, all.
        const std::uint64_t words = cta->services->lane_collective(cta, step, kind(abi::Collective::vote_ballot, 3),
                                                                   members, (lane + round) % 3 == 0 ? 5 : 4, 0);
        for (std::uint32_t i = 0; i < 3; ++i) values[192 + 64 * i + step] = reinterpret_cast<std::uint32_t *>(words)[i];
    }
}

/// A grid barrier by hand: all CTAs must be alive at once.
void grid_barrier(abi::CtaContext *cta, std::uint32_t step) {
    auto *arrived = reinterpret_cast<std::atomic<std::uint32_t> *>(pointer_parameter(cta));
    if (step == 0)
        arrived->fetch_add(1);
    cta->services->barrier(cta, step, 0, 0, 0, 0xffffffff, 0);
    while (arrived->load() < cta->nctaid[0])
        cta->services->yield(cta, step, 0, 0);
    arrived[1].fetch_add(1);
}

std::uint32_t *as_values(DevicePointer pointer) {
    return reinterpret_cast<std::uint32_t *>(pointer);
}

} // namespace

TEST_CASE("fibers: barriers order the steps of a CTA") {
    Fixture fixture;
    fixture.set_fiber_kernel(pass_around, 4, 32);
    const DevicePointer device = fixture.allocate(100 * 16);
    REQUIRE(ok(fixture.launch_kernel({100, 1, 1}, {128, 1, 1}, device)));
    REQUIRE(ok(fixture.stream().synchronize()));
    for (unsigned i = 0; i < 400; ++i)
        CHECK(as_values(device)[i] == 50 * (i % 4 + 1));
}

TEST_CASE("fibers: barrier reductions") {
    Fixture fixture;
    fixture.set_fiber_kernel(reduce_at_barrier, 4, 32);
    const DevicePointer device = fixture.allocate(64);
    REQUIRE(ok(fixture.launch_kernel({1, 1, 1}, {128, 1, 1}, device)));
    REQUIRE(ok(fixture.stream().synchronize()));
    for (unsigned step = 0; step < 4; ++step) {
        CHECK(as_values(device)[step] == 96 + 8);
        CHECK(as_values(device)[4 + step] == 0);
        CHECK(as_values(device)[8 + step] == 0);
    }
}

TEST_CASE("fibers: arrive and sync pair up on a named barrier") {
    Fixture fixture;
    fixture.set_fiber_kernel(produce_consume, 4, 32);
    const DevicePointer device = fixture.allocate(64);
    REQUIRE(ok(fixture.launch_kernel({1, 1, 1}, {128, 1, 1}, device)));
    REQUIRE(ok(fixture.stream().synchronize()));
    CHECK(as_values(device)[2] == 14);
    CHECK(as_values(device)[3] == 14);
}

TEST_CASE("fibers: a warp of narrow steps shuffles as one") {
    Fixture fixture;
    fixture.set_fiber_kernel(narrow_steps, 4, 8);
    const DevicePointer device = fixture.allocate(128);
    REQUIRE(ok(fixture.launch_kernel({1, 1, 1}, {32, 1, 1}, device)));
    REQUIRE(ok(fixture.stream().synchronize()));
    for (unsigned lane = 0; lane < 32; ++lane)
        CHECK(as_values(device)[lane] == 31 - lane);
}

TEST_CASE("fibers: steps of one lane meet in groups, without those that have exited") {
    Fixture fixture;
    fixture.set_fiber_kernel(single_lanes, 64, 1);
    const DevicePointer device = fixture.allocate(6 * 256);
    REQUIRE(ok(fixture.launch_kernel({3, 1, 1}, {64, 1, 1}, device)));
    REQUIRE(ok(fixture.stream().synchronize()));
    for (unsigned step = 0; step < 64; ++step) {
        const unsigned lane = step % 32;
        if (lane == 6)
            continue;
        std::uint32_t votes = 0;
        for (unsigned other = lane % 2; other < 32; other += 2)
            votes |= other != 6 && (other + 99) % 3 == 0 ? 1u << other : 0;
        CHECK(as_values(device)[step] == (lane == 4 ? 0 : (step ^ 2) * 10 + 99));
        CHECK(as_values(device)[64 + step] == 1);
        CHECK(as_values(device)[128 + step] == votes);
        CHECK(as_values(device)[192 + step] == votes);
        CHECK(as_values(device)[256 + step] == 0);
        CHECK(as_values(device)[320 + step] == (lane % 2 ? 0xaaaaaaaa : 0x55555555 & ~(1u << 6)));
    }
}

TEST_CASE("fibers: all CTAs of a cooperative grid make progress") {
    Fixture fixture;
    fixture.set_fiber_kernel(grid_barrier, 2, 32);
    const DevicePointer device = fixture.allocate(64);
    const std::uint32_t ctas = 8 * Device::get().multiprocessors();
    REQUIRE(ok(fixture.launch_kernel({ctas, 1, 1}, {64, 1, 1}, device, 0, 0, true)));
    REQUIRE(ok(fixture.stream().synchronize()));
    CHECK(as_values(device)[1] == 2 * ctas);
    CHECK(fixture.launch_kernel({100000, 1, 1}, {1024, 1, 1}, device, 0, 0, true) ==
          Status::cooperative_launch_too_large);
}

TEST_CASE("collectives: shuffles of all kinds follow the manual's formula") {
    WarpValues warp;
    warp.present = 0xffffffff;
    for (unsigned lane = 0; lane < 32; ++lane)
        warp.source[lane] = 100 + lane;
    const auto shuffle = [&](unsigned operation, std::uint32_t b, std::uint32_t c) {
        for (unsigned lane = 0; lane < 32; ++lane)
            warp.b[lane] = b, warp.c[lane] = c;
        evaluate_collective(abi::Collective::shfl, operation, warp);
    };
    shuffle(0, 1, 0); // up by one: lane 0 keeps its own
    CHECK(warp.result[0] == 100);
    CHECK(warp.predicate[0] == 0);
    CHECK(warp.result[31] == 130);
    shuffle(1, 4, 0x181f); // down by four in segments of eight
    CHECK(warp.result[3] == 107);
    CHECK(warp.result[4] == 104);
    CHECK(warp.predicate[4] == 0);
    shuffle(3, 2, 0x1c1f); // lane 2 of each segment of four
    CHECK(warp.result[13] == 114);
    warp.present = 0x0000ffff;
    shuffle(2, 16, 31); // the partner does not take part
    CHECK(warp.result[3] == 0);
}

TEST_CASE("collectives: votes, matches, reductions, elections") {
    WarpValues warp;
    warp.present = 0xf0;
    for (unsigned lane = 4; lane < 8; ++lane)
        warp.source[lane] = lane / 2;
    evaluate_collective(abi::Collective::match_any, 0, warp);
    CHECK(warp.result[5] == 0x30);
    evaluate_collective(abi::Collective::match_all, 0, warp);
    CHECK(warp.result[5] == 0);
    CHECK(warp.predicate[5] == 0);
    evaluate_collective(abi::Collective::redux, 0, warp);
    CHECK(warp.result[7] == 2 + 2 + 3 + 3);
    warp.source[6] = 0xffffffff;
    evaluate_collective(abi::Collective::redux, 1, warp);
    CHECK(static_cast<std::uint32_t>(warp.result[7]) == 0xffffffff);
    evaluate_collective(abi::Collective::redux, 3, warp);
    CHECK(warp.result[7] == 2);
    warp.source[4] = 0;
    evaluate_collective(abi::Collective::vote_ballot, 0, warp);
    CHECK(warp.result[4] == 0xe0);
    evaluate_collective(abi::Collective::elect, 0, warp);
    CHECK(warp.result[6] == 4);
    CHECK(warp.predicate[4] == 1);
    CHECK(warp.predicate[6] == 0);
}

TEST_CASE("printf: conversions read the argument buffer at natural alignment") {
    struct alignas(8) {
        std::int32_t a = -7;
        double b = 3.14159;
        std::int32_t c = 42, width = 6;
        const char *text = "abc";
        std::int64_t wide = 9223372036854775807;
        const char *nothing = nullptr;
    } arguments;
    int count = 0;
    CHECK(format_device_printf("[%d] [%.2f] [%05d] [%*s] [%lld] [%s]%%\n", &arguments, count) ==
          "[-7] [3.14] [00042] [   abc] [9223372036854775807] [(null)]%\n");
    CHECK(count == 7);
    CHECK(format_device_printf("x %z %n", nullptr, count) == "x %z %n");
    CHECK(count == 0);
    const std::int32_t small[] = {-56, 200, 'Z'};
    CHECK(format_device_printf("%hhd %hhd %c", small, count) == "-56 -56 Z");
    // Letters that the guide does not name: 64 bits; and a percent sign with a width.
    const std::int64_t wide[] = {77, -5, 255, 9};
    CHECK(format_device_printf("%zu %jd %tx %qd %5%", wide, count) == "77 -5 ff 9 %");
    CHECK(count == 4);
}

} // namespace ptarmigan::runtime::test
