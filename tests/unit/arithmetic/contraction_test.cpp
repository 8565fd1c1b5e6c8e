// SPDX-License-Identifier: Apache-2.0
// Which products and sums fuse (analysis/arithmetic/contract_products.cpp); what ptxas 13.0 makes of the same lines for sm_90.
#include "host_float.h"
#include "statement_runner.h"

#include <catch2/catch.hpp>

using namespace ptarmigan::test;
using u64 = std::uint64_t;

namespace {

/// Numbers whose product has more bits than a float, so that fusing shows.
std::vector<Operands> inputs() {
    std::vector<Operands> all;
    for (unsigned i = 0; i < 200; ++i) {
        float a = 1.0f + float(i * 7919 % 8192) / 8192, b = 1.0f + float(i * 104729 % 8191) / 8191;
        all.push_back({to_bits(i % 3 ? a : -a), to_bits(b), to_bits(i % 2 ? -a * b : b / 3)});
    }
    return all;
}

float f(u64 bits) { return from_bits<float>(bits); }
/// Rounded to float: references are compiled without contraction.
float product(float a, float b) {
    volatile float result = a * b;
    return result;
}

template <typename F> void check(const std::string& text, F reference) {
    INFO(text);
    check_statement({"{.reg .f32 t, u, v; .reg .u32 i; " + text + "}", 32, 32, 32, 32}, inputs(),
                    [&](const Operands& o) { return canonical_bits(float(reference(f(o[0]), f(o[1]), f(o[2])))); });
}

} // namespace

TEST_CASE("contraction: a product goes into the sums that are all its uses", "[contraction]") {
    check("mul.f32 t, %a, %b; add.f32 %d, t, %c;", [](float a, float b, float c) { return std::fma(a, b, c); });
    check("mul.f32 t, %a, %b; add.f32 %d, %c, t;", [](float a, float b, float c) { return std::fma(a, b, c); });
    check("mul.f32 t, %a, %b; sub.f32 %d, t, %c;", [](float a, float b, float c) { return std::fma(a, b, -c); });
    check("mul.f32 t, %a, %b; sub.f32 %d, %c, t;", [](float a, float b, float c) { return std::fma(-a, b, c); });
    check("mul.f32 t, %a, %b; neg.f32 u, t; sub.f32 %d, u, %c;", [](float a, float b, float c) { return std::fma(-a, b, -c); });
    check("mul.f32 t, %a, %b; add.f32 u, t, %c; sub.f32 v, %a, t; div.rn.f32 %d, u, v;",
          [](float a, float b, float c) { return std::fma(a, b, c) / std::fma(-a, b, a); });
    check("mul.f32 t, %a, 0f40400000; mov.b32 %w0, t; mov.b32 u, %w0; add.f32 %d, u, 0f3dcccccd;",
          [](float a, float, float) { return std::fma(a, 3.0f, 0.1f); });
    check("mul.ftz.f32 t, %a, %b; add.ftz.sat.f32 %d, t, %c;",
          [](float a, float b, float c) { return std::fmin(std::fmax(std::fma(a, b, c), 0.0f), 1.0f) + 0.0f; });
}

TEST_CASE("contraction: of two products the one with fewer uses", "[contraction]") {
    check("mul.f32 t, %a, %b; mul.f32 u, %b, %c; add.f32 %d, t, u;",
          [](float a, float b, float c) { return std::fma(a, b, product(b, c)); });
    check("mul.f32 t, %a, %b; mul.f32 u, %b, %c; sub.f32 %d, u, t;",
          [](float a, float b, float c) { return std::fma(b, c, -product(a, b)); });
    check("mul.f32 t, %a, %b; mul.f32 u, %b, %c; add.f32 v, t, u; add.f32 t, t, %c; div.rn.f32 %d, v, t;",
          [](float a, float b, float c) { return std::fma(b, c, product(a, b)) / (product(a, b) + c); });
    check("mul.f32 t, %a, %b; add.f32 %d, t, t;", [](float a, float b, float) { return 2 * product(a, b); });
}

