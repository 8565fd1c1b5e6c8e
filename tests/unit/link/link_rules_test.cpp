// SPDX-License-Identifier: Apache-2.0
// Which symbols may meet, and what is said of those that may not: rules and texts recorded from
// nvJitLink 13.0.88 with the same pairs of texts.
#include "tests/unit/link/link.h"

using namespace ptarmigan;
using test::link;
using test::link_error;

namespace {

const std::string use_global =
    ".visible .entry k(.param .u64 q) { .reg .b64 a; .reg .b32 x; ld.param.u64 a, [q];\n"
    "ld.global.u32 x, [g]; st.global.u32 [a], x; ret; }";
const std::string use_constant =
    ".visible .entry k(.param .u64 q) { .reg .b64 a; .reg .b32 x; ld.param.u64 a, [q];\n"
    "ld.const.u32 x, [g]; st.global.u32 [a], x; ret; }";
const std::string use_shared =
    ".visible .entry k(.param .u64 q) { .reg .b64 a; .reg .b32 x; ld.param.u64 a, [q];\n"
    "ld.shared.u32 x, [g]; st.global.u32 [a], x; ret; }";

/// A kernel that calls the undefined `f` with one parameter.
std::string caller(const std::string& parameter, const std::string& actual) {
    return ".extern .func f(.param " + parameter + ");\n.visible .entry k() { .param " + actual +
           "; call f, (v); ret; }";
}

const ptx::Variable& variable(const ptx::ModuleLoader& loader, std::string_view name) {
    const auto id = loader.module().find_variable(name);
    REQUIRE(id);
    return loader.module().variables[*id];
}

} // namespace

TEST_CASE("link: a strong definition beats weak and common ones, wherever it stands") {
    const auto last =
        link({".weak .global .u32 g = 1; " + use_global, ".visible .global .u32 g = 2;"});
    CHECK(variable(*last, "g").init[0] == 2);
    const auto first =
        link({".visible .global .u32 g = 1; " + use_global, ".weak .global .u32 g = 2;"});
    CHECK(variable(*first, "g").init[0] == 1);
    const auto common =
        link({".common .global .u32 g; " + use_global, ".visible .global .u32 g = 2;"});
    CHECK(variable(*common, "g").init[0] == 2);
}

TEST_CASE("link: of weak definitions the first stays, of common ones the largest") {
    const auto weak =
        link({".weak .global .u32 g = 1; " + use_global, ".weak .global .u32 g = 2;"});
    CHECK(variable(*weak, "g").init[0] == 1);
    const auto common = link({".common .global .u32 g; " + use_global, ".common .global .u64 g;"});
    CHECK(variable(*common, "g").size == 8);
}

TEST_CASE("link: definitions that exclude each other") {
    CHECK(link_error({".visible .global .u32 g; " + use_global, ".visible .global .u32 g;"}) ==
          "Multiple definition of 'g' in 'b.ptx', first defined in 'a.ptx'");
    CHECK(link_error({".visible .entry k() {ret;}", ".visible .entry k() {ret;}"}) ==
          "Multiple definition of 'k' in 'b.ptx', first defined in 'a.ptx'");
    CHECK(link_error({".visible .shared .b8 g[4]; " + use_shared, ".visible .shared .b8 g[4];"}) ==
          "Multiple definition of 'g' in 'b.ptx', first defined in 'a.ptx'");
}

