// SPDX-License-Identifier: Apache-2.0
#include "bench/first_launch/corpus.h"

#include "frontend/module_loader.h"
#include "runtime/module/compilation.h"
#include "runtime/module/process_target.h"
#include "runtime/module/translator_library.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace ptarmigan::bench {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> texts_in(const std::vector<std::string>& folders) {
    std::vector<fs::path> files;
    for (const std::string& folder : folders)
        for (const auto& file : fs::recursive_directory_iterator(folder))
            if (file.path().extension() == ".ptx") files.push_back(file.path());
    std::sort(files.begin(), files.end());
    return files;
}

translator::BlockShape shape_of(const ptx::Function& kernel) {
    translator::BlockShape shape;
    const auto& required = kernel.limits.required_ntid;
    if (required[0] == 0) {
        shape.ntid = {256, 1, 1};
    } else {
        for (unsigned i = 0; i < 3; ++i) shape.ntid[i] = std::max<std::uint32_t>(required[i], 1);
    }
    return shape;
}

struct KernelRun {
    std::string name;
    double milliseconds_a_statement;
};

} // namespace

CorpusRun compile_corpus(const std::vector<std::string>& folders, const translator::CompileForm& form) {
    const translator::TranslatorApi& api = runtime::translator_api(runtime::default_translator_path());
    translator::CompileOptions options;
    static_cast<translator::CompileForm&>(options) = form;
    options.target = runtime::process_target();
    CorpusRun total;
    std::vector<KernelRun> runs;
    for (const fs::path& path : texts_in(folders)) {
        std::ifstream file(path, std::ios::binary);
        const auto loader = ptx::ModuleLoader::load({std::istreambuf_iterator<char>(file), {}}, path.string());
        if (!loader->ok()) continue; // refused on purpose
        for (const ptx::Function& function : loader->module().functions) {
            if (!function.is_entry || function.is_declaration) continue;
            translator::CompileProgress progress;
            progress.kernel = function.name;
            double seconds = 0;
            try {
                seconds = runtime::attempt_compilation(api, progress, [&] {
                    api.compile(*loader, function.name, shape_of(function), options, nullptr, &progress);
                });
            } catch (const std::exception&) {
                ++total.unsupported;
                continue;
            }
            const unsigned statements = std::max(1u, progress.statements.load());
            ++total.kernels;
            total.statements += statements;
            total.seconds += seconds;
            runs.push_back({path.filename().string() + ": " + function.name, 1e3 * seconds / statements});
        }
    }
    if (runs.empty()) return total;
    std::sort(runs.begin(), runs.end(), [](const KernelRun& a, const KernelRun& b) {
        return a.milliseconds_a_statement < b.milliseconds_a_statement;
    });
    total.median = runs[runs.size() / 2].milliseconds_a_statement;
    total.ninth_decile = runs[runs.size() * 9 / 10].milliseconds_a_statement;
    total.slowest = runs.back().milliseconds_a_statement;
    total.slowest_kernel = runs.back().name;
    return total;
}

} // namespace ptarmigan::bench
