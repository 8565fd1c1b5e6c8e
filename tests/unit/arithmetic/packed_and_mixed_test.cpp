// SPDX-License-Identifier: Apache-2.0
// Pairs of floats (.f32x2) and sums of halves and floats (manual 9.7.5), of compute capability 10.0, against the host's floats.
#include "host_float.h"
#include "runtime/base/processor.h"
#include "statement_runner.h"

#include <catch2/catch.hpp>

using namespace ptarmigan::test;
using u64 = std::uint64_t;

namespace {

constexpr const char* sm_100 = ".version 8.6\n.target sm_100\n.address_size 64\n";

struct Mode {
    std::string name;
    int host;
};
const Mode modes[] = {{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

float low(u64 pair) { return from_bits<float>(pair & 0xffffffff); }
float high(u64 pair) { return from_bits<float>(pair >> 32); }

float of_half(u64 bits) { return float(std::bit_cast<ptarmigan::runtime::float16>(std::uint16_t(bits))); }
float of_bfloat(u64 bits) { return from_bits<float>(bits << 16 & 0xffff0000); }

/// "add.rn.f32x2" in another mode.
std::string in_mode_of(std::string head, const Mode& mode) { return head.replace(4, 2, mode.name); }

template <typename F> void pairs(const std::string& head, F operation) {
    auto in = operands(Kind::f32, Kind::f32, Kind::f32);
    const auto single = in;
    for (std::size_t i = 0; i < in.size(); ++i)
        for (unsigned j = 0; j < 3; ++j) in[i][j] |= single[(i * 7 + 1) % in.size()][j] << 32;
    for (const Mode& mode : modes) {
        std::string text = in_mode_of(head, mode) + " %d, %a, %b" + (head[0] == 'f' ? ", %c;" : ";");
        check_statement({text, 64, 64, 64, 64, sm_100}, in, [&](const Operands& o) {
            auto one = [&](float (*part)(u64)) {
                return u64(in_mode<float>(mode.host, [&] { return operation(part(o[0]), part(o[1]), part(o[2])); }));
            };
            return one(high) << 32 | one(low);
        });
    }
}

} // namespace

TEST_CASE("float pairs: both elements in every rounding mode", "[float]") {
    pairs("add.rn.f32x2", [](float a, float b, float) { return a + b; });
    pairs("sub.rn.f32x2", [](float a, float b, float) { return a - b; });
    pairs("mul.rn.f32x2", [](float a, float b, float) { return a * b; });
    pairs("fma.rn.f32x2", [](float a, float b, float c) { return std::fma(a, b, c); });
}

TEST_CASE("mixed precision: halves and floats round once", "[float]") {
    struct Source {
        std::string sum, difference, fused;
        Kind kind;
        float (*widen)(u64);
    };
    const Source sources[] = {{"add.rn.f32.f16", "sub.rn.f32.f16", "fma.rn.f32.f16", Kind::f16, of_half},
                              {"add.rn.f32.bf16", "sub.rn.f32.bf16", "fma.rn.f32.bf16", Kind::bf16, of_bfloat}};
    for (const Source& source : sources)
        for (const Mode& mode : modes) {
            auto in = operands(source.kind, Kind::f32);
            check_statement({in_mode_of(source.sum, mode) + " %d, %a, %b;", 32, 16, 32, 0, sm_100}, in, [&](const Operands& o) {
                return in_mode<float>(mode.host, [&] { return source.widen(o[0]) + from_bits<float>(o[1]); });
            });
            check_statement({in_mode_of(source.difference, mode) + " %d, %a, %b;", 32, 16, 32, 0, sm_100}, in, [&](const Operands& o) {
                return in_mode<float>(mode.host, [&] { return source.widen(o[0]) - from_bits<float>(o[1]); });
            });
            check_statement({in_mode_of(source.fused, mode) + " %d, %a, %b, %c;", 32, 16, 16, 32, sm_100},
                            operands(source.kind, source.kind, Kind::f32), [&](const Operands& o) {
                return in_mode<float>(mode.host,
                                      [&] { return std::fma(source.widen(o[0]), source.widen(o[1]), from_bits<float>(o[2])); });
            });
        }
}
