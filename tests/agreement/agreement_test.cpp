// SPDX-License-Identifier: Apache-2.0
// The front end against recorded verdicts of ptxas 13.0 (verdicts.txt), and the instruction table
// against the list of documented forms (forms.txt). README.md says how both are made.
#include "frontend/module_loader.h"
#include "tests/agreement/statements.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <iostream>
#include <map>
#include <set>

namespace ptarmigan::test {

namespace {

struct Count {
    unsigned all = 0, same = 0;
    double percent() const { return all == 0 ? 100 : 100.0 * same / all; }
};

/// Statements about which we disagree on purpose, with the reason why.
using Disagreements = std::map<std::string, std::string>;

Disagreements read_disagreements() {
    std::ifstream in(PTARMIGAN_AGREEMENT_DIR "/disagreements.txt");
    REQUIRE(in);
    Disagreements listed;
    std::string reason;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') continue;
        if (line[0] == '=') {
            reason = line.substr(2);
            CHECK(reason.size() > 20);
        } else {
            INFO(line);
            CHECK(!reason.empty());
            CHECK(listed.emplace(line, reason).second); // stands there once
        }
    }
    return listed;
}

/// Both figures, and what is left of `listed` when all that still disagrees has been taken out.
struct Judge {
    Disagreements listed = read_disagreements();
    Count accepted, refused;
    unsigned without_reason = 0;

    void operator()(const std::string& version, const std::string& target,
                    const std::string& line) {
        const std::string statement = line.substr(2);
        const bool expected = line[0] == '+';
        Count& count = expected ? accepted : refused;
        ++count.all;
        if (accepted_here(version, target, statement) == expected) {
            ++count.same;
            return;
        }
        const std::string name = version + ' ' + target + ' ' + statement;
        if (listed.erase(name) != 0) return;
        ++without_reason;
        std::cout << "no reason for " << (expected ? "refusing: " : "accepting: ") << name << '\n';
    }
};

} // namespace

namespace {
/// Calls `judge` with version, target and each line of verdict of a file.
template <typename Judgement> void for_each_verdict(const char* file, const Judgement& judge) {
    std::ifstream in(file);
    REQUIRE(in);
    std::string version, target;
    for (std::string line; std::getline(in, line);) {
        if (line[0] == '@') {
            const std::size_t space = line.find(' ', 2);
            version = line.substr(2, space - 2);
            target = line.substr(space + 1);
        } else if (line[0] == '+' || line[0] == '-') {
            judge(version, target, line);
        }
    }
}
} // namespace

TEST_CASE("what ptxas accepts and refuses", "[agreement]") {
    Judge judge;
    for_each_verdict(PTARMIGAN_AGREEMENT_DIR "/verdicts.txt", [&](const auto&... verdict) { judge(verdict...); });
    const auto& [listed, accepted, refused, without_reason] = judge;
    for (const auto& [name, reason] : listed)
        std::cout << "listed, but no disagreement: " << name << '\n';
    std::cout << "accepted by ptxas: " << accepted.same << " of " << accepted.all
              << " accepted here (" << accepted.percent() << " %)\nrefused by ptxas: "
              << refused.same << " of " << refused.all << " refused here (" << refused.percent()
              << " %)\n";
    CHECK(accepted.all > 3000);
    CHECK(refused.all > 2500);
    CHECK(without_reason == 0); // disagreements.txt wants one
    CHECK(listed.empty());
    CHECK(accepted.percent() >= 99.5);
    CHECK(refused.percent() >= 98.0);
}

namespace {
std::set<std::string> listed_without_row() {
    std::ifstream in(PTARMIGAN_AGREEMENT_DIR "/without_row.txt");
    REQUIRE(in);
    std::set<std::string> heads;
    bool has_reason = false;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') continue;
        if (line[0] == '=') {
            has_reason = line.size() > 20;
            continue;
        }
        CHECK(has_reason);
        for (std::string& head : expand(line)) heads.insert(std::move(head));
    }
    return heads;
}
} // namespace

TEST_CASE("every documented form is a row of the table", "[agreement]") {
    std::ifstream in(PTARMIGAN_AGREEMENT_DIR "/forms.txt");
    REQUIRE(in);
    ptx::FormMatcher matcher;
    unsigned forms = 0, heads = 0;
    std::set<std::string> missing;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') continue;
        ++forms;
        for (const std::string& head : expand(line.substr(line.rfind('\t') + 1))) {
            ++heads;
            if (!rows_for(matcher, head).empty()) continue;
            missing.insert(head);
        }
    }
    std::cout << forms << " documented forms, " << heads << " combinations of words, "
              << missing.size() << " without a row\n";
    CHECK(forms > 800);
    CHECK(missing == listed_without_row());
}

