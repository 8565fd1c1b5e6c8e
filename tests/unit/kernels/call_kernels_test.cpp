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

TEST_CASE("lanes call functions of a table, few and many, some of which call the table again", "[kernels][calls]") {
    // Function k of `count` gives 10 a + k; the last calls function a % count of the table with a / 2 until a is 0.
    for (unsigned count : {2u, 3u, 8u, 9u, 20u}) {
        INFO(count);
        const std::string prototype = "P: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n";
        const std::string number = std::to_string(count), last = std::to_string(count - 1);
        std::string functions = ".func (.reg .b32 r) f" + last + "(.reg .b32 a);\n", names;
        for (unsigned k = 0; k + 1 < count; ++k)
            functions += ".func (.reg .b32 r) f" + std::to_string(k) + "(.reg .b32 a) { mad.lo.u32 r, a, 10, " + std::to_string(k) + "; }\n";
        for (unsigned k = 0; k < count; ++k) names += (k ? ", f" : "f") + std::to_string(k);
        functions += ".global .u64 table[" + number + "] = {" + names + "};\n";
        functions += ".func (.reg .b32 r) f" + last + "(.reg .b32 a) { .reg .pred p; .reg .b32 m; .reg .b64 t, o;\n" + prototype +
                     "setp.eq.u32 p, a, 0; mov.u32 r, 5; @p ret; rem.u32 m, a, " + number + "; mul.wide.u32 o, m, 8; mov.u64 t, table; add.u64 t, t, o;"
                     " ld.global.u64 t, [t]; shr.u32 m, a, 1; call (r), t, (m), P; add.u32 r, r, 1; }\n";
        const auto results = results_of(functions, prototype + "rem.u32 %r1, %r8, " + number + "; mul.wide.u32 %l2, %r1, 8; mov.u64 %l3, table;"
                                                   " add.u64 %l2, %l2, %l3; ld.global.u64 %l4, [%l2]; call (%r9), %l4, (%r8), P;");
        const auto value = [&](const auto& self, unsigned k, unsigned a) -> unsigned {
            if (k + 1 < count) return 10 * a + k;
            return a == 0 ? 5 : self(self, a % count, a / 2) + 1;
        };
        for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == value(value, i % count, i));
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

// Tables of 64 functions and more without parameters: code for one of them is made when it is first called.

namespace {

constexpr unsigned table_size = 70;

/// Functions t0 ... t69, each adding what tells it apart to its thread's place in `sums`; `own` in place of some of
/// them, by number. Then a table of all.
std::string table_of_functions(const std::vector<std::string>& own = {}) {
    std::string text = ".global .align 4 .b8 sums[400];\n";
    for (unsigned i = 0; i < table_size; ++i) text += ".func t" + std::to_string(i) + "();\n";
    text += ".global .align 8 .u64 table[70] = {t0";
    for (unsigned i = 1; i < table_size; ++i) text += ", t" + std::to_string(i);
    text += "};\n";
    for (unsigned i = 0; i < table_size; ++i)
        text += ".func t" + std::to_string(i) + "() {\n.reg .b32 t, r; .reg .b64 o, s; .reg .pred p;\n" +
                "mov.u32 t, %tid.x; mul.wide.u32 o, t, 4; mov.u64 s, sums; add.u64 s, s, o;\n" +
                (i < own.size() ? own[i]
                                : "ld.global.u32 r, [s]; add.u32 r, r, " + std::to_string(i * i + 1) +
                                      "; st.global.u32 [s], r;\nret;") +
                "\n}\n";
    return text;
}

/// Clears the thread's sum; `calls`, with the table's address in %l3 and the sum's in %l2; the sum is the result.
std::string calling(const std::string& calls) {
    return "P: .callprototype _ ();\nmov.u64 %l3, table; mul.wide.u32 %l2, %r8, 4; mov.u64 %l4, sums; add.u64 %l2, %l2, "
           "%l4;\nmov.u32 %r1, 0; st.global.u32 [%l2], %r1;\n" +
           calls + "\nld.global.u32 %r9, [%l2];";
}

} // namespace

TEST_CASE("each thread calls another function of a large table", "[kernels][calls]") {
    const auto results = results_of(
        table_of_functions(),
        calling("rem.u32 %r2, %r8, 70; mul.wide.u32 %l5, %r2, 8; add.u64 %l5, %l5, %l3; ld.global.u64 %l6, [%l5];\n"
                "call %l6, (), P; call %l6, (), P;"));
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == 2 * ((i % 70) * (i % 70) + 1));
}

TEST_CASE("functions of a large table have barriers, shared and local memory, and call each other", "[kernels][calls]") {
    const std::string reverses = ".shared .align 4 .b8 there[400]; .local .align 4 .b8 kept[64]; .reg .b32 a;\n"
                                 "mov.u32 a, kept; st.local.u32 [a+12], t;\n"
                                 "mov.u32 a, there; mad.lo.u32 a, t, 4, a; st.shared.u32 [a], t; bar.sync 0;\n"
                                 "mov.u32 a, there; sub.u32 r, 99, t; mad.lo.u32 a, r, 4, a; ld.shared.u32 r, [a];\n"
                                 "mov.u32 a, kept; ld.local.u32 a, [a+12]; mad.lo.u32 r, a, 1000, r;\n"
                                 "st.global.u32 [s], r; bar.sync 0; ret;";
    const std::string calls_both = ".reg .b64 f; P: .callprototype _ ();\n"
                                   "mov.u64 f, table; ld.global.u64 f, [f]; call f, (), P;\n"
                                   "mov.u64 f, table; ld.global.u64 f, [f+560-8]; call f, (), P; ret;";
    // The kernel's own shared variable is where the functions don't write.
    const auto results = results_of(
        ".shared .align 4 .b8 mine[400];\n" + table_of_functions({reverses, calls_both}),
        calling("mov.u32 %r3, mine; mad.lo.u32 %r3, %r8, 4, %r3; mul.lo.u32 %r4, %r8, 7; st.shared.u32 [%r3], %r4;\n"
                "ld.global.u64 %l6, [%l3+8]; call %l6, (), P;\n"
                "ld.shared.u32 %r4, [%r3]; ld.global.u32 %r5, [%l2]; mad.lo.u32 %r5, %r4, 100000, %r5; st.global.u32 [%l2], %r5;"));
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == i * 700000 + i * 1000 + 99 - i + 69 * 69 + 1);
}

TEST_CASE("threads wait for each other and exit in functions of a large table", "[kernels][calls]") {
    // Of a warp, the last lane's flag ends the wait of the others; odd threads never return.
    const std::string waits = ".reg .b32 l; .reg .b64 f; and.b32 l, t, 31; mov.u64 f, flags; shr.u32 r, t, 5;\n"
                              "mul.wide.u32 o, r, 4; add.u64 f, f, o; setp.ne.u32 p, l, 3; @p bra WAIT;\n"
                              "mov.u32 r, 1; st.volatile.global.u32 [f], r;\n"
                              "WAIT: ld.volatile.global.u32 r, [f]; setp.eq.u32 p, r, 0; @p bra WAIT;\n"
                              "st.global.u32 [s], r; and.b32 r, t, 1; setp.eq.u32 p, r, 1; @p exit; ret;";
    const auto results = results_of(".global .align 4 .b8 flags[16];\n" + table_of_functions({waits}),
                                    calling("mov.u32 %r1, 5; st.global.u32 [%l1], %r1;\nld.global.u64 %l6, [%l3]; call %l6, (), P;"));
    for (unsigned i = 0; i < threads; ++i) CHECK(results[i] == (i % 2 ? 5 : 1));
}