TEST_CASE("contraction: what keeps a product", "[contraction]") {
    auto apart = [](float a, float b, float c) { return product(a, b) + c; };
    check("mul.rn.f32 t, %a, %b; add.f32 %d, t, %c;", apart);
    check("mul.f32 t, %a, %b; add.rn.f32 %d, t, %c;", apart);
    check("mul.ftz.f32 t, %a, %b; add.f32 %d, t, %c;", apart);
    check("mul.f32 t, %a, %b; add.ftz.f32 %d, t, %c;", apart);
    check("mul.f32 t, %a, %b; add.f32 u, t, %c; mul.rn.f32 v, t, 0f00000000; sub.rn.f32 %d, u, v;", apart);
    check("mul.f32 t, %a, %b; setp.eq.f32 %p, %a, 0f7f800000; @%p bra X; add.f32 t, t, %c; X: mov.f32 %d, t;", apart);
    check("mul.f32 t, %a, %b; abs.f32 u, t; add.f32 %d, u, %c;",
          [](float a, float b, float c) { return std::fabs(product(a, b)) + c; });
}

TEST_CASE("contraction: straight lines, guards and loops", "[contraction]") {
    check("mul.f32 t, %a, %b; setp.lt.f32 %p, %a, 0f00000000; mov.f32 %d, %c; @%p add.f32 %d, t, %c;",
          [](float a, float b, float c) { return a < 0 ? std::fma(a, b, c) : c; });
    check("mul.f32 t, %a, %b; bar.sync 0; add.f32 %d, t, %c;", [](float a, float b, float c) { return std::fma(a, b, c); });
    check("mov.f32 u, %c; mov.u32 i, 0; Y: mul.f32 t, %a, u; add.f32 u, t, %b; add.u32 i, i, 1; setp.lt.u32 %p, i, 3; "
          "@%p bra Y; mov.f32 %d, u;",
          [](float a, float b, float c) { return std::fma(a, std::fma(a, std::fma(a, c, b), b), b); });
    check("mul.f32 t, %a, %b; mov.f32 u, %c; mov.u32 i, 0; Y: add.f32 u, t, u; add.u32 i, i, 1; setp.lt.u32 %p, i, 3; "
          "@%p bra Y; mov.f32 %d, u;",
          [](float a, float b, float c) {
        for (int i = 0; i < 3; ++i) c = product(a, b) + c;
        return c;
    });
}

// ptxas 13.0 -g -O0, and PTX of `nvcc -G`, which says debug: FMUL, FADD, and MUFU of a constant.
TEST_CASE("contraction: none for targets with debug", "[contraction]") {
    const char* head = ".version 9.0\n.target sm_90, debug\n.address_size 64\n";
    check_statement({"{.reg .f32 t; mul.f32 t, %a, %b; add.f32 %d, t, %c;}", 32, 32, 32, 32, head}, inputs(),
                    [](const Operands& o) { return canonical_bits(product(f(o[0]), f(o[1])) + f(o[2])); });
    // The unit's sine of this constant is not the rounded one, which the same line is elsewhere.
    const std::string sine = "{.reg .f32 t; mov.f32 t, 0f3f000000; sin.approx.ftz.f32 %d, t;}";
    const std::string asked = "{.reg .f32 t; sub.f32 t, %a, %a; add.f32 t, t, 0f3f000000; sin.approx.ftz.f32 %d, t;}";
    const auto result = [](const std::string& text, const char* module) {
        Statement statement{text, 32, 32};
        if (module != nullptr) statement.module_head = module;
        return run_statement(statement, {{to_bits(1.0f)}}).at(0);
    };
    CHECK(result(sine, head) == result(asked, head));
    CHECK(result(sine, nullptr) != result(asked, nullptr));
}
