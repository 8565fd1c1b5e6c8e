// SPDX-License-Identifier: Apache-2.0
// Texts separated by lines `----`, linked: texts that are right by themselves give errors or a text
// that is right.
#include "frontend/link/linker.h"
#include "frontend/module_loader.h"
#include "frontend/ptx/provided_functions.h"
#include "tests/fuzz/text_target.h"

#include <string_view>

namespace {

using namespace ptarmigan;

/// ".version" to the end of ".target": units that differ there need not fit in one text.
std::string header_of(const ptx::Module& module) {
    return std::to_string(module.version.major * 100 + module.version.minor) + "/" +
           std::to_string(module.target.sm) + module.target.suffix;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::string_view separator = "\n----\n";
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    ptx::Linker linker(ptx::is_provided_function);
    std::string header;
    bool bodies_must_bind = true;
    for (unsigned units = 0; units < 8 && !rest.empty(); ++units) {
        const std::size_t end = rest.find(separator);
        const std::string text(rest.substr(0, end));
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + separator.size());
        const auto alone = ptx::ModuleLoader::load(
            text, "unit", {.bind_all_bodies = true, .max_errors = 20});
        if (header.empty()) header = header_of(alone->module());
        bodies_must_bind =
            bodies_must_bind && alone->ok() && header == header_of(alone->module());
        std::string messages;
        if (linker.add(text, "unit" + std::to_string(units), messages) == messages.empty() ||
            alone->ok())
            continue;
        return 0; // said so
    }
    if (linker.size() == 0) return 0;
    const ptx::LinkResult result = linker.link();
    if (result.ok != result.errors.empty()) fuzz::finding("verdict and errors disagree");
    if (!result.ok) return 0;
    const auto linked = ptx::ModuleLoader::load(
        result.text, "linked", {.bind_all_bodies = bodies_must_bind, .max_errors = 20});
    const std::string messages = linked->diagnostics().render_all();
    // nvlink doesn't compare the alignments of parameters, a call does.
    if (!linked->ok() && messages.find("alignment") == std::string::npos)
        fuzz::finding(messages + result.text);
    return 0;
}
