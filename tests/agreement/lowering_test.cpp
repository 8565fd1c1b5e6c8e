// SPDX-License-Identifier: Apache-2.0
// What ptxas accepts must not only be read but become code: each accepted statement of verdicts.txt goes through the
// translator to LLVM's IR. Refused may only be what a row of the table refuses by name, or what is listed here.
#include "frontend/isa/instruction_form.h"
#include "frontend/module_loader.h"
#include "tests/agreement/statements.h"
#include "translator/compile.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <iostream>
#include <optional>
#include <set>

namespace ptarmigan::test {
namespace {

/// The reasons for which rows are refused.
std::set<std::string, std::less<>> reasons_of_rows() {
    std::set<std::string, std::less<>> reasons;
    for (const ptx::FormInfo& form : ptx::all_forms())
        if (!form.lowered) reasons.emplace(form.unsupported_reason);
    return reasons;
}

/// Why the translator refuses the statement; empty if it makes code of it, nothing if the front end refuses it, of which
/// agreement_test.cpp judges.
std::optional<std::string> refusal(const std::string& version, const std::string& target, const std::string& statement) {
    auto loader = ptx::ModuleLoader::load(module_header(version, target) + wrap(statement, 0, version), "statement",
                                          {.bind_all_bodies = true});
    if (!loader->ok()) return std::nullopt;
    translator::BlockShape shape;
    shape.ntid = {64, 1, 1};
    translator::CompileOptions options;
    options.target = translator::named_target("x86-64-v3");
    options.lane_width = 8;
    try {
        translator::dump(*loader, "k0", shape, options, "llvm");
    } catch (const translator::UnsupportedError& error) {
        return std::string(error.what());
    }
    return std::string();
}

/// Accepted by ptxas and refused by no row, but not translated.
const std::set<std::string> known_gaps = {};

} // namespace

TEST_CASE("what ptxas accepts becomes code", "[agreement]") {
    std::ifstream in(PTARMIGAN_AGREEMENT_DIR "/verdicts.txt");
    REQUIRE(in);
    const auto reasons = reasons_of_rows();
    std::set<std::string> seen, gaps = known_gaps;
    std::string version, target;
    unsigned translated = 0, refused_by_row = 0;
    for (std::string line; std::getline(in, line);) {
        if (line[0] == '@') {
            const std::size_t space = line.find(' ', 2);
            version = line.substr(2, space - 2);
            target = line.substr(space + 1);
        }
        if (line[0] != '+') continue;
        const std::string statement = line.substr(2);
        if (statement.starts_with("module ") || !seen.insert(statement).second) continue;
        const std::optional<std::string> answer = refusal(version, target, statement);
        if (!answer) continue;
        const std::string& why = *answer;
        constexpr std::string_view mark = "unsupported: ";
        const std::size_t at = why.find(mark);
        if (why.empty()) {
            ++translated;
        } else if (at != why.npos && reasons.contains(std::string_view(why).substr(at + mark.size()))) {
            ++refused_by_row;
        } else if (gaps.erase(statement) == 0) {
            FAIL_CHECK(version << ' ' << target << ' ' << statement << '\n' << why);
        }
    }
    std::cout << translated << " statements become code, " << refused_by_row << " are of rows that are refused by name\n";
    CHECK(translated > 2000);
    CHECK(gaps.empty()); // listed, but translated
}

} // namespace ptarmigan::test
