// SPDX-License-Identifier: Apache-2.0
// `ptarmigan cache`: what the folder of compiled kernels holds, and its way to other machines.
#include "runtime/module/cache_archive.h"
#include "runtime/module/cache_key.h"
#include "runtime/module/disk_cache.h"
#include "runtime/module/kernel_file.h"
#include "runtime/module/translator_library.h"
#include "tools/ptarmigan/commands.h"
#include "translator/kernel_abi_version.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace ptarmigan::tool {
namespace {

using runtime::CacheSettings;
using runtime::DiskCache;
using runtime::KeyContents;

struct CacheOptions {
    std::string directory, file;
    bool kernels = false, stale = false;
};

/// The settings of the environment, with the folder that was asked for. Throws std::runtime_error if there is none.
CacheSettings settings_for(const CacheOptions& options) {
    CacheSettings settings = CacheSettings::from_environment();
    if (!options.directory.empty()) settings.directory = options.directory;
    if (settings.directory.empty()) throw std::runtime_error("there is no cache folder: HOME is not set");
    return settings;
}

/// Of this build of the translator, so that it can be found.
bool is_current(const KeyContents& key, const std::string& build_id) {
    return key.build_id == build_id && (key.is_note || key.abi_version == abi::kernel_abi_version);
}

std::string age(std::time_t then) {
    const auto seconds = std::max<std::time_t>(std::time(nullptr) - then, 0);
    if (seconds < 120) return fmt::format("{} s", seconds);
    if (seconds < 7200) return fmt::format("{} min", seconds / 60);
    if (seconds < 2 * 86400) return fmt::format("{} h", seconds / 3600);
    return fmt::format("{} days", seconds / 86400);
}

std::string size(std::uint64_t bytes) {
    return bytes < 10240 ? fmt::format("{} bytes", bytes)
                         : fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
}

/// Files that have something in common.
struct Group {
    std::size_t files = 0;
    std::uint64_t bytes = 0;
    std::time_t used = 0;
    void add(const DiskCache::File& file) {
        ++files;
        bytes += file.size;
        used = std::max(used, file.used);
    }
};

std::string describe(const Group& group) {
    return fmt::format("{}, {}{}", group.files, size(group.bytes),
                       group.files ? ", last used " + age(group.used) + " ago" : std::string());
}

struct Statistics {
    Group all, kernels, notes, stale, unusable;
    std::map<std::string, Group> targets; ///< by CPU
    struct Text {
        Group group;
        std::map<std::string, std::pair<Group, std::set<std::string>>> kernels; ///< with block shapes
    };
    std::map<std::string, Text> texts; ///< by hash
};

Statistics look_at(const DiskCache& cache, const std::string& build_id) {
    Statistics all;
    for (const DiskCache::File& file : cache.list()) {
        all.all.add(file);
        const auto bytes = cache.load(file.name);
        const auto stored = bytes ? runtime::stored_key(*bytes) : std::nullopt;
        const auto key = stored ? runtime::read_key(*stored) : std::nullopt;
        if (!key || runtime::file_name(*stored) != file.name) {
            all.unusable.add(file);
            continue;
        }
        if (!is_current(*key, build_id)) {
            all.stale.add(file);
            continue;
        }
        (key->is_note ? all.notes : all.kernels).add(file);
        if (key->is_note) continue;
        all.targets[key->target.substr(0, key->target.find('|'))].add(file);
        Statistics::Text& text = all.texts[fmt::format("{:016x}{:016x}", key->text_hash.high, key->text_hash.low)];
        text.group.add(file);
        auto& [group, shapes] = text.kernels[key->kernel];
        group.add(file);
        shapes.insert(fmt::format("{}", fmt::join(key->shape.ntid, "x")));
    }
    return all;
}

void print(const std::string& folder, const std::string& remark, const Statistics& all, bool with_kernels) {
    std::printf("folder               %s%s\n", folder.c_str(), remark.c_str());
    std::printf("files                %s\n", describe(all.all).c_str());
    std::printf("kernels              %s\n", describe(all.kernels).c_str());
    for (const auto& [cpu, group] : all.targets) std::printf("  for %-14s %s\n", cpu.c_str(), describe(group).c_str());
    std::printf("notes on texts       %s\n", describe(all.notes).c_str());
    std::printf("of other builds      %s\n", describe(all.stale).c_str());
    if (all.unusable.files) std::printf("damaged or too old   %s\n", describe(all.unusable).c_str());
    std::printf("PTX texts            %zu\n", all.texts.size());
    if (!with_kernels) return;
    for (const auto& [hash, text] : all.texts) {
        std::printf("text %s: %s\n", hash.c_str(), describe(text.group).c_str());
        for (const auto& [name, kernel] : text.kernels)
            std::printf("  %s: %s; blocks of %s\n", name.c_str(), describe(kernel.first).c_str(),
                        fmt::format("{}", fmt::join(kernel.second, ", ")).c_str());
    }
}

int stats(const CacheOptions& options) {
    const CacheSettings settings = settings_for(options);
    const std::string build_id = runtime::translator_build_id(settings.translator_library);
    const DiskCache own(settings.directory, settings.size_limit);
    const std::string problem = own.problem();
    print(settings.directory, problem.empty() ? "" : " (" + problem + ")", look_at(own, build_id), options.kernels);
    std::printf("limit                %s (PTARMIGAN_CACHE_SIZE)\n", size(settings.size_limit).c_str());
    if (!options.directory.empty()) return exit_success;
    for (const std::string& folder : settings.system_directories) {
        const DiskCache system(folder, DiskCache::ReadOnly());
        std::printf("\n");
        print(folder, " (only read)", look_at(system, build_id), options.kernels);
    }
    return exit_success;
}

int clear(const CacheOptions& options) {
    const CacheSettings settings = settings_for(options);
    const std::string build_id = runtime::translator_build_id(settings.translator_library);
    const DiskCache cache(settings.directory, settings.size_limit);
    Group removed, left;
    for (const DiskCache::File& file : cache.list()) {
        if (options.stale) {
            const auto bytes = cache.load(file.name);
            const auto stored = bytes ? runtime::stored_key(*bytes) : std::nullopt;
            const auto key = stored ? runtime::read_key(*stored) : std::nullopt;
            if (key && is_current(*key, build_id)) continue;
        }
        (cache.remove(file.name) ? removed : left).add(file);
    }
    std::printf("%zu files removed, %s\n", removed.files, size(removed.bytes).c_str());
    if (left.files == 0) return exit_success;
    std::fprintf(stderr, "ptarmigan: %zu files can't be removed from %s\n", left.files, settings.directory.c_str());
    return exit_failure;
}

int export_to(const CacheOptions& options) {
    const CacheSettings settings = settings_for(options);
    const auto counts = runtime::export_cache(DiskCache(settings.directory, settings.size_limit), options.file);
    std::printf("%zu files to %s, %s\n", counts.files, options.file.c_str(), size(counts.bytes).c_str());
    if (counts.skipped) std::printf("%zu damaged or too old ones left out\n", counts.skipped);
    return exit_success;
}

/// Those that this CPU can run and that a setting can ask for.
std::vector<std::string> usable_targets() {
    const translator::TargetCpu host = translator::host_target();
    std::vector<std::string> keys;
    for (const char* name : {"host", "x86-64-v3", "x86-64-v4", "aarch64"})
        if (const auto target = translator::named_target(name); translator::can_run(host, target))
            keys.push_back(target.key());
    return keys;
}

int import_from(const CacheOptions& options) {
    const CacheSettings settings = settings_for(options);
    DiskCache cache(settings.directory, settings.size_limit);
    const std::string build_id = runtime::translator_build_id(settings.translator_library);
    if (build_id.empty()) throw std::runtime_error("no translator library: what it made can't be told from the rest");
    const auto counts = runtime::import_cache(cache, options.file, {build_id, usable_targets()});
    std::printf("%zu files added, %zu were there\n", counts.added, counts.present);
    if (counts.other_build) std::printf("%zu skipped: of another build of Ptarmigan\n", counts.other_build);
    if (counts.other_target) std::printf("%zu skipped: for another CPU\n", counts.other_target);
    if (counts.damaged) std::printf("%zu skipped: damaged\n", counts.damaged);
    if (counts.not_kept == 0) return exit_success;
    std::fprintf(stderr, "ptarmigan: %zu files can't be kept in %s\n", counts.not_kept, settings.directory.c_str());
    return exit_failure;
}

} // namespace

