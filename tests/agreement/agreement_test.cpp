// SPDX-License-Identifier: Apache-2.0
// The front end against recorded verdicts of ptxas 13.0 (verdicts.txt), and the instruction table
// against the list of documented forms (forms.txt). README.md says how both are made.
#include "tests/agreement/statements.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <iostream>

namespace ptarmigan::test {

namespace {

struct Count {
    unsigned all = 0, same = 0;
    double percent() const { return all == 0 ? 100 : 100.0 * same / all; }
};

void judge(const std::string& version, const std::string& target, const std::string& line,
           Count& accepted, Count& refused) {
    const std::string statement = line.substr(2);
    const bool expected = line[0] == '+';
    Count& count = expected ? accepted : refused;
    ++count.all;
    const bool got = accepted_here(version, target, statement);
    if (got == expected) ++count.same;
    if (got != expected && std::getenv("PTARMIGAN_SHOW_DISAGREEMENTS") != nullptr)
        std::cout << (expected ? "refused here: " : "accepted here: ") << version << ' ' << target
                  << ' ' << statement << '\n';
}

} // namespace

TEST_CASE("what ptxas accepts and refuses", "[agreement]") {
    std::ifstream in(PTARMIGAN_AGREEMENT_DIR "/verdicts.txt");
    REQUIRE(in);
    Count accepted, refused;
    std::string version, target;
    for (std::string line; std::getline(in, line);) {
        if (line[0] == '@') {
            const std::size_t space = line.find(' ', 2);
            version = line.substr(2, space - 2);
            target = line.substr(space + 1);
        } else if (line[0] == '+' || line[0] == '-') {
            judge(version, target, line, accepted, refused);
        }
    }
    std::cout << "accepted by ptxas: " << accepted.same << " of " << accepted.all
              << " accepted here (" << accepted.percent() << " %)\nrefused by ptxas: "
              << refused.same << " of " << refused.all << " refused here (" << refused.percent()
              << " %)\n";
    CHECK(accepted.all > 3000);
    CHECK(refused.all > 2500);
    CHECK(accepted.percent() >= 99.0);
    CHECK(refused.percent() >= 95.5);
}

TEST_CASE("every documented form is a row of the table", "[agreement]") {
    std::ifstream in(PTARMIGAN_AGREEMENT_DIR "/forms.txt");
    REQUIRE(in);
    ptx::FormMatcher matcher;
    unsigned forms = 0, heads = 0, missing = 0;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') continue;
        ++forms;
        for (const std::string& head : expand(line.substr(line.rfind('\t') + 1))) {
            ++heads;
            if (!rows_for(matcher, head).empty()) continue;
            ++missing;
            UNSCOPED_INFO(head);
        }
    }
    std::cout << forms << " documented forms, " << heads << " combinations of words, " << missing
              << " without a row\n";
    CHECK(forms > 800);
    CHECK(missing <= 42); // README.md lists them: ptxas refuses these too
}

TEST_CASE("patterns of words", "[agreement]") {
    CHECK(expand("add.(rn|rz)[.ftz].f32") ==
          std::vector<std::string>{"add.rn.f32", "add.rn.ftz.f32", "add.rz.f32", "add.rz.ftz.f32"});
    CHECK(wrap("mov.b64 %b64_0, {%b32_1:2};", 7).find("mov.b64 %b64_0, {%b32_1, %b32_2};") !=
          std::string::npos);
}

} // namespace ptarmigan::test
