// SPDX-License-Identifier: Apache-2.0
// Hostile input has a verdict within bounds: each text is read in a process of its own with little
// memory and time.
#include "frontend/module_loader.h"

#include <catch2/catch.hpp>

#include <csignal>
#include <cstdio>
#include <functional>
#include <new>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ptarmigan;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool limits_memory = false; // shadow memory takes terabytes of addresses
#else
constexpr bool limits_memory = true;
#endif
constexpr rlim_t memory_limit = rlim_t{1} << 30;

enum Verdict : int { accepted = 10, refused = 11, out_of_memory = 12 };

/// Reads a text that `make` writes; the verdict, or minus the signal that ended the process. These texts take 1 to 3 s of
/// CPU, twice as much beside other work; what grew with their square would take hours.
int read_within_bounds(const std::function<std::string()>& make, rlim_t seconds = 20) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(1);
        const rlimit memory{memory_limit, memory_limit}, time{seconds, seconds + 1};
        if (limits_memory) setrlimit(RLIMIT_AS, &memory);
        setrlimit(RLIMIT_CPU, &time);
        try {
            const auto loader = ptx::ModuleLoader::load(
                make(), "hostile", {.bind_all_bodies = true, .max_errors = 20});
            loader->diagnostics().render_all();
            _exit(loader->ok() ? accepted : refused);
        } catch (const std::bad_alloc&) {
            _exit(out_of_memory);
        }
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n";

std::string repeated(const std::string& text, unsigned count) {
    std::string all;
    all.reserve(text.size() * count);
    for (unsigned i = 0; i < count; ++i) all += text;
    return all;
}

std::string in_body(const std::string& statements) {
    return head + ".entry k {\n.reg .b32 %r<4>; .reg .pred %p;\n" + statements + "\n}\n";
}

/// `count` functions with this body.
std::string functions(const std::string& body, unsigned count) {
    std::string all = head;
    for (unsigned i = 0; i < count; ++i)
        all += ".func f" + std::to_string(i) + "() {" + body + "}\n";
    return all;
}

} // namespace

TEST_CASE("bounds: unknown names among thousands of known ones") {
    const auto text = [] {
        std::string all = functions(".reg .b32 %r; mov.b32 %r, known_name_x; bra nowhere; add.u32 %r, %unknown, 1;", 20000);
        for (unsigned i = 0; i < 100000; ++i) all += ".global .u32 known_name_" + std::to_string(i) + ";\n";
        return all;
    };
    CHECK(read_within_bounds(text) == refused);
    const auto loader = ptx::ModuleLoader::load(text(), "hostile");
    loader->check_bodies();
    CHECK(loader->diagnostics().error_count() == 60000);
    CHECK(loader->diagnostics().list().size() == 20);
}

TEST_CASE("bounds: millions of statements outside of a body are one error") {
    const auto text = [] { return head + repeated("wrong;\n", 3000000); };
    CHECK(read_within_bounds(text) == refused);
    CHECK(ptx::ModuleLoader::load(text(), "hostile")->diagnostics().error_count() == 1);
}

TEST_CASE("bounds: millions of errors") {
    const auto within_a_body = [] { return in_body(repeated("wrong;\n", 3000000)); };
    const auto at_module_scope = [] { return head + repeated(".wrong;\n", 3000000); };
    const auto in_many_bodies = [] { return functions("wrong; bad; no;", 100000); };
    for (const auto& text : {std::string(within_a_body()), at_module_scope(), in_many_bodies()}) {
        CHECK(read_within_bounds([&] { return text; }) == refused);
        const auto loader = ptx::ModuleLoader::load(text, "hostile");
        loader->check_bodies();
        CHECK(loader->diagnostics().error_count() >= ptx::Diagnostics::max_counted_errors);
        CHECK(loader->diagnostics().error_count() < ptx::Diagnostics::max_counted_errors + 10);
        CHECK_THAT(loader->diagnostics().render_all(), Catch::Matchers::Contains("the rest of the text is not read"));
    }
}

TEST_CASE("bounds: the limits bite") {
    CHECK(read_within_bounds([] { return head; }) == accepted);
    CHECK(read_within_bounds(
              []() -> std::string {
                  for (;;) {
                  }
              },
              1) == -SIGXCPU);
    if (limits_memory)
        CHECK(read_within_bounds([] { return std::string(std::size_t{1100} << 20, ' '); }) ==
              out_of_memory);
}

TEST_CASE("bounds: nesting") {
    constexpr unsigned deep = 1000000;
    CHECK(read_within_bounds([] { return in_body(repeated("{", deep)); }) == refused);
    CHECK(read_within_bounds([] { return in_body(repeated("{\n", deep) + repeated("}", deep)); }) ==
          refused);
    CHECK(read_within_bounds([] { return in_body("mov.u32 %r1, " + repeated("(", deep) + ";"); }) ==
          refused);
    CHECK(read_within_bounds(
              [] { return in_body("mov.u32 %r1, " + repeated("-", deep) + "1;"); }) == refused);
    CHECK(read_within_bounds(
              [] { return in_body("mov.u32 %r1, " + repeated("1?", deep) + "1;"); }) == refused);
    CHECK(read_within_bounds([] { return in_body("mov.u32 %r1, " + repeated("[", deep) + ";"); }) ==
          refused);
    CHECK(read_within_bounds(
              [] { return in_body("mov.u32 %r1, " + repeated("{%r1,", deep) + ";"); }) == refused);
    CHECK(read_within_bounds(
              [] { return head + ".global .b32 a[2] = " + repeated("{", deep) + ";"; }) == refused);
    CHECK(read_within_bounds(
              [] { return head + ".global .b32 a" + repeated("[1]", deep) + ";"; }) != -SIGXCPU);
}

