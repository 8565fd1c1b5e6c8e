// SPDX-License-Identifier: Apache-2.0
// What accesses beside allocations do.
#include "fault_child.h"

#include <cstdlib>

using namespace driver_test;

// On an H100 (driver 580) reads and atomics pass in the granules of live allocations and below the first one, where the
// driver's memory lies; a granule of 2 MiB that nothing lives in faults.
TEST_CASE("fault: around_allocations", "[.]") {
    const auto code_at = [](std::int64_t offset) {
        const std::string said = said_by_child([&] {
            return code_of_launch(".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p0, .param .u64 p1)\n{\n"
                                  ".reg .b64 %l<3>; .reg .b32 %r<3>;\nld.param.u64 %l1, [p0]; ld.param.u64 %l2, [p1]; add.u64 %l2, %l1, %l2;\n"
                                  "ld.global.u32 %r1, [%l2]; atom.global.add.u32 %r2, [%l2], 0; add.u32 %r1, %r1, %r2; st.global.u32 [%l1], %r1; ret;\n}\n",
                                  0, std::uint64_t(offset));
        });
        const std::size_t place = said.find("\ncode ");
        return place == std::string::npos ? -2 : std::atoi(said.c_str() + place + 6);
    };
    constexpr std::int64_t mib = 1 << 20;
    CHECK(code_at(-4) == 0);
    CHECK(code_at(-mib) == 0);
    CHECK(code_at(-24 * mib) == 0);
    CHECK(code_at(4096) == 0);
    CHECK(code_at(mib) == 0);
    CHECK(code_at(4 * mib) == 700);
    CHECK(code_at(64 * mib) == 700);
}
