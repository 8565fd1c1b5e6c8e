// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/reproducer.h"

#include "frontend/module_loader.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "translator/any_cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>

namespace ptarmigan::runtime {
namespace {

using namespace translator;

/// A kernel's name may be longer than a file's.
std::string folder_name(const KernelRequest& request) {
    constexpr std::size_t longest = 100;
    return fmt::format("{}-{:016x}", request.kernel.substr(0, longest), request.text_hash.low);
}

std::string quoted(const std::string& word) {
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

} // namespace

std::string dump_options(const CompileOptions& options, const BlockShape& shape) {
    static constexpr const char* divergence[] = {"auto", "masks", "pcs"};
    static constexpr const char* barriers[] = {"auto", "regions", "fibers", "turns"};
    const auto named = [](const TargetCpu& target) -> std::string {
        for (const char* name : {"x86-64-v3", "x86-64-v4", "sapphirerapids", "aarch64"})
            if (named_target(name).key() == target.key()) return name;
        return "host";
    };
    const std::string cluster = shape.cluster == any_cluster ? "any" : fmt::format("{}", fmt::join(shape.cluster, ","));
    std::string text = fmt::format("--block {} --cluster {} --target {} --lanes {} --divergence {} --barriers {}",
                                   fmt::join(shape.ntid, ","), cluster, named(options.target), options.lane_width,
                                   divergence[static_cast<unsigned>(options.divergence)],
                                   barriers[static_cast<unsigned>(options.barriers)]);
    if (options.optimization == Optimization::least) text += " --optimization least";
    if (options.waiting_loops == WaitingLoops::all) text += " --waits all";
    if (options.approximation == Approximation::fast) text += " --approx fast";
    if (options.small_grid) text += " --small-grid";
    if (options.cooperative) text += " --cooperative";
    if (options.late_copies) text += " --late-copies";
    if (options.random_schedule) text += " --random-schedule";
    if (options.checked_memory) text += " --check memory";
    if (!options.aligned_parameters) text += " --checked-alignment";
    return text;
}

std::string save_reproducer(const KernelRequest& request, const std::vector<FailedForm>& failed) {
    const std::string directory = env_text(Env::reproducer);
    if (directory.empty()) return {};
    const std::filesystem::path folder = std::filesystem::path(directory) / folder_name(request);
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    const auto write = [&](const char* name, std::string_view text) {
        std::ofstream file(folder / name, std::ios::binary);
        file << text;
        return bool(file.flush());
    };
    std::string causes;
    for (const FailedForm& attempt : failed) causes += describe(attempt.form) + ": " + attempt.cause + "\n";
    causes += "CPU: " + request.options.target.key() + "\n";
    const std::string command = "ptarmigan dump kernel.ptx --stage asm --kernel " + quoted(request.kernel) + " " +
                                dump_options(request.options, request.shape) + "\n";
    if (write("kernel.ptx", request.loader.text()) && write("cause.txt", causes) && write("command.txt", command))
        return folder.string();
    log(LogLevel::error, "PTARMIGAN_REPRODUCER: " + folder.string() + " can't be written");
    return {};
}

} // namespace ptarmigan::runtime
