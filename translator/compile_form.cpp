// SPDX-License-Identifier: Apache-2.0
// Texts about forms and stages. No LLVM: also linked into the runtime.
#include "translator/compile.h"

namespace ptarmigan::translator {

std::string describe(const CompileForm& form) {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    if (form.lane_width != 0) add("lanes " + std::to_string(form.lane_width));
    if (form.divergence == DivergenceForm::masks) add("masks");
    if (form.divergence == DivergenceForm::program_counters) add("program counters");
    if (form.barriers == BarrierForm::regions) add("regions");
    if (form.barriers == BarrierForm::fibers) add("fibers");
    if (form.barriers == BarrierForm::turns) add("turns");
    if (form.optimization == Optimization::least) add("least optimization");
    return text.empty() ? "automatic" : text;
}

const char* name_of(CompileProgress::Stage stage) {
    switch (stage) {
    case CompileProgress::Stage::analysis: return "analysis";
    case CompileProgress::Stage::emission: return "emission";
    case CompileProgress::Stage::optimization: return "optimization";
    case CompileProgress::Stage::code_generation: return "code generation";
    case CompileProgress::Stage::linking: return "linking";
    }
    return "an unknown stage";
}

} // namespace ptarmigan::translator
