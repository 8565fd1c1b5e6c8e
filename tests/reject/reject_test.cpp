// SPDX-License-Identifier: Apache-2.0
// Each malformed file says in its last line where its first error is and what it says: `// expect:
// LINE: text`.
#include "frontend/module_loader.h"
#include "tests/reject/text_files.h"

#include <catch2/catch.hpp>

using namespace ptarmigan;

namespace {

struct Expectation {
    unsigned line = 0;
    std::string text;
};

Expectation expectation(const std::string& text) {
    const std::string mark = "// expect: ";
    const std::size_t at = text.rfind(mark);
    if (at == std::string::npos) return {};
    Expectation expected;
    std::size_t used = 0;
    const std::string rest = text.substr(at + mark.size());
    expected.line = static_cast<unsigned>(std::stoul(rest, &used));
    expected.text = rest.substr(used + 2, rest.find('\n') - used - 2);
    return expected;
}

} // namespace

TEST_CASE("reject: every malformed file gives the error that it expects") {
    const auto files = test::ptx_files(PTARMIGAN_REJECT_DIR);
    REQUIRE(files.size() >= 100);
    for (const test::TextFile& file : files) {
        INFO(file.name);
        const Expectation expected = expectation(file.text);
        REQUIRE(expected.line > 0);
        const auto loader = ptx::ModuleLoader::load(file.text, file.name,
                                                    {.bind_all_bodies = true, .max_errors = 20});
        REQUIRE_FALSE(loader->ok());
        const ptx::Diagnostic& first = loader->diagnostics().list().front();
        CHECK(first.location.line == expected.line);
        CHECK_THAT(first.text, Catch::Matchers::Contains(expected.text));
    }
}

TEST_CASE("reject: a body's errors come when it is asked for, and leave the module usable") {
    const auto loader =
        ptx::ModuleLoader::load(".version 9.0\n.target sm_90\n.address_size 64\n"
                                ".entry bad()\n{\n    add.u32 %r1, %r2, 1;\n    ret;\n}\n"
                                ".entry good()\n{\n    ret;\n}\n",
                                "two.ptx");
    REQUIRE(loader->ok());
    CHECK_THROWS_AS(loader->body(0), ptx::DiagnosticError);
    CHECK_THROWS_WITH(loader->body(0),
                      Catch::Matchers::Contains("two.ptx:6:13: error: unknown symbol '%r1'"));
    CHECK(loader->body(1).instructions.size() == 1);
}

TEST_CASE("reject: the limit is per body") {
    const std::string bad = "()\n{\n    frobnicate;\n    frobnicate;\n    frobnicate;\n}\n";
    const auto loader = ptx::ModuleLoader::load(
        ".version 9.0\n.target sm_90\n.address_size 64\n.entry a" + bad + ".entry b" + bad, "t.ptx",
        {.bind_all_bodies = false, .max_errors = 2});
    CHECK_THROWS_WITH(loader->body(1),
                      Catch::Matchers::Contains("t.ptx:12:5: error: unknown instruction"));
    CHECK_THROWS_WITH(loader->body(0),
                      Catch::Matchers::Contains("t.ptx:6:5: error: unknown instruction"));
    CHECK(loader->diagnostics().error_count() == 6);
}

TEST_CASE("reject: several errors in one run, without one error causing the next") {
    const auto loader =
        ptx::ModuleLoader::load(".version 9.0\n.target sm_90\n.address_size 64\n"
                                ".entry k()\n{\n    .reg .b32 %r<4>;\n"
                                "    addd.u32 %r1, %r2, 1;\n"
                                "    add.u32 %r1, %x, %y;\n"
                                "    add.u32 %x, %x, %x;\n"
                                "    sub.u32 %r1, %r2;\n"
                                "    ret;\n}\n",
                                "k.ptx", {.bind_all_bodies = true, .max_errors = 20});
    std::vector<unsigned> lines;
    for (const ptx::Diagnostic& d : loader->diagnostics().list()) lines.push_back(d.location.line);
    CHECK(lines == std::vector<unsigned>{7, 8, 8, 10}); // %x and %y once each
}

TEST_CASE("reject: errors beyond the limit are counted, not kept") {
    std::string text = ".version 9.0\n.target sm_90\n.address_size 64\n";
    for (int i = 0; i < 50; ++i) text += ".frobnicate;\n";
    const auto loader =
        ptx::ModuleLoader::load(text, "many.ptx", {.bind_all_bodies = true, .max_errors = 5});
    CHECK(loader->diagnostics().list().size() == 5);
    CHECK(loader->diagnostics().error_count() == 50);
    CHECK_THAT(loader->diagnostics().render_all(),
               Catch::Matchers::Contains("45 more errors not shown"));
}

TEST_CASE("reject: a message shows the line with a caret below the column") {
    const auto loader =
        ptx::ModuleLoader::load(".version 9.0\n.target sm_90\n\t.address_size 16\n", "a.ptx");
    REQUIRE_FALSE(loader->ok());
    CHECK(loader->diagnostics().render_all() ==
          "a.ptx:3:16: error: .address_size must be 32 or 64\n    \t.address_size 16\n    \t       "
          "       ^\n");
}