TEST_CASE("link: mentions of a variable must agree in size, space and kind") {
    const std::string size = "Size doesn't match for 'g' in 'b.ptx', first specified in 'a.ptx'";
    CHECK(link_error({".weak .global .u32 g = 1; " + use_global, ".weak .global .u64 g = 2;"}) ==
          size);
    CHECK(link_error({".common .global .u32 g; " + use_global, ".weak .global .u64 g;"}) == size);
    CHECK(link_error({".extern .global .u32 g; " + use_global, ".common .global .u64 g;"}) == size);
    CHECK(link_error({".extern .global .b8 g[16]; " + use_global, ".visible .global .b8 g[8];"}) ==
          size);
    CHECK(link_error({".extern .const .u32 g; " + use_constant, ".visible .global .u32 g = 2;"}) ==
          "Memory space doesn't match for 'g' in 'b.ptx', first specified in 'a.ptx'");
    CHECK(link_error({".extern .global .u32 g; " + use_global,
                      ".visible .global .attribute(.managed) .u32 g;"}) ==
          "Managed attribute doesn't match for 'g' in 'b.ptx', first specified in 'a.ptx'");
    CHECK(link_error({".visible .func f(.param .b32 a) {ret;}", ".weak .global .u32 f = 1;"}) ==
          "Memory space doesn't match for 'f' in 'b.ptx', first specified in 'a.ptx'");
}

TEST_CASE("link: types of a size, unknown sizes and alignments may differ") {
    CHECK(variable(*link({".extern .global .f32 g; " + use_global, ".visible .global .u32 g = 2;"}),
                   "g")
              .init[0] == 2);
    CHECK(variable(
              *link({".extern .global .b8 g[]; " + use_global, ".visible .global .b8 g[8] = {1};"}),
              "g")
              .size == 8);
    CHECK(variable(*link({".extern .global .align 64 .u32 g; " + use_global,
                          ".visible .global .align 4 .u32 g = 2;"}),
                   "g")
              .alignment == 64);
}

TEST_CASE("link: parameters must agree but for signs and registers") {
    const std::string differs =
        "Prototype doesn't match for 'f' in 'b.ptx', first defined in 'b.ptx'";
    CHECK(link_error({caller(".b32 a", ".b32 v"), ".visible .func f(.param .f32 a) {ret;}"}) ==
          differs);
    CHECK(link_error({caller(".b64 a", ".b64 v"), ".visible .func f(.param .f64 a) {ret;}"}) ==
          differs);
    CHECK(link_error({caller(".align 8 .b8 a[8]", ".align 8 .b8 v[8]"),
                      ".visible .func f(.param .b64 a) {ret;}"}) == differs);
    CHECK(link_error({caller(".align 8 .b8 a[8]", ".align 8 .b8 v[8]"),
                      ".visible .func f(.param .align 8 .b8 a[16]) {ret;}"}) == differs);
    CHECK(link_error({caller(".b32 a", ".b32 v"),
                      ".visible .func (.param .b32 r) f(.param .b32 a) {ret;}"}) == differs);
    CHECK(link_error({".visible .func f(.param .b32 a) {ret;}",
                      ".extern .func f(.param .b32 a, .param .b32 c);"}) ==
          "Prototype doesn't match for 'f' in 'b.ptx', first defined in 'a.ptx'");
    CHECK(link_error({".weak .entry k() {ret;}", ".weak .entry k(.param .u32 a) {ret;}"}) ==
          "Duplicate weak parameter bank for 'k' is not the same size");
    link({caller(".u32 a", ".u32 v"), ".visible .func f(.param .s32 a) {ret;}"});
    link({".extern .func f(.reg .b32 a);\n.visible .entry k() { .reg .b32 v; mov.b32 v, 1;\n"
          "call f, (v); ret; }",
          ".visible .func f(.param .b32 a) {ret;}"});
}

TEST_CASE("link: what nothing defines is reported where it is missed") {
    CHECK(link_error({".extern .global .u32 g; " + use_global, ".global .u32 g = 2;"}) ==
          "Undefined reference to 'g' in 'a.ptx'");
    CHECK(link_error({".visible .entry k2() {ret;}", caller(".b32 a", ".b32 v")}) ==
          "Undefined reference to 'f' in 'b.ptx'");
    CHECK(link_error({caller(".b32 a", ".b32 v"), ".func f(.param .b32 a) {ret;}"}) ==
          "Undefined reference to 'f' in 'a.ptx'");
    CHECK(link_error({".extern .func f(.param .b32 a);\n.visible .global .u64 p = f;"}) ==
          "Undefined reference to 'f' in 'a.ptx'");
    CHECK(link_error({".extern .shared .b8 g[64]; " + use_shared}) ==
          "Undefined reference to 'g' in 'a.ptx'");
    link({".extern .func f(.param .b32 a);", ".visible .entry k() {ret;}"}); // nobody calls it
    link({".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
          ".visible .entry k() { .param .b64 x, y; .param .b32 r; call (r), vprintf, (x, y); ret; "
          "}"});
}