TEST_CASE("bounds: counts") {
    for (const char* declaration :
         {".reg .b32 %x<4294967296>;", ".reg .b32 %x<99999999999999999999999999>;",
          ".reg .v4 .f32 %v<3000000000>;", ".param .b64 p<2000000000>;",
          ".local .b8 l<4294967295>;"}) {
        INFO(declaration);
        CHECK(read_within_bounds([&] { return in_body(declaration); }) == refused);
    }
    // As in ptxas: only registers that are used exist.
    CHECK(read_within_bounds([] {
              return in_body(".reg .b32 %x<2000000000>; .reg .v4 .f32 %v<1000000000>;\n"
                             "mov.b32 %x1999999999, %x0; mov.f32 %v999999999.x, %v5.w;");
          }) == accepted);
    const std::string many = ".reg .b32 %x<4000000>; mov.u32 %x3999999, 1;";
    CHECK(read_within_bounds([&] { return functions(many, 1000); }) == accepted);
    CHECK(read_within_bounds(
              [&] { return in_body(repeated("{" + many, 900) + repeated("}", 900)); }) == accepted);
    CHECK(read_within_bounds([] { return functions(".local .b8 l<60000>;", 1000); }) == refused);
    CHECK(read_within_bounds([] { return head + ".global .u32 g<2000000000>;"; }) == refused);
    CHECK(read_within_bounds([] {
              std::string text = head;
              for (unsigned i = 0; i < 1000; ++i)
                  text += ".global .u32 g" + std::to_string(i) + "_<60000>;\n";
              return text;
          }) == refused);
    CHECK(read_within_bounds([] { return head + ".global .b8 a[1000000000000000000] = {1};"; }) ==
          refused);
    CHECK(read_within_bounds([] { return head + ".global .b8 a[99999][99999][99999][99999];"; }) ==
          refused);
    CHECK(read_within_bounds([] {
              std::string text = head;
              for (unsigned i = 0; i < 1000; ++i)
                  text += ".global .b8 g" + std::to_string(i) + "[20000000] = {1};\n";
              return text;
          }) == refused);
    CHECK(read_within_bounds([] { return head + ".file 4294967295 \"a\"\n"; }) == refused);
}

TEST_CASE("bounds: long lists") {
    CHECK(read_within_bounds([] {
              return in_body("mov.b32 %r1, {" + repeated("%r1,", 3000000) + "%r1};");
          }) == refused);
    CHECK(read_within_bounds([] {
              return in_body("add" + repeated(".u32", 2000000) + " %r1, %r1, %r1;");
          }) == refused);
    CHECK(read_within_bounds(
              [] { return in_body("add.u32 " + repeated("%r1,", 3000000) + "%r1;"); }) == refused);
    CHECK(read_within_bounds([] { return in_body("@" + repeated("!", 2000000) + "%p ret;"); }) ==
          refused);
    CHECK(read_within_bounds([] {
              return head + ".entry k(" + repeated(".param .b32 p,", 100000) +
                     ".param .b32 p) { ret; }";
          }) == refused);
    CHECK(read_within_bounds([] { return in_body(repeated("mov.u32 %r1, 1;", 300000)); }) ==
          accepted);
    CHECK(read_within_bounds([] { return in_body(repeated("unknown %r1;\n", 200000)); }) ==
          refused);
    CHECK(read_within_bounds([] {
              std::string text;
              for (unsigned i = 0; i < 100000; ++i)
                  text += "add.x" + std::to_string(i) + ".u32 %r1, %r1, 1;\n";
              return in_body(text);
          }) == refused);
    CHECK(read_within_bounds([] {
              std::string text; // uses of a label travel outwards through every scope
              for (unsigned i = 0; i < 900; ++i) text += "{ bra away;\n";
              return in_body(text + repeated("bra away;", 20000) + repeated("}", 900));
          }) == refused);
    CHECK(read_within_bounds([] {
              std::string text; // more prefixes than are compared one by one
              for (unsigned i = 0; i < 50000; ++i)
                  text += ".reg .b32 %a" + std::to_string(i) + "_<3>;\n";
              return in_body(text + repeated("mov.u32 %a7_1, %a49999_2;", 20000));
          }) == accepted);
}

TEST_CASE("bounds: bytes that are no text") {
    CHECK(read_within_bounds([] { return repeated("/*", 1000000); }) == refused);
    CHECK(read_within_bounds([] { return head + "/* " + repeated("x\n", 3000000); }) == refused);
    CHECK(read_within_bounds([] { return in_body(".pragma \"" + repeated("\\", 3000000)); }) ==
          refused);
    CHECK(read_within_bounds([] { return head + std::string(5000000, '\0') + "x"; }) == refused);
    CHECK(read_within_bounds([] { return in_body(repeated("\xff\xfe\xc0\x80 ", 1000000)); }) ==
          refused);
    CHECK(read_within_bounds([] { return in_body(repeated("\xe2\x80\xa8;", 1000000)); }) ==
          refused);
    CHECK(read_within_bounds(
              [] { return in_body("mov.u32 " + std::string(10000000, 'x') + ", 1;"); }) == refused);
    CHECK(read_within_bounds([] {
              return in_body("mov.u32 %r1, " + std::string(10000000, '9') + ";");
          }) == refused);
    CHECK(read_within_bounds([] {
              return in_body("mov.f32 %r1, 1." + std::string(10000000, '9') + "e99999999999;");
          }) == refused);
    CHECK(read_within_bounds([] { return in_body("." + std::string(10000000, 'a') + " x;"); }) ==
          refused);
    CHECK(read_within_bounds([] { return std::string(10000000, ';'); }) == refused);
}
