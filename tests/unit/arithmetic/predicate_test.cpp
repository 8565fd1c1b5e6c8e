// SPDX-License-Identifier: Apache-2.0
// Results under guards, predicates of lop3, and values that pass between integer and floating use.
#include "host_float.h"
#include "statement_runner.h"

#include <catch2/catch.hpp>

using namespace ptarmigan::test;

TEST_CASE("predicates: lop3 with a predicate result", "[predicates]") {
    auto in = operands(Kind::bits32, Kind::bits32, Kind::bits32);
    check_statement({"setp.gt.s32 %q, %a, 0; lop3.or.b32 %w0|%p, %a, %b, %c, 0x80, %q; selp.b32 %d, 1, 0, %p;", 32, 32, 32, 32}, in,
                    [](const Operands& o) { return (o[0] & o[1] & o[2]) != 0 || std::int32_t(o[0]) > 0; });
    check_statement({"setp.gt.s32 %q, %a, 0; lop3.and.b32 _|%p, %a, %b, %c, 0x80, !%q; selp.b32 %d, 1, 0, %p;", 32, 32, 32, 32}, in,
                    [](const Operands& o) { return (o[0] & o[1] & o[2]) != 0 && std::int32_t(o[0]) <= 0; });
}

TEST_CASE("predicates: guarded arithmetic keeps the other lanes", "[predicates]") {
    auto pairs = operands(Kind::f32, Kind::f32);
    check_statement({"mov.b32 %d, %a; setp.lt.s32 %p, %b, 0; @%p mul.f32 %d, %a, %b; @!%p add.s32 %d, %d, 1;", 32, 32, 32}, pairs,
                    [](const Operands& o) {
                        if (std::int32_t(o[1]) >= 0) return std::uint32_t(o[0]) + 1;
                        return canonical_bits(from_bits<float>(o[0]) * from_bits<float>(o[1]));
                    });
    check_statement({"mov.b32 %d, 5; setp.ne.s32 %p, %b, 0; @%p div.s32 %d, %a, %b;", 32, 32, 32},
                    operands(Kind::bits32, Kind::bits32), [](const Operands& o) {
                        std::int64_t a = std::int32_t(o[0]), b = std::int32_t(o[1]);
                        return b ? std::uint32_t(a / b) : 5u;
                    });
}

TEST_CASE("predicates: NaN results are canonical wherever bits are looked at", "[predicates]") {
    auto pairs = operands(Kind::f32, Kind::f32);
    auto sum = [](const Operands& o) { return from_bits<float>(o[0]) + from_bits<float>(o[1]); };
    check_statement({"add.f32 %d, %a, %b; xor.b32 %d, %d, 0x80000000;", 32, 32, 32}, pairs,
                    [&](const Operands& o) { return canonical_bits(sum(o)) ^ 0x80000000; });
    // Selected against a value that keeps its payload.
    check_statement({"add.f32 %w0, %a, %b; setp.gt.s32 %p, %a, %b; selp.b32 %d, %w0, %a, %p;", 32, 32, 32}, pairs,
                    [&](const Operands& o) {
                        return std::int32_t(o[0]) > std::int32_t(o[1]) ? canonical_bits(sum(o)) : std::uint32_t(o[0]);
                    });
    check_statement({"mul.f32 %w0, %a, %b; mov.b32 {%h0, %h1}, %w0; mov.b32 %d, {%h1, %h0};", 32, 32, 32}, pairs,
                    [](const Operands& o) {
                        std::uint32_t bits = canonical_bits(from_bits<float>(o[0]) * from_bits<float>(o[1]));
                        return bits << 16 | bits >> 16;
                    });
}
