// SPDX-License-Identifier: Apache-2.0
// Calls in whole kernels: parameters and results in registers, addresses of functions in registers of any kind.
#include "kernel.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

constexpr unsigned threads = 100; ///< not a multiple of the warp

/// What `body` leaves in %r9 of each thread; %r8 is the thread's number.
std::vector<std::uint32_t> results_of(const std::string& functions, const std::string& body) {
    Array<std::uint32_t> out(threads);
    run("mul.wide.u32 %l0, %r62, 4; add.u64 %l1, %l60, %l0; mov.u32 %r8, %r62;\n" + body +
            "\nst.global.u32 [%l1], %r9;",
        {1}, {threads}, {out.address()}, functions);
    return out.values();
}

const std::string early_return = ".func (.reg .b32 r) f(.reg .b32 a) {\n"
                                 ".reg .pred p; setp.gt.u32 p, a, 40; add.u32 r, a, 1000;\n"
                                 "@p ret; add.u32 r, r, 1000; }\n";
std::uint32_t returned(std::uint32_t a) { return a + (a > 40 ? 1000 : 2000); }

/// `f(a)`: stores a where it chooses in 256 bytes of local memory, adds what `rest` leaves in r, and finds a there.
std::string keeping_function(const std::string& name, const std::string& rest) {
    return ".func (.reg .b32 r) " + name +
           "(.reg .b32 a) {\n"
           ".reg .pred p; .reg .b32 i, b, m; .reg .b64 l, o; .local .align 4 .b8 own[256];\n"
           "and.b32 i, a, 63; mul.wide.u32 o, i, 4; mov.u64 l, own; add.u64 l, l, o; st.local.u32 [l], a;\n"
           "mov.u32 r, 0;\n" +
           rest + "\nld.local.u32 b, [l]; add.u32 r, r, b; }\n";
}

} // namespace

TEST_CASE("parameters and results in registers", "[kernels][calls]") {
    const auto results = results_of(early_return, "call (%r9), f, (%r8);");
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == returned(i));
}

TEST_CASE("several results, a constant as an argument, 16 bits", "[kernels][calls]") {
    const auto results = results_of(
        ".func (.reg .b32 r, .reg .u16 s) f(.reg .b32 a, .reg .b16 b) { mul.lo.u32 r, a, a; add.u16 s, b, 3; ret; }\n",
        "call (%r1, %h1), f, (%r8, 7); cvt.u32.u16 %r2, %h1; add.u32 %r9, %r1, %r2;");
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == i * i + 10);
}

TEST_CASE("a recursive function with register parameters", "[kernels][calls]") {
    const auto results = results_of(
        ".func (.reg .b32 r) f(.reg .b32 n) { .reg .pred p; .reg .b32 m; setp.eq.u32 p, n, 0; mov.u32 r, 0;\n"
        "@p bra DONE; sub.u32 m, n, 1; call (m), f, (m); add.u32 r, m, n;\nDONE: }\n",
        "and.b32 %r1, %r8, 7; call (%r9), f, (%r1);");
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == (i & 7) * ((i & 7) + 1) / 2);
}

// The default limit of a thread's stack, 1024 bytes, is for what nobody can tell before: recursion. ptxas computes the rest.

TEST_CASE("a chain of calls has all the local memory that its functions declare", "[kernels][calls]") {
    constexpr unsigned length = 80; // calls are inlined to a depth of 64
    std::string functions = keeping_function("f0", "");
    for (unsigned i = 1; i < length; ++i) {
        const std::string next = "f" + std::to_string(i - 1);
        functions += keeping_function("f" + std::to_string(i), "add.u32 m, a, 1; call (r), " + next + ", (m);");
    }
    const auto results = results_of(functions, "call (%r9), f" + std::to_string(length - 1) + ", (%r8);");
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == length * i + length * (length - 1) / 2);
}

TEST_CASE("a function called through a pointer has the local memory that it declares", "[kernels][calls]") {
    std::string eight_times;
    for (unsigned i = 0; i < 8; ++i) eight_times += "call (m), g, (a); add.u32 r, r, m;\n";
    const auto results =
        results_of(keeping_function("g", "") + keeping_function("f", eight_times),
                   "P: .callprototype (.reg .b32 _) _ (.reg .b32 _);\nmov.u64 %l4, f; call (%r9), %l4, (%r8), P;");
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == 9 * i);
}

TEST_CASE("what is inlined into a recursive function takes nothing of the stack limit", "[kernels][calls]") {
    std::string rest;
    for (unsigned i = 0; i < 8; ++i) rest += "call (m), g, (a); add.u32 r, r, m;\n";
    rest += "setp.eq.u32 p, a, 0; @p bra DONE; sub.u32 m, a, 1; call (m), f, (m); add.u32 r, r, m;\nDONE:";
    const auto results =
        results_of(keeping_function("g", "") + keeping_function("f", rest), "and.b32 %r1, %r8, 3; call (%r9), f, (%r1);");
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == 9 * (i & 3) * ((i & 3) + 1) / 2);
}

TEST_CASE("the address of a function passes through registers of every kind", "[kernels][calls]") {
    const std::string prototype = "\nP: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n";
    for (const char* how : {"mov.u64 %l4, f; call (%r9), %l4, (%r8), P;", // 64 bits
                            "mov.u32 %r4, f; call (%r9), %r4, (%r8), P;", // ptxas warns
                            "mov.f64 %d4, f; mov.b64 %l4, %d4; call (%r9), %l4, (%r8), P;",
                            "mov.f32 %f4, f; mov.b32 %r4, %f4; call (%r9), %r4, (%r8), P;"}) {
        INFO(how);
        const auto results = results_of(early_return, prototype + how);
        for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == returned(i));
    }
}

TEST_CASE("predicates are parameters and results", "[kernels][calls]") {
    const std::string f = ".func (.reg .pred r, .reg .pred s) f(.reg .pred a, .reg .u32 b) { .reg .pred t; setp.gt.u32 t, b, 9; "
                          "xor.pred r, a, t; not.pred s, a; @t ret; not.pred s, s; ret; }\n";
    const std::string call = "setp.eq.u32 %p1, %r8, 3; setp.ne.u32 %p3, %r8, 5; mov.pred %p2, 0; @%p3 ";
    const std::string rest = " selp.u32 %r9, 1, 2, %p1; selp.u32 %r10, 4, 8, %p2; add.u32 %r9, %r9, %r10;";
    const auto expected = [](unsigned i) {
        const bool a = i == 3, r = i == 5 ? a : a != (i > 9), s = i == 5 ? false : i > 9 ? !a : a;
        return (r ? 1u : 2u) + (s ? 4u : 8u);
    };
    // Inlined, kept, and through a pointer.
    for (const std::string& text :
         {call + "call (%p1, %p2), f, (%p1, %r8);" + rest,
          "P: .callprototype (.reg .pred _, .reg .pred _) _ (.reg .pred _, .reg .u32 _); mov.u64 %l4, f; " + call +
              "call (%p1, %p2), %l4, (%p1, %r8), P;" + rest}) {
        INFO(text);
        const auto results = results_of(f, text);
        for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == expected(i));
    }
    const auto results = results_of(f, "setp.eq.u32 %p1, %r8, 3; call (_, %p1), f, (%p1, %r8); selp.u32 %r9, 1, 2, %p1;");
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == ((i > 9 ? i != 3 : i == 3) ? 1 : 2));
}
