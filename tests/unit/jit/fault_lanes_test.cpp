// SPDX-License-Identifier: Apache-2.0
// Whose access it was, for instructions as LLVM makes them and registers that are made up. tests/driver_api/fault_lane_test.cpp
// shows the same for kernels that fault.
#include "translator/fault_lanes.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <numeric>

using namespace ptarmigan::translator;
using Kind = AccessForm::Kind;
using Code = std::vector<std::uint8_t>;

#if defined(__x86_64__)
namespace {

constexpr unsigned rax = 0, rcx = 1;
constexpr std::uint64_t page = 0x7f0000001000; ///< cannot be accessed; what lies before it can

struct Case {
    Code code;
    AccessForm form;
    MachineState state{};

    std::uint64_t lanes(std::uint64_t address, bool has_address = true) const {
        FaultPlace place;
        place.state = &state;
        place.code = code.data();
        place.code_size = code.size();
        place.pc = 0x400000;
        place.address = address;
        place.has_address = has_address;
        place.noted_lane = 9;
        return faulting_lanes(form, place);
    }
    template <typename T> void set(unsigned vector, unsigned element, T value) {
        std::memcpy(state.vectors[vector] + element * sizeof value, &value, sizeof value);
    }
};

AccessForm form(Kind kind, unsigned bytes, unsigned first, unsigned count) {
    AccessForm result{kind, std::uint8_t(bytes), std::vector<std::uint8_t>(count)};
    std::iota(result.lanes.begin(), result.lanes.end(), std::uint8_t(first));
    return result;
}

const Code load_64_indexed = {0x62, 0xf1, 0x7c, 0x48, 0x10, 0x44, 0x88, 0x01}; // vmovups 0x40(%rax,%rcx,4), %zmm0
const Code load_64_masked = {0x62, 0xf1, 0x7c, 0xc9, 0x10, 0x00};              // vmovups (%rax), %zmm0 {%k1}{z}
const Code load_32_masked = {0xc4, 0xe2, 0x75, 0x2c, 0x00};                    // vmaskmovps (%rax), %ymm1, %ymm0
const Code gather_dd = {0x62, 0xf2, 0x7d, 0x49, 0x90, 0x0c, 0x90};             // vpgatherdd (%rax,%zmm2,4), %zmm1 {%k1}
const Code gather_qd = {0x62, 0xf2, 0x7d, 0x42, 0x91, 0x0c, 0x08};             // vpgatherqd (%rax,%zmm17), %ymm1 {%k2}
const Code gather_avx2 = {0xc4, 0xe2, 0x65, 0x90, 0x0c, 0x90};                 // vpgatherdd %ymm3, (%rax,%ymm2,4), %ymm1
const Code scatter_qq = {0x62, 0xf2, 0xfd, 0x49, 0xa1, 0x4c, 0xd0, 0x01};      // vpscatterqq %zmm1, 8(%rax,%zmm2,8) {%k1}
const Code broadcast = {0x62, 0xf1, 0x75, 0x58, 0xfe, 0x00};                   // vpaddd (%rax){1to16}, %zmm1, %zmm0

} // namespace

TEST_CASE("fault lanes: consecutive elements") {
    Case c{load_64_indexed, form(Kind::elements, 4, 16, 16)};
    c.state.general[rax] = page - 0x40 - 20 - 40; // five elements lie before the page
    c.state.general[rcx] = 10;
    CHECK(c.lanes(page) == 1ull << 21);
    CHECK(c.lanes(page + 8192) == 0); // some other access
    c.form.lanes[5] = AccessForm::no_lane;
    CHECK(c.lanes(page) == 1ull << 22);
    c.form = form(Kind::elements, 4, 0, 8);
    CHECK(c.lanes(page) == 0); // half of what the instruction reads: not what was promised
    c.form = form(Kind::elements, 8, 0, 8);
    CHECK(c.lanes(page) == 1ull << 2); // the third straddles the end
}

TEST_CASE("fault lanes: masks leave elements out") {
    Case avx512{load_64_masked, form(Kind::elements, 4, 0, 16)};
    avx512.state.general[rax] = page - 8;
    avx512.state.masks[1] = 0xff01;
    CHECK(avx512.lanes(page) == 1ull << 8);
    avx512.form = form(Kind::elements, 4, 0, 12); // LLVM widens narrow ones
    CHECK(avx512.lanes(page) == 1ull << 8);
    Case avx2{load_32_masked, form(Kind::elements, 4, 0, 8)};
    avx2.state.general[rax] = page;
    CHECK(avx2.lanes(page) == 0);
    avx2.set<std::uint32_t>(1, 6, 0x80000000);
    CHECK(avx2.lanes(page) == 1ull << 6);
}

