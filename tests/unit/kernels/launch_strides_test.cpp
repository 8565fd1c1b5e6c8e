// SPDX-License-Identifier: Apache-2.0
// Stores by strides that only the launch knows: where lanes turn out to be a few elements apart, what lies between stays as it was.
#include "kernel.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstring>

using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 96, most = 4, farthest = 2;

struct Case {
    unsigned factor;  ///< elements that the text says lie between lanes, times the stride
    unsigned stride;  ///< of the launch
    unsigned stored;  ///< elements of each lane, side by side
    unsigned active;  ///< threads that store
    unsigned bytes;   ///< of an element
};

std::vector<std::uint8_t> stored(const Case& c) {
    const Array<std::uint8_t> out(std::vector<std::uint8_t>(std::size_t{threads} * most * farthest * c.bytes + 64, 0xee));
    std::string body = "setp.ge.u32 %p1, %r60, " + std::to_string(c.active) + "; @%p1 bra END; cvt.u32.u64 %r1, %l61;\n"
                       "mul.lo.u32 %r2, %r60, " + std::to_string(c.factor) + "; mul.lo.u32 %r3, %r2, %r1; mad.wide.u32 %l0, %r3, " + std::to_string(c.bytes) +
                       ", %l60; mad.lo.u32 %r4, %r60, 16, 1;\n";
    for (unsigned i = 0; i < c.stored; ++i) {
        const std::string place = "[%l0+" + std::to_string(i * c.bytes) + "]";
        body += "add.u32 %r5, %r4, " + std::to_string(i) + ";";
        body += c.bytes == 4 ? "st.global.u32 " + place + ", %r5;\n" : "cvt.u64.u32 %l1, %r5; st.global.u64 " + place + ", %l1;\n";
    }
    run(body + "END: ret;\n", {1}, {threads}, {out.address(), c.stride});
    return out.values();
}

std::vector<std::uint8_t> expected(const Case& c) {
    std::vector<std::uint8_t> bytes(std::size_t{threads} * most * farthest * c.bytes + 64, 0xee);
    for (unsigned thread = 0; thread < c.active; ++thread)
        for (unsigned i = 0; i < c.stored; ++i) {
            const std::uint64_t value = thread * 16 + 1 + i;
            std::memcpy(bytes.data() + (std::size_t{thread} * c.factor * c.stride + i) * c.bytes, &value, c.bytes);
        }
    return bytes;
}

} // namespace

TEST_CASE("stores by a stride of the launch write what is theirs", "[kernels][memory][lanes]") {
    for (unsigned bytes : {4u, 8u})
        for (unsigned factor = 1; factor <= most; ++factor)
            for (unsigned stride = 1; stride <= farthest; ++stride)
                for (unsigned stored_by_lane : {1u, factor})
                    for (unsigned active : {threads, 77u}) {
                        const Case c{factor, stride, stored_by_lane, active, bytes};
                        CAPTURE(bytes, factor, stride, stored_by_lane, active);
                        CHECK(stored(c) == expected(c));
                    }
}
