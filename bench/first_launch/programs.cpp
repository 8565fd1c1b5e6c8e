// SPDX-License-Identifier: Apache-2.0
#include "bench/first_launch/programs.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace ptarmigan::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* cupy_name = "27 CuPy reductions";

bool is_newer(const fs::path& made, const fs::path& source) {
    std::error_code error;
    const auto time = fs::last_write_time(made, error);
    return !error && time >= fs::last_write_time(source, error) && !error;
}

Program nvcc_program(const std::string& name, const ProgramSettings& settings) {
    const fs::path source = fs::path(settings.sources) / (name + ".cu"), folder = fs::path(settings.work) / name;
    const fs::path binary = folder / name, ptx = folder / (name + ".ptx");
    Program program{name, {binary}, {}, {ptx}, {}};
    if (is_newer(binary, source) && is_newer(ptx, source)) return program;
    if (!run_process({settings.nvcc, "--version"}).ok) {
        program.missing = "nvcc is not installed";
        return program;
    }
    fs::create_directories(folder);
    // --keep: the very PTX that is in the program, for ptxas.
    const ProcessRun build = run_process(
        {settings.nvcc, "-std=c++17", "--keep", "--keep-dir", folder.string(), "-o", binary.string(), source.string()});
    if (!build.ok) program.missing = "nvcc fails: " + build.output;
    for (const auto& file : fs::directory_iterator(folder))
        if (file.path() != binary && file.path() != ptx) fs::remove(file.path());
    return program;
}

Program cupy_program(const ProgramSettings& settings) {
    Program program{cupy_name,
                    {settings.python, settings.sources + "/cupy_reductions.py"},
                    {{"CUPY_COMPILE_WITH_PTX", "1"}, {"CUPY_CACHE_DIR", settings.work + "/cupy"}},
                    {},
                    {}};
    if (settings.python.empty())
        program.missing = "no --python with CuPy";
    else if (!run_process({settings.python, "-c", "import importlib.util as u; assert u.find_spec('cupy')"}).ok)
        program.missing = settings.python + " has no CuPy";
    return program;
}

std::string contents_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// The names among `kernels` that `text` defines, with commas between.
std::string entries_in(const std::string& text, const std::vector<std::string>& kernels) {
    std::string names;
    for (const std::string& kernel : kernels)
        if (text.find(" " + kernel + "(") != text.npos) names += (names.empty() ? "" : ",") + kernel;
    return names;
}

} // namespace

std::vector<Program> make_programs(const ProgramSettings& settings, const std::string& only) {
    std::vector<Program> programs;
    for (const char* name : {"vector_add", "atomics", "cub", "thrust"})
        if (std::string(name).find(only) != std::string::npos) programs.push_back(nvcc_program(name, settings));
    if (std::string(cupy_name).find(only) != std::string::npos) programs.push_back(cupy_program(settings));
    return programs;
}

void find_ptx(Program& program, const ProgramSettings& settings) {
    const fs::path cache = fs::path(settings.work) / "cupy";
    if (!program.ptx.empty() || !fs::is_directory(cache)) return;
    for (const auto& file : fs::directory_iterator(cache)) {
        if (file.path().extension() != ".cubin") continue;
        // CuPy puts a hash in front.
        const std::string text = contents_of(file.path());
        const std::size_t begin = text.find("//");
        if (begin == text.npos) continue;
        const fs::path ptx = fs::path(file.path()).replace_extension(".ptx");
        std::ofstream(ptx, std::ios::binary) << text.substr(begin);
        program.ptx.push_back(ptx);
    }
}

double ptxas_seconds(const Program& program, const std::vector<std::string>& kernels, const std::string& ptxas) {
    double seconds = 0;
    for (const std::string& file : program.ptx) {
        const std::string entries = entries_in(contents_of(file), kernels);
        if (entries.empty()) continue;
        const ProcessRun run = run_process({ptxas, "-arch=sm_90", "--entry", entries, "-o", "/dev/null", file});
        if (!run.ok) return -1;
        seconds += run.cpu;
    }
    return seconds;
}

} // namespace ptarmigan::bench
