// SPDX-License-Identifier: Apache-2.0
// ptarmigan: run, check and look into CUDA programs and PTX on the CPU.
#include "tools/ptarmigan/commands.h"

#include "frontend/isa/words.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace ptarmigan::tool {

bool read_file(const std::string& path, std::string& contents) {
    const char* reason = nullptr;
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) { // opens, but reading it throws
        reason = std::strerror(EISDIR);
    } else {
        std::ifstream file(path, std::ios::binary);
        if (file) contents.assign(std::istreambuf_iterator<char>(file), {});
        if (!file) reason = std::strerror(errno);
    }
    if (reason) std::fprintf(stderr, "ptarmigan: cannot read %s: %s\n", path.c_str(), reason);
    return !reason;
}

namespace {

/// " (did you mean 'lint'?)" or nothing.
std::string similar(const std::string& word, const std::vector<std::string>& known) {
    ptx::NearestSpelling nearest(word);
    for (const std::string& name : known) nearest.offer(name);
    return nearest.question();
}

std::vector<std::string> command_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(command->get_name());
    return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    return names;
}

/// CLI11's text; for a word that is no command which word that was (CLI11 only misses a command); and what may have
/// been meant.
std::string explain_misuse(const CLI::App* app, const CLI::Error& error) {
    const auto unknown = app->remaining();
    const auto chosen = app->get_subcommands();
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) && chosen.empty() && !unknown.empty())
        return "ptarmigan: no command \"" + unknown.front() + "\"" + similar(unknown.front(), command_names(*app)) +
               "; see `ptarmigan --help`\n";
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) && chosen.empty())
        return "ptarmigan: a command is required\n\n" + app->help();
    std::string text = CLI::FailureMessage::simple(app, error);
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError) || chosen.empty()) return text;
    for (const std::string& argument : chosen.front()->remaining()) {
        const std::string word = argument.substr(0, argument.find('='));
        const std::string meant = similar(word, option_names(*chosen.front()));
        if (word.starts_with("--") && !meant.empty()) text = "ptarmigan: no option " + word + meant + "\n" + text;
    }
    return text;
}

/// The arguments in CLI11's order, last first. `--option=` becomes `--option ''`: CLI11 takes the next argument for its
/// value otherwise. What follows `--` is somebody else's.
std::vector<std::string> arguments(int argc, char** argv) {
    std::vector<std::string> list;
    bool ours = true;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        ours = ours && argument != "--";
        const bool empty_value = ours && argument.starts_with("--") && argument.find('=') == argument.size() - 1;
        list.push_back(empty_value ? argument.substr(0, argument.size() - 1) : argument);
        if (empty_value) list.emplace_back();
    }
    return {list.rbegin(), list.rend()};
}

/// How many words come before those of nvidia-smi: its options are none of CLI11's kind. 0: it is not meant.
int words_before_smi(int argc, char** argv) {
    if (argc > 0 && std::filesystem::path(argv[0]).filename() == "nvidia-smi") return 1;
    return argc > 1 && std::strcmp(argv[1], "smi") == 0 ? 2 : 0;
}

int show_devices(const std::vector<std::string>& words) {
    try {
        return run_smi(words);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "ptarmigan: %s\n", error.what());
        return exit_failure;
    }
}

} // namespace
} // namespace ptarmigan::tool

int main(int argc, char** argv) {
    using namespace ptarmigan::tool;
    if (const int words = words_before_smi(argc, argv); words != 0) return show_devices({argv + words, argv + argc});
    CLI::App app{"Runs CUDA programs on the CPU, and shows what becomes of their PTX.", "ptarmigan"};
    app.require_subcommand(1);
    app.set_version_flag("--version", "ptarmigan 0.1.0");
    app.failure_message(explain_misuse);
    int exit_code = exit_success;
    add_exec_command(app, exit_code);
    add_run_command(app, exit_code);
    add_lint_command(app, exit_code);
    add_dump_command(app, exit_code);
    add_compile_command(app, exit_code);
    add_cache_command(app, exit_code);
    add_info_command(app, exit_code);
    add_isa_command(app, exit_code);
    add_driver_command(app, exit_code);
    add_env_command(app, exit_code);
    add_smi_command(app);
    try {
        app.parse(arguments(argc, argv));
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? exit_success : exit_usage;
    } catch (const std::invalid_argument& error) { // an option's text that only its user can judge
        std::fprintf(stderr, "ptarmigan: %s\n", error.what());
        return exit_usage;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "ptarmigan: %s\n", error.what());
        return exit_failure;
    }
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) { // a full disk must not look like success
        std::fprintf(stderr, "ptarmigan: cannot write to standard output: %s\n", std::strerror(errno));
        return exit_code == exit_success ? exit_failure : exit_code;
    }
    return exit_code;
}