TEST_CASE("link: a text that ends inside a body is refused") {
    ptx::Linker linker([](std::string_view) { return false; });
    std::string messages;
    CHECK_FALSE(linker.add(test::link_header + ".visible .entry k() { ret;", "a.ptx", messages, false));
    CHECK_THAT(messages, Catch::Matchers::Contains("the text ends inside the body of 'k': a '}' is missing"));
}

TEST_CASE("link: all errors are reported") {
    CHECK(test::link_errors({".visible .global .u32 g; .visible .global .u32 h;",
                             ".visible .global .u32 g; .visible .global .u64 h;"})
              .size() == 3);
}

TEST_CASE("link: what is undefined comes by unit, functions first, as declared") {
    const std::string globals = ".extern .global .u32 z; .extern .global .u32 a;\n";
    const std::string functions =
        ".extern .func g(.param .b32 x);\n.extern .func f(.param .b32 x);\n";
    const auto kernel = [](const std::string& name, const std::string& calls) {
        return ".visible .entry " + name + "() { .param .b32 x;" + calls + " ret; }";
    };
    CHECK(test::link_errors(
              {globals + functions + kernel("k", "call f, (x);"),
               ".extern .global .u32 n;" + functions + kernel("l", "call f, (x); call g, (x);")}) ==
          std::vector<std::string>{
              "Undefined reference to 'f' in 'a.ptx'", "Undefined reference to 'z' in 'a.ptx'",
              "Undefined reference to 'a' in 'a.ptx'", "Undefined reference to 'g' in 'b.ptx'",
              "Undefined reference to 'n' in 'b.ptx'"});
}

TEST_CASE("link: missing functions come in the order in which ptxas compiles what calls them") {
    const std::string tail = "(.param .b32 x);\n";
    const auto named = [&](const std::string& declared, const std::string& definitions) {
        std::string text, names;
        for (const char c : declared) text += ".extern .func " + std::string(1, c) + tail;
        for (const std::string& error : test::link_errors({text + definitions})) names += error.at(error.find('\'') + 1);
        return names;
    };
    const auto calls = [](const std::string& callees) {
        std::string text = "{ .param .b32 v;";
        for (const char c : callees) text += " call " + std::string(1, c) + ", (v);";
        return text + " ret; }\n";
    };
    const auto kernel = [&](const std::string& name, const std::string& callees) {
        return ".visible .entry " + name + "() " + calls(callees);
    };
    const auto function = [&](const std::string& name, const std::string& callees) {
        return ".visible .func " + name + "(.param .b32 x) " + calls(callees);
    };
    // What nvlink 13.0 says of the same units.
    CHECK(named("abce", kernel("k1", "ab") + kernel("k2", "ec")) == "ceab");
    CHECK(named("abc", kernel("z", "a") + kernel("m", "b") + kernel("q", "c")) == "cba");
    CHECK(named("abc", kernel("k1", "ab") + kernel("k2", "bc")) == "bca");
    CHECK(named("ba", kernel("k1", "ab")) == "ba");
    CHECK(named("ab", function("f", "b") + kernel("k1", "fa")) == "ba");
    CHECK(named("abc", function("f", "c") + function("g", "b") + kernel("k1", "fga")) == "bca");
    CHECK(named("abc", function("f", "c") + function("g", "b") + kernel("k1", "gfa")) == "cba");
    CHECK(named("abce", function("f", "a") + function("g", "b") + kernel("k1", "gc") + kernel("k2", "fe")) == "aebc");
    CHECK(named("ecba", function("h", "a") + function("f", "hb") + function("g", "hc") + kernel("k", "fge")) == "acbe");
    CHECK(named("ecba", function("h", "a") + function("f", "b") + function("g", "hc") + kernel("k", "hfge")) == "acbe");
    CHECK(named("abc", kernel("k1", "a") + ".visible .global .u64 t = c;\n" + kernel("k2", "b")) == "bca");
    CHECK(named("cba", kernel("k1", "a") + ".visible .global .u64 t = c;\n" + kernel("k2", "b")) == "cba");
    CHECK(named("ab", ".visible .global .u64 t[2] = {b, a};\n") == "ab");
}