void add_cache_command(CLI::App& app, int& exit_code) {
    auto* command = app.add_subcommand("cache", "The folder of compiled kernels: what it holds; export and import");
    command->require_subcommand(1);
    auto options = std::make_shared<CacheOptions>();
    const auto add = [&, options](const char* name, const char* meaning, int (*work)(const CacheOptions&)) {
        auto* part = command->add_subcommand(name, meaning);
        part->add_option("--cache-dir", options->directory, "another folder than the one of `ptarmigan cache path`");
        part->callback([options, work, &exit_code] { exit_code = work(*options); });
        return part;
    };
    add("stats", "files, bytes, targets and age", stats)
        ->add_flag("--kernels", options->kernels, "each PTX text (by its hash) and its kernels too");
    add("clear", "remove all compiled kernels", clear)
        ->add_flag("--stale", options->stale, "only what other builds of Ptarmigan left, and what is damaged");
    add("export", "write all compiled kernels into one file", export_to)
        ->add_option("FILE", options->file, "the file")
        ->required();
    auto* import = add("import", "add the kernels of such a file", import_from);
    import->add_option("FILE", options->file, "the file")->required();
    import->footer(
        "The file holds machine code that programs will run: import only what you trust. Kernels of another build\n"
        "of Ptarmigan or for a CPU that this one can't stand for are skipped and counted; PTARMIGAN_TARGET=x86-64-v3\n"
        "(or x86-64-v4), when compiling and when running, makes kernels that many CPUs share.");
    add("path", "print the folder", [](const CacheOptions& given) {
        std::printf("%s\n", settings_for(given).directory.c_str());
        return exit_success;
    });
}

} // namespace ptarmigan::tool
