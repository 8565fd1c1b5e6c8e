// SPDX-License-Identifier: Apache-2.0
// What a program waits for when its kernels are compiled: whole processes with an empty cache and with a filled one,
// and what ptxas takes for the same kernels; then what a statement takes over many texts.
#include "bench/first_launch/corpus.h"
#include "bench/first_launch/programs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace {

using namespace ptarmigan;
using namespace ptarmigan::bench;

/// A way to compile.
struct Setting {
    std::string name;
    Environment environment;
    translator::CompileForm form; ///< the same for the corpus
};

const std::vector<Setting>& settings() {
    static const std::vector<Setting> list{
        {"auto", {{"PTARMIGAN_TIER", "auto"}}, {}},
        {"best", {{"PTARMIGAN_TIER", "best"}}, {}},
        {"quick", {{"PTARMIGAN_TIER", "quick"}}, {.optimization = translator::Optimization::least}}};
    return list;
}

/// What the log of a run says of compilations.
struct Compilations {
    std::vector<std::string> kernels;
    unsigned long statements = 0;
    double seconds = 0;
};

/// Lines "ptarmigan: kernel NAME: 11.900 ms of CPU for 512 statements".
Compilations read_log(const std::string& log) {
    Compilations all;
    constexpr std::string_view begin = "ptarmigan: kernel ", middle = " ms of CPU for ";
    for (std::size_t at = 0; at < log.size();) {
        const std::size_t end = std::min(log.find('\n', at), log.size());
        const std::string line = log.substr(at, end - at);
        at = end + 1;
        const std::size_t name_end = line.find(": ", begin.size()), cpu_end = line.find(middle);
        if (!line.starts_with(begin) || cpu_end == line.npos || name_end == line.npos) continue;
        const std::string name = line.substr(begin.size(), name_end - begin.size());
        if (std::find(all.kernels.begin(), all.kernels.end(), name) == all.kernels.end()) all.kernels.push_back(name);
        all.seconds += 1e-3 * std::strtod(line.c_str() + name_end + 2, nullptr);
        all.statements += std::strtoul(line.c_str() + cpu_end + middle.size(), nullptr, 10);
    }
    return all;
}

struct Row {
    ProcessRun cold, warm; ///< the fastest each, by its wall time
    Compilations compilations;
};

/// Throws if the program fails: half a run is no measurement.
void keep_faster(ProcessRun& best, ProcessRun run, const Program& program) {
    if (!run.ok) throw std::runtime_error(program.name + " fails:\n" + run.output);
    if (!best.ok || run.wall < best.wall) best = std::move(run);
}

Row measure(const Program& program, const Setting& setting, const std::string& library, const std::string& work,
            unsigned rounds) {
    const std::string cache = work + "/cache";
    Environment environment = program.environment;
    environment.insert(environment.end(), setting.environment.begin(), setting.environment.end());
    const char* inherited = std::getenv("LD_LIBRARY_PATH");
    environment.emplace_back("LD_LIBRARY_PATH", library + (inherited ? std::string(":") + inherited : ""));
    environment.emplace_back("PTARMIGAN_CACHE_DIR", cache);
    Environment logged = environment;
    logged.emplace_back("PTARMIGAN_LOG", "info");
    Row row;
    // The first run fills the caches of others too, so it is not counted.
    std::filesystem::remove_all(cache);
    ProcessRun first;
    keep_faster(first, run_process(program.command, logged), program);
    row.compilations = read_log(first.output);
    for (unsigned i = 0; i < rounds; ++i) {
        std::filesystem::remove_all(cache);
        keep_faster(row.cold, run_process(program.command, environment), program);
        keep_faster(row.warm, run_process(program.command, environment), program);
    }
    std::filesystem::remove_all(cache);
    return row;
}

std::string number_or_dash(double number, int digits) {
    return number < 0 ? "-" : fmt::format("{:.{}f}", number, digits);
}