TEST_CASE("link: contradictions are known when a text is added, and not again after") {
    ptx::Linker linker([](std::string_view) { return false; });
    std::string messages;
    const auto add = [&](const char* name, bool on_demand = false) {
        CHECK(
            linker.add(test::link_header + ".visible .global .u32 g;", name, messages, on_demand));
    };
    add("a.ptx");
    add("member.ptx", true); // a library's: it will not be missed
    CHECK(linker.conflicts().empty());
    add("b.ptx");
    const std::vector<std::string> conflicts = linker.conflicts();
    CHECK(conflicts == std::vector<std::string>{
                           "Multiple definition of 'g' in 'b.ptx', first defined in 'a.ptx'"});
    const ptx::LinkResult result = linker.link();
    CHECK_FALSE(result.ok);
    CHECK(result.errors == conflicts);
}

TEST_CASE("link: nothing at all is a text without symbols") {
    const auto loader = link({});
    CHECK(loader->module().functions.empty());
    CHECK(loader->module().variables.empty());
}

TEST_CASE("link: constant memory of all texts together has the hardware's size") {
    CHECK(link_error({".visible .const .align 4 .b8 g[40000] = {1}; " + use_constant,
                      ".visible .const .align 4 .b8 h[40000] = {2};"}) ==
          "File uses too much global constant data (0x13880 bytes, 0x10000 max)");
}

TEST_CASE("link: arrays of absurd depth are refused when they are added") {
    ptx::Linker linker([](std::string_view) { return false; });
    std::string deep = test::link_header + ".global .u32 x", messages;
    for (int i = 0; i < 1025; ++i) deep += "[1]";
    CHECK_FALSE(linker.add(deep + " = {};", "a.ptx", messages));
    CHECK(messages.find("1024 dimensions") != std::string::npos);
}

TEST_CASE("link: 32-bit addresses are refused, a missing .address_size is not") {
    ptx::Linker linker([](std::string_view) { return false; });
    std::string messages;
    CHECK_FALSE(
        linker.add(".version 6.0\n.target sm_30\n.address_size 32\n.visible .entry k() {ret;}",
                   "a.ptx", messages));
    CHECK(messages.find("32-Bit ABI") != std::string::npos);
    CHECK(linker.add(".version 6.0\n.target sm_30\n.visible .entry k() {ret;}", "b.ptx", messages));
    CHECK(linker.size() == 1);
}

TEST_CASE("link: the device runtime's library is left out, its functions are the runtime's") {
    const std::string library = ".extern .func (.param .b32 r) __cuda_syscall_of_the_driver();\n"
                                ".visible .func (.param .b32 r) cudaGetLastError() { .reg .b32 %r1; { .param .b32 e; call.uni (e), "
                                "__cuda_syscall_of_the_driver; ld.param.b32 %r1, [e]; } st.param.b32 [r], %r1; ret; }\n";
    const std::string program = ".extern .func (.param .b32 r) cudaGetLastError();\n"
                                ".visible .entry k() { ret; }\n";
    const ptx::LinkResult linked = test::try_link({program, library});
    CHECK(linked.ok);
    CHECK(linked.text.find("__cuda_syscall") == std::string::npos);
}
