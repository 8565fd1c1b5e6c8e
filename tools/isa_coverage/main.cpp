// SPDX-License-Identifier: Apache-2.0
// What the tests know of each instruction form, found by binding their own data with the frontend; runs when the tool
// is built: isa_coverage TESTS_FOLDER prints rows for `ptarmigan isa` (evidence.h there).
#include "frontend/isa/instruction_form.h"
#include "frontend/module_loader.h"
#include "tests/agreement/statements.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptarmigan {
namespace {

namespace fs = std::filesystem;

struct Evidence {
    unsigned recorded = 0;   ///< lines of the recordings that agree with the H200, and recorded programs
    unsigned exhaustive = 0; ///< likewise, with all inputs
    unsigned differing = 0;  ///< lines that are marked as known to differ
    unsigned judged = 0;     ///< statements that ptxas accepts
    std::set<std::string> programs, unit_tests;
};
using Table = std::map<ptx::FormId, Evidence>;

std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path.string());
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Files below `folder` with one of the extensions, in a fixed order.
std::vector<fs::path> files_below(const fs::path& folder, const std::set<std::string>& extensions) {
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
        if (entry.is_regular_file() && extensions.contains(entry.path().extension())) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

/// Every instruction of a text's functions. Throws if the text is not right.
void for_each_instruction(const std::string& text, const std::string& name,
                          const std::function<void(const ptx::Instruction&)>& visit) {
    const auto loader = ptx::ModuleLoader::load(text, name, {.bind_all_bodies = true, .max_errors = 3});
    if (!loader->ok()) throw std::runtime_error(loader->diagnostics().render_all());
    for (ptx::FunctionId id = 0; id < loader->module().functions.size(); ++id)
        if (!loader->module().functions[id].is_declaration)
            for (const ptx::Instruction& instruction : loader->body(id).instructions) visit(instruction);
}

/// Every head of an instruction in a text that looks like one and is; opcodes without words are known by the semicolon:
/// `exit;`.
std::set<std::string> heads_in(const std::string& text) {
    static const std::regex head("[a-z][a-z0-9_]*((\\.[a-zA-Z0-9_:]+)+|(?=;))");
    std::set<std::string> heads;
    for (std::sregex_iterator match(text.begin(), text.end(), head), end; match != end; ++match)
        heads.insert(match->str());
    return heads;
}

/// The lines of a recording (tests/recordings/forms.h): hash (with ~: known to differ), type of the result, types of
/// the sources, and the head of a statement or several statements. `exhaustive`: they were given all inputs.
void add_recording(const fs::path& path, bool exhaustive, Table& table) {
    ptx::FormMatcher matcher;
    std::istringstream lines(contents(path));
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("module ")) continue;
        std::istringstream words(line);
        std::string hash, result, sources, statement;
        words >> hash >> result >> sources >> std::ws;
        std::getline(words, statement, '/');
        const bool several = statement.find("%d") != std::string::npos;
        std::set<ptx::FormId> forms;
        for (const std::string& head :
             several ? heads_in(statement) : std::set{statement.substr(0, statement.find(' '))}) {
            const auto rows = test::rows_for(matcher, head);
            if (rows.empty() && !several) throw std::runtime_error(path.string() + ": no row for " + head);
            for (const ptx::HeadMatch& row : rows) forms.insert(row.form);
        }
        for (const ptx::FormId form : forms) {
            Evidence& evidence = table[form];
            ++(hash[0] == '~' ? evidence.differing : exhaustive ? evidence.exhaustive : evidence.recorded);
        }
    }
}

/// A line of a recording of textures or surfaces: hash, statement's head and more behind a slash. Rows for registers of
/// another number than the words say have lines of their own, or none.
void add_named_recording(const fs::path& path, Table& table) {
    ptx::FormMatcher matcher;
    std::istringstream lines(contents(path));
    std::string hash, name;
    while (lines >> hash >> name)
        for (const ptx::HeadMatch& row : test::rows_for(matcher, name.substr(0, name.find('/')))) {
            const std::string_view form = ptx::form_info(row.form).name;
            const bool more_registers = name.find("/registers") != name.npos;
            if (form.ends_with("_scalar") || form.ends_with("_list") != more_registers) continue;
            Evidence& evidence = table[row.form];
            ++(hash[0] == '~' ? evidence.differing : evidence.recorded);
        }
}

/// Lines "HEAD: result" of tests/recordings/synchronization.
void add_cases(const fs::path& path, Table& table) {
    ptx::FormMatcher matcher;
    std::istringstream lines(contents(path));
    for (std::string line; std::getline(lines, line);)
        for (const ptx::HeadMatch& row : test::rows_for(matcher, line.substr(0, line.find(": "))))
            ++table[row.form].recorded;
}