TEST_CASE("fault lanes: gathers and scatters") {
    Case narrow{gather_dd, form(Kind::gather, 0, 16, 16)};
    narrow.state.general[rax] = page + 400;
    narrow.state.masks[1] = 0xfff0;
    for (unsigned i = 0; i < 16; ++i) narrow.set<std::int32_t>(2, i, i == 3 || i == 11 ? -100 : -200);
    CHECK(narrow.lanes(page) == 1ull << 27); // the fourth is done, or was never asked for
    CHECK(narrow.lanes(0, false) == 0);
    narrow.form = form(Kind::gather, 0, 0, 8);
    CHECK(narrow.lanes(page) == 0);

    Case wide{gather_qd, form(Kind::gather, 0, 0, 8)};
    wide.state.masks[2] = 0xff;
    for (unsigned i = 0; i < 8; ++i) wide.set<std::uint64_t>(17, i, i == 5 ? page + 8 : page - 64);
    CHECK(wide.lanes(page + 8) == 1ull << 5);
    wide.set<std::uint64_t>(17, 7, 0x7f00000000000000);
    CHECK(wide.lanes(0, false) == 1ull << 7); // the CPU names no address that is not canonical

    Case avx2{gather_avx2, form(Kind::gather, 0, 8, 8)};
    avx2.state.general[rax] = page;
    avx2.set<std::uint32_t>(3, 2, 0xffffffff);
    CHECK(avx2.lanes(page) == 1ull << 10);

    Case scatter{scatter_qq, form(Kind::gather, 0, 0, 8)};
    scatter.state.general[rax] = page - 16;
    scatter.state.masks[1] = 0xff;
    scatter.set<std::int64_t>(2, 4, 1);
    CHECK(scatter.lanes(page) == 1ull << 4);
}

TEST_CASE("fault lanes: one place") {
    Case c{broadcast, form(Kind::lanes, 4, 13, 1)};
    CHECK(c.lanes(page) == 1ull << 13); // a load that was folded into its user
    c.form = form(Kind::lanes, 0, 0, 16);
    CHECK(c.lanes(page) == 0xffff);
    c.form = {Kind::noted, 0, {}};
    CHECK(c.lanes(page) == 1ull << 9);
    c.form = {Kind::noted, 4, {3}};
    CHECK(c.lanes(page) == 1ull << 12);
    c.form = form(Kind::lanes, 4, 13, 1);
    c.code = load_64_indexed; // merged with those of other lanes
    CHECK(c.lanes(page) == 0);
    c.code = {0x90}; // nop
    CHECK(c.lanes(page) == 0);
    c.code = {0x62, 0xf1}; // cut short
    CHECK(c.lanes(page) == 0);
}
#elif defined(__aarch64__)
namespace {

constexpr std::uint64_t page = 0x7f0000001000; ///< cannot be accessed; what lies before it can

std::uint64_t lanes(std::uint32_t instruction, const MachineState& state, const AccessForm& form, std::uint64_t address) {
    FaultPlace place;
    place.state = &state;
    place.code = reinterpret_cast<const std::uint8_t*>(&instruction);
    place.code_size = sizeof instruction;
    place.address = address;
    place.has_address = true;
    place.noted_lane = 9;
    return faulting_lanes(form, place);
}

AccessForm form(Kind kind, unsigned bytes, unsigned first, unsigned count) {
    AccessForm result{kind, std::uint8_t(bytes), std::vector<std::uint8_t>(count)};
    std::iota(result.lanes.begin(), result.lanes.end(), std::uint8_t(first));
    return result;
}

} // namespace

TEST_CASE("fault lanes: consecutive elements") {
    MachineState state{};
    state.general[1] = page - 32 - 8;
    const AccessForm four = form(Kind::elements, 4, 4, 4), eight = form(Kind::elements, 4, 8, 8);
    CHECK(lanes(0x3dc00820, state, four, page) == 1ull << 6);                    // ldr q0, [x1, #32]
    CHECK(lanes(0xad410420, state, eight, page) == 1ull << 10);                  // ldp q0, q1, [x1, #32]
    CHECK(lanes(0xad410420, state, four, page) == 0);                            // more than was promised
    CHECK(lanes(0x3dc00820, state, four, page + 8192) == 0);                     // some other access
    state.general[1] = page - 8;
    CHECK(lanes(0x4c00a820, state, eight, page) == 1ull << 10);                  // st1 {v0.4s, v1.4s}, [x1]
    CHECK(lanes(0x28810820, state, form(Kind::elements, 4, 0, 2), page - 8) == 1); // stp w0, w2, [x1], #8
    state.general[2] = 4;
    CHECK(lanes(0x3ca26822, state, four, page) == 1ull << 5);                    // str q2, [x1, x2]
    CHECK(lanes(0x58000000, state, four, page) == 0);                            // ldr x0, of a constant
}

TEST_CASE("fault lanes: one place") {
    MachineState state{};
    const AccessForm one = form(Kind::lanes, 4, 13, 1);
    for (const std::uint32_t instruction : {
             0xb9400420u, // ldr w0, [x1, #4]
             0xbc62d820u, // ldr s0, [x1, w2, sxtw #2]
             0x0d409020u, // ld1 {v0.s}[1], [x1]
             0xb82003e2u, // ldadd w0, w2, [sp]
             0x38bfc020u, // ldaprb w0, [x1]
             0x88dffc20u, // ldar w0, [x1]
         })
        CHECK(lanes(instruction, state, one, page) == 1ull << 13);
    CHECK(lanes(0xf85f8020, state, one, page) == 0); // ldur x0, [x1, #-8]: merged with another lane's
    CHECK(lanes(0xf85f8020, state, form(Kind::lanes, 0, 0, 16), page) == 0xffff);
    CHECK(lanes(0xd503201f, state, one, page) == 0); // nop
    CHECK(lanes(0xd503201f, state, {Kind::noted, 0, {}}, page) == 1ull << 9);
}
#endif
