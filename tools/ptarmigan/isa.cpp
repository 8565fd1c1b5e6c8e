// SPDX-License-Identifier: Apache-2.0
// `ptarmigan isa`: the coverage table, straight from the instruction table.
#include "frontend/isa/instruction_form.h"
#include "tools/ptarmigan/commands.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <map>
#include <memory>
#include <string>

namespace ptarmigan::tool {
namespace {

struct IsaOptions {
    bool missing = false, markdown = false, json = false, summary = false;
};

std::string escaped(std::string_view text, const char* characters) {
    std::string result;
    for (char c : text) {
        if (std::string_view(characters).find(c) != std::string_view::npos)
            result += '\\';
        result += c;
    }
    return result;
}

std::string status_of(const ptx::FormInfo& form) {
    return form.lowered ? "supported" : "unsupported: " + std::string(form.unsupported_reason);
}

void print_json(const ptx::FormInfo& form, bool first) {
    std::printf("%s\n  {\"form\": \"%s\", \"syntax\": \"%s\", \"ptx\": \"%d.%d\", \"sm\": %d, \"targets\": \"%s\", "
                "\"section\": \"%s\", "
                "\"chapter\": \"%s\", \"supported\": %s, \"reason\": \"%s\"}",
                first ? "" : ",", std::string(form.name).c_str(),
                escaped(form.syntax, "\"\\").c_str(), form.ptx_major, form.ptx_minor, form.min_sm,
                std::string(form.targets).c_str(), std::string(form.section).c_str(), std::string(form.chapter).c_str(),
                form.lowered ? "true" : "false", escaped(form.unsupported_reason, "\"\\").c_str());
}

void print_summary() {
    std::map<std::string, std::pair<unsigned, unsigned>> chapters; // supported, all
    for (const ptx::FormInfo& form : ptx::all_forms()) {
        auto& [supported, all] = chapters[std::string(form.chapter)];
        supported += form.lowered;
        ++all;
    }
    unsigned supported = 0, all = 0;
    for (auto& [chapter, counts] : chapters) {
        std::printf("%-28s %4u of %4u\n", chapter.c_str(), counts.first, counts.second);
        supported += counts.first;
        all += counts.second;
    }
    std::printf("%-28s %4u of %4u\n", "all forms", supported, all);
}

int isa(const IsaOptions& options) {
    if (options.summary) {
        print_summary();
        return exit_success;
    }
    if (options.markdown)
        std::printf("| form | syntax | PTX | sm | manual | status |\n|---|---|---|---|---|---|\n");
    if (options.json)
        std::printf("[");
    bool first = true;
    for (const ptx::FormInfo& form : ptx::all_forms()) {
        if (options.missing && form.lowered)
            continue;
        std::string name(form.name), syntax(form.syntax), section(form.section),
            status = status_of(form);
        if (options.json)
            print_json(form, first);
        else if (options.markdown)
            std::printf("| %s | `%s` | %d.%d | %s | %s | %s |\n", name.c_str(),
                        escaped(syntax, "|").c_str(), form.ptx_major, form.ptx_minor,
                        escaped(form.targets, "|").c_str(),
                        section.c_str(), status.c_str());
        else
            std::printf("%-32s %d.%d sm_%-3s %-12s %s\n    %s\n", name.c_str(), form.ptx_major,
                        form.ptx_minor, std::string(form.targets).c_str(), section.c_str(), status.c_str(),
                        syntax.c_str());
        first = false;
    }
    if (options.json)
        std::printf("\n]\n");
    return exit_success;
}

} // namespace

void add_isa_command(CLI::App& app, int& exit_code) {
    auto options = std::make_shared<IsaOptions>();
    auto* command =
        app.add_subcommand("isa", "Print the coverage table: every instruction form of PTX");
    command->add_flag("--missing", options->missing,
                      "only forms that are not supported, with the reason");
    auto* markdown = command->add_flag("--markdown", options->markdown, "as a Markdown table");
    auto* json = command->add_flag("--json", options->json, "as JSON");
    auto* summary = command->add_flag("--summary", options->summary, "counts per chapter");
    markdown->excludes(json)->excludes(summary);
    json->excludes(summary);
    command->callback([options, &exit_code] { exit_code = isa(*options); });
}

} // namespace ptarmigan::tool
