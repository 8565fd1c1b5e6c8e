// SPDX-License-Identifier: Apache-2.0
// Any bytes as a PTX text: lexer, parser, binder. An error or an accepted module are both fine.
#include "frontend/module_loader.h"
#include "tests/fuzz/text_target.h"

#include <sstream>

namespace {

/// Does a message begin as `input:5:9: error: `? Quoted source, which can hold any words, is indented.
bool tells_of_error(const std::string& messages) {
    std::istringstream lines(messages);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("input:")) continue;
        const auto place_end = line.find_first_not_of("0123456789:", sizeof "input:" - 1);
        if (place_end != std::string::npos && line.substr(place_end).starts_with(" error: ")) return true;
    }
    return false;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ptarmigan;
    const auto loader =
        ptx::ModuleLoader::load(std::string(reinterpret_cast<const char*>(data), size), "input",
                                {.bind_all_bodies = true, .max_errors = 20});
    const std::string messages = loader->diagnostics().render_all();
    if (loader->ok() != (loader->diagnostics().error_count() == 0) ||
        loader->ok() == tells_of_error(messages))
        fuzz::finding("verdict and messages disagree:\n" + messages);
    return 0;
}
