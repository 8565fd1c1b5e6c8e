// SPDX-License-Identifier: Apache-2.0
// How fast PTX becomes a validated module, on one core: real texts with all bodies, the same with bodies skipped, and a
// module of 50 MB of which one kernel is wanted. ptxas and LLVM's reader stand beside it where they are installed.
#include "bench/compile_time/driver_load.h"
#include "bench/compile_time/peers.h"
#include "bench/compile_time/texts.h"
#include "frontend/module_loader.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

namespace {

using namespace ptarmigan;

double cpu_seconds() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// CPU seconds to load all texts; throws if one has errors, since half a job is no measurement.
double load_all(const std::vector<std::string>& texts, bool with_bodies) {
    double seconds = 0;
    for (std::string text : texts) {
        const double start = cpu_seconds();
        const auto loader =
            ptx::ModuleLoader::load(std::move(text), "text", {.bind_all_bodies = with_bodies, .max_errors = 3});
        seconds += cpu_seconds() - start;
        if (!loader->ok()) throw std::runtime_error("a text has errors:\n" + loader->diagnostics().render_all());
    }
    return seconds;
}

void print(const std::string& what, double megabytes, double seconds) {
    fmt::print("| {:<52} | {:>7.2f} | {:>9.2f} | {:>8.1f} |\n", what, megabytes, 1e3 * seconds, megabytes / seconds);
}

void print_missing(const std::string& what) {
    fmt::print("| {:<52} | {:>7} | {:>9} | {:>8} |\n", what, "-", "-", "-");
}

/// Loads the module in a process of its own and binds one kernel; wall seconds and the resident megabytes that came on
/// top of the text.
struct OneKernel {
    double seconds = 0, megabytes = 0;
};
OneKernel load_one_kernel(const std::string& text) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    const pid_t child = fork();
    if (child == 0) {
        OneKernel result;
        std::string copy = text;
        malloc_trim(0); // what earlier rounds left behind would hide what this one takes
        const double before = bench::resident_megabytes();
        timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        const auto loader = ptx::ModuleLoader::load(std::move(copy), "large");
        const ptx::Module& module = loader->module();
        ptx::FunctionId last = static_cast<ptx::FunctionId>(module.functions.size() - 1);
        while (last > 0 && module.functions[last].is_declaration) --last;
        const bool bound = loader->ok() && !loader->body(last).instructions.empty();
        clock_gettime(CLOCK_MONOTONIC, &end);
        result.seconds =
            static_cast<double>(end.tv_sec - start.tv_sec) + 1e-9 * static_cast<double>(end.tv_nsec - start.tv_nsec);
        result.megabytes = bench::resident_megabytes() - before;
        const bool told = write(ends[1], &result, sizeof result) == sizeof result;
        _exit(bound && told ? 0 : 1);
    }
    OneKernel result;
    const bool heard = read(ends[0], &result, sizeof result) == sizeof result;
    int status = 1;
    waitpid(child, &status, 0);
    close(ends[0]);
    close(ends[1]);
    if (!heard || status != 0) throw std::runtime_error("the large module can't be loaded");
    return result;
}

std::string last_kernel(const std::string& text) {
    const auto loader = ptx::ModuleLoader::load(text, "large");
    std::string name;
    for (const ptx::Function& function : loader->module().functions)
        if (function.is_entry) name = function.name;
    return name;
}