TEST_CASE("the verdict on a statement does not depend on those before it", "[agreement]") {
    // One module of all statements for a version and target: what the binder has learnt of one serves the next.
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> groups;
    for_each_verdict(PTARMIGAN_AGREEMENT_DIR "/verdicts.txt", [&](const auto& version, const auto& target, const auto& line) {
        const std::string statement = line.substr(2);
        if (!statement.starts_with("module ")) groups[{version, target}].push_back(statement);
    });
    unsigned compared = 0, differ = 0;
    for (const auto& [group, statements] : groups) {
        std::string text = module_header(group.first, group.second);
        for (std::size_t i = 0; i < statements.size(); ++i) text += wrap(statements[i], i, group.first);
        const auto loader = ptx::ModuleLoader::load(text, "statements");
        for (std::size_t i = 0; i < statements.size(); ++i) {
            const auto function = loader->module().find_function("k" + std::to_string(i));
            if (!function) continue;
            bool accepted = true;
            try {
                loader->body(*function);
            } catch (const ptx::DiagnosticError&) {
                accepted = false;
            }
            ++compared;
            if (accepted == accepted_here(group.first, group.second, statements[i])) continue;
            ++differ;
            std::cout << (accepted ? "accepted" : "refused") << " behind others only: " << group.first << ' ' << group.second << ' ' << statements[i] << '\n';
        }
    }
    std::cout << compared << " statements in " << groups.size() << " modules\n";
    CHECK(compared > 8500);
    CHECK(differ == 0);
}

TEST_CASE("refused in the line that ptxas names", "[agreement]") {
    Count first, among;
    for_each_verdict(PTARMIGAN_AGREEMENT_DIR "/refusal_lines.txt",
                     [&](const std::string& version, const std::string& target, const std::string& line) {
                         const std::size_t space = line.find(' ', 2);
                         const std::string lines = "," + line.substr(2, space - 2) + ",";
                         const auto loader = ptx::ModuleLoader::load(module_header(version, target) + spread(line.substr(space + 1), version),
                                                                     "statement", {.bind_all_bodies = true, .max_errors = 1});
                         if (loader->ok()) return; // the verdicts' business
                         std::uint32_t here = 0;
                         for (const ptx::Diagnostic& d : loader->diagnostics().list())
                             if (here == 0 && d.severity == ptx::Severity::error) here = d.location.line;
                         const std::string ours = "," + std::to_string(here) + ",";
                         ++first.all, ++among.all;
                         first.same += lines.starts_with(ours);
                         among.same += lines.find(ours) != std::string::npos;
                         if (!lines.starts_with(ours))
                             std::cout << "line " << here << " here: " << version << ' ' << target << ' ' << line << '\n';
                     });
    std::cout << "refused by both, spread over lines: " << first.same << " of " << first.all << " (" << first.percent()
              << " %) in the line that ptxas names first, " << among.same << " (" << among.percent() << " %) in one that it names\n";
    CHECK(first.all > 400);
    CHECK(first.percent() >= 94.0);
    CHECK(among.percent() >= 95.0);
}

TEST_CASE("documented forms that ptxas refuses, and those of later versions", "[agreement]") {
    unsigned accepted = 0, refused = 0;
    for_each_verdict(PTARMIGAN_AGREEMENT_DIR "/refused.txt",
                     [&](const std::string& version, const std::string& target, const std::string& line) {
                         INFO(version << ' ' << target << ' ' << line);
                         CHECK(accepted_here(version, target, line.substr(2)) == (line[0] == '+'));
                         ++(line[0] == '+' ? accepted : refused);
                     });
    CHECK(accepted > 30);
    CHECK(refused > 150);
}

TEST_CASE("forms newer than ptxas 13.0 are accepted from their version on", "[agreement]") {
    std::ifstream in(PTARMIGAN_AGREEMENT_DIR "/forms.txt");
    REQUIRE(in);
    const std::set<std::string> without_row = listed_without_row();
    ptx::FormMatcher matcher;
    unsigned statements = 0;
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with("9.1") && !line.starts_with("9.2")) continue;
        const std::string version = line.substr(0, 3), target = line.substr(4, line.find('\t', 4) - 4);
        for (const std::string& head : expand(line.substr(line.rfind('\t') + 1))) {
            if (without_row.count(head) != 0) continue;
            for (const ptx::HeadMatch& match : rows_for(matcher, head)) {
                const std::string statement = with_operands(head, match, false).front();
                INFO(version << ' ' << target << ' ' << statement);
                CHECK(accepted_here(version, target, statement));
                const ptx::FormInfo& info = ptx::form_info(match.form);
                const bool has_older_row = info.ptx_major < 9 || info.ptx_minor == 0;
                if (!has_older_row) CHECK(!accepted_here("9.0", target, statement));
                ++statements;
            }
        }
    }
    CHECK(statements > 80);
}

TEST_CASE("patterns of words", "[agreement]") {
    CHECK(expand("add.(rn|rz)[.ftz].f32") ==
          std::vector<std::string>{"add.rn.f32", "add.rn.ftz.f32", "add.rz.f32", "add.rz.ftz.f32"});
    CHECK(wrap("mov.b64 %b64_0, {%b32_1:2};", 7).find("mov.b64 %b64_0, {%b32_1, %b32_2};") !=
          std::string::npos);
}

} // namespace ptarmigan::test
