// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/fuzz/coverage.h"

#include "frontend/module_loader.h"
#include "tests/tools/fuzz/statement_writer.h"

#include <cstdio>
#include <map>
#include <set>

namespace fuzz {

using namespace ptarmigan::ptx;

unsigned print_coverage(const Generator& generator, Version version, Target target, std::uint32_t from, std::uint32_t to) {
    std::map<FormId, unsigned> programs;
    std::size_t instructions = 0;
    unsigned refused = 0;
    for (std::uint32_t seed = from; seed < to; ++seed) {
        std::set<FormId> forms;
        const auto loader = ModuleLoader::load(generator.generate(seed).text, "seed " + std::to_string(seed));
        try {
            if (!loader->ok()) throw DiagnosticError("declarations: " + loader->diagnostics().render_all());
            for (std::size_t f = 0; f < loader->module().functions.size(); ++f)
                for (const Instruction& instruction : loader->body(static_cast<FunctionId>(f)).instructions) forms.insert(instruction.form), ++instructions;
        } catch (const DiagnosticError& error) {
            if (++refused <= 20) std::printf("%s\n", error.what());
        }
        for (FormId form : forms) ++programs[form];
    }
    unsigned missing = 0;
    recordings::Random random(1);
    StatementWriter writer(random, Registers::of_kernel(), version, target);
    std::map<std::string, unsigned> reasons;
    for (const FormInfo& info : all_forms()) {
        const RowUse use = use_of(info, version, target);
        const unsigned count = programs.contains(info.id) ? programs.at(info.id) : 0;
        if (use.use == Use::none && count == 0) {
            if (info.lowered) std::printf("%s: none, %s\n", std::string(info.name).c_str(), use.reason);
            ++reasons[use.reason];
            continue;
        }
        const auto head = count == 0 ? writer.head(info.id) : std::nullopt;
        const bool is_value = use.use == Use::value || use.use == Use::shaped;
        if (count == 0 && (!head || (is_value && !writer.statement(*head)))) {
            const char* reason = head ? "programs have no registers of 8 bits" : "its words are refused at this version and target";
            std::printf("%s: none, %s\n", std::string(info.name).c_str(), reason);
            ++reasons[reason];
            continue;
        }
        std::printf("%s: %u\n", std::string(info.name).c_str(), count);
        missing += count == 0;
    }
    std::printf("%zu forms, %zu in the programs, %u of those that could be in none; %.0f instructions a program, %u programs refused\n", all_forms().size(), programs.size(), missing,
                double(instructions) / std::max(1u, to - from), refused);
    for (const auto& [reason, count] : reasons) std::printf("  %u left out: %s\n", count, reason.c_str());
    return missing + refused;
}

} // namespace fuzz
