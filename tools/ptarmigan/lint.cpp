// SPDX-License-Identifier: Apache-2.0
// `ptarmigan lint`: parses and validates PTX files, all bodies included.
#include "frontend/module_loader.h"
#include "frontend/source/diagnostic.h"
#include "frontend/source/source_buffer.h"
#include "runtime/module/module_source.h"
#include "tools/ptarmigan/commands.h"
#include "tools/ptarmigan/linked_input.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::tool {
namespace {

/// Says that the version is beyond what is taken, at its directive.
void report_version(const ptx::ModuleLoader& loader, const std::string& path, const std::string& problem) {
    const ptx::SourceBuffer source(std::string(loader.text()), path);
    ptx::Diagnostics diagnostics(source, 1);
    diagnostics.error(loader.module().version_location, problem + " (PTARMIGAN_ACCEPT_NEWER_PTX=1 takes newer ones)");
    std::fputs(diagnostics.render_all().c_str(), stderr);
}

int lint(const std::vector<std::string>& paths, unsigned max_errors, bool link) {
    int exit_code = exit_success;
    for (const std::string& path : paths) {
        std::string text;
        if (!read_file(path, text)) {
            exit_code = exit_usage;
            continue;
        }
        ptx::ModuleLoader::Options options;
        options.bind_all_bodies = true;
        options.keep_bodies = false;
        options.max_errors = max_errors;
        auto loader = ptx::ModuleLoader::load(std::move(text), path, options);
        std::fputs(loader->diagnostics().render_all().c_str(), stderr);
        const std::string version = runtime::unsupported_version(loader->module().version);
        if (!version.empty()) report_version(*loader, path, version);
        if (exit_code == exit_success && (!loader->ok() || !version.empty())) exit_code = exit_failure;
    }
    std::string text, name;
    if (link && exit_code == exit_success) exit_code = link_input(paths, text, name);
    return exit_code;
}

} // namespace

void add_lint_command(CLI::App& app, int& exit_code) {
    struct Options {
        std::vector<std::string> paths;
        unsigned max_errors = 20;
        bool link = false;
    };
    auto options = std::make_shared<Options>();
    auto* command = app.add_subcommand("lint", "Parse and validate PTX files; errors as file:line:col on stderr");
    command->footer("PTX of versions beyond 9.5 is taken with PTARMIGAN_ACCEPT_NEWER_PTX=1, by run and exec too.\n"
                    "Exit status: 0 no errors, 1 errors found, 2 usage or unreadable file.");
    command->add_option("files", options->paths, "PTX files")->required();
    command->add_option("--max-errors", options->max_errors, "errors shown per file")->capture_default_str();
    command->add_flag("--link", options->link,
                      "link the files too: symbols that are missing, doubled or differ are errors");
    command->callback([options, &exit_code] { exit_code = lint(options->paths, options->max_errors, options->link); });
}

} // namespace ptarmigan::tool