/// Lines "FORM RECORDING:PROGRAMS ..." of tests/recordings/recorded_forms.
void add_recorded_programs(const fs::path& path, Table& table) {
    std::map<std::string_view, ptx::FormId> forms;
    for (const ptx::FormInfo& form : ptx::all_forms()) forms[form.name] = form.id;
    std::istringstream lines(contents(path));
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('#')) continue;
        std::istringstream words(line);
        std::string form, recording;
        words >> form;
        const auto found = forms.find(form);
        if (found == forms.end()) throw std::runtime_error(path.string() + ": no form " + form);
        while (words >> recording)
            table[found->second].recorded += std::stoul(recording.substr(recording.find(':') + 1));
    }
}

void add_programs(const fs::path& folder, Table& table) {
    for (const fs::path& path : files_below(folder, {".ptx"}))
        for_each_instruction(contents(path), path.string(), [&](const ptx::Instruction& instruction) {
            table[instruction.form].programs.insert(path.stem());
        });
}

/// Statements in the sources of tests: whatever looks like the head of one and is, and rows that are named as such.
void add_unit_tests(const fs::path& folder, Table& table) {
    ptx::FormMatcher matcher;
    const std::regex row("FormId::([a-z][a-z0-9_]*)");
    std::map<std::string_view, ptx::FormId> rows;
    for (const ptx::FormInfo& form : ptx::all_forms()) rows[form.name] = form.id;
    for (const fs::path& path : files_below(folder, {".cpp", ".h", ".ptx"})) {
        const std::string text = contents(path);
        for (std::sregex_iterator match(text.begin(), text.end(), row), end; match != end; ++match)
            if (const auto found = rows.find((*match)[1].str()); found != rows.end())
                table[found->second].unit_tests.insert(path.stem());
        for (const std::string& head : heads_in(text))
            for (const ptx::HeadMatch& row : test::rows_for(matcher, head))
                table[row.form].unit_tests.insert(path.stem());
    }
}

/// Statements that ptxas accepts, as `+ STATEMENT` behind `@ VERSION TARGET`.
void add_verdicts(const fs::path& path, Table& table) {
    ptx::FormMatcher matcher;
    std::istringstream lines(contents(path));
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("+ ")) continue;
        std::istringstream words(line.substr(2));
        std::string head;
        words >> head;
        if (head.starts_with("@")) words >> head;
        if (!head.empty() && head.back() == ';') head.pop_back();
        std::set<ptx::FormId> forms;
        for (const ptx::HeadMatch& row : test::rows_for(matcher, head)) forms.insert(row.form);
        for (const ptx::FormId form : forms) ++table[form].judged;
    }
}

std::string quoted(const std::set<std::string>& words) {
    std::string text = "\"";
    for (const std::string& word : words) text += (text.size() > 1 ? " " : "") + word;
    return text + "\"";
}

} // namespace
} // namespace ptarmigan

int main(int argc, char** argv) try {
    using namespace ptarmigan;
    if (argc != 2) throw std::runtime_error("usage: isa_coverage TESTS_FOLDER");
    const fs::path tests = argv[1];
    Table table;
    for (const char* list : {"arithmetic_forms", "video_forms", "comparison_forms", "memory_forms", "exhaustive_forms"})
        add_recording(tests / "recordings" / (list + std::string("_h200.txt")), list == std::string("exhaustive_forms"),
                      table);
    for (const char* list : {"cache_policies", "conversion_chains"})
        add_recording(tests / "recordings" / (list + std::string("_h100.txt")), false, table);
    for (const char* name : {"texture_forms", "surface_forms"})
        add_named_recording(tests / "recordings/textures" / (std::string(name) + "_h200.txt"), table);
    add_cases(tests / "recordings/synchronization/atomic_forms_h200.txt", table);
    add_recorded_programs(tests / "recordings/recorded_forms/recorded_forms.txt", table);
    add_programs(tests / "programs/ptx", table);
    for (const char* folder : {"unit", "driver_api", "tools", "recordings/async_copies"})
        add_unit_tests(tests / folder, table);
    add_verdicts(tests / "agreement/verdicts.txt", table);
    for (const ptx::FormInfo& form : ptx::all_forms()) {
        const Evidence& evidence = table[form.id];
        std::printf("PTM_EVIDENCE(%s, %u, %u, %u, %u, %s, %s)\n", std::string(form.name).c_str(), evidence.recorded,
                    evidence.exhaustive, evidence.differing, evidence.judged, quoted(evidence.programs).c_str(),
                    quoted(evidence.unit_tests).c_str());
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "isa_coverage: %s\n", error.what());
    return 1;
}
