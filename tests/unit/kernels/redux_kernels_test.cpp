// SPDX-License-Identifier: Apache-2.0
// redux.sync of .f32 (manual 9.7.13.12) as kernels of any width: for compute capability 10.0, so hidden; ctest runs it with PTARMIGAN_CC.
#include "kernel.h"
#include "tests/recordings/random.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

using Words = std::vector<std::uint32_t>;

bool is_nan(std::uint32_t bits) {
    return (bits & 0x7fffffff) > 0x7f800000;
}
/// Floats in the order of numbers, -0 below +0.
std::int64_t place(std::uint32_t bits) {
    return bits >> 31 ? -1 - std::int64_t{bits & 0x7fffffff} : std::int64_t{bits};
}

std::uint32_t reduced(const Words& values, bool max, bool abs, bool nan) {
    bool any = false;
    std::uint32_t result = 0x7fffffff;
    for (std::uint32_t value : values) {
        if (abs) value &= 0x7fffffff;
        if (is_nan(value) && nan) return 0x7fffffff;
        if (is_nan(value)) continue;
        if (!any || (max ? place(value) > place(result) : place(value) < place(result))) result = value;
        any = true;
    }
    return result;
}

} // namespace

TEST_CASE("redux.sync: floats in kernels", "[.][sm_100]") {
    constexpr std::uint32_t special[] = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffffffff, 0x7f800001, 1, 0x80000001, 0x3f800000, 0xbf800000};
    recordings::Random random(100);
    Words values(256);
    for (unsigned warp = 0; warp < 8; ++warp)
        for (unsigned lane = 0; lane < 32; ++lane) {
            std::uint32_t& value = values[32 * warp + lane];
            value = warp == 7 ? 0x7fc00001 : warp < 4 || random.below(3) ? std::uint32_t(random.bits()) : special[random.below(11)];
            if (warp < 2 && is_nan(value)) value = 0x80000000;
        }
    // Members: the warp, its parity's lanes, and groups of 1 to 4 of eight lanes each.
    const auto group_of = [](unsigned form, unsigned lane) { return form == 0 ? 0 : form == 1 ? lane & 1 : lane / 8; };
    Array<std::uint32_t> in(values), out(256);
    for (const bool max : {false, true})
        for (const bool abs : {false, true})
            for (const bool nan : {false, true})
                for (unsigned form = 0; form < 3; ++form) {
                    const std::string words = std::string("redux.sync.") + (max ? "max" : "min") + (abs ? ".abs" : "") + (nan ? ".NaN" : "") + ".f32";
                    INFO(words << " " << form);
                    const char* const masks[] = {"mov.b32 %r5, -1;", "and.b32 %r5, %r60, 1; shl.b32 %r5, 0x55555555, %r5;",
                                                 "and.b32 %r5, %r60, 24; shl.b32 %r5, 255, %r5;"};
                    run("mul.wide.u32 %l1, %r60, 4; add.u64 %l2, %l1, %l60; add.u64 %l3, %l1, %l61; ld.global.f32 %f1, [%l2];\n" + std::string(masks[form]) +
                            words + " %f2, %f1, %r5; st.global.f32 [%l3], %f2;", {1}, {256}, {in.address(), out.address()}, "", 0, {"sm_100a"});
                    for (unsigned i = 0; i < 256; ++i) {
                        Words members;
                        for (unsigned lane = 0; lane < 32; ++lane)
                            if (group_of(form, lane) == group_of(form, i % 32)) members.push_back(values[i / 32 * 32 + lane]);
                        REQUIRE(out.values()[i] == reduced(members, max, abs, nan));
                    }
                }
}