void print(const Program& program, const Setting& setting, const Row& row, double ptxas) {
    const Compilations& all = row.compilations;
    const double each = all.statements ? 1e3 * all.seconds / static_cast<double>(all.statements) : -1;
    fmt::print("| {} | {} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {} | {:.0f} | {:.3f} | {:.3f} | {:.0f} | {} |\n",
               program.name, setting.name, all.kernels.size(), all.statements, row.cold.wall, row.cold.cpu, all.seconds,
               number_or_dash(each, 3), row.cold.peak_megabytes, row.warm.wall, row.warm.cpu, row.warm.peak_megabytes,
               number_or_dash(ptxas, 2));
    std::fflush(stdout);
}

void print_corpus(const std::vector<std::string>& folders) {
    fmt::print("\n| corpus | kernels | statements | CPU s | ms/statement | median | 90 % | slowest |\n"
               "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (const Setting& setting : settings()) {
        if (setting.name == "auto") continue; // no form of code, but which of the others comes first
        const CorpusRun run = compile_corpus(folders, setting.form);
        fmt::print("| {} | {} ({} not supported) | {} | {:.2f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} {} |\n",
                   setting.name, run.kernels, run.unsupported, run.statements, run.seconds,
                   run.statements ? 1e3 * run.seconds / static_cast<double>(run.statements) : 0, run.median,
                   run.ninth_decile, run.slowest, run.slowest_kernel);
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app("Times programs whose kernels are not compiled yet, and again when they are.");
    const std::filesystem::path build = std::filesystem::path(argv[0]).parent_path().parent_path();
    ProgramSettings programs{PTARMIGAN_FIRST_LAUNCH_SOURCES, (build / "first_launch").string(), "", ""};
    std::string library = (build / "lib").string(), ptxas, only, only_setting;
    std::vector<std::string> corpus;
    unsigned rounds = 3;
    app.add_option("--library", library, "Folder of libcuda.so.1")->capture_default_str();
    app.add_option("--work", programs.work, "Folder for the programs built, kept")->capture_default_str();
    app.add_option("--nvcc", programs.nvcc, "Compiler (default: of PATH or /usr/local/cuda)");
    app.add_option("--ptxas", ptxas, "Assembler (default: of PATH or /usr/local/cuda)");
    app.add_option("--python", programs.python, "Python with CuPy");
    app.add_option("--only", only, "Only programs whose name contains this");
    app.add_option("--setting", only_setting, "Only this way to compile: best or quick");
    app.add_option("--corpus", corpus, "Folders of .ptx files: what a statement takes, over all kernels");
    app.add_option("--rounds", rounds, "Runs of each kind; the fastest counts")->check(CLI::PositiveNumber);
    CLI11_PARSE(app, argc, argv);
    const auto tool = [](const std::string& given, const std::string& name) {
        if (!given.empty()) return given;
        return run_process({name, "--version"}).ok ? name : "/usr/local/cuda/bin/" + name;
    };
    programs.nvcc = tool(programs.nvcc, "nvcc");
    ptxas = tool(ptxas, "ptxas");
    int status = 0;
    try {
        programs.work = std::filesystem::absolute(programs.work).string();
        library = std::filesystem::absolute(library).string();
        std::filesystem::create_directories(programs.work);
        if (only != "none")
            fmt::print(
                "| program | code | kernels | statements | cold, s | CPU s | of it compiling | ms/statement | peak MB "
                "| warm, s | CPU s | peak MB | ptxas, CPU s |\n"
                "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
        for (Program& program : make_programs(programs, only)) {
            if (!program.missing.empty()) {
                fmt::print("| {} | skipped: {} |\n", program.name, program.missing);
                continue;
            }
            for (const Setting& setting : settings()) {
                if (!only_setting.empty() && setting.name != only_setting) continue;
                try {
                    const Row row = measure(program, setting, library, programs.work, rounds);
                    find_ptx(program, programs);
                    print(program, setting, row, ptxas_seconds(program, row.compilations.kernels, ptxas));
                } catch (const std::runtime_error& error) {
                    fmt::print("| {} | {} | WRONG: {} |\n", program.name, setting.name, error.what());
                    status = 1;
                }
            }
        }
        // Last: what this process has resident would count for its children.
        if (!corpus.empty()) print_corpus(corpus);
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
    return status;
}