std::string temporary_folder() {
    std::string path = (std::filesystem::temp_directory_path() / "ptarmigan-bench-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("no folder for temporary files");
    return path;
}

/// cuModuleLoadData of the module: one kernel checked, all of them, and when the driver knows that they are right.
void print_driver_loads(const std::string& driver, const std::string& large, unsigned rounds) {
    const std::string kernel = last_kernel(large);
    std::array<bench::DriverLoad, 3> best;
    best.fill({1e9, 0});
    const std::string folder = temporary_folder(), file = folder + "/large.ptx";
    std::ofstream(file, std::ios::binary) << large;
    for (unsigned i = 0; i < rounds; ++i) {
        const std::string cache = temporary_folder();
        for (std::size_t kind = 0; kind < best.size(); ++kind) {
            const bench::DriverLoad load = bench::load_with_driver(driver, file, kernel, cache, kind != 0);
            if (load.seconds < best[kind].seconds) best[kind] = load;
        }
        std::filesystem::remove_all(cache);
    }
    std::filesystem::remove_all(folder);
    const double megabytes = static_cast<double>(large.size()) / 1e6;
    constexpr const char* names[] = {"the same by the driver API", "CUDA_MODULE_LOADING=EAGER",
                                     "EAGER, the text is known"};
    for (std::size_t kind = 0; kind < best.size(); ++kind)
        print(fmt::format("{}, {:.1f} MB", names[kind], best[kind].megabytes), megabytes, best[kind].seconds);
}

} // namespace

int main(int argc, char** argv) try {
    if (const auto status = bench::run_as_loader(argc, argv)) return *status;
    std::vector<std::string> files;
    std::string kernels = "bench/kernels/kernels.ptx", ir_source = "tests/corpus/sources/clang.cu";
    std::string driver = "build/lib/libcuda.so.1";
    std::uint64_t sample = 10000000;
    unsigned rounds = 3;
    CLI::App app("PTX text to validated module: speed and memory");
    app.add_option("files", files, "PTX texts (*.ptx), or libraries with fat binaries inside");
    app.add_option("--kernels", kernels, "PTX text that the large module is made of")->capture_default_str();
    app.add_option("--ir-source", ir_source, "CUDA source for clang's LLVM IR")->capture_default_str();
    app.add_option("--libcuda", driver, "the driver that loads the large module")->capture_default_str();
    app.add_option("--sample", sample, "bytes of PTX of each file")->capture_default_str();
    app.add_option("--rounds", rounds, "the fastest counts")->capture_default_str();
    CLI11_PARSE(app, argc, argv);

    std::vector<std::string> texts;
    for (const std::string& file : files) bench::add_texts(file, sample, texts);
    if (!files.empty() && texts.empty()) throw std::runtime_error("no PTX in the files");
    if (texts.empty()) bench::add_texts(kernels, sample, texts);
    double megabytes = 0;
    for (const std::string& text : texts) megabytes += static_cast<double>(text.size()) / 1e6;
    ptx::ModuleLoader::load(texts.front(), "warm-up"); // the instruction table is made once per process

    fmt::print("| {:<52} | {:>7} | {:>9} | {:>8} |\n| --- | --- | --- | --- |\n", "text to", "MB", "ms", "MB/s");
    double all = 1e9, heads = 1e9;
    for (unsigned i = 0; i < rounds; ++i) {
        all = std::min(all, load_all(texts, true));
        heads = std::min(heads, load_all(texts, false));
    }
    print(fmt::format("validated module with all bodies ({} texts)", texts.size()), megabytes, all);
    print("module, bodies skipped", megabytes, heads);

    const std::string large = bench::large_module(kernels, 50000000);
    OneKernel best{1e9, 0};
    for (unsigned i = 0; i < rounds; ++i) {
        const OneKernel one = load_one_kernel(large);
        if (one.seconds < best.seconds) best = one;
    }
    print(fmt::format("one kernel of a large module, {:.1f} MB of memory", best.megabytes),
          static_cast<double>(large.size()) / 1e6, best.seconds);

    print_driver_loads(driver, large, rounds);

    for (const bench::Peer& peer : bench::peers(kernels, ir_source, rounds))
        if (peer.seconds > 0)
            print(peer.what, peer.megabytes, peer.seconds);
        else
            print_missing(peer.what);
    return 0;
} catch (const std::exception& e) {
    fmt::print(stderr, "bench_compile_time: {}\n", e.what());
    return 1;
}
