// SPDX-License-Identifier: Apache-2.0
// translate_check: loads PTX texts and translates every kernel of them. A line per file says how many became code and how
// many are refused by a row of the instruction table; exit status 1 if anything else is refused, or does not load.
#include "frontend/isa/instruction_form.h"
#include "frontend/module_loader.h"
#include "tests/support/library_ptx.h"
#include "translator/compile.h"

#include <cstdio>
#include <set>
#include <string>

namespace {

using namespace ptarmigan;

/// The reasons for which rows are refused.
std::set<std::string, std::less<>> reasons_of_rows() {
    std::set<std::string, std::less<>> reasons;
    for (const ptx::FormInfo& form : ptx::all_forms())
        if (!form.lowered) reasons.emplace(form.unsupported_reason);
    return reasons;
}

bool is_refused_by_row(std::string_view why) {
    static const auto reasons = reasons_of_rows();
    constexpr std::string_view mark = "unsupported: ";
    const std::size_t at = why.find(mark);
    return at != why.npos && reasons.contains(why.substr(at + mark.size()));
}

bool check(const std::string& path, const std::string& stage) {
    const test::MappedFile file(path);
    const auto loader = ptx::ModuleLoader::load(std::string(file.bytes()), path, {.bind_all_bodies = true, .max_errors = 20});
    if (file.bytes().empty() || !loader->ok()) {
        std::fprintf(stderr, "%s: %s", path.c_str(), file.bytes().empty() ? "can't be read\n" : loader->diagnostics().render_all().c_str());
        return false;
    }
    translator::BlockShape shape;
    shape.ntid = {64, 1, 1};
    translator::CompileOptions options;
    options.target = translator::named_target("x86-64-v3");
    options.lane_width = 8;
    unsigned translated = 0, by_row = 0, others = 0;
    for (const ptx::Function& function : loader->module().functions) {
        if (!function.is_entry || function.is_declaration) continue;
        try {
            translator::dump(*loader, function.name, shape, options, stage);
            ++translated;
        } catch (const translator::UnsupportedError& error) {
            if (is_refused_by_row(error.what())) {
                ++by_row;
                continue;
            }
            ++others;
            std::fprintf(stderr, "%s: %s: %s\n", path.c_str(), function.name.c_str(), error.what());
        }
    }
    std::printf("%s: %u kernels become code, %u are refused by rows, %u otherwise\n", path.c_str(), translated, by_row, others);
    return translated != 0 && others == 0;
}

} // namespace

int main(int argc, char** argv) {
    const bool machine_code = argc > 1 && std::string_view(argv[1]) == "--asm";
    bool ok = argc > 1 + machine_code;
    for (int i = 1 + machine_code; i < argc; ++i) ok = check(argv[i], machine_code ? "asm" : "llvm") && ok;
    return ok ? 0 : 1;
}
