// SPDX-License-Identifier: Apache-2.0
// Everyday mistakes and the whole text of what is said about each, beside what ptxas 13.0 says: everyday_mistakes.txt.
// A case is "== NAME", PTX (statements in a frame of declarations, or a whole text), then our errors as
// "> LINE:COLUMN: TEXT" and ptxas' first one as "# LINE: TEXT". Both must be in the same line; '~' instead of '#' marks
// where they are not, on purpose, and '=' where ptxas reports none.
#include "frontend/module_loader.h"

#include <catch2/catch.hpp>

#include <fstream>

using namespace ptarmigan;

namespace {

struct Mistake {
    std::string name, text;
    std::vector<std::string> errors;
    char mark = 0; ///< of ptxas' line
    unsigned judge_line = 0;
};

std::string framed(const std::string& frame, const std::string& statements) {
    const std::string place = "    STATEMENTS\n";
    std::string text = frame;
    return text.replace(text.find(place), place.size(), statements);
}

void add_error_line(const std::string& line, Mistake& mistake) {
    if (line[0] == '>') {
        mistake.errors.push_back(line.substr(2));
        return;
    }
    mistake.mark = line[0];
    if (line[0] != '=') mistake.judge_line = static_cast<unsigned>(std::stoul(line.substr(2)));
}

std::vector<Mistake> read_mistakes(const std::string& path) {
    std::ifstream file(path);
    std::vector<Mistake> mistakes;
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("== ", 0) == 0)
            mistakes.push_back({line.substr(3), {}, {}});
        else if (!mistakes.empty() && !line.empty() && std::string(">#~=").find(line[0]) != std::string::npos)
            add_error_line(line, mistakes.back());
        else if (!mistakes.empty())
            mistakes.back().text += line + "\n";
    }
    return mistakes;
}

std::vector<std::string> errors_of(const std::string& text) {
    const auto loader = ptx::ModuleLoader::load(text, "mistake.ptx", {.bind_all_bodies = true, .max_errors = 20});
    std::vector<std::string> errors;
    for (const ptx::Diagnostic& d : loader->diagnostics().list())
        errors.push_back(std::to_string(d.location.line) + ":" + std::to_string(d.location.column) + ": " + d.text);
    return errors;
}

} // namespace

TEST_CASE("reject: everyday mistakes get these messages, in the line that ptxas names") {
    const std::vector<Mistake> mistakes = read_mistakes(PTARMIGAN_REJECT_DIR "/everyday_mistakes.txt");
    REQUIRE(mistakes.size() > 100);
    REQUIRE(mistakes.front().name == "frame");
    const std::string& frame = mistakes.front().text;
    for (std::size_t i = 1; i < mistakes.size(); ++i) {
        const Mistake& mistake = mistakes[i];
        INFO(mistake.name);
        const bool whole = mistake.text.rfind(".version", 0) == 0 || mistake.text.rfind(".target", 0) == 0;
        const std::vector<std::string> errors = errors_of(whole ? mistake.text : framed(frame, mistake.text));
        CHECK(errors == mistake.errors);
        REQUIRE(!errors.empty());
        REQUIRE(mistake.mark != 0);
        if (mistake.mark == '=') continue;
        const bool same_line = std::stoul(errors.front()) == mistake.judge_line;
        CHECK(same_line == (mistake.mark == '#'));
    }
}
