// SPDX-License-Identifier: Apache-2.0
// `ptarmigan compile`: fills a cache folder before programs run, for container images and CI caches.
#include "runtime/base/env.h"
#include "runtime/module/disk_cache.h"
#include "runtime/module/kernel_cache.h"
#include "tools/ptarmigan/commands.h"
#include "tools/ptarmigan/compile_ahead.h"
#include "tools/ptarmigan/dimensions.h"

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <regex>
#include <stdexcept>
#include <thread>

namespace ptarmigan::tool {
namespace {

struct CompileOptions {
    std::vector<std::string> files, blocks;
    std::string kernel, cache_dir, target;
    unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
    bool record = false;
};

void set(const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
}

/// The environment decides where and for which CPU code is made; what follows reads it.
void apply(const CompileOptions& options) {
    set("PTARMIGAN_CACHE", "on");
    // Of the code that is made in two ways only the better one is worth keeping.
    for (const runtime::EnvVariable& variable : runtime::env_variables())
        if (std::string_view(variable.name) == "PTARMIGAN_TIER") set(variable.name, "best");
    if (!options.cache_dir.empty()) set("PTARMIGAN_CACHE_DIR", options.cache_dir);
    if (!options.target.empty()) {
        const std::string problem = runtime::env_problem(runtime::Env::target, options.target);
        if (!problem.empty()) throw std::invalid_argument("--target " + options.target + ": it takes " + problem);
        set("PTARMIGAN_TARGET", options.target);
    }
}

struct FolderState {
    std::size_t files = 0;
    std::uint64_t bytes = 0;
};

FolderState state_of(const runtime::CacheSettings& settings) {
    FolderState state;
    for (const auto& file : runtime::DiskCache(settings.directory, settings.size_limit).list()) {
        ++state.files;
        state.bytes += file.size;
    }
    return state;
}

std::function<bool(const std::string&)> matcher(const std::string& pattern) {
    if (pattern.empty()) return [](const std::string&) { return true; };
    try {
        return
            [expression = std::regex(pattern)](const std::string& name) { return std::regex_search(name, expression); };
    } catch (const std::regex_error& error) {
        throw std::invalid_argument("--kernel " + pattern + ": " + error.what());
    }
}

void print_faults(const ProgramTexts& texts, const AheadCounts& counts) {
    if (texts.unsuitable) std::printf("  %zu images have no code for this device: left out\n", texts.unsuitable);
    for (const auto& [cause, count] : texts.faults) std::printf("  %zu failed: %s\n", count, cause.c_str());
    for (const auto& [cause, fault] : counts.faults)
        std::printf("  %zu failed: %s (%s)\n", fault.count, cause.c_str(), fault.first.c_str());
}

int compile(const CompileOptions& options) {
    apply(options);
    // Failures are summed up below, so all that is left to say meanwhile is how far it has come.
    if (!std::getenv("PTARMIGAN_LOG")) set("PTARMIGAN_LOG", "off");
    if (!std::getenv("PTARMIGAN_PROGRESS") && isatty(STDERR_FILENO)) set("PTARMIGAN_PROGRESS", "on");
    AheadOptions ahead;
    ahead.wanted = matcher(options.kernel);
    ahead.jobs = options.jobs;
    for (const std::string& block : options.blocks) ahead.blocks.push_back(parse_block(block));
    const auto settings = runtime::CacheSettings::from_environment();
    if (settings.directory.empty())
        throw std::runtime_error("there is no cache folder: HOME is not set; use --cache-dir");
    const std::string problem = runtime::DiskCache(settings.directory, settings.size_limit).problem();
    if (!problem.empty()) throw std::runtime_error(settings.directory + ": " + problem);

    const auto start = std::chrono::steady_clock::now();
    const FolderState before = state_of(settings);
    const ProgramTexts texts = find_texts(options.files);
    const AheadCounts counts = compile_ahead(texts, ahead);
    const FolderState after = state_of(settings);
    const auto made = runtime::KernelCache::process_cache().statistics();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const std::string cubins = counts.cubins ? ", " + std::to_string(counts.cubins) + " cubins" : std::string();
    std::printf("%zu files, %zu PTX texts%s, %zu kernels in %zu variants: %llu compiled, %llu were there; %.1f s\n",
                texts.files, counts.texts, cubins.c_str(), counts.kernels, counts.variants,
                static_cast<unsigned long long>(made.compilations), static_cast<unsigned long long>(made.disk_hits),
                seconds);
    std::printf("%s: %zu files, %.1f MiB\n", settings.directory.c_str(), after.files,
                static_cast<double>(after.bytes) / (1 << 20));
    if (counts.guessed)
        std::printf(
            "%zu for blocks of 256 threads, a guess, because nothing names another shape: a launch with another "
            "one compiles anew; see --block and --record\n",
            counts.guessed);
    print_faults(texts, counts);
    const bool pruned = after.files < before.files + made.compilations;
    if (pruned)
        std::fprintf(stderr, "ptarmigan: the folder's limit does not let all of this stay: set PTARMIGAN_CACHE_SIZE\n");
    if (texts.unreadable) return exit_usage;
    const std::size_t loaded = counts.texts + counts.cubins;
    if (loaded == 0 && texts.faults.empty() && counts.faults.empty()) {
        std::fprintf(stderr, "ptarmigan: nothing to compile: there is no PTX or machine code in what was named\n");
        return exit_failure;
    }
    if (loaded != 0 && counts.variants == 0 && counts.faults.empty()) {
        std::fprintf(stderr, "ptarmigan: %s\n",
                     options.kernel.empty() ? "the files have no kernels" : "no kernel has a match of --kernel");
        return exit_failure;
    }
    return texts.faults.empty() && counts.faults.empty() && !pruned ? exit_success : exit_failure;
}

} // namespace

void add_compile_command(CLI::App& app, int& exit_code) {
    auto* command = app.add_subcommand(
        "compile", "Compile kernels ahead, into the cache: ptarmigan compile [OPTIONS] FILE|FOLDER...\n"
                   "                            or by a run: ptarmigan compile --record -- PROGRAM ARGS...");
    command->footer(
        "Files: programs and shared libraries with fat binaries, fat binaries, cubins, PTX; of a folder all of these below it.\n"
        "Code depends on the shape of the block. A kernel is compiled for what it requires (.reqntid), else for each\n"
        "--block, else for the shapes that the cache has of earlier runs or versions, else for the largest block that it\n"
        "allows (.maxntid, from __launch_bounds__), else for 256 threads. --record runs the program instead and keeps\n"
        "exactly what it launches, cooperative launches included: use that wherever the program can run, and FILE... for\n"
        "libraries of which a run sees a part only. Code is for this machine's CPU unless --target names one that many\n"
        "CPUs can stand for; who runs it then needs the same PTARMIGAN_TARGET.\n"
        "Exit status: 0, 1 if something could not be compiled or there is nothing to compile, 2 for a file that can't be read; of --record the program's.");
    auto options = std::make_shared<CompileOptions>();
    command
        ->add_option(
            "FILE", options->files,
            "programs, libraries, fat binaries, cubins, PTX, folders; with --record a program and its arguments")
        ->required();
    command->add_option("--kernel", options->kernel,
                        "only kernels whose (mangled) name has a match of this expression");
    command->add_option("--block", options->blocks, "X[,Y[,Z]]: compile for this block; may be given several times")
        ->allow_extra_args(false);
    command->add_option("--cache-dir", options->cache_dir,
                        "the folder (default: PTARMIGAN_CACHE_DIR, see `ptarmigan cache path`)");
    command->add_option("--target", options->target,
                        "as PTARMIGAN_TARGET: host, x86-64-v3, x86-64-v4, sapphirerapids or aarch64");
    command->add_option("--jobs,-j", options->jobs, "kernels at a time (default: the CPUs)")
        ->check(CLI::Range(1u, 1024u));
    command->add_flag("--record", options->record, "run the program, and keep what it launches");
    command->callback([options, &exit_code] {
        if (!options->record) {
            exit_code = compile(*options);
            return;
        }
        if (!options->kernel.empty() || !options->blocks.empty())
            throw std::invalid_argument("--record keeps what the program launches: no --kernel or --block");
        apply(*options);
        exit_code = run_program(options->files);
    });
}

} // namespace ptarmigan::tool
